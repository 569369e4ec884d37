use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Fault;
use super::alternatives::alternatives as alternatives_of;
use crate::document::Format;
use crate::serve::language::{Detected, detect, name, same};
use crate::serve::{Ask, Catalogue, Choice, Texts};
use crate::{Observer, Result as OurResult};

/// What is asked of `POST /translate`.
#[derive(Deserialize, JsonSchema)]
pub(in super::super) struct TranslateAsk {
    /// One text or, in JSON, several.
    #[schemars(required)]
    q: Option<Texts>,
    /// The code of a language, or "auto".
    #[schemars(required)]
    source: Option<String>,
    #[schemars(required)]
    target: Option<String>,
    /// "text" or "html".
    #[schemars(extend("enum" = ["text", "html", null]))]
    format: Option<String>,
    /// How many other translations are wanted.
    alternatives: Option<Count>,
    /// If the server needs one.
    pub(super) api_key: Option<String>,
}

/// A number, which is a string in a form.
#[derive(Deserialize, JsonSchema)]
#[serde(untagged, expecting = "alternatives: expected a number")]
enum Count {
    Number(u32),
    Text(#[schemars(regex(pattern = r"^[0-9]{1,4}$"))] String),
}

/// What `POST /translate` answers: lists, if `q` is a list.
#[derive(Serialize, JsonSchema)]
pub(in super::super) struct TranslateAnswer {
    #[serde(rename = "translatedText")]
    translated: OneOrMany<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    alternatives: Option<OneOrMany<Vec<String>>>,
    #[serde(rename = "detectedLanguage", skip_serializing_if = "Option::is_none")]
    detected: Option<OneOrMany<Detected>>,
}

#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
enum OneOrMany<T> {
    One(T),
    Many(Vec<T>),
}

/// A request for a translation that has been understood.
pub(super) struct Asked {
    pub(super) texts: Texts,
    source: String,
    target: String,
    format: Format,
    alternatives: usize,
}

impl Asked {
    pub(super) fn new(
        ask: TranslateAsk,
        is_json: bool,
        catalogue: &Catalogue,
    ) -> Result<Self, Fault> {
        let given = |it: Option<String>, name| it.filter(|it| !it.is_empty()).ok_or(missing(name));
        let texts = texts(ask.q, is_json)?;
        let source = given(ask.source, "source")?;
        let target = given(ask.target, "target")?;
        let alternatives = match ask.alternatives {
            None => 0,
            Some(Count::Number(count)) => count as usize,
            Some(Count::Text(text)) => match text.trim() {
                "" => 0,
                text => text.parse().map_err(|_| {
                    Fault::bad("Invalid request: alternatives parameter is not a number")
                })?,
            },
        };
        let most = catalogue.limits().beam - 1;
        if alternatives > most {
            return Err(Fault::bad(format!(
                "Invalid request: alternatives parameter ({alternatives}) exceeds limit ({most})"
            )));
        }
        catalogue.limits().check_texts(&texts)?;
        let unsupported = |code: &str| Fault::bad(format!("{code} is not supported"));
        let models = || catalogue.models().iter();
        let is_auto = source.eq_ignore_ascii_case("auto");
        if !is_auto && !models().any(|model| same(&model.source, &source)) {
            return Err(unsupported(&source));
        }
        if !models().any(|model| same(&model.target, &target)) {
            return Err(unsupported(&target));
        }
        let fits = |it: &str| is_auto || same(it, &source);
        if !models().any(|model| fits(&model.source) && same(&model.target, &target)) {
            return Err(Fault::bad(format!(
                "{} ({target}) is not available as a target language from {} ({source})",
                name(&target),
                name(&source)
            )));
        }
        let format = match ask.format.as_deref() {
            None | Some("" | "text") => Format::Text,
            Some("html") => Format::Html,
            Some(other) => return Err(Fault::bad(format!("{other} format is not supported"))),
        };
        Ok(Self {
            texts,
            source,
            target,
            format,
            alternatives,
        })
    }

