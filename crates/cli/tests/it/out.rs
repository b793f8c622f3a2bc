//! `--out`: whole or not at all, and no other file is harmed.

use std::os::unix::fs::{FileTypeExt, symlink};
use std::process::Command;

use testing::skip;

use crate::{HAIRSPRING, ROW, code, folder, is_root, json, json_file, may_unshare, names, run, stderr, works};

#[track_caller]
fn write_to(file: &std::path::Path) {
    let name = file.to_str().expect("temporary names are text");
    let output = run(&["sheet", "--quick", "--only", ROW, "--format", "json", "--out", name]);
    assert_eq!((code(&output), stderr(&output)), (0, String::new()));
}

#[test]
fn an_old_file_is_replaced_and_nothing_else_appears() {
    let folder = folder();
    let file = folder.path().join("sheet.json");
    std::fs::write(&file, "old").expect("written");
    write_to(&file);
    assert_eq!(json_file(&file)["schema"], "hairspring.sheet/1");
    assert_eq!(names(folder.path()), ["sheet.json"]);
}

/// Regression: the new file was renamed over the name, which turned a link into a file and left the link's target as it
/// was.
#[test]
fn a_link_stays_and_what_it_leads_to_is_replaced() {
    let folder = folder();
    let (file, link) = (folder.path().join("real.json"), folder.path().join("link.json"));
    std::fs::write(&file, "old").expect("written");
    symlink("real.json", &link).expect("linked");
    write_to(&link);
    assert!(link.symlink_metadata().expect("it is there").is_symlink());
    assert_eq!(json_file(&file)["schema"], "hairspring.sheet/1");
}

/// Regression: `--out /dev/null` as root replaced the device by a file, and with it broke half of the system.
#[test]
fn a_device_is_written_to_and_never_replaced() {
    let folder = folder();
    let device = folder.path().join("null");
    if !is_root() || !works(Command::new("mknod").arg(&device).args(["c", "1", "3"])) {
        return skip("a_device_is_written_to_and_never_replaced", "devices can only be made by root");
    }
    write_to(&device);
    assert!(device.metadata().expect("it is there").file_type().is_char_device());
    assert_eq!(names(folder.path()), ["null"]);
}

#[test]
fn a_pipe_is_written_to() {
    let output = run(&["sheet", "--quick", "--only", ROW, "--format", "json", "--out", "/dev/stdout"]);
    assert_eq!((code(&output), stderr(&output)), (0, String::new()));
    assert_eq!(json(&String::from_utf8_lossy(&output.stdout))["schema"], "hairspring.sheet/1");
}

/// The disk is a file system of four pages in a name space of its own, which ends with the test.
#[test]
fn a_full_disk_leaves_the_old_file_and_nothing_half_written() {
    if !may_unshare() {
        return skip("a_full_disk_leaves_the_old_file_and_nothing_half_written", "mounting is not permitted here");
    }
    let folder = folder();
    let script = format!(
        "mount -t tmpfs -o size=16k none . && cd \"$PWD\" && printf old > sheet.json && \
         '{HAIRSPRING}' sheet --quick --only {ROW} --out sheet.json; echo \"code $?\"; ls -A; cat sheet.json"
    );
    let output = Command::new("unshare").args(["--mount", "sh", "-c", &script]).current_dir(folder.path()).output();
    let output = output.expect("unshare can be started");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "code 1\nsheet.json\nold");
    assert!(stderr(&output).contains("No space left on device"), "{}", stderr(&output));
    assert!(stderr(&output).contains("no file was left behind"), "{}", stderr(&output));
}
