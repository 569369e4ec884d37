use std::collections::BTreeMap;
use std::fs;
use std::io::Cursor;
use std::path::{Path, PathBuf};

use attend_infer::{Error, TensorSource, TorchFile, WeightsFile};
use candle_core::{Device, Tensor};

/// The files that torch has written from one state dict.
const WRITTEN: [&str; 4] = [
    "zip.bin",
    "zip_protocol_5.bin",
    "legacy.bin",
    "legacy_protocol_4.bin",
];
/// What the hostile files would leave in the working directory.
const MARKER: &str = "a-pickle-was-run";

/// A file of `scripts/golden/torch_bin.py`.
pub(crate) fn golden_path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden/torch")
        .join(name)
}

fn golden(name: &str) -> Vec<u8> {
    fs::read(golden_path(name)).unwrap()
}

pub(crate) fn bits(tensor: &Tensor) -> (Vec<usize>, Vec<u32>) {
    let values = tensor.flatten_all().unwrap().to_vec1::<f32>().unwrap();
    let bits = values.into_iter().map(f32::to_bits).collect();
    (tensor.dims().to_vec(), bits)
}

/// Every tensor of a safetensors file: its shape and its bits.
pub(crate) fn expected(name: &str) -> BTreeMap<String, (Vec<usize>, Vec<u32>)> {
    let mut file = WeightsFile::new(Cursor::new(golden(name)), Path::new(name)).unwrap();
    let names = file.shapes().into_keys();
    names
        .map(|name| {
            let tensor = file.read(&name, &Device::Cpu).unwrap();
            (name, bits(&tensor))
        })
        .collect()
}

fn open(bytes: Vec<u8>) -> Result<TorchFile<Cursor<Vec<u8>>>, Error> {
    TorchFile::new(Cursor::new(bytes), Path::new("pytorch_model.bin"))
}

/// The error of a file, which is one line and names the file.
fn message(bytes: Vec<u8>) -> String {
    let error = open(bytes).err().expect("an error");
    let message = error.to_string();
    assert!(message.starts_with("pytorch_model.bin: "), "{message}");
    assert!(!message.contains('\n'), "{message}");
    assert!(error.hint().is_some(), "{message}");
    message
}

/// A file in the older format whose state dict is this pickle, without storages.
fn legacy(pickle: &[u8]) -> Vec<u8> {
    let magic = b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19.";
    let version = b"\x80\x02M\xe9\x03.";
    let machine = b"\x80\x02}.";
    let keys = b"\x80\x02].";
    [magic, &version[..], machine, pickle, keys].concat()
}

/// Replaces the first occurrence of some bytes.
fn replaced(mut bytes: Vec<u8>, from: &[u8], to: &[u8]) -> Vec<u8> {
    let at = bytes.windows(from.len()).position(|window| window == from);
    let at = at.expect("the bytes");
    bytes.splice(at..at + from.len(), to.iter().copied());
    bytes
}

#[test]
fn every_tensor_that_torch_saved_is_read_bit_for_bit() {
    for name in WRITTEN {
        let mut file = open(golden(name)).unwrap();
        let expected = expected("expected.safetensors");
        assert!(expected.len() > 12);
        for (tensor, expected) in &expected {
            let read = file.read(tensor, &Device::Cpu).unwrap();
            assert_eq!(&bits(&read), expected, "{name}: {tensor}");
        }
        let others = file.shapes().into_iter();
        let others: Vec<_> = others
            .filter(|(name, _)| !expected.contains_key(name))
            .collect();
        let integers = [("mask", vec![2]), ("position_ids", vec![1, 6])];
        assert_eq!(others, integers.map(|(name, shape)| (name.into(), shape)));
    }
}

#[test]
fn parameters_are_read_and_integers_are_listed_but_refused_by_name() {
    let mut file = open(golden("parameter.bin")).unwrap();
    for (name, expected) in expected("parameter.safetensors") {
        assert_eq!(bits(&file.read(&name, &Device::Cpu).unwrap()), expected);
    }
    assert_eq!(file.shapes()["uint16"], [3]);
    let error = file.read("uint16", &Device::Cpu).unwrap_err().to_string();
    let expected = "pytorch_model.bin: tensor `uint16` is of type U16";
    assert!(error.contains(expected), "{error}");
    let mut file = open(golden("zip.bin")).unwrap();
    let error = file.read("position_ids", &Device::Cpu).unwrap_err();
    assert!(error.to_string().contains("is of type I64"), "{error}");
    let error = file.read("absent", &Device::Cpu).unwrap_err().to_string();
    assert!(error.contains("no tensor `absent`"), "{error}");
}

