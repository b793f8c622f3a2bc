//! [`Health`]: losses, errors and end of a source. Its thread and its posters count; each run reports the increase.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use hairspring_machine::Refused;

use crate::report::SourceTrouble;

pub(crate) struct Health {
    name: String,
    lost: AtomicU64,
    errors: AtomicU64,
    end: OnceLock<String>,
    /// The setting that the system did not grant its thread.
    refused: OnceLock<Refused>,
    /// The source is being dropped: nothing that it still reads is delivered.
    leaving: AtomicBool,
    told: Mutex<Told>,
}

#[derive(Default)]
struct Told {
    lost: u64,
    errors: u64,
    end: bool,
}

impl Health {
    pub(crate) fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            lost: AtomicU64::new(0),
            errors: AtomicU64::new(0),
            end: OnceLock::new(),
            refused: OnceLock::new(),
            leaving: AtomicBool::new(false),
            told: Mutex::default(),
        }
    }

    /// An arrival found the ring full. Relaxed, as with errors: a counter that hands nothing over.
    pub(crate) fn count_lost(&self) {
        self.lost.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn count_error(&self) {
        self.errors.fetch_add(1, Ordering::Relaxed);
    }

    /// Nothing will come from its descriptor any more. The first reason stays.
    pub(super) fn end(&self, why: String) {
        let _ = self.end.set(why);
    }

    pub(super) fn refuse(&self, refused: Refused) {
        let _ = self.refused.set(refused);
    }

    /// The setting that the system did not grant its thread; every run reports it.
    pub(crate) fn refused(&self) -> Option<Refused> {
        self.refused.get().cloned()
    }

    pub(super) fn leave(&self) {
        // Release pairs with the Acquire in `is_leaving`.
        self.leaving.store(true, Ordering::Release);
    }

    pub(super) fn is_leaving(&self) -> bool {
        self.leaving.load(Ordering::Acquire)
    }

    /// The trouble since the last report; none: there was none.
    pub(crate) fn tell(&self, isp: u16) -> Option<SourceTrouble> {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let (lost, errors) = (self.lost.load(Ordering::Relaxed), self.errors.load(Ordering::Relaxed));
        let end = self.end.get();
        let trouble = SourceTrouble {
            isp,
            name: self.name.clone(),
            lost: lost - told.lost,
            errors: errors - told.errors,
            ended: end.filter(|_| !told.end).cloned(),
        };
        *told = Told { lost, errors, end: end.is_some() };
        (trouble.lost > 0 || trouble.errors > 0 || trouble.ended.is_some()).then_some(trouble)
    }
}
