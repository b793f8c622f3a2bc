//! Chapter *Callers*: what a call of the library costs from each language that has it, in the manner of a Fermilab note of 2007:
//! the first call of a process apart from the later ones.
//!
//! Each language has a small program of ours that makes the calls and prints what they took, a JSON object for a way to
//! call; so all of them run as a user's program does, in processes of their own. Who is not installed is absent.

mod program;
mod rows;

use std::any::Any;
use std::collections::BTreeMap;

use hairspring_machine::{Host, Machine, Policy};
use hairspring_sheet::{Absent, Figure, Method, Unit};
use hairspring_time::RealTime;

use crate::context::{Context, Effort};
use crate::host::system;
#[cfg(test)]
pub(crate) use program::understood;
pub(crate) use program::{Program, Start};
pub(crate) use rows::declare;

/// Processes of each program: as many first calls.
const RUNS: usize = 10;
const RUNS_QUICK: usize = 3;
const RUNS_THOROUGH: usize = 50;
/// Later calls of each kind in each process.
const LATER: usize = 2_000;

pub(crate) fn measure<M: Machine + Clone + Sync + 'static>(context: &mut Context<'_, M>) {
    if (&context.machine as &dyn Any).downcast_ref::<Host>().is_none() {
        let absent =
            Absent::new("programs run on a real machine; this one is simulated", "take the sheet on a real machine");
        context.absent_under("callers", &absent);
        return;
    }
    let runs = match context.effort {
        Effort::Quick => RUNS_QUICK,
        Effort::Normal => RUNS,
        Effort::Thorough => RUNS_THOROUGH,
    };
    // What is started from here inherits the place, on Linux.
    let settings = RealTime { policy: Some(Policy::Other), cpu: Some(context.cpu), ..RealTime::default() };
    let guard = settings.apply(&Host);
    for program in system::PROGRAMS {
        if context.wants(&format!("callers.{}", program.language)) {
            context.say(&format!("calls from {}", program.language));
            of(context, &program, runs);
        }
    }
    drop(guard);
    context.remark(
        "Later calls of less than a stamp's cost are timed in blocks, with the language's own loop around them: it belongs to what \
         such a call costs there. The mapped word is in a file in memory, so a real device adds the time of its bus.",
    );
}

/// The rows of one program.
fn of<M: Machine + Clone + Sync>(context: &mut Context<'_, M>, program: &Program, runs: usize) {
    let mut samples: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for _ in 0..runs {
        match program.run(context.program.as_deref(), LATER) {
            Ok(taken) => taken.into_iter().for_each(|(id, mut some)| samples.entry(id).or_default().append(&mut some)),
            Err(absent) => return context.absent_under(&format!("callers.{}", program.language), &absent),
        }
        if context.stopped() {
            return;
        }
    }
    for (id, mut samples) in samples {
        context.put(&id, Figure::from_samples(Unit::Ns, Method::Stamp, &mut samples));
    }
}
