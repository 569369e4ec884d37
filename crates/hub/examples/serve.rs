//! A hub on loopback with models from folders, for scripts:
//! `serve OWNER/NAME=FOLDER …` prints the value for `HF_ENDPOINT`, and serves until its standard input ends.

use std::io::{Write, stdin, stdout};
use std::path::Path;

use attend_hub::testing::TestHub;

fn main() -> std::io::Result<()> {
    let hub = TestHub::start();
    for argument in std::env::args().skip(1) {
        let Some((repository, folder)) = argument.split_once('=') else {
            return Err(std::io::Error::other(format!(
                "not OWNER/NAME=FOLDER: {argument}"
            )));
        };
        hub.put_folder(repository, Path::new(folder));
    }
    writeln!(stdout(), "{}", hub.endpoint())?;
    stdin().lines().for_each(drop);
    Ok(())
}
