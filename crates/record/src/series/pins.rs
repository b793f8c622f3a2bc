//! Pins: files beside a segment that keep retention from deleting it. Anybody may make one; here a trigger does.

use std::path::PathBuf;

use super::{pin_of, segment_base};
use crate::journal::KeptFrames;
use crate::store::{Open, Store, StoreError};

/// Whether somebody has pinned a segment, in any directory. A file that exists but cannot be opened pins, too.
pub(super) fn is_pinned(store: &mut dyn Store, bases: &[PathBuf], number: u32) -> bool {
    bases.iter().any(|base| match store.open(&pin_of(&segment_base(base, number)), Open::Mend) {
        Ok(pin) => {
            store.close(pin);
            true
        }
        Err(error) => error.errno.0 != libc::ENOENT,
    })
}

/// Pins a segment durably, in the first directory that takes the file. The file says why.
pub(super) fn pin(store: &mut dyn Store, bases: &[PathBuf], number: u32, why: KeptFrames) -> Result<(), StoreError> {
    if is_pinned(store, bases, number) {
        return Ok(());
    }
    let KeptFrames { first, end } = why;
    let text = format!("a trigger: frames {} to {}\n", first.0, end.0.saturating_sub(1));
    let mut done = Ok(());
    for base in bases {
        done = store.put(&pin_of(&segment_base(base, number)), text.as_bytes());
        if done.is_ok() {
            break;
        }
    }
    done
}
