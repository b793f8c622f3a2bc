//! [`Tracefs`]: the formats of the kernel's tracepoints.
//!
//! They lie in a file system that only root may read, and that is often not mounted. This process mounts it detached
//! from any folder: no other process sees the mount, and it ends with its descriptor. Files are only read, because
//! writing would change the kernel's tracing for the whole machine.

use std::io;
use std::os::fd::OwnedFd;

use rustix::fs::{Mode, OFlags, openat};
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};

/// The folder of the kernel's tracepoints.
pub(crate) struct Tracefs {
    events: OwnedFd,
}

impl Tracefs {
    pub(crate) fn open() -> io::Result<Self> {
        const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
        for mounted in ["/sys/kernel/tracing/events", "/sys/kernel/debug/tracing/events"] {
            if let Ok(events) = rustix::fs::open(mounted, FOLDER, Mode::empty()) {
                return Ok(Self { events });
            }
        }
        let context = fsopen("tracefs", FsOpenFlags::FSOPEN_CLOEXEC)?;
        fsconfig_create(&context)?;
        let mount = fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::MOUNT_ATTR_RDONLY)?;
        let events = openat(mount, "events", FOLDER, Mode::empty())?;
        Ok(Self { events })
    }

    /// The text of a tracepoint's `format` file; `None` if this kernel has no such tracepoint.
    pub(crate) fn format(&self, path: &str) -> io::Result<Option<String>> {
        match openat(&self.events, format!("{path}/format"), OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()) {
            Ok(file) => io::read_to_string(std::fs::File::from(file)).map(Some),
            Err(rustix::io::Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}
