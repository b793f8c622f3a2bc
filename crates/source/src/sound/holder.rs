//! Holders of a sound card: the owner processes of its streams, as the kernel states them.

use std::path::Path;

use super::open::Direction;

/// The processes that have the subdevices of a stream open: `process 812 (pipewire)`. `proc` is the root of the
/// kernel's files.
pub(super) fn of(proc: &Path, card: u32, device: u32, direction: Direction) -> Vec<String> {
    let stream = proc.join(format!("asound/card{card}/pcm{device}{}", direction.letter()));
    let entries = std::fs::read_dir(stream).into_iter().flatten().flatten();
    let mut owners: Vec<u32> = entries
        .filter_map(|entry| std::fs::read_to_string(entry.path().join("status")).ok())
        .filter_map(|status| owner(&status))
        .collect();
    owners.sort_unstable();
    owners.dedup();
    owners
        .into_iter()
        .map(|owner| match std::fs::read_to_string(proc.join(format!("{owner}/comm"))) {
            Ok(name) => format!("process {owner} ({})", name.trim()),
            Err(_) => format!("process {owner}"),
        })
        .collect()
}

/// The owner in a line `owner_pid   : 812`; `None` if the stream is closed.
fn owner(status: &str) -> Option<u32> {
    let line = status.lines().find_map(|line| line.strip_prefix("owner_pid"))?;
    line.trim_start().strip_prefix(':')?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_owner_of_each_open_subdevice_is_named_once() {
        let root = tempfile::tempdir().expect("a folder");
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().expect("has one")).expect("made");
            std::fs::write(path, text).expect("written");
        };
        let running = "state: RUNNING\nowner_pid   : 812\ntrigger_time: 5.1\ntstamp      : 0.0\n";
        write("asound/card0/pcm0c/sub0/status", running);
        write("asound/card0/pcm0c/sub1/status", running);
        write("asound/card0/pcm0c/sub2/status", "closed\n");
        write("asound/card0/pcm0c/sub3/status", "state: OPEN\nowner_pid   : 7\n");
        write("812/comm", "pipewire\n");
        assert_eq!(of(root.path(), 0, 0, Direction::Record), ["process 7", "process 812 (pipewire)"]);
        assert!(of(root.path(), 0, 0, Direction::Play).is_empty());
    }
}
