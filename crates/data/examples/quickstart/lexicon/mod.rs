//! The words, read from the tables beside this file.

use std::sync::LazyLock;

use crate::meaning::Case;

pub(crate) static LEXICON: LazyLock<Lexicon> = LazyLock::new(Lexicon::read);

pub(crate) struct Lexicon {
    pub(crate) nouns: Vec<Noun>,
    pub(crate) adjectives: Vec<Adjective>,
    pub(crate) verbs: Vec<Verb>,
    pub(crate) adverbs: Vec<Adverb>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Gender {
    Masculine,
    Feminine,
    Neuter,
}

#[derive(Debug)]
pub(crate) struct Noun {
    /// What sort of thing it is; verbs and adjectives choose their nouns by it.
    pub(crate) kind: &'static str,
    pub(crate) english: &'static str,
    /// Empty for mass nouns.
    pub(crate) english_plural: &'static str,
    pub(crate) gender: Gender,
    pub(crate) german: &'static str,
    pub(crate) genitive: &'static str,
    pub(crate) plural: &'static str,
    pub(crate) place: Option<Place>,
}

/// The prepositions a place takes: "at the lake, am See; to the lake, an den See".
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) at: (&'static str, &'static str),
    pub(crate) to: (&'static str, &'static str),
}

#[derive(Debug)]
pub(crate) struct Adjective {
    pub(crate) english: &'static str,
    pub(crate) german: &'static str,
    /// What the endings are put on: `dunkl` for `dunkel`.
    pub(crate) stem: &'static str,
    /// "older", "älter", for those adjectives that are compared.
    pub(crate) comparative: Option<(&'static str, &'static str)>,
    nouns: &'static str,
}

#[derive(Debug)]
pub(crate) struct Verb {
    /// Of the table.
    pub(crate) section: &'static str,
    pub(crate) frame: Frame,
    pub(crate) english: &'static str,
    pub(crate) english_participle: &'static str,
    /// Separable prefix, or empty.
    pub(crate) prefix: &'static str,
    /// Without the prefix.
    pub(crate) infinitive: &'static str,
    pub(crate) third: &'static str,
    pub(crate) participle: &'static str,
    /// `haben` or `sein`.
    pub(crate) auxiliary: &'static str,
    pub(crate) subjects: &'static str,
    pub(crate) objects: &'static str,
}

/// What a verb needs to make a sentence.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Frame {
    Intransitive,
    Transitive,
    Dative,
    /// The subject is a thing, the dative its owner: "gehören".
    Owned,
    /// English has both "gives her the book" and "gives the book to her".
    Ditransitive,
    /// English has only "explains the plan to her".
    Described,
    /// English preposition, German preposition, German case.
    Prepositional(&'static str, &'static str, Case),
    Motion,
    /// To cities and countries.
    Travel,
    /// Out of places and from cities.
    Source,
    /// Where a thing lies or a person sits.
    Position,
    Dwelling,
    /// Lays or stands a thing somewhere.
    Put,
    /// Takes a clause with "that".
    Opinion,
    /// Takes a clause with "whether".
    Inquiry,
    Weather,
    Copula,
}

#[derive(Debug)]
pub(crate) struct Adverb {
    pub(crate) kind: &'static str,
    pub(crate) english: &'static str,
    pub(crate) german: &'static str,
    tenses: &'static str,
}

impl Lexicon {
    fn read() -> Self {
        let mut nouns: Vec<Noun> = rows(include_str!("nouns.txt")).map(noun).collect();
        nouns.extend(rows(include_str!("places.txt")).map(noun));
        Self {
            nouns,
            adjectives: rows(include_str!("adjectives.txt"))
                .map(adjective)
                .collect(),
            verbs: rows(include_str!("verbs.txt")).map(verb).collect(),
            adverbs: rows(include_str!("adverbs.txt")).map(adverb).collect(),
        }
    }

    pub(crate) fn verb(&self, english: &str, frame: Frame) -> &Verb {
        let found = self
            .verbs
            .iter()
            .find(|v| v.english == english && v.frame == frame);
        found.unwrap_or_else(|| panic!("verbs.txt has no {frame:?} verb {english}"))
    }

    #[cfg(test)]
    pub(crate) fn noun(&self, english: &str) -> &Noun {
        self.nouns
            .iter()
            .find(|n| n.english == english)
            .expect("a noun of the lexicon")
    }

    #[cfg(test)]
    pub(crate) fn adjective(&self, english: &str) -> &Adjective {
        self.adjectives
            .iter()
            .find(|a| a.english == english)
            .expect("an adjective")
    }
}

impl Noun {
    pub(crate) fn is_mass(&self) -> bool {
        self.plural.is_empty()
    }

    /// Does a list of kinds, groups of kinds and single nouns name this noun?
    pub(crate) fn is_one_of(&self, kinds: &str) -> bool {
        kinds.split(' ').any(|name| {
            name == self.kind || self.is_called(name) || group(name).contains(&self.kind)
        })
    }

    /// In a list, `_` stands for the space within a noun. The generator asks this more often than anything.
    fn is_called(&self, name: &str) -> bool {
        let mut letters = name.bytes().zip(self.english.bytes());
        name.len() == self.english.len()
            && letters.all(|(listed, here)| listed == here || (listed, here) == (b'_', b' '))
    }

