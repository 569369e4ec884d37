use std::io::{IsTerminal, Write, stderr, stdin};
use std::path::{Path, PathBuf};

use attend_cli::ComputeArgs;
use attend_infer::export::{ExportFormat, ExportOptions, export};
use attend_infer::{Error, Result, hub};

use super::output::Output;

/// Export a model for Hugging Face's transformers, and upload it to the hub.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  infer push runs/quickstart me/quickstart-en-de --private --license mit
  infer push runs/quickstart me/quickstart-en-de --revision smaller --yes

The token is taken from HF_TOKEN, or from the file that `hf auth login` writes.")]
pub(crate) struct Args {
    /// Run folder (its best checkpoint is used), checkpoint or bundle
    run: PathBuf,

    /// The repository, which is created if it does not exist
    #[arg(value_name = "OWNER/NAME")]
    repository: String,

    /// Create a repository that only its owner can see
    #[arg(long)]
    private: bool,

    /// The branch, which is created if it does not exist [default: main]
    #[arg(long, value_name = "BRANCH")]
    revision: Option<String>,

    /// The licence of the model, for its card: a name that the hub knows, such as mit or cc-by-4.0
    #[arg(long, value_name = "NAME")]
    license: Option<String>,

    /// Upload without asking
    #[arg(long)]
    yes: bool,

    #[command(flatten)]
    compute: ComputeArgs,
}

pub(crate) fn run(args: Args) -> anyhow::Result<()> {
    let (_, kernels) = args.compute.start()?;
    let target = hub::repository(&args.repository, args.revision.as_deref());
    hub::check_repository(&target)?;
    if !args.yes && !stdin().is_terminal() {
        return Err(Error::Usage {
            message: "nobody can be asked whether to upload: standard input is not a terminal"
                .into(),
            hint: "add --yes".into(),
        }
        .into());
    }
    let scratch = tempfile::tempdir()?;
    let folder = scratch.path().join("export");
    let options = ExportOptions {
        license: args.license.clone(),
        name: Some(args.repository.clone()),
        quantization: None,
    };
    export(&args.run, ExportFormat::Hf, &folder, &options, kernels)?;
    let files = files(&folder)?;
    if !args.confirms(&target, &files)? {
        return Ok(());
    }
    let url = hub::upload(&target, &files, args.private)?;
    let mut stdout = Output::open(None)?;
    stdout.line(url)?;
    Ok(stdout.flush()?)
}

impl Args {
    /// Says what would be uploaded and where, and asks.
    fn confirms(&self, target: &Path, files: &[(String, PathBuf)]) -> Result<bool> {
        let mut talk = stderr();
        let visible = if self.private { "private" } else { "public" };
        let target = target.display();
        let _ = writeln!(
            talk,
            "{} files to {target} ({visible}, if it is new):",
            files.len()
        );
        for (name, path) in files {
            let bytes = path.metadata().map_or(0, |data| data.len());
            let _ = writeln!(talk, "  {name} ({bytes} bytes)");
        }
        if self.yes {
            return Ok(true);
        }
        let _ = write!(talk, "upload? [y/N] ");
        let _ = talk.flush();
        let mut answer = String::new();
        let read = stdin().read_line(&mut answer);
        read.map_err(|source| Error::Read {
            path: "standard input".into(),
            source,
        })?;
        Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
    }
}

/// All files in a folder and in those inside, with their names relative to it, sorted.
fn files(folder: &Path) -> Result<Vec<(String, PathBuf)>> {
    let mut files = Vec::new();
    let mut folders = vec![(String::new(), folder.to_path_buf())];
    while let Some((prefix, folder)) = folders.pop() {
        let failed = |source| Error::Read {
            path: folder.clone(),
            source,
        };
        for entry in folder.read_dir().map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
            if entry.path().is_dir() {
                folders.push((name + "/", entry.path()));
            } else {
                files.push((name, entry.path()));
            }
        }
    }
    files.sort();
    Ok(files)
}
