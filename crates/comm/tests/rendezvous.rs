//! Ranks that find each other in a folder.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use attend_comm::rendezvous::{Meeting, PATIENCE};
use attend_comm::{Error, Result};

fn meet(folder: &Path, size: usize, token: &[u8]) -> Vec<Vec<u8>> {
    thread::scope(|scope| {
        let rank = |rank| {
            let start = move || {
                let bring = || match rank {
                    0 => Ok(token.to_vec()),
                    _ => panic!("only the first rank is asked for a token"),
                };
                let meeting = Meeting::new(folder, rank, size, PATIENCE, bring).unwrap();
                let token = meeting.token().to_vec();
                meeting.finish();
                token
            };
            scope.spawn(start)
        };
        let ranks: Vec<_> = (0..size).map(rank).collect();
        ranks.into_iter().map(|it| it.join().unwrap()).collect()
    })
}

#[test]
fn all_ranks_get_the_token_of_the_first_one_whatever_an_earlier_job_has_left() {
    let folder = tempfile::tempdir().unwrap();
    for token in [&b"\0\xffone"[..], b"two"] {
        assert_eq!(meet(folder.path(), 3, token), vec![token.to_vec(); 3]);
    }
}

#[test]
fn a_rank_that_does_not_come_is_missed() {
    let folder = tempfile::tempdir().unwrap();
    let patience = Duration::from_millis(200);
    let wait = |rank, size| -> Result<()> {
        Meeting::new(folder.path(), rank, size, patience, || Ok(Vec::new())).map(drop)
    };
    let place = folder.path().display();
    for (rank, problem) in [
        (1, "the first rank has not come"),
        (0, "2 of 3 ranks have come"),
    ] {
        let error = wait(rank, 3).unwrap_err();
        assert!(matches!(error, Error::Rendezvous { .. }));
        assert_eq!(error.to_string(), format!("{place}: {problem}"));
        assert!(error.hint().unwrap().contains("ATTEND_RENDEZVOUS"));
    }
}

const FOLDER: &str = "ATTEND_TEST_FOLDER";
const RANK: &str = "ATTEND_TEST_RANK";

/// Not a test by itself: one of the processes of the next one.
#[test]
fn a_process_of_the_next_test() {
    let (Ok(folder), Ok(rank)) = (std::env::var(FOLDER), std::env::var(RANK)) else {
        return;
    };
    let rank = rank.parse().unwrap();
    let meeting = Meeting::new(folder.as_ref(), rank, 3, PATIENCE, || Ok(Vec::new()));
    let _meeting = meeting.unwrap();
    std::fs::write(Path::new(&folder).join(format!("met-{rank}")), "").unwrap();
    thread::sleep(Duration::from_secs(60));
}

#[test]
fn a_process_that_is_stopped_ends_the_others() {
    let folder = tempfile::tempdir().unwrap();
    let start = |rank: usize| -> Child {
        Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "a_process_of_the_next_test", "--nocapture"])
            .env(FOLDER, folder.path())
            .env(RANK, rank.to_string())
            .env("ATTEND_RANK_TIMEOUT", "2")
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    };
    let mut ranks: Vec<Child> = (0..3).map(start).collect();
    let end = Instant::now() + Duration::from_secs(30);
    while !(0..3).all(|rank| folder.path().join(format!("met-{rank}")).exists()) {
        assert!(Instant::now() < end, "the ranks have not met");
        thread::sleep(Duration::from_millis(20));
    }
    let stopped = ranks.pop().unwrap();
    let signal = |name: &str| {
        let mut kill = Command::new("kill");
        let status = kill.args([name, &stopped.id().to_string()]).status();
        assert!(status.unwrap().success());
    };
    signal("-STOP");
    // Rank 0 notices it, and rank 1 that rank 0 has gone.
    for (rank, child) in ranks.into_iter().enumerate() {
        let output = child.wait_with_output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(75), "rank {rank}: {text}");
        let lost = if rank == 0 {
            "rank 2 of 3 ("
        } else {
            "rank 0 of 3 ("
        };
        assert!(text.contains(lost), "{text}");
        assert!(text.contains("has not been heard from for 2 s"), "{text}");
    }
    signal("-KILL");
    let mut stopped = stopped;
    stopped.wait().unwrap();
}
