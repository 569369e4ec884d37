//! Paths on the Hugging Face Hub, made local: `hf://[datasets/]OWNER/NAME[@REVISION][/PATH]`.
//!
//! Any other path is returned as it is. Without the cargo feature `hub`, a path of the hub is an error.

use std::path::{Path, PathBuf};

use attend_data::Progress;

use crate::Result;

/// Whether a path is one of the hub.
pub fn is_remote(path: &Path) -> bool {
    path.as_os_str().as_encoded_bytes().starts_with(b"hf://")
}

/// The folder of a model: downloaded, if the path is one of the hub.
pub fn local(path: &Path, progress: &dyn Progress) -> Result<PathBuf> {
    match is_remote(path) {
        true => remote::model(path, progress),
        false => Ok(path.into()),
    }
}

/// One file, such as `hf://datasets/OWNER/NAME/train.en`.
pub fn local_file(path: &Path, progress: &dyn Progress) -> Result<PathBuf> {
    match is_remote(path) {
        true => remote::first_of(path, &[""], progress),
        false => Ok(path.into()),
    }
}

/// The file in one language of a corpus on the hub that a prefix names: `PREFIX.LANGUAGE`, or with `.gz`, `.zst` or
/// `.xz` if there is no such file. `None` if the path is not one of the hub.
pub fn local_text(
    prefix: &Path,
    language: &str,
    progress: &dyn Progress,
) -> Result<Option<PathBuf>> {
    let endings = ["", ".gz", ".zst", ".xz"].map(|end| format!(".{language}{end}"));
    let endings = endings.each_ref().map(String::as_str);
    match is_remote(prefix) {
        true => remote::first_of(prefix, &endings, progress).map(Some),
        false => Ok(None),
    }
}

/// Adds or replaces files of a model's repository, `hf://OWNER/NAME[@BRANCH]`, in one commit. The repository and the
/// branch are created if they do not exist. `files` are names there and paths here. Returns the address.
pub fn upload(repository: &Path, files: &[(String, PathBuf)], private: bool) -> Result<String> {
    remote::upload(repository, files, private)
}

/// The path of a model's repository, `OWNER/NAME`, and of a branch of it. It is checked when it is used.
pub fn repository(name: &str, branch: Option<&str>) -> PathBuf {
    let branch = branch.map(|branch| format!("@{}", branch.replace('/', "%2F")));
    format!("hf://{name}{}", branch.unwrap_or_default()).into()
}

/// An error if this is not the path of a repository.
pub fn check_repository(path: &Path) -> Result<()> {
    remote::check_repository(path)
}

#[cfg(not(feature = "hub"))]
mod remote {
    use super::*;
    use crate::Error;

    pub(super) fn upload(path: &Path, _: &[(String, PathBuf)], _: bool) -> Result<String> {
        model(path, &()).map(|_| String::new())
    }

    pub(super) fn check_repository(path: &Path) -> Result<()> {
        model(path, &()).map(|_| ())
    }

    pub(super) fn model(path: &Path, _progress: &dyn Progress) -> Result<PathBuf> {
        Err(Error::Usage {
            message: format!(
                "{}: this program was built without the Hugging Face Hub",
                path.display()
            ),
            hint:
                "build it with the cargo feature `hub`, or download the files and give their folder"
                    .into(),
        })
    }

    pub(super) fn first_of(
        path: &Path,
        _endings: &[&str],
        progress: &dyn Progress,
    ) -> Result<PathBuf> {
        model(path, progress)
    }
}

#[cfg(feature = "hub")]
mod remote {
    use std::sync::OnceLock;

    use attend_data::Task;
    use attend_hub::{Hub, HubPath, Kind, Transfer, UploadOptions};

    use super::*;
    use crate::Error;

    /// One for the whole process, so that files that belong together are of one commit.
    static HUB: OnceLock<Hub> = OnceLock::new();

    pub(super) fn model(path: &Path, progress: &dyn Progress) -> Result<PathBuf> {
        let path = parse(path)?;
        let snapshot = hub()?.snapshot(
            &path,
            choose,
            &Shown {
                path: &path,
                progress,
            },
        )?;
        Ok(snapshot.folder)
    }

    /// The first file that exists whose name is the path and one of the endings.
    pub(super) fn first_of(
        path: &Path,
        endings: &[&str],
        progress: &dyn Progress,
    ) -> Result<PathBuf> {
        let path = parse(path)?;
        let paths = endings
            .iter()
            .map(|ending| path.with_path(&format!("{}{ending}", path.path())));
        let paths = paths.collect::<std::result::Result<Vec<_>, _>>()?;
        Ok(hub()?.first_of(
            &paths,
            &Shown {
                path: &path,
                progress,
            },
        )?)
    }

    pub(super) fn upload(
        path: &Path,
        files: &[(String, PathBuf)],
        private: bool,
    ) -> Result<String> {
        let options = UploadOptions {
            create: true,
            private,
            message: "Upload a model that Attend exported".into(),
        };
        Ok(hub()?.upload(&parse(path)?, files, &options)?.url)
    }

