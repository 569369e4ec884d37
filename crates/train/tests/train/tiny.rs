//! A corpus and a model small enough to train in a second, and the real binary to train it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use attend_comm::{Comm, Solo};
use attend_infer::Manifest;
use attend_model::Kernels;
use attend_train::{Compute, Config, Run, Start};
use candle_core::Device;
use tempfile::TempDir;

/// A folder with `train`, `valid` and `test` corpora and a config.
pub(crate) struct Tiny {
    pub(crate) folder: TempDir,
}

/// A line of `metrics.jsonl`.
#[derive(Debug, PartialEq)]
pub(crate) struct LogLine {
    pub(crate) event: String,
    pub(crate) step: u64,
    /// The whole line without times.
    pub(crate) json: String,
}

const CONFIG: &str = r#"
out = "run"
seed = 7

[data]
source = "a"
target = "b"
train = "train"
valid = "valid"
test = "test"
batch_tokens = 60

[data.tokenizer]
vocab_size = 60

[model.transformer]
encoder_layers = 1
decoder_layers = 2
d_model = 16
heads = 2
d_ff = 24
dropout = 0.1
attention_dropout = 0.1
activation_dropout = 0.1

[train]
steps = 60
accumulate = 2
clip_norm = 1.0
moving_average = 0.99
validate_every = 25
save_every = 10
log_every = 3
keep = 2
samples = 1

[train.schedule]
kind = "inverse-sqrt"
learning_rate = 0.01
warmup = 10

[train.adam]
weight_decay = 0.01
"#;

impl Tiny {
    pub(crate) fn new() -> Self {
        Self::with_pairs(120)
    }