    /// The answer, and the name of the model that it is from.
    pub(super) fn translate(
        self,
        catalogue: &Catalogue,
        observer: &dyn Observer,
    ) -> OurResult<(TranslateAnswer, String)> {
        let texts = self.texts.as_slice();
        let sample = texts.join("\n");
        let models = catalogue.models().iter();
        let codes = models.filter(|model| same(&model.target, &self.target));
        let codes: Vec<&str> = codes.map(|model| &*model.source).collect();
        let is_auto = self.source.eq_ignore_ascii_case("auto");
        let detected = is_auto.then(|| detect(&sample, &codes).swap_remove(0));
        let source = detected.as_ref().map_or(&self.source, |it| &it.language);
        let choice = Choice {
            model: None,
            source: Some(source.clone()),
            target: Some(self.target.clone()),
        };
        let model = catalogue.choose(&choice, &sample)?;
        let translatable = texts.iter().filter(|text| !is_kept(text));
        let mut ask = Ask::new(Texts::Many(translatable.cloned().collect()), choice);
        ask.model = Some(model.name.clone());
        ask.format = self.format;
        let wanted = self.alternatives > 0 && self.format == Format::Text;
        if wanted {
            ask.n_best = self.alternatives + 1;
            let own = model.decode();
            if !own.sampling && own.beam < ask.n_best {
                ask.decode.insert("beam".into(), ask.n_best.into());
            }
        }
        let answer = catalogue.translate(&ask, observer)?;
        let mut answers = answer.translations.iter();
        let mut translations = Vec::with_capacity(texts.len());
        let mut others = Vec::with_capacity(texts.len());
        for text in texts {
            let answer = if is_kept(text) { None } else { answers.next() };
            let translation = answer.map_or(text, |answer| &answer.text);
            translations.push(translation.clone());
            let found = answer.filter(|_| wanted);
            let found = found.map(|answer| alternatives_of(answer, self.alternatives));
            others.push(found.unwrap_or_default());
        }
        let many = matches!(self.texts, Texts::Many(_));
        let detected = detected.map(|it| vec![it; texts.len()]);
        let answer = TranslateAnswer {
            translated: one_or_many(translations, many),
            alternatives: (self.alternatives > 0).then(|| one_or_many(others, many)),
            detected: detected.map(|it| one_or_many(it, many)),
        };
        Ok((answer, model.name.clone()))
    }
}

/// `all` has one entry unless there are many.
fn one_or_many<T>(mut all: Vec<T>, many: bool) -> OneOrMany<T> {
    match many {
        true => OneOrMany::Many(all),
        false => OneOrMany::One(all.swap_remove(0)),
    }
}

/// The texts of a field.
pub(super) fn texts(q: Option<Texts>, is_json: bool) -> Result<Texts, Fault> {
    match q {
        None => Err(missing("q")),
        Some(Texts::One(text)) if text.is_empty() => Err(missing("q")),
        Some(Texts::Many(texts)) if texts.is_empty() => Err(missing("q")),
        // Browsers send the line breaks of forms as CRLF.
        Some(Texts::One(text)) if !is_json => {
            Ok(Texts::One(text.replace("\r\n", "\n").replace('\r', "\n")))
        }
        Some(texts) => Ok(texts),
    }
}

/// Whether a text has nothing but emoji and spaces.
fn is_kept(text: &str) -> bool {
    let is_emoji = |it: char| {
        matches!(it, '\u{1f000}'..='\u{1faff}' | '\u{2600}'..='\u{27bf}' | '\u{2b00}'..='\u{2bff}'
            | '\u{2300}'..='\u{23ff}' | '\u{fe0f}' | '\u{200d}' | '\u{20e3}'
            | '\u{e0020}'..='\u{e007f}')
    };
    text.chars().all(|it| it.is_whitespace() || is_emoji(it))
}

fn missing(name: &str) -> Fault {
    Fault::bad(format!("Invalid request: missing {name} parameter"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_emoji_and_spaces_are_kept() {
        for text in ["", " ", "🙂", "👩‍👩‍👧 \n❤️", "🇩🇪", "⌛"] {
            assert!(is_kept(text), "{text}");
        }
        for text in ["a", "🙂 a", "1", "犬", "."] {
            assert!(!is_kept(text), "{text}");
        }
    }
}