#[test]
fn a_file_cut_at_any_byte_is_an_error_of_one_line() {
    for name in WRITTEN.into_iter().chain(["parameter.bin"]) {
        let bytes = golden(name);
        for length in 0..bytes.len() {
            message(bytes[..length].to_vec());
        }
    }
}

#[test]
fn no_changed_byte_makes_the_reader_panic() {
    for name in WRITTEN {
        let bytes = golden(name);
        for at in 0..bytes.len() {
            for change in [0xff, 0x01] {
                let mut bytes = bytes.clone();
                bytes[at] ^= change;
                let Ok(mut file) = open(bytes) else { continue };
                for (tensor, shape) in file.shapes() {
                    if let Ok(tensor) = file.read(&tensor, &Device::Cpu) {
                        assert_eq!(tensor.dims(), shape);
                    }
                }
            }
        }
    }
}

#[test]
fn a_pickle_that_calls_something_is_refused_by_its_name_and_not_run() {
    let zip = message(golden("os_system.bin"));
    assert!(zip.contains("the pickle calls `posix.system`; only tensors are read"));
    let eval = message(golden("eval_legacy.bin"));
    assert!(eval.contains("the pickle calls `__builtin__.eval`; only tensors are read"));
    for (pickle, name) in [
        (&b"\x80\x02cos\nsystem\n."[..], "`os.system`"),
        (b"\x80\x02(X\x01\x00\x00\x00aios\nsystem\n.", "`os.system`"),
        (b"\x80\x04\x8c\x02os\x8c\x06system\x93.", "`os.system`"),
        (b"\x80\x02ctorch\nload\n.", "`torch.load`"),
        (
            b"\x80\x02ctorch._utils\n_rebuild_sparse_tensor\n.",
            "_rebuild_sparse_tensor",
        ),
        (b"\x80\x02c__builtin__\neval\n.", "`__builtin__.eval`"),
        (
            b"\x80\x02ccollections.OrderedDict\n__class__\n.",
            "OrderedDict.__class__",
        ),
        (b"\x80\x02ca\x1bb\rc\nd\n.", r"`a\u{1b}b\rc.d`"),
    ] {
        let message = message(legacy(pickle));
        assert!(message.contains("the pickle calls"), "{message}");
        assert!(message.contains(name), "{message}");
    }
    assert!(!Path::new(MARKER).exists());
}

#[test]
fn a_pickle_that_builds_an_object_is_refused_by_its_opcode() {
    let ordered = "ccollections\nOrderedDict\n";
    let float = "ctorch\nFloatStorage\n";
    for (opcodes, expected) in [
        (format!("{ordered})\u{81}"), "(NEWOBJ)"),
        (format!("{ordered})}}\u{92}"), "(NEWOBJ_EX)"),
        (format!("({ordered}o"), "(OBJ)"),
        ("\u{82}\u{1}".to_string(), "(EXT)"),
        ("}}b".to_string(), "(BUILD)"),
        (format!("{float}}}b"), "(BUILD)"),
        (
            format!("{float})R"),
            "calls what is not a function of tensors",
        ),
        (
            format!("{ordered}]\u{85}R"),
            "calls what is not a function of tensors",
        ),
        (")\u{8f}".to_string(), "opcode 0x8f"),
    ] {
        let opcodes = opcodes.chars().map(|c| c as u8);
        let pickle: Vec<u8> = b"\x80\x02".iter().copied().chain(opcodes).collect();
        let message = message(legacy(&[&pickle[..], b"."].concat()));
        assert!(message.contains(expected), "{message}");
    }
}

