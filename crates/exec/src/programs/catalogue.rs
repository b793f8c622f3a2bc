//! The list of the programs, by name.

use super::run::{Failed, ProgramRun};
use super::{inversion, sampler, shutter};
use crate::Backend;

/// One of the programs.
#[derive(Clone, Copy, Debug)]
pub struct Program {
    /// Its name, as the command and the examples know it.
    pub name: &'static str,
    /// Its subject, in one line.
    pub shows: &'static str,
    run: fn(Backend, Option<usize>) -> Result<ProgramRun, Failed>,
}

impl Program {
    /// Runs it with its default setup, and keeps this many calls in the trace. Takes less than a second.
    ///
    /// # Errors
    /// The back-end is unavailable here.
    pub fn run(&self, backend: Backend, trace: Option<usize>) -> Result<ProgramRun, Failed> {
        (self.run)(backend, trace)
    }
}

/// All programs.
pub fn all() -> [Program; 3] {
    [
        Program {
            name: "sampler",
            shows: "a periodic sampler mails its samples to a less urgent logger, which is sometimes slow",
            run: |backend, trace| {
                sampler::run(backend, &sampler::SamplerSetup::default(), trace).map(ProgramRun::of_any_kind)
            },
        },
        Program {
            name: "shutter",
            shows: "exposures of a camera: a sequence with exact times, and a supervisor that aborts one that hangs",
            run: |backend, trace| {
                shutter::run(backend, &shutter::ShutterSetup::default(), trace).map(ProgramRun::of_any_kind)
            },
        },
        Program {
            name: "inversion",
            shows: "priority inversion, and how inheritance and a ceiling cure it",
            run: |backend, trace| {
                inversion::run(backend, &inversion::InversionSetup::default(), trace).map(ProgramRun::of_any_kind)
            },
        },
    ]
}
