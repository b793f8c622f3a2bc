//! The first call of a process: a fresh process makes one call between two stamps and reports its time.
//!
//! Cold are the code's page, which may not be mapped (page faults are counted), the caches and the branch predictors,
//! which have seen other code. The program's file is in the page cache, because earlier processes have run it.

use std::hint::black_box;
use std::path::Path;
use std::process::{Command, Stdio};

use hairspring_machine::{Host, Machine};
use hairspring_sheet::Absent;
use hairspring_time::Timebase;

use super::Read;
use crate::host::system::{READS, page_faults};
use crate::interleaving::median;
use crate::probe::{Context, Reading, Taken};

/// The most processes in a round, each with one first call.
const PROCESSES: usize = 20;
/// The least, however long a process takes to start; a slow machine takes no more.
const PROCESSES_LEAST: usize = 2;
/// The part of the chapter's time for each clock.
const PART: f64 = 0.02;
/// Pairs of stamps without a call, after the call.
const PAIRS: usize = 101;

impl Read {
    /// Whether the clock has a first call. A bare counter is one instruction, which the stamps themselves have already
    /// executed.
    pub(super) fn has_first(self) -> bool {
        !matches!(self, Self::Counter | Self::CounterOrdered)
    }
}

/// Makes the first call of this process to the clock with this segment in ids. Returns a line of four numbers: the
/// ticks of the call, the ticks of the stamps alone, and the minor and major page faults in the call, which are −1 if
/// the system does not count them.
///
/// # Errors
/// No such clock; no time base.
pub(super) fn call(segment: &str) -> Result<String, String> {
    let unknown = || format!("no clock is called '{segment}'");
    let read = READS.iter().find(|(known, ..)| *known == segment).map(|(.., read)| *read).ok_or_else(unknown)?;
    let stamped = |call: &dyn Fn()| {
        let before = Host.ticks_ordered();
        call();
        Host.ticks_ordered().since(before)
    };
    // Only a clock of a time base gets one: a calibration calls the kernel's clocks.
    let timebase = match read {
        Read::Now | Read::NowOrdered => Some(Timebase::calibrate(Host).map_err(|error| error.to_string())?),
        _ => None,
    };
    let the_call: Box<dyn Fn()> = match (read, timebase) {
        (Read::Call(kind), _) => Box::new(move || Host.call(kind)),
        (Read::NowOrdered, Some(timebase)) => Box::new(move || {
            black_box(timebase.now_ordered());
        }),
        (Read::Now, Some(timebase)) => Box::new(move || {
            black_box(timebase.now());
        }),
        _ => return Err(unknown()),
    };
    // Warms the stamps and the count of faults first.
    stamped(&|| {});
    page_faults();
    let before = page_faults();
    let ticks = stamped(&*the_call);
    let after = page_faults();
    let mut pairs: Vec<i64> = (0..PAIRS).map(|_| stamped(&|| {})).collect();
    pairs.sort_unstable();
    let [minor, major] = match (before, after) {
        (Some(before), Some(after)) => [0, 1].map(|kind| after[kind].saturating_sub(before[kind]).cast_signed()),
        _ => [-1; 2],
    };
    Ok(format!("{ticks} {} {minor} {major}", pairs[PAIRS / 2]))
}

/// The first calls of fresh processes.
pub(super) fn calls<M: Machine + Clone + Sync + 'static>(context: &Context<'_, M>, segment: &str) -> Taken {
    if context.host_timebase().is_none() {
        return Err(Absent::new(
            "processes run on a real machine; this one is simulated",
            "take the sheet on a real machine",
        ));
    }
    let Some(program) = &context.program else {
        return Err(Absent::new("no program for the calls was given", "take the sheet with the command"));
    };
    let end = Host.monotonic() + context.share(PART);
    let said: Vec<[i64; 4]> = (0..context.repeats(PROCESSES))
        .take_while(|number| !context.stopped() && (*number < PROCESSES_LEAST || Host.monotonic() < end))
        .map(|_| one(program, segment))
        .collect::<Result<_, _>>()?;
    let of = |index: usize| said.iter().map(|numbers| numbers[index] as f64).collect::<Vec<_>>();
    let nanos = |ticks: f64| ticks * 1e9 / context.timebase.calibration().rate_hz;
    let reading = Reading::samples(of(0).into_iter().map(nanos).collect()).with_overhead(nanos(median(&of(1))));
    let [minor, major] = [median(&of(2)), median(&of(3))];
    Ok(if minor < 0.0 {
        reading.with_caveat("page faults in it are not counted on this system")
    } else {
        reading.with_caveat(format!("page faults in a call (medians): {minor:.0} minor, {major:.0} major"))
    })
}

fn one(program: &Path, segment: &str) -> Result<[i64; 4], Absent> {
    let failed = |why: String| Absent::final_(format!("a process that makes a first call failed: {why}"));
    let mut command = Command::new(program);
    command.args(["caller", "--first", segment]).stdin(Stdio::null());
    let output = command.output().map_err(|error| failed(error.to_string()))?;
    let said = String::from_utf8_lossy(&output.stdout);
    understood(&said).ok_or_else(|| failed(String::from_utf8_lossy(&output.stderr).trim().to_owned()))
}

fn understood(said: &str) -> Option<[i64; 4]> {
    let numbers: Option<Vec<i64>> = said.split_whitespace().map(|number| number.parse().ok()).collect();
    numbers?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_clock_that_has_a_first_call_makes_it_and_tells_four_numbers() {
        for &(segment, _, read) in READS {
            let said = call(segment);
            assert_eq!(said.is_ok(), read.has_first(), "{segment}");
            let Ok(said) = said else { continue };
            let [ticks, pair, minor, major] = understood(&said).expect("four numbers");
            assert!(ticks > 0 && pair > 0 && minor >= -1 && major >= -1, "{segment}: {said}");
        }
        assert!(call("sundial").is_err());
        assert_eq!(understood("1 2 3"), None);
        assert_eq!(understood("1 2 3 x"), None);
    }
}
