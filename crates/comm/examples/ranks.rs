//! Checks the communication over MPI, and what happens when a rank fails. `scripts/check-mpi.sh` runs it.
//!
//! ```sh
//! cargo build --release -p attend-comm --features mpi --example ranks
//! mpirun -n 4 target/release/examples/ranks           # all checks; prints a hash of a sum
//! mpirun -n 4 target/release/examples/ranks panic 2   # rank 2 panics, the others wait for it
//! ```
//!
//! Instead of `panic`: `fail` (the rank returns an error), `die` (it is killed), `stop` (it is stopped, as by Ctrl-Z)
//! or `leave` (it returns from `main` without finishing). `busy SECONDS`: rank 1 computes for so long. `time PARAMETERS`:
//! how long it takes to sum the gradients of so many parameters, of which each rank gets its share, and to give all
//! ranks what was updated.

#[path = "../tests/checks/mod.rs"]
mod checks;

use std::error::Error;
use std::hint::black_box;
use std::io::Write;
use std::panic::catch_unwind;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use attend_comm::{Comm, connect};
use candle_core::Device;

const USAGE: &str = "usage: ranks [panic RANK | fail RANK | die RANK | stop RANK | leave RANK | busy SECONDS | time PARAMETERS]";

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let mut text = format!("error: {error}\n");
            let error = error.downcast_ref::<attend_comm::Error>();
            if let Some(hint) = error.and_then(attend_comm::Error::hint) {
                text += &format!("\nhint: {hint}\n");
            }
            // Nobody may be reading it.
            let _ = std::io::stderr().write_all(text.as_bytes());
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let start = Instant::now();
    let comm = connect(&Device::Cpu)?;
    match arguments[..] {
        [] => {
            let hash = checks::all(&*comm)?;
            let ranks = comm.size();
            say(&*comm, &format!("{ranks} ranks: hash {hash:016x}"))?;
        }
        ["busy", seconds] => {
            let seconds = Duration::from_secs(seconds.parse()?);
            if comm.rank() == 1 {
                // A panic that is caught ends nothing.
                let caught = catch_unwind(|| panic!("this panic is caught")).is_err();
                while start.elapsed() < seconds {
                    black_box(caught);
                }
            }
            comm.barrier()?;
            say(&*comm, "the busy rank was waited for")?;
        }
        ["time", parameters] => {
            let line = time(&*comm, parameters.parse()?)?;
            say(&*comm, &line)?;
        }
        [failure, rank] => {
            let rank: usize = rank.parse()?;
            comm.barrier()?;
            if comm.rank() == rank && !fail(failure)? {
                return Ok(());
            }
            comm.sum(&mut vec![1.0; 1 << 20])?;
            return Err(format!("rank {} did not notice", comm.rank()).into());
        }
        _ => return Err(USAGE.into()),
    }
    comm.finish()?;
    Ok(())
}

/// Elements that are sent at once, as in a training.
const BUCKET: usize = 1 << 20;

/// The medians of seven times, in milliseconds.
fn time(comm: &dyn Comm, parameters: usize) -> Result<String, Box<dyn Error>> {
    let size = comm.size();
    let part = BUCKET / size;
    let buckets = parameters.div_ceil(part * size);
    // As large as the gradients of a model, which no cache holds.
    let mut values = vec![1.0; buckets * part * size];
    let mut receive = vec![0.0; part * size];
    let (mut sums, mut gathers) = (Vec::new(), Vec::new());
    for _ in 0..7 {
        comm.barrier()?;
        let start = Instant::now();
        for send in values.chunks_exact_mut(part * size) {
            let sum = comm.exchange_sum(send, &mut receive)?;
            send[..part].copy_from_slice(sum);
        }
        comm.barrier()?;
        let summed = start.elapsed();
        for send in values.chunks_exact_mut(part * size) {
            comm.gather(&send[..part], &mut receive)?;
            send.copy_from_slice(&receive);
        }
        comm.barrier()?;
        gathers.push(start.elapsed() - summed);
        sums.push(summed);
        values.fill(1.0);
    }
    let median = |times: &mut Vec<Duration>| {
        times.sort();
        1e3 * times[times.len() / 2].as_secs_f64()
    };
    let (sum, gather) = (median(&mut sums), median(&mut gathers));
    let rate = |ms: f64| 4e-6 * values.len() as f64 / ms;
    Ok(format!(
        "{size} ranks, {parameters} parameters: sum {sum:.1} ms ({:.2} GB/s), gather {gather:.1} ms ({:.2} GB/s)",
        rate(sum),
        rate(gather)
    ))
}

fn say(comm: &dyn Comm, line: &str) -> std::io::Result<()> {
    if comm.is_first() {
        writeln!(std::io::stdout(), "{line}")?;
    }
    Ok(())
}

/// Fails in this way. False if the program is to end as if nothing were wrong.
fn fail(failure: &str) -> Result<bool, Box<dyn Error>> {
    let signal = match failure {
        "panic" => panic!("on purpose"),
        "fail" => return Err("on purpose".into()),
        "leave" => return Ok(false),
        "die" => "-KILL",
        "stop" => "-STOP",
        _ => return Err(USAGE.into()),
    };
    let mut kill = Command::new("kill");
    kill.args([signal, &std::process::id().to_string()])
        .status()?;
    // The signal may come a little later.
    std::thread::sleep(Duration::from_secs(1));
    Ok(true)
}
