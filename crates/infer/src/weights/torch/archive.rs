use std::collections::BTreeMap;
use std::io::{Read, Seek, SeekFrom};

use super::super::fault::{Fault, shown};
use super::pickle::{Input, Pickle};
use super::state_dict;
use super::view::View;
use super::zip::Archive;

/// The name of the state dict in the archive's only folder.
const PICKLE: &str = "data.pkl";

/// The format since torch 1.6: a zip archive with the pickle of the state dict in `<folder>/data.pkl`, each
/// storage in `<folder>/data/<key>`, and the order of bytes in `<folder>/byteorder`.
pub(super) fn tensors(
    file: &mut (impl Read + Seek),
    length: u64,
) -> Result<BTreeMap<String, View>, Fault> {
    let archive = Archive::read(file, length)?;
    let folder = folder(&archive)?;
    let byte_order = format!("{folder}byteorder");
    if archive.contains(&byte_order) {
        let range = archive.locate(file, &byte_order)?;
        file.seek(SeekFrom::Start(range.start))?;
        let mut text = Vec::new();
        let text_length = (range.end - range.start).min(16);
        (&mut *file).take(text_length).read_to_end(&mut text)?;
        match &text[..] {
            b"little" => {}
            b"big" => return Fault::refused("its numbers are big endian"),
            _ => return Fault::damaged("its order of bytes is neither little nor big"),
        }
    }
    let range = archive.locate(file, &format!("{folder}{PICKLE}"))?;
    file.seek(SeekFrom::Start(range.start))?;
    let reader = std::io::BufReader::new(&mut *file);
    let pickle = Pickle::read(&mut Input::new(reader, range.end - range.start))?;

    let mut starts = BTreeMap::new();
    for storage in state_dict::storages(&pickle)?.values() {
        let range = archive.locate(file, &format!("{folder}data/{}", storage.key))?;
        let found = range.end - range.start;
        if found != storage.bytes {
            return Fault::damaged(format!(
                "storage `{}` has {found} bytes where the pickle says {}",
                shown(storage.key),
                storage.bytes
            ));
        }
        starts.insert(storage.key, range.start);
    }
    state_dict::tensors(&pickle, &starts)
}

/// The folder of the only `data.pkl`, with its slash; empty if the file is in none.
fn folder(archive: &Archive) -> Result<String, Fault> {
    let folders = archive.names().filter_map(|name| {
        let folder = name.strip_suffix(PICKLE)?;
        let only = folder.is_empty() || folder.find('/') == Some(folder.len() - 1);
        only.then_some(folder)
    });
    match folders.collect::<Vec<_>>()[..] {
        [folder] => Ok(folder.to_string()),
        [] => Fault::refused("a zip archive that `torch.save` has not written: it has no data.pkl"),
        _ => Fault::refused("a zip archive with several state dicts"),
    }
}