#[test]
fn only_a_dictionary_of_tensors_and_plain_values_is_read() {
    let item = |value: &[u8]| [b"\x80\x02}X\x01\x00\x00\x00a", value, b"s."].concat();
    for plain in [
        &b"N"[..],
        b"\x88",
        b"K\x05",
        b"G\0\0\0\0\0\0\0\0",
        b"X\x01\0\0\0b",
    ] {
        assert!(open(legacy(&item(plain))).unwrap().shapes().is_empty());
    }
    for other in [&b"}"[..], b"]", b")", b"ctorch\nFloatStorage\n", b"NQ"] {
        let message = message(legacy(&item(other)));
        assert!(
            message.contains("`a` is not a tensor") || message.contains("a storage without type"),
            "{message}"
        );
    }
    assert!(message(legacy(b"\x80\x02].")).contains("something else than a dictionary"));
    assert!(message(legacy(b"\x80\x02}K\x01Ns.")).contains("not a text"));
}

#[test]
fn a_compressed_archive_is_refused_without_being_decompressed() {
    for name in ["bomb.bin", "storage_bomb.bin"] {
        let message = message(golden(name));
        assert!(message.contains("is compressed"), "{message}");
    }
}

#[test]
fn lengths_and_counts_that_lie_are_errors_and_take_no_memory() {
    for pickle in [
        &b"\x80\x02X\xff\xff\xff\xff"[..],
        b"\x80\x04\x8d\xff\xff\xff\xff\xff\xff\xff\x7f",
        b"\x80\x04\x95\xff\xff\xff\xff\xff\xff\xff\xff",
        b"\x80\x02\x8a\xff",
        b"\x80\x02j\xff\xff\xff\xff.",
        b"\x80\x02.",
        b"\x80\x02(.",
        b"\x80\x02N(s.",
        b"\x80\x02t.",
        b"\x80\x02a.",
        b"\x80\x02]N(Ku.",
        b"\x80\x02R.",
        b"\x80\x02NNR.",
        b"\x80\x02\x93.",
        b"\x80\x02q\x00.",
        b"\x80\x09.",
    ] {
        message(legacy(pickle));
    }
    // More values, marks and memo entries than are kept.
    for opcode in [&b"N"[..], b"(", b"h\x00"] {
        let many = [b"\x80\x02Nq\x00", &opcode.repeat(1 << 21)[..], b"."].concat();
        assert!(message(legacy(&many)).contains("more than 1048576"));
    }
    // The number of entries in the directory, its length and its start.
    let zip = golden("zip.bin");
    let end = zip.windows(4).rposition(|window| window == b"PK\x06\x06");
    for field in [32, 40, 48] {
        let mut bytes = zip.clone();
        bytes[end.unwrap() + field + 7] = 0x10;
        assert!(message(bytes).contains("directory is not where it says"));
    }
}

#[test]
fn a_storage_shorter_than_its_tensor_and_a_moved_entry_are_errors() {
    // `edges` is the only tensor of six numbers: K\x06 is its shape and its storage's length.
    for (name, from, to, expected) in [
        ("zip.bin", &b"cpuq"[..], &b"cpvq"[..], ""),
        ("zip.bin", b"data/6", b"data/7", "`zip/data/6`"),
        ("legacy.bin", b"K\x06", b"K\x07", "length"),
        ("zip.bin", b"K\x06", b"K\x07", "bytes where the pickle says"),
        (
            "zip.bin",
            b"FloatStorage",
            b"FloatStorags",
            "`torch.FloatStorags`",
        ),
        (
            "zip.bin",
            b"zip/data.pkl",
            b"zap/data.pkl",
            "is not where it says",
        ),
    ] {
        let bytes = replaced(golden(name), from, to);
        match expected {
            "" => assert!(open(bytes).is_ok()),
            _ => assert!(message(bytes).contains(expected), "{expected}"),
        }
    }
}

#[test]
fn big_endian_files_and_files_of_others_are_refused() {
    assert!(message(golden("big_endian.bin")).contains("big endian"));
    let item = b"\x80\x02}X\x0d\x00\x00\x00little_endian\x89s.";
    let legacy = replaced(legacy(b"\x80\x02}."), b"\x80\x02}.", item);
    assert!(message(legacy).contains("big endian"));
    assert!(message(b"\x80\x02}.".to_vec()).contains("`torch.save` has not written"));
    assert!(message(b"a text".to_vec()).contains("neither a zip archive"));
    let renamed = replaced(golden("zip.bin"), b"zip/data.pkl", b"zip/data.pkx");
    let end = renamed.windows(12).rposition(|w| w == b"zip/data.pkl");
    let mut bytes = renamed;
    bytes[end.unwrap() + 11] = b'x';
    assert!(message(bytes).contains("it has no data.pkl"));
}