    /// Masculine nouns that end in -n in every case but the nominative: den Jungen.
    pub(crate) fn is_weak(&self) -> bool {
        self.gender == Gender::Masculine && self.genitive.ends_with('n')
    }
}

impl Adjective {
    pub(crate) fn fits(&self, noun: &Noun) -> bool {
        noun.is_one_of(self.nouns)
    }
}

impl Adverb {
    pub(crate) fn goes_with(&self, tense: &str) -> bool {
        self.tenses.split(' ').any(|name| name == tense)
    }
}

fn group(name: &str) -> &'static [&'static str] {
    match name {
        "human" => &["person", "associate", "relative", "parent"],
        "beast" => &["animal", "wild"],
        "thing" => &[
            "vehicle",
            "transport",
            "clothes",
            "furniture",
            "upright",
            "flat",
            "toy",
            "device",
            "instrument",
            "opening",
        ],
        "place" => &["building", "room", "outdoor", "nature"],
        _ => &[],
    }
}

/// The section and the columns of every row of a table.
fn rows(table: &'static str) -> impl Iterator<Item = (&'static str, Vec<&'static str>)> {
    let mut section = "";
    table.lines().filter_map(move |line| {
        if let Some(name) = line.strip_prefix('[') {
            section = name.trim_end_matches(']');
            return None;
        }
        let row = !line.is_empty() && !line.starts_with('#');
        row.then(|| (section, line.split('|').map(str::trim).collect()))
    })
}

fn noun((kind, columns): (&'static str, Vec<&'static str>)) -> Noun {
    let (english, english_plural) = columns[0].split_once(", ").unwrap_or((columns[0], ""));
    let german: Vec<&str> = columns[1].split(", ").collect();
    let (article, nominative) = german[0].split_once(' ').expect("an article and a noun");
    let gender = match article {
        "der" => Gender::Masculine,
        "die" => Gender::Feminine,
        "das" => Gender::Neuter,
        other => panic!("{other} is no article"),
    };
    let (genitive, plurals) = match gender {
        Gender::Feminine => (nominative, &german[1..]),
        _ => (german[1], &german[2..]),
    };
    let preposition = |column: usize| columns[column].split_once(' ').expect("two prepositions");
    Noun {
        kind,
        english,
        english_plural,
        gender,
        german: nominative,
        genitive,
        plural: plurals.first().copied().unwrap_or_default(),
        place: (columns.len() == 4).then(|| Place {
            at: preposition(2),
            to: preposition(3),
        }),
    }
}

fn adjective((_, columns): (&'static str, Vec<&'static str>)) -> Adjective {
    let (english, older) = columns[0]
        .split_once(' ')
        .expect("an adjective and its comparative");
    let german: Vec<&str> = columns[1].split(' ').collect();
    Adjective {
        english,
        german: german[0],
        stem: german[1],
        comparative: (older != "-").then(|| (older, german[2])),
        nouns: columns[2],
    }
}

fn verb((section, columns): (&'static str, Vec<&'static str>)) -> Verb {
    let (english, english_participle) = columns[0].split_once(", ").expect("two English forms");
    let german: Vec<&str> = columns[1].split(", ").collect();
    let (prefix, infinitive) = german[0].split_once('-').unwrap_or(("", german[0]));
    Verb {
        section,
        frame: frame(section, &columns),
        english,
        english_participle,
        prefix,
        infinitive,
        third: german[1],
        participle: german[2],
        auxiliary: german[3],
        subjects: columns[2],
        objects: if columns.len() > 3 {
            columns[columns.len() - 1]
        } else {
            ""
        },
    }
}

fn frame(section: &str, columns: &[&'static str]) -> Frame {
    match section {
        "intransitive" => Frame::Intransitive,
        "transitive" => Frame::Transitive,
        "dative" => Frame::Dative,
        "owned" => Frame::Owned,
        "ditransitive" => Frame::Ditransitive,
        "described" => Frame::Described,
        "prepositional" => {
            let parts: Vec<&str> = columns[3].split(' ').collect();
            let dative = parts[2] == "dative";
            let case = if dative {
                Case::Dative
            } else {
                Case::Accusative
            };
            Frame::Prepositional(parts[0], parts[1], case)
        }
        "motion" => Frame::Motion,
        "travel" => Frame::Travel,
        "source" => Frame::Source,
        "position" => Frame::Position,
        "dwelling" => Frame::Dwelling,
        "put" => Frame::Put,
        "opinion" => Frame::Opinion,
        "inquiry" => Frame::Inquiry,
        "weather" => Frame::Weather,
        "copula" => Frame::Copula,
        other => panic!("[{other}] is no section of verbs.txt"),
    }
}

fn adverb((kind, columns): (&'static str, Vec<&'static str>)) -> Adverb {
    Adverb {
        kind,
        english: columns[0],
        german: columns[1],
        tenses: columns[2],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_go_with_nouns_they_are_said_of() {
        assert!(
            !LEXICON
                .noun("song")
                .is_one_of(LEXICON.verb("look at", Frame::Transitive).objects)
        );
        assert!(!LEXICON.adjective("bad").fits(LEXICON.noun("problem")));
        assert!(!LEXICON.adjective("empty").fits(LEXICON.noun("lamp")));
        let shop = LEXICON.noun("shop").place.as_ref().expect("a place");
        assert_eq!(shop.to, ("to", "zu"));
    }
}
