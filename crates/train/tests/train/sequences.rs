//! Any sequence of training, kills, resumptions, free changes of the config and damage ends with the bits of the
//! unbroken run. An error is right only if no checkpoint is left that is not damaged.
//!
//! `ATTEND_SEQUENCES=500 cargo test --release -p attend-train --test train sequences` tries more of them, and
//! `ATTEND_SEQUENCE=17` only the one with that number.

use std::fs;
use std::io::Write;
use std::path::PathBuf;

use attend_infer::run::RunFolder;
use attend_ops::random::mix;

use crate::tiny::Tiny;

const STEPS: u64 = 40;
/// How many sequences are tried by default.
const SEQUENCES: u64 = 6;

/// Random numbers that are a function of the sequence's number.
struct Draws {
    sequence: u64,
    drawn: u64,
}

impl Draws {
    fn below(&mut self, limit: u64) -> u64 {
        self.drawn += 1;
        mix(mix(self.sequence) ^ self.drawn) % limit
    }

    fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u64) as usize]
    }
}

/// What happens to a run before it is resumed for the last time.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// It is resumed and ends at this step, or where it is if it is further. It is validated there, which the
    /// unbroken run is not; the loss falls all the time, so that the last validation is the best of both.
    Train { until: u64 },
    /// It is resumed, and killed when it has logged this many more steps.
    Kill { after: u64 },
    /// A file of a checkpoint gets another byte, is cut off or removed.
    Damage,
}

/// Keys that change nothing that is learnt, with some values.
const FREE: [(&str, &[&str]); 5] = [
    ("train.save_every", &["3", "7", "1000"]),
    ("train.keep", &["1", "2", "5"]),
    ("train.samples", &["0", "2"]),
    ("train.on_save_error", &["stop", "warn"]),
    ("train.spike", &["2", "5"]),
];

struct Sequence<'a> {
    tiny: &'a Tiny,
    draws: Draws,
    run: String,
    /// What was done, for the message of a failure.
    history: Vec<String>,
    /// How often everything was lost to damage, and the run began again.
    lost: usize,
}

