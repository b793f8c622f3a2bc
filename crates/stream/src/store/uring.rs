//! The store on io_uring: direct, asynchronous, from registered buffers.

use super::plain::PlainStore;
use super::{Rung, Ways};

pub(super) const NAME: &str = "io_uring";

/// A
#[derive(Debug)]
pub struct UringStore;
impl UringStore {
    /// n
    pub fn new(_d: usize, _w: Ways) -> Result<PlainStore, Rung> {
        Err(Rung::refused(NAME, "not built yet"))
    }
}
