//! Chapter *Callers*: the cost of a call of the library from each language. As in a Fermilab note of 2007, the first
//! call of a process is separate from the later ones.
//!
//! Each language has a small program that makes the calls and prints their times, one JSON object for each way to call.
//! So all calls run as in a user's program, in its own process. The rows of a language that is not installed are
//! absent.

mod program;
mod rows;

use std::collections::BTreeMap;

use hairspring_machine::Machine;
use hairspring_sheet::Absent;

use crate::host::system;
use crate::interleaving::median;
use crate::probe::{Class, Context, Effort, Probes, Reading, Setting};
#[cfg(test)]
pub(crate) use program::understood;
pub(crate) use program::{Program, Start, told_to_copies};
use rows::{CallRows, tables};

/// Processes of each program, which is also the number of first calls.
const RUNS: usize = 20;
const RUNS_THOROUGH: usize = 50;
/// Later calls of each kind in each process.
const LATER: usize = 2_000;

/// The probes of the chapter: the program of each language, which makes all calls.
pub(crate) fn probes<M: Machine + Clone + Sync + 'static>() -> Probes<M> {
    let mut probes = Probes::new(
        "callers",
        "Callers",
        "The cost of a call of the library from each language, for the first call of a process and later ones: a reading of the clock, \
         the shortest useful delay, and one access to a mapped word.",
    );
    probes.needs_core();
    probes.needs_host("programs run on a real machine; this one is simulated");
    for (language, rows) in tables(&mut probes) {
        // On Linux, a started program inherits the CPU and the policy.
        let slots: Vec<_> = rows.iter().flat_map(CallRows::slots).collect();
        let program = system::PROGRAMS.into_iter().find(|program| program.language == language);
        probes.several(Setting::Class(Class::Other), slots, move |context| {
            context.say(&format!("calls from {language}"));
            let unknown = || Absent::final_("this system has no program that makes the calls");
            let taken = program.ok_or_else(unknown).and_then(|program| calls(context, &program));
            enter(context, &rows, taken);
        });
    }
    probes.after(|context| {
        context.remark(
            "Later calls of less than a stamp's cost are timed in blocks, with the language's own loop around them: it belongs to what \
             such a call costs there. The mapped word is in a file in memory, so a real device adds the time of its bus.",
        );
    });
    probes
}

/// Times of the calls of all processes, by call.
type Calls = BTreeMap<&'static str, CallsTaken>;

/// Times of one kind of call in all processes, in nanoseconds.
#[derive(Default)]
struct CallsTaken {
    stamps: Vec<f64>,
    first: Vec<f64>,
    later: Vec<f64>,
    /// Number of calls in a block; a later sample is their mean.
    block: f64,
}

/// Runs a program as often as the effort allows. `None` after an interruption.
fn calls<M: Machine + Clone + Sync>(context: &Context<'_, M>, program: &Program) -> Result<Option<Calls>, Absent> {
    let runs = match context.effort {
        Effort::Quick | Effort::Normal => RUNS,
        Effort::Thorough => RUNS_THOROUGH,
    };
    let mut all = Calls::new();
    for _ in 0..context.repeats(runs) {
        for (call, mut taken) in program.run(context.program.as_deref(), LATER)? {
            let calls = all.entry(call).or_default();
            calls.stamps.push(taken.stamp);
            calls.first.push(taken.first);
            calls.later.append(&mut taken.later);
            calls.block = taken.block;
        }
        if context.stopped() {
            return Ok(None);
        }
    }
    Ok(Some(all))
}

fn enter<M: Machine + Clone + Sync>(
    context: &mut Context<'_, M>,
    rows: &[CallRows],
    taken: Result<Option<Calls>, Absent>,
) {
    let mut taken = match taken {
        Ok(Some(taken)) => taken,
        Ok(None) => return,
        Err(absent) => {
            let slots = rows.iter().flat_map(CallRows::slots);
            return slots.for_each(|slot| context.absent(slot, absent.clone()));
        }
    };
    for of in rows {
        let CallsTaken { stamps, first, later, block } = taken.remove(of.call).unwrap_or_default();
        let stamp = median(&stamps);
        context.put(of.first, Reading::samples(first).with_overhead(stamp));
        let later = if of.in_blocks { Reading::means(later, block) } else { Reading::samples(later) };
        context.put(of.later, later.with_overhead(stamp));
    }
}
