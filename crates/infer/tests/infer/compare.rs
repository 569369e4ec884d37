use std::fs;
use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;

use crate::command::{Ran, infer};
use crate::fixture::{Fixture, with_bundle};

/// A folder with a source, references and translations by three systems.
fn with_files() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, lines: &[&str]| {
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        fs::write(folder.path().join(name), text).unwrap();
    };
    write(
        "src",
        &[
            "a dog runs home",
            "",
            "the small cat sleeps in the garden",
            "a <b>",
        ],
    );
    write(
        "ref",
        &[
            "ein Hund rennt heim",
            "",
            "die kleine Katze schläft im Garten",
            "ein <b>",
        ],
    );
    write(
        "a",
        &[
            "ein Hund läuft heim",
            "",
            "die Katze schläft im Garten",
            "ein <b>",
        ],
    );
    write(
        "b",
        &[
            "ein Hund rennt heim",
            "",
            "kleine Hunde schlafen",
            "ein <b> & \"c\"",
        ],
    );
    write(
        "same",
        &[
            "ein Hund läuft heim",
            "",
            "die Katze schläft im Garten",
            "ein <b>",
        ],
    );
    folder
}

fn compare(folder: &Path, args: &str) -> Ran {
    let args: Vec<&str> = ["compare"].into_iter().chain(args.split(' ')).collect();
    infer(folder, &args, b"")
}

fn json(folder: &Path, args: &str) -> Value {
    let ran = compare(folder, &format!("{args} --json"));
    assert_eq!((ran.code, &*ran.stderr), (0, ""), "{args}");
    serde_json::from_str(&ran.stdout).unwrap()
}

#[test]
fn files_are_compared_with_the_first_of_them() {
    let folder = with_files();
    let folder = folder.path();
    let ran = compare(
        folder,
        "a b --ref ref --src src --test both --samples 200 --metrics ter,bleu",
    );
    assert_eq!((ran.code, &*ran.stderr), (0, ""));
    let text = &ran.stdout;
    for expected in [
        "a (baseline)  ",
        "BLEU|nrefs:1|bs:200|seed:12345|case:mixed|eff:no|tok:13a|smooth:exp|version:",
        "TER|nrefs:1|ar:200|seed:12345|case:lc|tok:tercom|norm:no|punct:yes|asian:no|version:",
        "paired bootstrap resampling (200 samples) and by approximate randomization (200 trials)",
        "\n  bootstrap ",
        "\n  randomization ",
        "BLEU by words of the source",
        "b against a, by the chrF2 of each sentence: 1 better, 2 worse, 1 equal",
        "  source     the small cat sleeps in the garden",
        "  reference  die kleine Katze schläft im Garten",
        "  baseline   die Katze schläft im Garten  (",
        "  system     kleine Hunde schlafen  (",
    ] {
        assert!(text.contains(expected), "{expected}:\n{text}");
    }
    assert_eq!(text.matches(" ± ").count(), 4 + 1, "{text}"); // and the note
    assert_eq!(text.matches("p = ").count(), 4, "{text}");
    let fewer = compare(folder, "a b --ref ref --show 1").stdout;
    assert_eq!(fewer.matches("\nline ").count(), 1);
    assert!(fewer.contains("by words of the first reference") && !fewer.contains("  source "));
}

#[test]
fn scores_are_those_of_evaluate() {
    let folder = with_files();
    let folder = folder.path();
    let options = "--ref ref --lowercase --tokenize char --metrics bleu,chrf,chrf++,ter";
    let compared = json(folder, &format!("a b {options}"));
    for (i, name) in ["a", "b"].into_iter().enumerate() {
        let args = format!("evaluate --hyp {name} {options} --json");
        let args: Vec<&str> = args.split(' ').collect();
        let scores: Value = serde_json::from_str(&infer(folder, &args, b"").stdout).unwrap();
        for m in 0..4 {
            let compared = &compared["systems"][i]["results"][m];
            assert_eq!(compared["metric"], scores[m]["name"]);
            let difference =
                compared["score"].as_f64().unwrap() - scores[m]["score"].as_f64().unwrap();
            assert!(difference.abs() <= 0.005, "{name}: {compared}");
        }
    }
    let buckets = compared["by_length"]["buckets"].as_array().unwrap();
    let sentences = buckets
        .iter()
        .map(|bucket| bucket["sentences"].as_u64().unwrap());
    assert_eq!(sentences.sum::<u64>(), 4);
    assert_eq!(compared["by_length"]["of"], "reference");
}

#[test]
fn the_same_translations_do_not_differ_significantly() {
    let folder = with_files();
    let folder = folder.path();
    let compared = json(folder, "a same a --ref ref --test both --samples 100");
    for system in [1, 2] {
        let system = &compared["systems"][system];
        assert_eq!(system["same_as_baseline"], true);
        for result in system["results"].as_array().unwrap() {
            for test in ["bootstrap", "randomization"] {
                assert_eq!(result[test]["significant"], false);
                assert_eq!(result[test]["p"], 1.0 / 101.0); // as in sacreBLEU
            }
        }
    }
    assert_eq!(compared["differences"][0]["equal"], 4);
    let text = compare(folder, "a same --ref ref").stdout;
    assert!(
        text.contains("same: the same translations as the baseline's"),
        "{text}"
    );
    assert!(!text.contains("0010*"), "{text}");
}