    /// With so many pairs to train on.
    pub(crate) fn with_pairs(pairs: usize) -> Self {
        let tiny = Self {
            folder: tempfile::tempdir().unwrap(),
        };
        for (name, first, count) in [("train", 0, pairs), ("valid", 1000, 10), ("test", 2000, 10)] {
            let lines: Vec<Vec<usize>> = (first..first + count).map(sentence).collect();
            let side = |words: [&str; 8]| -> String {
                let line = |line: &Vec<usize>| {
                    line.iter().map(|&w| words[w]).collect::<Vec<_>>().join(" ")
                };
                lines.iter().map(|words| line(words) + "\n").collect()
            };
            let a = [
                "one", "two", "three", "four", "five", "six", "seven", "eight",
            ];
            let b = [
                "eins", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht",
            ];
            tiny.write(&format!("{name}.a"), side(a));
            tiny.write(&format!("{name}.b"), side(b));
        }
        tiny.write("config.toml", CONFIG);
        tiny
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        fs::write(self.path(name), content).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// Changes the config.
    pub(crate) fn edit(&self, from: &str, to: &str) {
        let config = String::from_utf8(self.read("config.toml")).unwrap();
        assert!(config.contains(from), "{from} is not in the config");
        self.write("config.toml", config.replace(from, to));
    }

    /// Makes the files of a checkpoint, as they are now, those that it was written with.
    pub(crate) fn accept_changes(&self, checkpoint: &str) {
        let entries = fs::read_dir(self.path(checkpoint)).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let names = names.filter(|name| name != Manifest::NAME);
        let files: Vec<_> = names
            .map(|name| {
                let bytes = self.read(&format!("{checkpoint}/{name}"));
                (name, bytes)
            })
            .collect();
        let manifest = Manifest::of(&files).to_json();
        self.write(&format!("{checkpoint}/{}", Manifest::NAME), manifest);
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let train = std::env::var_os("ATTEND_TRAIN"); // another version of the program
        let mut command = Command::new(train.unwrap_or(env!("CARGO_BIN_EXE_train").into()));
        command.args(arguments).current_dir(self.folder.path());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub(crate) fn train(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// Runs what must work.
    pub(crate) fn must(&self, arguments: &[&str]) -> Output {
        let output = self.train(arguments);
        let talk = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {talk}");
        output
    }

    /// A run of the config with changes, in this process.
    pub(crate) fn start(&self, out: &str, changes: &[&str]) -> Run {
        self.start_with(out, changes, compute_with(Arc::new(Solo)))
    }

    /// One rank of it.
    pub(crate) fn start_with(&self, out: &str, changes: &[&str], compute: Compute) -> Run {
        let mut changes: Vec<String> = changes.iter().map(|change| change.to_string()).collect();
        changes.push(format!("out={}", self.path(out).display()));
        for set in ["train", "valid", "test"] {
            changes.push(format!("data.{set}={}", self.path(set).display()));
        }
        let config = Config::read(&self.path("config.toml"), &changes).unwrap();
        Run::start(config, Start::New, compute).unwrap()
    }

    /// The tensors and the state of a run's last checkpoint, but for the time it took.
    pub(crate) fn outcome(&self, run: &str) -> Vec<Vec<u8>> {
        let state = self.read(&format!("{run}/last/trainer_state.json"));
        let mut state: serde_json::Value = serde_json::from_slice(&state).unwrap();
        state["seconds"] = 0.into();
        state["unlogged"]["seconds"] = 0.into();
        // A source that is not text has no tokenizer.
        let joint = self.path(&format!("{run}/last/tokenizer.json")).exists();
        let files = [
            "model.safetensors",
            "optimizer.safetensors",
            if joint {
                "tokenizer.json"
            } else {
                "tokenizer.target.json"
            },
        ];
        let mut outcome: Vec<_> = files.map(|f| self.read(&format!("{run}/last/{f}"))).into();
        outcome.push(state.to_string().into_bytes());
        outcome
    }

    /// The lines of a run's log.
    pub(crate) fn log(&self, run: &str) -> Vec<LogLine> {
        let text = String::from_utf8(self.read(&format!("{run}/metrics.jsonl"))).unwrap();
        let lines = text
            .lines()
            .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
        lines
            .map(|mut line| {
                let fields = line.as_object_mut().unwrap();
                fields.retain(|key, _| !["seconds", "tokens_per_second", "time"].contains(&&**key));
                LogLine {
                    event: line["event"].as_str().unwrap().to_string(),
                    step: line["step"].as_u64().unwrap(),
                    json: line.to_string(),
                }
            })
            .collect()
    }
}

/// On the CPU, together with others.
pub(crate) fn compute_with(comm: Arc<dyn Comm>) -> Compute {
    Compute {
        memory: None,
        device: Device::Cpu,
        kernels: Kernels::Fused,
        comm,
    }
}

/// The values of a run's parameters.
pub(crate) fn values(run: &Run) -> Vec<Vec<f32>> {
    let params = run.model.weights().params();
    params
        .map(|param| param.value().flatten_all().unwrap().to_vec1().unwrap())
        .collect()
}

/// Two to six words, a function of its number.
fn sentence(number: usize) -> Vec<usize> {
    let mut x = number as u64 * 0x9e37_79b9_7f4a_7c15 + 1;
    let mut next = |below: u64| {
        x = x
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (x >> 33) % below
    };
    (0..2 + next(5)).map(|_| next(8) as usize).collect()
}

/// Waits until a running training has logged `step`.
pub(crate) fn wait_for_step(child: &mut Child, run: &Path, step: u64) {
    let start = Instant::now();
    loop {
        let log = fs::read_to_string(run.join("metrics.jsonl")).unwrap_or_default();
        if log.contains(&format!("\"step\":{step},")) {
            return;
        }
        let ended = child.try_wait().unwrap();
        assert!(
            ended.is_none(),
            "the run ended before step {step}: {ended:?}"
        );
        assert!(
            start.elapsed() < Duration::from_secs(120),
            "no step {step} in two minutes"
        );
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Sends a signal, such as "TERM".
pub(crate) fn signal(child: &Child, name: &str) {
    let status = Command::new("kill")
        .args([&format!("-{name}"), &child.id().to_string()])
        .status();
    assert!(status.unwrap().success());
}
