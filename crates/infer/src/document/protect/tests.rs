use super::*;
use crate::Link;
use crate::document::aligned::Aligned;
use crate::document::scan::scan;

const ALL: [Kind; 4] = [Kind::Urls, Kind::Emails, Kind::Mentions, Kind::Numbers];

fn restored(source: &str, target: &str, links: &[(usize, usize)]) -> String {
    let items = scan(source, &ALL);
    let mut links: Vec<Link> = links
        .iter()
        .map(|&(source, target)| Link { source, target })
        .collect();
    links.sort();
    let mut aligned = Aligned::default();
    aligned.push(source, 0..source.len(), "", target, &links);
    restore(&mut aligned, &items, None);
    aligned.text()
}

#[test]
fn what_is_copied_already_does_not_change() {
    let target = "Siehe  (https://a.org), 5 Hunde und 5km. ";
    let source = "See (https://a.org), 5 dogs and 5km.";
    assert_eq!(restored(source, target, &[]), target);
    // The order is free, and so are links.
    assert_eq!(restored("1 2", "2 1", &[(0, 0), (1, 1)]), "2 1");
}

#[test]
fn a_changed_copy_is_replaced_within_its_punctuation() {
    let links = [(0, 0), (1, 1), (2, 2)];
    let target = "siehe (https://a.ork), jetzt";
    let expected = "siehe (https://a.org/x), jetzt";
    assert_eq!(
        restored("see https://a.org/x now", target, &links),
        expected
    );
    assert_eq!(
        restored("see 3.50, now", "siehe 3,50; jetzt", &links),
        "siehe 3.50; jetzt"
    );
    assert_eq!(
        restored("see 5km now", "siehe 6km jetzt", &links),
        "siehe 5km jetzt"
    );
    let shorter = restored("mail a@b.org now", "maile a@b jetzt", &links);
    assert_eq!(shorter, "maile a@b.org jetzt");
    // 5 is not found in 15.
    assert_eq!(restored("a 5 dogs", "ein 15 Hunde", &links), "ein 5 Hunde");
}

#[test]
fn words_that_stand_for_it_alone_are_replaced_by_it() {
    assert_eq!(
        restored("see 5 dogs", "siehe fünf Hunde", &[(0, 0), (1, 1), (2, 2)]),
        "siehe 5 Hunde"
    );
    let phrase = [(0, 0), (1, 1), (1, 2), (2, 3)];
    assert_eq!(
        restored("sits 2007 drum", "sitzt auf der Trommel", &phrase),
        "sitzt 2007 auf der Trommel"
    );
    let broken = [(0, 0), (1, 1), (1, 2), (1, 3), (2, 4)];
    let target = "siehe htt : //a.o jetzt";
    assert_eq!(
        restored("see https://a.org now", target, &broken),
        "siehe https://a.org jetzt"
    );
}

#[test]
fn what_has_no_translation_is_inserted_at_its_neighbours_and_never_lost() {
    assert_eq!(
        restored("a 5 dogs", "ein Hunde", &[(0, 0), (2, 1)]),
        "ein 5 Hunde"
    );
    assert_eq!(restored("5 dogs", " Hunde.", &[(1, 0)]), " 5 Hunde.");
    assert_eq!(restored("dogs 5 6", "Hunde", &[(0, 0)]), "Hunde 5 6");
    assert_eq!(restored("5", "", &[]), "5");
    assert_eq!(restored("a 5", "b", &[]), "b 5");
    // The target word stands for another source word too, so it stays.
    assert_eq!(
        restored("the 5 dogs", "die Hunde", &[(0, 0), (1, 0), (2, 1)]),
        "5 die Hunde"
    );
}

#[test]
fn placeholders_are_filled_in_order_and_those_too_many_removed() {
    let source = "see https://a.org and 5km";
    let mut items = scan(source, &ALL);
    let (text, moves) = substitute(source, &mut items, "<ph>");
    assert_eq!(text, "see <ph> and <ph>km");
    assert_eq!(
        [0, 4, 9, 17, 22, 25].map(|at| moves.apply(at)),
        [0, 4, 4, 8, 13, 19]
    );
    let fill = |target: &str, links: &[Link]| {
        let mut aligned = Aligned::default();
        aligned.push(&text, 0..text.len(), "", target, links);
        restore(&mut aligned, &items, Some("<ph>"));
        aligned.text()
    };
    assert_eq!(fill("<ph>km (<ph>) <ph>", &[]), "https://a.orgkm (5)");
    let crossed = [(1, 1), (3, 0)].map(|(source, target)| Link { source, target });
    assert_eq!(fill("<ph>km (<ph>) <ph>", &crossed), "5km (https://a.org)");
    assert_eq!(fill("nichts", &crossed[..0]), "nichts https://a.org 5");
}

#[test]
fn random_translations_and_links_never_lose_a_protected_text() {
    let words = [
        "a",
        "5",
        "(7),",
        "https://x.y/z",
        "b@c.de.",
        "#tag",
        "1,5",
        "5km",
    ];
    let mut state = 7_u64;
    let mut draw = |most: usize| {
        state = state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (state >> 33) as usize % most
    };
    for _ in 0..2_000 {
        let mut line = |most| -> Vec<&str> { (0..draw(most)).map(|_| words[draw(8)]).collect() };
        let (source, target) = (line(9), line(9));
        let links: Vec<(usize, usize)> = (0..draw(8)).map(|_| (draw(9), draw(9))).collect();
        let (source, target) = (source.join(" "), target.join(" "));
        let text = restored(&source, &target, &links);
        let mut out: Vec<String> = scan(&text, &ALL)
            .into_iter()
            .map(|item| item.text)
            .collect();
        for item in scan(&source, &ALL) {
            let at = out.iter().position(|text| *text == item.text);
            out.remove(at.unwrap_or_else(|| panic!("{source:?} {target:?} {text:?}")));
        }
    }
}
