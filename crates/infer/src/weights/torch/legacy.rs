use std::collections::BTreeMap;
use std::io::{BufReader, Read, Seek, SeekFrom};

use super::super::fault::{Fault, shown};
use super::pickle::{Input, Pickle, Value};
use super::state_dict::{self, Storage};
use super::view::View;

/// The first pickle of the format, and the version in the second.
const MAGIC: i128 = 0x1950_a86a_20f9_469c_fc6c;
const VERSION: i128 = 1001;

/// The format before torch 1.6: the pickles of a magic number, a version, what the machine is like, the state
/// dict and the keys of its storages, then the storages, each after its length.
pub(super) fn tensors(
    file: &mut (impl Read + Seek),
    length: u64,
) -> Result<BTreeMap<String, View>, Fault> {
    file.rewind()?;
    let mut reader = BufReader::new(file);
    let mut next = || -> Result<Pickle, Fault> {
        let left = length.saturating_sub(reader.stream_position()?);
        Pickle::read(&mut Input::new(&mut reader, left))
    };
    if !matches!(next()?.root(), Value::Int(MAGIC)) {
        return Fault::refused("a pickle that `torch.save` has not written");
    }
    if !matches!(next()?.root(), Value::Int(VERSION)) {
        return Fault::refused("an unknown version of the format of `torch.save`");
    }
    let machine = next()?;
    if let Some(Value::Bool(false)) = machine.item(machine.root(), "little_endian") {
        return Fault::refused("its numbers are big endian");
    }
    let (pickle, keys) = (next()?, next()?);
    let storages = state_dict::storages(&pickle)?;
    let starts = locate(&mut reader, length, &keys, &storages)?;
    state_dict::tensors(&pickle, &starts)
}

/// Where each storage begins. They follow each other in the order of their keys.
fn locate<'a>(
    reader: &mut BufReader<impl Read + Seek>,
    length: u64,
    keys: &Pickle,
    storages: &BTreeMap<&'a str, Storage<'a>>,
) -> Result<BTreeMap<&'a str, u64>, Fault> {
    let Value::List(ids) = keys.root() else {
        return Fault::damaged("it has no list of storages");
    };
    let mut starts = BTreeMap::new();
    let mut at = reader.stream_position()?;
    for id in ids {
        let Some(key) = keys.text(*id) else {
            return Fault::damaged("the key of a storage is not a text");
        };
        let Some(storage) = storages.get(key) else {
            return Fault::damaged(format!("storage `{}` belongs to no tensor", shown(key)));
        };
        let mut count = [0; 8];
        reader.seek(SeekFrom::Start(at))?;
        reader.read_exact(&mut count)?;
        let bytes = u64::from_le_bytes(count).checked_mul(storage.size());
        if bytes != Some(storage.bytes) {
            return Fault::damaged(format!("storage `{}` has another length", shown(key)));
        }
        let start = at + 8;
        let end = start
            .checked_add(storage.bytes)
            .filter(|end| *end <= length);
        let Some(end) = end else {
            return Fault::damaged(format!("storage `{}` is cut", shown(key)));
        };
        if starts.insert(storage.key, start).is_some() {
            return Fault::damaged(format!("storage `{}` is there twice", shown(key)));
        }
        at = end;
    }
    match at == length {
        true => Ok(starts),
        false => Fault::damaged(format!("{length} bytes where its storages end after {at}")),
    }
}
