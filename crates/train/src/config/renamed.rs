use toml::de::{DeTable, DeValue};

use crate::Error;

/// Keys that have a new name: (old, new). Old names are still understood.
const RENAMED: [(&str, &str); 1] = [("train.translate", "train.translate_sentences")];

/// A key that was written with its old name.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Renamed {
    pub(super) old: &'static str,
    pub(super) new: &'static str,
    /// Where the old name is in the text.
    pub(super) start: usize,
}

impl Renamed {
    /// Both names are given, and only one can hold.
    pub(super) fn error(&self, place: String) -> Error {
        let Self { old, new, .. } = self;
        Error::Config {
            place,
            message: format!("`{old}` was renamed to `{new}`, which is set too"),
            hint: Some(format!("keep `{new}` only")),
        }
    }
}

/// The present name of a key.
pub(crate) fn current(key: &str) -> &str {
    let renamed = RENAMED.iter().find(|(old, _)| *old == key);
    renamed.map_or(key, |(_, new)| new)
}

/// Gives all keys their present names. It is an error if a key is there with both names.
pub(super) fn rename(root: &mut DeTable) -> Result<Vec<Renamed>, Renamed> {
    let mut found = Vec::new();
    for (old, new) in RENAMED {
        let Some((table, name)) = parent(root, old) else {
            continue;
        };
        let Some((key, value)) = table.remove_entry(name) else {
            continue;
        };
        let start = key.span().start;
        let renamed = Renamed { old, new, start };
        let Some((table, name)) = parent(root, new) else {
            continue; // a test sees to it that both names are in one table
        };
        if table.contains_key(name) {
            return Err(renamed);
        }
        table.insert(toml::Spanned::new(key.span(), name.into()), value);
        found.push(renamed);
    }
    Ok(found)
}

/// The table that holds a dotted key, if it is there, and the key's last name.
pub(super) fn parent<'t, 'a, 'k>(
    root: &'t mut DeTable<'a>,
    key: &'k str,
) -> Option<(&'t mut DeTable<'a>, &'k str)> {
    let Some((tables, name)) = key.rsplit_once('.') else {
        return Some((root, key));
    };
    let mut table = root;
    for name in tables.split('.') {
        match table.get_mut(name)?.get_mut() {
            DeValue::Table(inner) => table = inner,
            _ => return None,
        }
    }
    Some((table, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table_of(key: &str) -> &str {
        key.rsplit_once('.').map_or("", |(table, _)| table)
    }

    #[test]
    fn no_key_leaves_its_table_and_no_new_name_is_an_old_one() {
        for (old, new) in RENAMED {
            assert_eq!(table_of(old), table_of(new));
            assert_eq!(current(old), new);
            assert_eq!(current(new), new);
        }
        assert_eq!(current("train.steps"), "train.steps");
    }

    #[test]
    fn an_old_name_becomes_the_new_one_unless_both_are_there() {
        let text = "[train]\ntranslate = 5\n";
        let mut root = DeTable::parse(text).unwrap();
        let renamed = rename(root.get_mut()).unwrap();
        assert_eq!(renamed[0].new, "train.translate_sentences");
        assert_eq!(&text[renamed[0].start..][..9], "translate");
        assert_eq!(rename(root.get_mut()), Ok(vec![]));

        let text = "train = { translate = 5, translate_sentences = 5 }\n";
        let mut root = DeTable::parse(text).unwrap();
        assert!(rename(root.get_mut()).is_err());

        for text in ["", "train = 3\n", "[train]\nsteps = 1\n"] {
            let mut root = DeTable::parse(text).unwrap();
            assert_eq!(rename(root.get_mut()), Ok(vec![]));
        }
    }
}
