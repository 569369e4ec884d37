//! The scripts that text is expected to be in.

use super::language::scripts_of;
use super::letters;
use attend_config::ConfigError;
use unicode_script::{Script, UnicodeScript};

/// In the place of a name: the scripts of the language.
const AUTO: &str = "auto";

const NAMES: &str = "give names of Unicode, such as \"Latin\", \"Cyrillic\", \"Greek\", \"Arabic\", \"Hebrew\", \
                     \"Devanagari\", \"Han\" or \"Hangul\"";

/// A set of scripts. The empty set accepts all text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Scripts(Vec<Script>);

impl Scripts {
    /// The scripts that `names`, the value of `key`, stands for.
    pub(super) fn new(key: &str, names: &[String], language: &str) -> Result<Self, ConfigError> {
        let mut scripts = Vec::new();
        for name in names {
            scripts.extend(match name.as_str() {
                AUTO => of_tag(key, language)?,
                name => named(key, name)?,
            });
        }
        scripts.sort_unstable_by_key(|script| script.full_name());
        scripts.dedup();
        Ok(Self(scripts))
    }

    /// Checks the names in `names`, the value of `key`.
    pub(crate) fn check_names(key: &str, names: &[String]) -> Result<(), ConfigError> {
        let mut names = names.iter().filter(|name| *name != AUTO);
        names.try_for_each(|name| named(key, name).map(|_| ()))
    }

    /// Whether at least half of the letters of a text are of these scripts. Letters that many scripts share are
    /// not counted.
    pub(super) fn accept(&self, text: &str) -> bool {
        if self.0.is_empty() {
            return true;
        }
        let (mut expected, mut all) = (0, 0);
        for c in letters(text) {
            let script = match c {
                'a'..='z' | 'A'..='Z' => Script::Latin, // most text, without a search
                c => c.script(),
            };
            if !is_shared(script) {
                all += 1;
                expected += usize::from(self.0.contains(&script));
            }
        }
        expected * 2 >= all
    }

    /// Whether all text is accepted.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The full names, in an order that does not depend on how the scripts were given.
    pub(super) fn names(&self) -> Vec<String> {
        let names = self.0.iter().map(|script| script.full_name());
        names.map(String::from).collect()
    }
}

/// The scripts of a language tag such as `de`, `sr-Latn` or `zho_Hant`.
fn of_tag(key: &str, tag: &str) -> Result<Vec<Script>, ConfigError> {
    let lower = tag.trim().to_ascii_lowercase();
    let mut parts = lower.split(['-', '_']);
    let language = parts.next().unwrap_or_default();
    // What follows a part of one letter is for private use, or for extensions.
    let mut subtags = parts.take_while(|part| part.len() > 1);
    let is_script = |part: &&str| part.len() == 4 && part.bytes().all(|b| b.is_ascii_lowercase());
    let known = match subtags.find(is_script) {
        Some(script) => find(script),
        None => scripts_of(language)
            .map(|names| names.iter().flat_map(|name| find(name)).flatten().collect()),
    };
    known.ok_or_else(|| {
        let message = format!("is \"auto\", but the scripts of the language \"{tag}\" are not known");
        let hint = "name the scripts, such as [\"Latin\"], or give the language a script, such as \"sr-Latn\"";
        ConfigError::new(key, message, hint)
    })
}

fn named(key: &str, name: &str) -> Result<Vec<Script>, ConfigError> {
    find(name)
        .ok_or_else(|| ConfigError::new(key, format!("has an unknown script, \"{name}\""), NAMES))
}

/// The scripts with a full name such as "Old_Italic" or "old italic", or with a code of ISO 15924 such as "Cyrl" or
/// "Jpan", which can stand for several.
fn find(name: &str) -> Option<Vec<Script>> {
    let written = name.trim();
    let name = title(written);
    let combined: &[Script] = match name.as_str() {
        "Hans" | "Hant" | "Hanb" => &[Script::Han, Script::Bopomofo],
        "Jpan" => &[Script::Han, Script::Hiragana, Script::Katakana],
        "Hrkt" => &[Script::Hiragana, Script::Katakana],
        "Kore" => &[Script::Hangul, Script::Han],
        "Aran" => &[Script::Arabic],
        "Cyrs" => &[Script::Cyrillic],
        "Geok" => &[Script::Georgian],
        "Latf" | "Latg" => &[Script::Latin],
        "Syre" | "Syrj" | "Syrn" => &[Script::Syriac],
        name => {
            let script = Script::from_full_name(written) // "SignWriting" is no title case
                .or_else(|| Script::from_full_name(name))
                .or_else(|| Script::from_short_name(name))?;
            return (!is_shared(script)).then(|| vec![script]);
        }
    };
    Some(combined.to_vec())
}

/// Whether characters of a script are used with many others.
fn is_shared(script: Script) -> bool {
    matches!(script, Script::Common | Script::Inherited | Script::Unknown)
}

/// A name as Unicode writes it: "old italic" becomes "Old_Italic".
fn title(name: &str) -> String {
    let mut start = true;
    let chars = name.chars().map(|c| {
        let c = match c {
            ' ' | '-' => '_',
            c if start => c.to_ascii_uppercase(),
            c => c.to_ascii_lowercase(),
        };
        start = c == '_';
        c
    });
    chars.collect()
}
