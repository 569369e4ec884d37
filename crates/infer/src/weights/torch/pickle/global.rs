use safetensors::Dtype;

/// The functions and classes that a file of tensors needs. All others are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Global {
    OrderedDict,
    /// `_rebuild_tensor` and its second and third version.
    Tensor(u8),
    Parameter,
    /// The class of a storage.
    Storage(Dtype),
    /// The name of a type, such as `torch.uint16`.
    Dtype(Dtype),
}

impl Global {
    pub(super) fn named(module: &str, name: &str) -> Option<Self> {
        match (module, name) {
            ("collections", "OrderedDict") => Some(Self::OrderedDict),
            ("torch._utils", "_rebuild_tensor") => Some(Self::Tensor(1)),
            ("torch._utils", "_rebuild_tensor_v2") => Some(Self::Tensor(2)),
            ("torch._utils", "_rebuild_tensor_v3") => Some(Self::Tensor(3)),
            ("torch._utils", "_rebuild_parameter") => Some(Self::Parameter),
            ("torch.storage", "UntypedStorage") => Some(Self::Storage(Dtype::U8)),
            ("torch", name) => storage(name)
                .map(Self::Storage)
                .or_else(|| dtype(name).map(Self::Dtype)),
            _ => None,
        }
    }
}

/// The classes of storages that `torch.save` names, whatever the device.
fn storage(name: &str) -> Option<Dtype> {
    Some(match name {
        "DoubleStorage" => Dtype::F64,
        "FloatStorage" => Dtype::F32,
        "HalfStorage" => Dtype::F16,
        "BFloat16Storage" => Dtype::BF16,
        "LongStorage" => Dtype::I64,
        "IntStorage" => Dtype::I32,
        "ShortStorage" => Dtype::I16,
        "CharStorage" => Dtype::I8,
        "ByteStorage" => Dtype::U8,
        "BoolStorage" => Dtype::BOOL,
        "ComplexFloatStorage" => Dtype::C64,
        _ => return None,
    })
}

/// The types without a class of storages: `_rebuild_tensor_v3` names them.
fn dtype(name: &str) -> Option<Dtype> {
    Some(match name {
        "uint16" => Dtype::U16,
        "uint32" => Dtype::U32,
        "uint64" => Dtype::U64,
        "float8_e4m3fn" => Dtype::F8_E4M3,
        "float8_e5m2" => Dtype::F8_E5M2,
        _ => return None,
    })
}
