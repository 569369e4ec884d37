use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;

use attend_model::{ModelConfig, TransformerConfig};
use candle_core::Device;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::fixture::Fixture;
use crate::http::request;

/// `infer serve` with three tiny models: `first` and `second` from English to German, and `back`. It ends when this
/// is dropped.
pub(crate) struct Server {
    folder: TempDir,
    process: Child,
    pub(crate) port: u16,
}

impl Server {
    pub(crate) fn start() -> Self {
        Self::with(&[])
    }

    pub(crate) fn with(options: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for (seed, name) in [(7, "first"), (8, "second"), (9, "back")] {
            write_model(seed, &folder.path().join(name));
        }
        let (process, port) = spawn(folder.path(), 0, options);
        Self {
            folder,
            process,
            port,
        }
    }

    pub(crate) fn stop(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    /// Starts it again on the same port.
    pub(crate) fn restart(&mut self) {
        self.stop();
        (self.process, self.port) = spawn(self.folder.path(), self.port, &[]);
    }

    /// What the API answers for a text.
    pub(crate) fn translate(&self, model: &str, text: &str) -> String {
        let ask = json!({"model": model, "text": text});
        let (status, answer) = request(self.port, "POST", "/v1/translate", Some(&ask)).unwrap();
        assert_eq!(status, 200, "{answer}");
        let translation: &Value = &answer["translations"][0]["text"];
        translation.as_str().unwrap().to_string()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have been stopped already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A model whose weights, and so its translations, depend on the seed.
fn write_model(seed: u64, folder: &Path) {
    let mut fixture = Fixture::joint();
    fixture.config = ModelConfig::Transformer(TransformerConfig {
        encoder_layers: 1,
        decoder_layers: 2,
        d_model: 16,
        heads: 2,
        d_ff: 24,
        ..TransformerConfig::default()
    });
    let model = fixture
        .config
        .build(fixture.vocabularies, seed, &Device::Cpu);
    fixture.model = model.unwrap();
    fixture.write(folder);
}

/// Starts the program. It says on stderr where it listens.
fn spawn(folder: &Path, port: u16, options: &[&str]) -> (Child, u16) {
    let models = [("en-de", "first"), ("en-de", "second"), ("de-en", "back")];
    let models = models.map(|(pair, name)| format!("{pair}={}", folder.join(name).display()));
    let mut process = Command::new(env!("CARGO_BIN_EXE_infer"))
        .arg("serve")
        .args(models)
        .args(["--port", &port.to_string()])
        .args(options)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(process.stderr.take().unwrap()).lines();
    let mut said = String::new();
    let port = loop {
        let Some(Ok(line)) = lines.next() else {
            panic!("the server ended: {said}");
        };
        if let Some((_, rest)) = line.split_once("http://127.0.0.1:") {
            let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
            break digits.parse().unwrap();
        }
        said.push_str(&line);
        said.push('\n');
    };
    // Somebody must read what it says, or it would wait when the pipe is full.
    thread::spawn(move || lines.for_each(drop));
    (process, port)
}