    pub(super) fn check_repository(path: &Path) -> Result<()> {
        let parsed = parse(path)?;
        if parsed.kind() == Kind::Model && parsed.path().is_empty() {
            return Ok(());
        }
        Err(Error::Usage {
            message: format!("{}: not the repository of a model", path.display()),
            hint: "write OWNER/NAME".into(),
        })
    }

    fn hub() -> Result<&'static Hub> {
        if let Some(hub) = HUB.get() {
            return Ok(hub);
        }
        let hub = Hub::from_env()?;
        Ok(HUB.get_or_init(|| hub))
    }

    fn parse(path: &Path) -> Result<HubPath> {
        let not_a_path = || Error::Usage {
            message: format!("{}: not a path of the hub", path.display()),
            hint: "write hf://[datasets/]OWNER/NAME[@REVISION][/PATH]".into(),
        };
        let text = path.to_str().ok_or_else(not_a_path)?;
        HubPath::parse(text)?.ok_or_else(not_a_path)
    }

    /// Shows downloads with the bars of the program.
    struct Shown<'a> {
        path: &'a HubPath,
        progress: &'a dyn Progress,
    }

    struct Download(Box<dyn Task>);

    impl attend_hub::Progress for Shown<'_> {
        fn start(&self, name: &str, bytes: u64) -> Box<dyn Transfer> {
            let what = format!("downloading {name} of {}", self.path.id());
            Box::new(Download(self.progress.start(&what, Some(bytes))))
        }
    }

    impl Transfer for Download {
        fn advance(&self, bytes: u64) {
            self.0.advance(bytes);
        }
    }

    const CONFIG: &str = "config.json";

    /// What a bundle or a MarianMT model can have beside its config and weights.
    const OTHERS: [&str; 13] = [
        "generation_config.json",
        "tokenizer.json",
        "tokenizer.source.json",
        "tokenizer.target.json",
        "target/tokenizer.json",
        "target/tokenizer_config.json",
        "tokenizer_config.json",
        "special_tokens_map.json",
        "added_tokens.json",
        "source.spm",
        "target.spm",
        "vocab.json",
        "target_vocab.json",
    ];

    /// The files of a model: its config, what there is of the others, and its weights in one format.
    fn choose(files: &[String]) -> std::result::Result<Vec<String>, String> {
        let has = |name: &str| files.iter().any(|file| file == name);
        if !has(CONFIG) {
            return Err(CONFIG.into());
        }
        let others = OTHERS.iter().copied().filter(|name| has(name));
        let mut chosen: Vec<_> = [CONFIG]
            .into_iter()
            .chain(others)
            .map(String::from)
            .collect();
        for (whole, start, end) in [
            ("model.safetensors", "model-", ".safetensors"),
            ("pytorch_model.bin", "pytorch_model-", ".bin"),
        ] {
            let index = format!("{whole}.index.json");
            if has(whole) {
                chosen.push(whole.into());
                return Ok(chosen);
            }
            if has(&index) {
                let shard = |file: &&String| {
                    file.starts_with(start) && file.ends_with(end) && !file.contains('/')
                };
                chosen.push(index);
                chosen.extend(files.iter().filter(shard).cloned());
                return Ok(chosen);
            }
        }
        Err("model.safetensors".into())
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        fn chosen(files: &[&str]) -> std::result::Result<Vec<String>, String> {
            let files: Vec<_> = files.iter().map(|file| file.to_string()).collect();
            choose(&files)
        }

        #[test]
        fn weights_are_taken_in_one_format() {
            let (config, safe, pickle) = ("config.json", "model.safetensors", "pytorch_model.bin");
            let all = [
                pickle,
                "tf_model.h5",
                safe,
                "README.md",
                "source.spm",
                config,
                "rust_model.ot",
            ];
            assert_eq!(chosen(&all).unwrap(), [config, "source.spm", safe]);
            assert_eq!(
                chosen(&[config, pickle, "flax_model.msgpack"]).unwrap(),
                [config, pickle]
            );
        }

        #[test]
        fn weights_in_parts_come_with_their_index() {
            let index = "model.safetensors.index.json";
            let (one, two) = (
                "model-00001-of-00002.safetensors",
                "model-00002-of-00002.safetensors",
            );
            let all = [
                "config.json",
                one,
                two,
                index,
                "other/model-1.safetensors",
                "pytorch_model.bin",
            ];
            assert_eq!(chosen(&all).unwrap(), ["config.json", index, one, two]);
        }

        #[test]
        fn what_a_model_cannot_do_without_is_named() {
            assert_eq!(chosen(&["model.safetensors"]).unwrap_err(), "config.json");
            assert_eq!(
                chosen(&["config.json", "tf_model.h5"]).unwrap_err(),
                "model.safetensors"
            );
        }
    }
}
