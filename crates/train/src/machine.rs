//! How much memory this machine has.

use std::fs;
use std::path::Path;

/// Bytes of memory that this process can have: the machine's, or the limit of its control group (as in a
/// container), whichever is lower. `None` if the system does not say.
pub fn machine_memory() -> Option<u64> {
    let machine = meminfo(&fs::read_to_string("/proc/meminfo").ok()?);
    [machine, cgroup_limit()].into_iter().flatten().min()
}

/// `MemTotal` of /proc/meminfo.
fn meminfo(text: &str) -> Option<u64> {
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}

/// The lowest limit of the control groups that this process is in, version 2 or 1.
fn cgroup_limit() -> Option<u64> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let root = Path::new("/sys/fs/cgroup");
    let limits = groups.lines().flat_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, path) = (fields.next().unwrap_or(""), fields.next().unwrap_or(""));
        let (root, file) = match controllers {
            "" => (root.to_path_buf(), "memory.max"),
            "memory" => (root.join("memory"), "memory.limit_in_bytes"),
            _ => return Vec::new(),
        };
        let group = root.join(path.trim_start_matches('/'));
        let groups = group
            .ancestors()
            .take_while(|group| group.starts_with(&root));
        groups
            .filter_map(|group| fs::read_to_string(group.join(file)).ok())
            .filter_map(|limit| limit.trim().parse::<u64>().ok()) // "max" is no limit
            .collect()
    });
    limits.min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_total_of_meminfo_is_in_kibibytes() {
        let text = "MemTotal:       24689156 kB\nMemFree:        20000000 kB\n";
        assert_eq!(meminfo(text), Some(24_689_156 * 1024));
        for text in ["", "MemTotal: many kB\n", "MemFree: 1 kB\n"] {
            assert_eq!(meminfo(text), None, "{text}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_machine_has_some_memory() {
        assert!(machine_memory().is_some_and(|bytes| bytes > 1 << 20));
    }
}
