use std::fs;

use attend_infer::run::Sample;

use super::*;
use crate::TrainConfig;
use crate::log::Log;

fn line(step: u64, event: &str) -> String {
    format!("{{\"event\":{event},\"step\":{step},\"time\":{step}.5}}\n")
}

/// A line of a log.
pub(crate) fn step(number: u64) -> String {
    line(
        number,
        r#""step","epoch":1,"loss":4.5,"learning_rate":0.003,"gradient_norm":1.5,"tokens":90,"tokens_per_second":900.0,"seconds":0.1"#,
    )
}

fn validation(number: u64) -> String {
    line(
        number,
        r#""validation","loss":2.5,"perplexity":null,"accuracy":0.25,"bleu":1.5,"chrf":2.5,"best":true,"samples":[{"source":"s","reference":"r","translation":"t"}]"#,
    )
}

/// Step, tag and number of everything in a file. A text has no number.
pub(crate) fn read(bytes: &[u8]) -> Vec<(i64, String, Option<f32>)> {
    let records = framing::records(bytes);
    let records = records.iter().map(|r| Record::decode(&r[..]).unwrap());
    let values = records.flat_map(|record| {
        let values = record.summary.unwrap_or_default().values.into_iter();
        values.map(move |value| (record.step, value.tag, value.number))
    });
    values.collect()
}

/// The only file of a run.
pub(crate) fn file(run: &RunFolder) -> Vec<u8> {
    let files = run.event_files().unwrap();
    assert_eq!(files.len(), 1, "{files:?}");
    fs::read(run.event_file_path(files[0])).unwrap()
}

#[test]
fn a_record_has_the_bytes_that_tensorboard_reads() {
    // Written by TensorBoard 2.21 itself, and read by its loader.
    let record = Record {
        wall_time: 1.5,
        step: 7,
        summary: Some(message::Summary {
            values: vec![message::Value {
                tag: "valid/bleu".into(),
                number: Some(32.5),
                ..message::Value::default()
            }],
        }),
        ..Record::default()
    };
    let mut bytes = Vec::new();
    push(&record, &mut bytes);
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(hex, GOLDEN);
}

const GOLDEN: &str = "200000000000000029eda95009000000000000f83f10072a130a110a0a76616c69642f626c6575150000024201cd28d8";

#[test]
fn a_resumed_run_has_the_numbers_of_its_log_once_and_none_of_the_steps_that_were_dropped() {
    let folder = tempfile::tempdir().unwrap();
    let run = RunFolder::new(folder.path());
    let config = TrainConfig::default();
    let open = |step| Log::open(&run, step, 10, &config).unwrap();
    let event = |line: &str| serde_json::from_str::<Event>(line).unwrap();
    let mut log = open(0);
    for line in [step(1), step(2), validation(2), step(3)] {
        log.event(&event(&line)).unwrap();
    }
    assert_eq!(read(&file(&run)).len(), 4 + 4 + 6 + 4);
    drop(log);
    let mut log = open(2);
    log.event(&event(&step(4))).unwrap();
    let found = read(&file(&run));
    let steps: Vec<i64> = found.iter().map(|(step, ..)| *step).collect();
    assert_eq!(
        steps,
        [[1; 4].to_vec(), [2; 10].to_vec(), [4; 4].to_vec()].concat()
    );
    let number = |tag: &str| found.iter().find(|value| value.1 == tag).unwrap().2;
    assert_eq!(number("train/learning_rate"), Some(0.003_f32));
    assert!(number("valid/perplexity").unwrap().is_nan());
    assert_eq!(number("valid/samples"), None);
    let times = framing::records(&file(&run));
    let times = times
        .iter()
        .map(|r| Record::decode(&r[..]).unwrap().wall_time);
    assert!(times.is_sorted(), "the times are those of the log");
    assert_eq!(run.event_files().unwrap(), [1], "a file with another name");
}

#[test]
fn with_the_key_turned_off_no_file_is_left() {
    let folder = tempfile::tempdir().unwrap();
    let run = RunFolder::new(folder.path());
    let mut config = TrainConfig::default();
    Log::open(&run, 0, 10, &config).unwrap();
    assert_eq!(run.event_files().unwrap(), [0]);
    fs::write(folder.path().join("events.out.tfevents.mine"), "").unwrap();
    config.tensorboard = false;
    Log::open(&run, 0, 10, &config).unwrap();
    assert!(run.event_files().unwrap().is_empty());
    assert!(folder.path().join("events.out.tfevents.mine").exists());
}

#[test]
fn a_text_is_a_string_of_the_text_plugin() {
    let Event::Validation(mut validation) = serde_json::from_str(&validation(1)).unwrap() else {
        panic!("it is a validation");
    };
    validation.samples = vec![Sample {
        source: "s".into(),
        reference: "r".into(),
        translation: "t".into(),
    }];
    let record = summary::record(&Event::Validation(validation), 0.0);
    let values = record.summary.unwrap().values;
    let text = values.last().unwrap();
    let plugin = text.metadata.as_ref().unwrap().plugin.as_ref().unwrap();
    assert_eq!(plugin.name, "text");
    let tensor = text.tensor.as_ref().unwrap();
    assert_eq!((tensor.dtype, tensor.shape.is_some()), (7, true));
    assert!(tensor.strings[0].ends_with(b"| s | r | t |\n"));
}
