use std::collections::BTreeMap;

use safetensors::Dtype;

use super::super::fault::{Fault, shown};
use super::super::floats::bytes_of;
use super::pickle::{Global, Id, Pickle, Value};
use super::view::View;

/// Where the numbers of one or several tensors are: a persistent value of the pickle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Storage<'a> {
    pub(super) key: &'a str,
    pub(super) dtype: Dtype,
    pub(super) bytes: u64,
}

impl Storage<'_> {
    /// The bytes of one of its numbers.
    pub(super) fn size(&self) -> u64 {
        bytes_of(self.dtype) as u64
    }
}

/// All storages that a pickle names, by key.
pub(super) fn storages(pickle: &Pickle) -> Result<BTreeMap<&str, Storage<'_>>, Fault> {
    let mut storages = BTreeMap::new();
    for value in pickle.values() {
        let Value::Persistent(id) = value else {
            continue;
        };
        let storage = storage(pickle, *id)?;
        let before = storages.insert(storage.key, storage);
        if before.is_some_and(|before| before != storage) {
            let key = shown(storage.key);
            return Fault::damaged(format!("storage `{key}` has two types or lengths"));
        }
    }
    Ok(storages)
}

/// `("storage", class, key, device, length)`. Old versions of torch add what is `None` in all but the oldest.
fn storage(pickle: &Pickle, id: Id) -> Result<Storage<'_>, Fault> {
    let (kind, class, key, length) = match pickle.tuple(id) {
        Some(&[kind, class, key, _, length]) => (kind, class, key, length),
        Some(&[kind, class, key, _, length, view]) if matches!(pickle.get(view), Value::None) => {
            (kind, class, key, length)
        }
        Some([_, _, _, _, _, _]) => return Fault::refused("a storage that is part of another one"),
        _ => return Fault::damaged("its pickle has a storage without type, key and length"),
    };
    let kind = pickle.text(kind);
    let (key, length) = (pickle.text(key), pickle.count(length));
    match (kind, pickle.get(class), key, length) {
        (Some("storage"), Value::Global(Global::Storage(dtype)), Some(key), Some(length)) => {
            let Some(bytes) = length.checked_mul(bytes_of(*dtype) as u64) else {
                return Fault::damaged(format!("storage `{}` is too long", shown(key)));
            };
            Ok(Storage {
                key,
                dtype: *dtype,
                bytes,
            })
        }
        _ => Fault::damaged("its pickle has a storage without type, key and length"),
    }
}

/// The tensors of a state dict. `starts` says where each storage begins in the file.
///
/// Beside tensors, a state dict may have numbers, texts and `None`, which are ignored: they cannot be weights.
/// Anything else could hide some, so it is refused by name.
pub(super) fn tensors(
    pickle: &Pickle,
    starts: &BTreeMap<&str, u64>,
) -> Result<BTreeMap<String, View>, Fault> {
    let Value::Dict { items, .. } = pickle.root() else {
        return Fault::refused("it is of something else than a dictionary of tensors");
    };
    let mut tensors = BTreeMap::new();
    for (name, value) in items {
        let Some(name) = pickle.text(*name) else {
            return Fault::refused("a name of a tensor is not a text");
        };
        let view = match *pickle.get(*value) {
            Value::Call {
                function,
                arguments,
            } => tensor(pickle, function, arguments, starts).map_err(|fault| named(fault, name))?,
            Value::None | Value::Bool(_) | Value::Int(_) | Value::Float | Value::Text(_) => {
                continue;
            }
            _ => return Fault::refused(format!("`{}` is not a tensor", shown(name))),
        };
        if tensors.insert(name.to_string(), view).is_some() {
            return Fault::damaged(format!("tensor `{}` is there twice", shown(name)));
        }
    }
    Ok(tensors)
}

/// A fault with the name of its tensor.
fn named(fault: Fault, name: &str) -> Fault {
    let of = |message: String| format!("tensor `{}`: {message}", shown(name));
    match fault {
        Fault::Damaged(message) => Fault::Damaged(of(message)),
        Fault::Refused(message) => Fault::Refused(of(message)),
        other => other,
    }
}

/// What a call of torch's functions would build.
fn tensor(
    pickle: &Pickle,
    function: Global,
    arguments: Id,
    starts: &BTreeMap<&str, u64>,
) -> Result<View, Fault> {
    let (mut function, mut arguments) = (function, arguments);
    if function == Global::Parameter {
        // (tensor, requires gradient, hooks)
        let data = pickle.tuple(arguments).and_then(<[Id]>::first);
        match data.map(|data| pickle.get(*data)) {
            Some(Value::Call {
                function: of,
                arguments: with,
            }) => (function, arguments) = (*of, *with),
            _ => return Fault::damaged("a parameter without a tensor"),
        }
    }
    let Global::Tensor(version) = function else {
        return Fault::refused("a parameter of a parameter");
    };
    // (storage, offset, shape, strides), then (requires gradient, hooks), then the type in version 3, then
    // what changes the numbers: that they are negated, for example.
    let Some((&[storage, offset, shape, strides], more)) = pickle
        .tuple(arguments)
        .and_then(|arguments| arguments.split_first_chunk())
    else {
        return Fault::damaged("without storage, offset, shape and strides");
    };
    let Value::Persistent(storage) = pickle.get(storage) else {
        return Fault::damaged("without a storage");
    };
    let storage = self::storage(pickle, *storage)?;
    let (dtype, more) = match (version, more) {
        (1, []) => (storage.dtype, &[][..]),
        (2, [_, _, more @ ..]) => (storage.dtype, more),
        (3, [_, _, dtype, more @ ..]) => match pickle.get(*dtype) {
            Value::Global(Global::Dtype(dtype)) => (*dtype, more),
            _ => return Fault::refused("of an unknown type"),
        },
        _ => return Fault::damaged("with missing arguments"),
    };
    let plain = |id: &Id| match pickle.get(*id) {
        Value::None => true,
        Value::Dict { items, .. } => items.is_empty(),
        _ => false,
    };
    if !more.iter().all(plain) {
        return Fault::refused("with metadata that can change its numbers");
    }
    let counts = |id: Id| -> Option<Vec<u64>> {
        let items = pickle.tuple(id)?;
        let few = items.len() <= View::MOST_DIMENSIONS;
        few.then(|| items.iter().map(|item| pickle.count(*item)).collect())?
    };
    let (Some(offset), Some(shape), Some(strides)) =
        (pickle.count(offset), counts(shape), counts(strides))
    else {
        return Fault::damaged("its shape is not one of torch");
    };
    let Some(start) = starts.get(storage.key) else {
        return Fault::damaged(format!("no storage `{}`", shown(storage.key)));
    };
    View::new(dtype, *start, storage.bytes, offset, &shape, &strides)
}
