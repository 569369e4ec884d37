use std::io::{self, Write};
use std::path::PathBuf;

use clap::Command;
use clap_complete::Shell;

/// `completions`: the options of a program, for a shell.
#[derive(Clone, Debug, clap::Args)]
pub struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

/// `man`: the manual pages of a program.
#[derive(Clone, Debug, clap::Args)]
pub struct ManArgs {
    /// Write one page for each command to this folder; by default, the main page goes to standard output
    #[arg(short, long, value_name = "FOLDER")]
    output: Option<PathBuf>,
}

impl CompletionsArgs {
    /// Prints the completions of a program.
    pub fn run(&self, mut command: Command) -> io::Result<()> {
        let name = command.get_name().to_string();
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut command, name, &mut script);
        io::stdout().write_all(&script)
    }
}

impl ManArgs {
    /// Prints the manual page of a program, or writes the pages of all its commands.
    pub fn run(&self, command: Command) -> io::Result<()> {
        match &self.output {
            Some(folder) => {
                std::fs::create_dir_all(folder)?;
                clap_mangen::generate_to(command, folder)
            }
            None => {
                let mut page = Vec::new();
                clap_mangen::Man::new(command).render(&mut page)?;
                io::stdout().write_all(&page)
            }
        }
    }
}
