use std::fs;

use attend_infer::Ensemble;
use attend_model::{Kernels, Packing};
use candle_core::Device;

use crate::command::{assert_error, infer};
use crate::fixture::{Fixture, LINES};
use crate::score::recurrent;

#[test]
fn models_of_different_architectures_translate_together() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    Fixture::joint().write(&folder.join("a"));
    recurrent().write(&folder.join("b"));
    fs::write(folder.join("src"), LINES.join("\n")).unwrap();
    fs::write(folder.join("ref"), LINES.join("\n")).unwrap();
    let run = |options: &[&str]| {
        let args = ["evaluate", "a", "--src", "src", "--ref", "ref", "-o", "hyp"];
        let ran = infer(folder, &[&args[..], options].concat(), b"");
        assert_eq!((ran.code, &*ran.stderr), (0, ""), "{options:?}");
        fs::read_to_string(folder.join("hyp")).unwrap()
    };
    let alone = run(&[]);
    assert_eq!(run(&["--ensemble", "a"]), alone);
    assert_eq!(run(&["--ensemble", "a", "--ensemble", "a"]), alone);
    let mixed = run(&["--ensemble", "b"]);
    assert_eq!(mixed.lines().count(), LINES.len());
    let score = |options: &[&str]| {
        let args = ["score", "a", "--src", "src", "--ref", "ref"];
        infer(folder, &[&args[..], options].concat(), b"").stdout
    };
    assert_eq!(score(&["--ensemble", "a"]), score(&[]));
    assert_ne!(score(&["--ensemble", "b"]), score(&[]));
}

#[test]
fn models_with_other_tokenizers_are_refused_by_their_first_difference() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    Fixture::joint().write(&folder.join("a"));
    Fixture::separate().write(&folder.join("b"));
    fs::write(folder.join("src"), "a dog\n").unwrap();
    fs::write(folder.join("ref"), "ein Hund\n").unwrap();
    for command in ["evaluate", "score"] {
        let args = [
            command,
            "a",
            "--src",
            "src",
            "--ref",
            "ref",
            "--ensemble",
            "b",
        ];
        assert_error(
            folder,
            &args,
            b"",
            "a and b cannot be an ensemble: their source tokenizers differ: token 2 is `F` in a and `a` in b",
            "data.tokenizer.file",
        );
    }
}

#[test]
fn an_opened_ensemble_has_the_tokenizers_and_settings_of_its_first_model() {
    let folder = tempfile::tempdir().unwrap();
    let (a, b) = (folder.path().join("a"), folder.path().join("b"));
    let fixture = Fixture::joint();
    fixture.write(&a);
    recurrent().write(&b);
    let models = Ensemble::open(&[&a, &b], &Device::Cpu, Kernels::Fused, Packing::Float).unwrap();
    assert_eq!(models.ensemble.members().len(), 2);
    assert_eq!(models.tokenizers, fixture.tokenizers);
    assert_eq!(models.decode, fixture.decode);
    assert_eq!((models.max_length, models.folders), (Some(64), vec![a, b]));
}
