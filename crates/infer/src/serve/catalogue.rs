use super::{AlternativesAnswer, AlternativesAsk, Answer, Ask, Limits, Served, Texts, language};
use crate::{Error, Observer, Result};

/// Models to choose from.
pub struct Catalogue {
    models: Vec<Served>,
    limits: Limits,
}

/// Which model a request asks for: by name, or by languages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Choice {
    pub model: Option<String>,
    /// A code such as `en`, or `auto`.
    pub source: Option<String>,
    pub target: Option<String>,
}

impl Catalogue {
    /// The models in the order of preference. Of those with the same name, all but the first get a number.
    ///
    /// # Panics
    /// If there is none.
    pub fn new(mut models: Vec<Served>, limits: Limits) -> Self {
        assert!(!models.is_empty(), "a server has models");
        for i in 1..models.len() {
            let (before, rest) = models.split_at_mut(i);
            let taken = |name: &str| before.iter().any(|model| model.name == name);
            let own = rest[0].name.clone();
            let mut number = 2;
            while taken(&rest[0].name) {
                rest[0].name = format!("{own}-{number}");
                number += 1;
            }
        }
        Self { models, limits }
    }

    pub fn models(&self) -> &[Served] {
        &self.models
    }

    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Translates with the model that is asked for.
    pub fn translate(&self, ask: &Ask, observer: &dyn Observer) -> Result<Answer> {
        self.limits.check_texts(&ask.text)?;
        let sample = ask.text.as_slice().join("\n");
        let model = self.choose(&ask.choice(), &sample)?;
        model.translate(ask, &self.limits, observer)
    }

    /// What else could come after the first words of a translation.
    pub fn alternatives(
        &self,
        ask: &AlternativesAsk,
        observer: &dyn Observer,
    ) -> Result<AlternativesAnswer> {
        self.limits.check_texts(&Texts::One(ask.text.clone()))?;
        let model = self.choose(&ask.choice(), &ask.text)?;
        model.alternatives(ask, observer)
    }

    /// The model for a text.
    pub fn choose(&self, choice: &Choice, text: &str) -> Result<&Served> {
        let source = match choice.source.as_deref() {
            Some(source) if source.eq_ignore_ascii_case("auto") => {
                let target = choice.target.as_deref();
                let candidates = self.models.iter().filter(|model| {
                    let name = choice.model.as_ref();
                    name.is_none_or(|name| *name == model.name)
                        && target.is_none_or(|target| language::same(&model.target, target))
                });
                let codes: Vec<&str> = candidates.map(|model| &*model.source).collect();
                language::detect(text, &codes)
                    .first()
                    .map(|it| it.language.clone())
            }
            source => source.map(String::from),
        };
        let fits = |model: &&Served| {
            let same = |own: &str, asked: Option<&str>| {
                asked.is_none_or(|asked| language::same(own, asked))
            };
            same(&model.source, source.as_deref())
                && same(&model.target, choice.target.as_deref())
                && choice.model.as_ref().is_none_or(|name| *name == model.name)
        };
        self.models
            .iter()
            .find(fits)
            .ok_or_else(|| self.unknown(choice))
    }

    fn unknown(&self, choice: &Choice) -> Error {
        let described = [&choice.model, &choice.source, &choice.target];
        let names = ["model", "source", "target"];
        let asked = names.iter().zip(described);
        let asked = asked.filter_map(|(name, value)| Some(format!("{name} {}", value.as_ref()?)));
        let asked = asked.collect::<Vec<_>>().join(", ");
        let models = self.models.iter();
        let models = models.map(|it| format!("{} ({} to {})", it.name, it.source, it.target));
        Error::Usage {
            message: format!("{asked}: no such model is served"),
            hint: format!("there are: {}", models.collect::<Vec<_>>().join(", ")),
        }
    }

    /// The source languages, each once, with the languages that it can be translated to.
    pub fn languages(&self) -> Vec<(&str, Vec<&str>)> {
        let mut languages: Vec<(&str, Vec<&str>)> = Vec::new();
        for Served { source, target, .. } in &self.models {
            let place = languages.iter().position(|(code, _)| code == source);
            let place = place.unwrap_or_else(|| {
                languages.push((source, Vec::new()));
                languages.len() - 1
            });
            let targets = &mut languages[place].1;
            if !targets.contains(&&**target) {
                targets.push(target);
            }
        }
        languages
    }
}
