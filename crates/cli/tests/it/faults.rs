//! Recordings on disks that fail as real ones do: one that the kernel slows down, and one that vanishes.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use testing::skip;

use crate::{code, folder, hairspring, is_root, items, json, stderr, stdout, wait_until, works};

const PATIENCE: Duration = Duration::from_secs(60);

/// `command NAME --format json` in a folder: its code and its report.
#[track_caller]
fn about(command: &[&str], folder: &Path) -> (i32, Value) {
    let output = hairspring(command).args(["--format", "json"]).current_dir(folder).output().expect("it starts");
    assert_eq!(stderr(&output), "", "{}", stdout(&output));
    (code(&output), json(&stdout(&output)))
}

/// A control group for block devices (version 1) in which writes to the device of a folder are slow; removed when
/// dropped.
struct Slow {
    group: std::path::PathBuf,
}

impl Slow {
    const GROUPS: &str = "/sys/fs/cgroup/blkio";

    fn new(folder: &Path, bytes_per_s: u64) -> Result<Self, String> {
        let group = Path::new(Self::GROUPS).join(format!("hairspring-test-{}", std::process::id()));
        let device =
            Command::new("stat").args(["-c", "%Hd:%Ld"]).arg(folder).output().map_err(|error| error.to_string())?;
        let device = stdout(&device).trim().to_owned();
        std::fs::create_dir(&group).map_err(|error| format!("make {}: {error}", group.display()))?;
        let slow = Self { group };
        let limit = slow.group.join("blkio.throttle.write_bps_device");
        std::fs::write(&limit, format!("{device} {bytes_per_s}"))
            .map_err(|error| format!("limit device {device}: {error}"))?;
        Ok(slow)
    }
}

impl Drop for Slow {
    fn drop(&mut self) {
        // Its processes have ended.
        let _ = std::fs::remove_dir(&self.group);
    }
}

#[test]
fn a_disk_that_the_kernel_slows_down_makes_gaps_and_every_byte_is_accounted_for() {
    const TEST: &str = "a_disk_that_the_kernel_slows_down_makes_gaps_and_every_byte_is_accounted_for";
    if !is_root() {
        return skip(TEST, "only root can slow a disk down");
    }
    let folder = folder();
    // A card of 40 MB/s, a disk of 4: that fails on any machine, busy or not.
    let slow = match Slow::new(folder.path(), 4_000_000) {
        Ok(slow) => slow,
        Err(why) => return skip(TEST, format!("no control group for block devices: {why}")),
    };
    let script = "echo $$ > \"$1\"/cgroup.procs && shift && exec \"$0\" \"$@\"";
    let mut command = Command::new("sh");
    command.args(["-c", script, crate::HAIRSPRING]).arg(&slow.group).current_dir(folder.path());
    command.args(["record", "--card", "virtual:2ch,16bit,10MS/s,fifo=256KiB", "--frames", "20000000"]);
    command.args(["--buffer", "4MiB", "--on-overrun", "gap", "--to", "x", "--quiet", "--format", "json"]);
    let output = command.output().expect("sh can be started");
    assert_eq!((code(&output), stderr(&output)), (4, String::new()), "{}", stdout(&output));
    let report = json(&stdout(&output));
    assert_eq!((&report["verdict"], &report["unaccounted_bytes"]), (&"incomplete".into(), &0.into()), "{report:#}");
    assert!(
        items(&report, "gaps").all(|gap| gap["cause"] == "buffer_full" || gap["cause"] == "served_late"),
        "{report:#}"
    );
    assert!(items(&report, "gaps").any(|gap| gap["cause"] == "buffer_full"), "{report:#}");
    let (ended, verified) = about(&["verify", "x"], folder.path());
    assert_eq!((ended, &verified["damaged_blocks"], &verified["mismatch"]), (4, &0.into(), &Value::Null));
    assert_eq!(verified["stored_bytes"], report["stored_bytes"]);
}

/// A FUSE file system that shows another folder; it vanishes when its server is killed.
struct Mirror {
    server: Child,
    at: std::path::PathBuf,
}

impl Mirror {
    fn of(folder: &Path, at: &Path) -> Result<Self, String> {
        let mut command = Command::new("bindfs");
        command.arg("-f").arg(folder).arg(at).stdout(Stdio::null()).stderr(Stdio::null());
        let server = command.spawn().map_err(|error| format!("bindfs: {error}"))?;
        let mut mirror = Self { server, at: at.to_owned() };
        let begun = Instant::now();
        while !works(Command::new("mountpoint").arg("-q").arg(at)) {
            if begun.elapsed() > PATIENCE || mirror.server.try_wait().is_ok_and(|ended| ended.is_some()) {
                return Err("bindfs cannot mount here".to_owned());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(mirror)
    }

    fn vanish(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

impl Drop for Mirror {
    fn drop(&mut self) {
        self.vanish();
        let _ = Command::new("umount").arg("-l").arg(&self.at).stderr(Stdio::null()).status();
    }
}

#[test]
fn a_file_system_that_vanishes_ends_the_recording_and_what_was_written_is_recovered() {
    const TEST: &str = "a_file_system_that_vanishes_ends_the_recording_and_what_was_written_is_recovered";
    if !is_root() || !Path::new("/dev/fuse").exists() {
        return skip(TEST, "only root can mount, and only where the kernel has FUSE");
    }
    if !works(Command::new("bindfs").arg("--version")) {
        return skip(TEST, "there is no bindfs; `cargo xtask test --setup` installs it");
    }
    let (behind, at) = (folder(), folder());
    let mut mirror = match Mirror::of(behind.path(), at.path()) {
        Ok(mirror) => mirror,
        Err(why) => return skip(TEST, &why),
    };
    let arguments = ["record", "--card", "virtual:2ch,16bit,1MS/s", "--buffer", "4MiB", "--to", "x", "--quiet"];
    let mut recorder = hairspring(&arguments);
    recorder.args(["--sync", "50ms", "--format", "json"]).current_dir(at.path());
    let recorder = recorder.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    let journal = behind.path().join("x.hairspring-journal");
    let blocks = || {
        let bytes = std::fs::read(&journal).unwrap_or_default();
        // The kind of a record is its byte 16; a block has the kind 2.
        bytes.chunks_exact(64).filter(|record| record.starts_with(b"hsJ") && record[16] == 2).count()
    };
    wait_until("the recording of some blocks", || blocks() > 4);
    mirror.vanish();
    let output = recorder.wait_with_output().expect("it ends");
    let report = json(&stdout(&output));
    assert_eq!((code(&output), &report["verdict"]), (4, &"incomplete".into()), "{report:#}");
    assert!(report["reason"].as_str().is_some_and(|reason| reason.contains("not connected")), "{report:#}");
    assert_eq!(report["unaccounted_bytes"], 0, "{report:#}");
    // The files themselves are where the file system had them.
    let (_, recovered) = about(&["recover", "x"], behind.path());
    let (_, verified) = about(&["verify", "x"], behind.path());
    assert_eq!((&verified["damaged_blocks"], &verified["mismatch"]), (&0.into(), &Value::Null), "{recovered:#}");
    let [kept, durable] =
        [&verified["proven_bytes"], &report["durable_bytes"]].map(|bytes| bytes.as_u64().expect("a number"));
    assert!(kept > 0 && kept >= durable, "{kept} of {durable} are left: {recovered:#}");
}
