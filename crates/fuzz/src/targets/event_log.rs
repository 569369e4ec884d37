use attend_infer::run::EventLog;

/// `metrics.jsonl` of a run, the last line of which may be cut off.
pub(super) fn run(bytes: &[u8]) {
    let log = EventLog::from(bytes.to_vec());
    let lines = log.lines().count();
    let events: Vec<String> = log.events().map(|event| event.to_string()).collect();
    assert!(events.len() <= lines);
    assert!(log.last_step().is_none() || lines > 0);
    let _ = log.without_times();
    let steps = [0, 3, log.last_step().unwrap_or(0), u64::MAX];
    for step in steps {
        let kept = EventLog::from(log.up_to(step));
        assert!(kept.last_step().unwrap_or(0) <= step);
        assert!(kept.bytes().is_empty() || kept.bytes().ends_with(b"\n"));
        assert_eq!(kept.up_to(step), kept.bytes());
    }
}
