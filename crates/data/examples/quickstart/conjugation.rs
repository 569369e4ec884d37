//! German verb forms.

use crate::lexicon::Verb;
use crate::meaning::{Modal, Person};

/// Present tense, without the separable prefix.
pub(crate) fn present(verb: &Verb, person: Person) -> String {
    finite(verb.infinitive, verb.third, person)
}

pub(crate) fn auxiliary(infinitive: &str, person: Person) -> String {
    match infinitive {
        "haben" => finite("haben", "hat", person),
        "sein" => finite("sein", "ist", person),
        other => panic!("{other} is no auxiliary of the perfect"),
    }
}

pub(crate) fn modal(modal: Modal, person: Person) -> &'static str {
    let forms = match modal {
        Modal::Can => ["kann", "kannst", "kann", "können", "könnt", "können"],
        Modal::Must => ["muss", "musst", "muss", "müssen", "müsst", "müssen"],
        Modal::Want => ["will", "willst", "will", "wollen", "wollt", "wollen"],
        Modal::May => ["darf", "darfst", "darf", "dürfen", "dürft", "dürfen"],
        // "Soll" would be "is to".
        Modal::Should => [
            "sollte", "solltest", "sollte", "sollten", "solltet", "sollten",
        ],
        Modal::WouldLike => [
            "möchte",
            "möchtest",
            "möchte",
            "möchten",
            "möchtet",
            "möchten",
        ],
        Modal::Will => ["werde", "wirst", "wird", "werden", "werdet", "werden"],
    };
    forms[person as usize]
}

/// The past of `sein`.
pub(crate) fn was(person: Person) -> &'static str {
    ["war", "warst", "war", "waren", "wart", "waren"][person as usize]
}

fn finite(infinitive: &str, third: &str, person: Person) -> String {
    let irregular = match infinitive {
        "sein" => Some(["bin", "bist", "ist", "sind", "seid", "sind"]),
        "haben" => Some(["habe", "hast", "hat", "haben", "habt", "haben"]),
        "wissen" => Some(["weiß", "weißt", "weiß", "wissen", "wisst", "wissen"]),
        "mögen" => Some(["mag", "magst", "mag", "mögen", "mögt", "mögen"]),
        _ => None,
    };
    if let Some(forms) = irregular {
        return forms[person as usize].to_owned();
    }
    let stem = infinitive
        .strip_suffix("en")
        .or_else(|| infinitive.strip_suffix('n'))
        .expect("an infinitive ends in n");
    match person {
        // ich lächle
        Person::I if infinitive.ends_with("eln") => {
            format!("{}le", stem.strip_suffix("el").expect("an -eln verb"))
        }
        Person::I => format!("{stem}e"),
        // The second person has the vowel of the third: er sieht, du siehst; er liest, du liest.
        Person::You => {
            let root = third.strip_suffix('t').expect("a third person ends in t");
            let ending = if root.ends_with(['s', 'ß', 'z']) {
                "t"
            } else {
                "st"
            };
            format!("{root}{ending}")
        }
        Person::He => third.to_owned(),
        Person::We | Person::They => infinitive.to_owned(),
        Person::YouAll => {
            let ending = if needs_e(stem) { "et" } else { "t" };
            format!("{stem}{ending}")
        }
    }
}

/// arbeitet, findet, zeichnet, öffnet.
fn needs_e(stem: &str) -> bool {
    stem.ends_with(['d', 't'])
        || ["chn", "ffn", "gn", "tm"]
            .iter()
            .any(|end| stem.ends_with(end))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lexicon::LEXICON;

    const PERSONS: [Person; 6] = [
        Person::I,
        Person::You,
        Person::He,
        Person::We,
        Person::YouAll,
        Person::They,
    ];

    fn check(english: &str, expected: &str) {
        let verb = LEXICON
            .verbs
            .iter()
            .find(|v| v.english == english)
            .expect("a verb");
        let forms: Vec<String> = PERSONS
            .iter()
            .map(|&person| present(verb, person))
            .collect();
        assert_eq!(forms.join(" "), expected);
    }

    #[test]
    fn strong_verbs_change_their_vowel_in_the_second_and_third_person_singular() {
        check("see", "sehe siehst sieht sehen seht sehen");
        check("read", "lese liest liest lesen lest lesen");
        check("eat", "esse isst isst essen esst essen");
        check(
            "sleep",
            "schlafe schläfst schläft schlafen schlaft schlafen",
        );
        check("give", "gebe gibst gibt geben gebt geben");
        check("drive", "fahre fährst fährt fahren fahrt fahren");
        check("take", "nehme nimmst nimmt nehmen nehmt nehmen");
        check("invite", "lade lädst lädt laden ladet laden");
        check("run", "laufe läufst läuft laufen lauft laufen");
        check("wash", "wasche wäschst wäscht waschen wascht waschen");
    }

    #[test]
    fn stems_in_d_and_t_and_some_in_n_take_an_e() {
        check(
            "work",
            "arbeite arbeitest arbeitet arbeiten arbeitet arbeiten",
        );
        check("find", "finde findest findet finden findet finden");
        check(
            "draw",
            "zeichne zeichnest zeichnet zeichnen zeichnet zeichnen",
        );
        check("learn", "lerne lernst lernt lernen lernt lernen");
    }

    #[test]
    fn stems_in_a_sibilant_swallow_the_s_of_the_second_person() {
        check("dance", "tanze tanzt tanzt tanzen tanzt tanzen");
        check("greet", "grüße grüßt grüßt grüßen grüßt grüßen");
        check("kiss", "küsse küsst küsst küssen küsst küssen");
        check("travel", "reise reist reist reisen reist reisen");
    }

    #[test]
    fn should_is_the_subjunctive_of_sollen() {
        let forms = PERSONS.map(|person| modal(Modal::Should, person));
        assert_eq!(
            forms.join(" "),
            "sollte solltest sollte sollten solltet sollten"
        );
    }

    #[test]
    fn irregular_verbs_have_their_own_forms() {
        check("be", "bin bist ist sind seid sind");
        check("have", "habe hast hat haben habt haben");
        check("like", "mag magst mag mögen mögt mögen");
        check("smile", "lächle lächelst lächelt lächeln lächelt lächeln");
        check("feed", "füttere fütterst füttert füttern füttert füttern");
    }
}