#[test]
fn one_sentence_and_empty_lines_can_be_compared() {
    let folder = with_files();
    let folder = folder.path();
    fs::write(folder.join("one"), "a cat\n").unwrap();
    fs::write(folder.join("empty"), "\n").unwrap();
    for args in [
        "one empty --ref one",
        "empty one --ref empty",
        "empty empty --ref empty --src one",
    ] {
        let ran = compare(
            folder,
            &format!("{args} --test both --samples 20 -o page.html"),
        );
        assert_eq!((ran.code, &*ran.stderr), (0, ""), "{args}");
        assert!(
            !ran.stdout.contains("NaN") && !ran.stdout.contains("inf"),
            "{}",
            ran.stdout
        );
    }
}

#[test]
fn the_page_is_whole_and_its_text_is_escaped() {
    let folder = with_files();
    let folder = folder.path();
    let ran = compare(
        folder,
        "a b --ref ref --src src -o page.html --test both --samples 50",
    );
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let page = fs::read_to_string(folder.join("page.html")).unwrap();
    assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>\n"));
    assert!(page.contains("prefers-color-scheme: dark"));
    for elsewhere in [
        "<script", "http:", "https:", "src=", "href=", "@import", "url(",
    ] {
        assert!(!page.contains(elsewhere), "{elsewhere}");
    }
    let escaped = "ein &lt;b&gt; <mark>&amp;</mark> <mark>&quot;c&quot;</mark>";
    assert!(page.contains(escaped) && !page.contains("<b> &"), "{page}");
    // Every element but these is closed, in order.
    let body = page.split("<body>").nth(1).unwrap();
    let mut open = Vec::new();
    for tag in body.split('<').skip(1) {
        let name = tag.split(['>', ' ', '\n']).next().unwrap();
        match name.strip_prefix('/') {
            Some("body" | "html") => {}
            Some(closed) => assert_eq!(open.pop(), Some(closed), "{tag}"),
            None => open.push(name),
        }
    }
    assert!(open.is_empty(), "{open:?}");
}

#[test]
fn models_translate_the_source_as_translate_does() {
    let (folder, _) = with_bundle();
    let folder = folder.path();
    Fixture::separate().write(&folder.join("other"));
    fs::write(folder.join("src"), "a dog runs\n\nthe small cat sleeps\n").unwrap();
    let mut translated = Vec::new();
    for model in ["bundle", "other"] {
        translated.push(infer(folder, &["translate", model, "src"], b"").stdout);
    }
    fs::write(folder.join("ref"), &translated[0]).unwrap();
    let args = "bundle other ref --src src --ref ref --samples 20 --save-translations kept";
    let compared = json(folder, args);
    assert_eq!(compared["systems"][1]["name"], "other");
    assert_eq!(compared["systems"][2]["same_as_baseline"], true);
    let kept = |name: &str| fs::read_to_string(folder.join("kept").join(name)).unwrap();
    assert_eq!(kept("1-bundle.txt"), translated[0]);
    assert_eq!(kept("2-other.txt"), translated[1]);
    assert_eq!(fs::read_dir(folder.join("kept")).unwrap().count(), 2);
}

#[test]
fn errors_say_which_files_do_not_fit() {
    let (bundle, _) = with_bundle();
    let folder = bundle.path();
    fs::write(folder.join("one"), "a\n").unwrap();
    fs::write(folder.join("two"), "a\nb\n").unwrap();
    fs::write(folder.join("none"), "").unwrap();
    for (args, message, hint) in [
        (
            "one --ref one",
            "there is only one system",
            "infer evaluate",
        ),
        (
            "one two --ref one",
            "one has 1 lines but two has 2",
            "line n",
        ),
        (
            "one one --ref one --ref two",
            "one has 1 lines but two has 2",
            "line n",
        ),
        (
            "one one --ref one --src two",
            "one has 1 lines but two has 2",
            "line n",
        ),
        (
            "one bundle --ref one",
            "bundle is a model, but there is no --src",
            "--src",
        ),
        ("one missing --ref one", "missing", ""),
        ("none none --ref none", "none", "one sentence on each line"),
        (
            "one one --ref one -o one",
            "one: is both input and output",
            "another",
        ),
        (
            "one one --ref one -o -",
            "the page cannot be printed",
            "compare.html",
        ),
        (
            "one one --ref one -o no/such/page.html",
            "cannot write no/such/page.html",
            "",
        ),
    ] {
        let ran = compare(folder, args);
        assert_eq!((ran.code, &*ran.stdout), (1, ""), "{args}");
        assert!(ran.stderr.contains(message), "{args}: {}", ran.stderr);
        assert!(ran.stderr.contains(hint), "{args}: {}", ran.stderr);
    }
    for args in [
        "one two",
        "one two --ref one --samples 0",
        "one two --ref one --test t",
    ] {
        assert_eq!(compare(folder, args).code, 2, "{args}");
    }
    assert_eq!(fs::read_to_string(folder.join("one")).unwrap(), "a\n");
}

#[test]
fn text_that_could_control_a_terminal_is_not_printed_as_it_is() {
    let folder = with_files();
    let folder = folder.path();
    fs::write(
        folder.join("odd"),
        "\u{1b}[2Jein Hund\u{7}\nx\n\u{9b}1m\u{202e}y\nz\n",
    )
    .unwrap();
    let ran = compare(folder, "a odd --ref ref --samples 20 -o page.html");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let page = fs::read_to_string(folder.join("page.html")).unwrap();
    for text in [ran.stdout, page] {
        assert!(
            !text.chars().any(|c| c.is_control() && c != '\n'),
            "{text:?}"
        );
    }
}