impl Sequence<'_> {
    /// Options that may be different at every resumption.
    fn options(&mut self) -> Vec<String> {
        let threads = 1 + self.draws.below(3);
        let mut options = vec!["--threads".into(), threads.to_string()];
        if self.draws.below(2) == 0 {
            let (key, values) = self.draws.one_of(&FREE);
            options.extend([
                "--set".into(),
                format!("{key}={}", self.draws.one_of(values)),
            ]);
        }
        options
    }

    /// The command that continues the run, or starts it if it has no checkpoint yet.
    fn command(&mut self, until: u64) -> Vec<String> {
        let folder = self.tiny.path(&self.run);
        let mut command: Vec<String> = if RunFolder::new(&folder).steps().unwrap().is_empty() {
            let out = format!("out={}", self.run);
            ["run", "config.toml", "--overwrite", "--set", &out]
                .map(String::from)
                .into()
        } else {
            ["resume", &self.run].map(String::from).into()
        };
        command.extend(["--set".into(), format!("train.steps={until}")]);
        command.extend(self.options());
        command
    }

    fn happens(&mut self, event: Event) {
        self.history.push(format!("{event:?}"));
        match event {
            Event::Train { until } => self.train(until),
            Event::Kill { after } => self.kill(after),
            Event::Damage => self.damage(),
        }
    }

    /// Trains until a step. If nothing intact is left, that must be an error, and the run begins again.
    fn train(&mut self, until: u64) {
        let folder = RunFolder::new(self.tiny.path(&self.run));
        let steps = folder.steps().unwrap();
        let lost = !steps.is_empty() && steps.iter().all(|&step| folder.checkpoint(step).is_err());
        let command = self.command(until);
        self.history.push(command.join(" "));
        let output = self
            .tiny
            .train(&command.iter().map(String::as_str).collect::<Vec<_>>());
        let talk = String::from_utf8_lossy(&output.stderr);
        assert_eq!(
            !output.status.success(),
            lost,
            "{:#?}\n{talk}",
            self.history
        );
        if lost {
            self.lost += 1;
            fs::remove_dir_all(folder.path()).unwrap();
            self.train(until);
        }
    }

    fn kill(&mut self, after: u64) {
        let folder = RunFolder::new(self.tiny.path(&self.run));
        let log = folder.event_log().unwrap().unwrap_or_default();
        let step = (log.last_step().unwrap_or(0) + after).min(STEPS - 1);
        let command = self.command(STEPS);
        self.history.push(command.join(" "));
        let arguments: Vec<&str> = command.iter().map(String::as_str).collect();
        let mut child = self.tiny.command(&arguments).spawn().unwrap();
        // It may refuse to start, if all is damaged; that is checked when it is trained.
        let path = folder.path().to_path_buf();
        while child.try_wait().unwrap().is_none() {
            let log = fs::read_to_string(path.join("metrics.jsonl")).unwrap_or_default();
            if log.contains(&format!("\"step\":{step},")) {
                child.kill().unwrap();
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        child.wait().unwrap();
    }

    /// Damages a random file of a random checkpoint.
    fn damage(&mut self) {
        let folder = RunFolder::new(self.tiny.path(&self.run));
        let steps = folder.steps().unwrap();
        if steps.is_empty() {
            return;
        }
        let checkpoint = folder.checkpoint_path(self.draws.one_of(&steps));
        let entries = fs::read_dir(&checkpoint).unwrap();
        let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
        files.sort();
        let file = &files[self.draws.below(files.len() as u64) as usize];
        let mut bytes = fs::read(file).unwrap();
        let place = self.draws.below(bytes.len() as u64) as usize;
        let kind = self.draws.below(3);
        self.history
            .push(format!("{}, kind {kind}, at {place}", file.display()));
        match kind {
            0 => bytes[place] ^= 1 << self.draws.below(8),
            1 => bytes.truncate(place),
            _ => return fs::remove_file(file).unwrap(),
        }
        fs::write(file, bytes).unwrap();
    }
}

#[test]
fn any_sequence_of_training_kills_changes_and_damage_ends_with_the_same_bits() {
    let tiny = Tiny::new();
    tiny.edit("steps = 60", &format!("steps = {STEPS}"));
    tiny.edit("save_every = 10", "save_every = 5");
    tiny.edit("log_every = 3", "log_every = 1");
    tiny.edit("validate_every = 25", "validate_every = 11");
    tiny.must(&["run", "config.toml", "--set", "out=unbroken"]);
    let unbroken = tiny.outcome("unbroken");
    let number = |name: &str| {
        std::env::var(name)
            .ok()
            .and_then(|text| text.parse::<u64>().ok())
    };
    let sequences = match number("ATTEND_SEQUENCE") {
        Some(only) => only..only + 1,
        None => 0..number("ATTEND_SEQUENCES").unwrap_or(SEQUENCES),
    };
    let (mut trained, mut killed, mut damaged, mut lost) = (0, 0, 0, 0);
    for number in sequences {
        let draws = Draws {
            sequence: number,
            drawn: 0,
        };
        let mut sequence = Sequence {
            tiny: &tiny,
            draws,
            run: format!("run{number}"),
            history: vec![format!("sequence {number}")],
            lost: 0,
        };
        for _ in 0..1 + sequence.draws.below(6) {
            let event = match sequence.draws.below(3) {
                0 => Event::Train {
                    until: 1 + sequence.draws.below(STEPS),
                },
                1 => Event::Kill {
                    after: 1 + sequence.draws.below(STEPS / 3),
                },
                _ => Event::Damage,
            };
            match event {
                Event::Train { .. } => trained += 1,
                Event::Kill { .. } => killed += 1,
                Event::Damage => damaged += 1,
            }
            sequence.happens(event);
        }
        sequence.happens(Event::Train { until: STEPS });
        lost += sequence.lost;
        let run = sequence.run;
        assert!(unbroken == tiny.outcome(&run), "{:#?}", sequence.history);
        fs::remove_dir_all(tiny.path(&run)).unwrap();
    }
    let _ = writeln!(
        std::io::stderr(),
        "{trained} trainings, {killed} kills, {damaged} damaged files; {lost} times all was lost"
    );
}
