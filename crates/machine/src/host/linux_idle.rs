//! The kernel's limit on idle states, as its PM QoS interface takes it.
//!
//! A process that holds `/dev/cpu_dma_latency` open with a number of microseconds written to it limits the exit latency
//! of all CPUs. The lowest number of all holders is in force. The kernel drops the limit when the last descriptor is
//! closed, so a limit cannot outlive its holders. Source: `Documentation/power/pm_qos_interface.rst` of the kernel.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::path::Path;

use crate::{IdleLimit, Nanos, Refused};

const DEVICE: &str = "/dev/cpu_dma_latency";

pub(super) fn limit(most: Nanos) -> Result<IdleLimit, Refused> {
    limit_at(Path::new(DEVICE), most)
}

fn limit_at(device: &Path, most: Nanos) -> Result<IdleLimit, Refused> {
    let refused = |said: String, remedy: &str| Refused {
        attempted: format!("limit idle states by {DEVICE}"),
        said,
        remedy: remedy.to_owned(),
    };
    if most.is_negative() {
        return Err(refused(format!("{most} is negative"), "choose a limit of zero or more"));
    }
    // The kernel reads a signed number; it knows no limit above 2,000 s.
    let most_us = i32::try_from(most.count() / 1_000).unwrap_or(i32::MAX);
    // Closed on exec: a program that is started would hold the limit beyond the end of this one.
    let opened = OpenOptions::new().write(true).open(device);
    let written = opened.and_then(|mut file| file.write_all(&most_us.to_ne_bytes()).map(|()| file));
    let file = written.map_err(|error| refused(error.to_string(), remedy(error.kind())))?;
    Ok(IdleLimit { file: Some(file), _simulated: None })
}

/// Remedy for an error of the device.
fn remedy(error: ErrorKind) -> &'static str {
    match error {
        ErrorKind::PermissionDenied => {
            "run it as root, or let a group write the file by a udev rule: KERNEL==\"cpu_dma_latency\", GROUP=\"realtime\", MODE=\"0660\""
        }
        ErrorKind::NotFound => "hand the device into the container, or use a kernel that was built with CPU_IDLE",
        _ => {
            "look what the file is (`ls -l /dev/cpu_dma_latency` shows a character device) and what the kernel says (`dmesg`)"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_written_as_one_signed_word_of_microseconds() {
        let path = std::env::temp_dir().join(format!("hairspring-idle-{}", std::process::id()));
        for (most, word) in [(0, 0), (1, 0), (999, 0), (20_999, 20), (i64::MAX, i32::MAX)] {
            std::fs::write(&path, []).expect("made");
            let held = limit_at(&path, Nanos::new(most)).expect("a file takes it");
            assert_eq!(std::fs::read(&path).expect("readable"), i32::to_ne_bytes(word), "{most}");
            assert!(held.file().is_some());
        }
        assert!(limit_at(&path, Nanos::new(-1)).expect_err("negative").said.contains("negative"));
        std::fs::remove_file(&path).expect("removed");
    }

    /// A user who reads "run it as root" for a broken or missing device looks for the fault in the wrong place.
    #[test]
    fn only_a_missing_permission_is_said_to_need_root() {
        let refused = |device: &Path| limit_at(device, Nanos::ZERO).expect_err("it takes no limit").remedy;
        assert!(refused(Path::new("/nowhere/at/all")).contains("hand the device into the container"));
        // Full for every write.
        assert!(refused(Path::new("/dev/full")).contains("dmesg"));
        assert!(remedy(ErrorKind::PermissionDenied).contains("udev"));
    }
}
