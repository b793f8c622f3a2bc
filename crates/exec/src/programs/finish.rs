//! A [`Finish`] in words: why the run ended, what was lost, what went wrong, and whether priority was strict.

use std::fmt;

use hairspring_exec_core::Ending;

use crate::report::{Finish, Misfortune, Mishap, SourceTrouble, StopReason};

/// Prints one line for each finding: a name, then the finding.
pub(super) struct FinishText<'f>(pub(super) &'f Finish);

impl fmt::Display for FinishText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let finish = self.0;
        let ended = match finish.stopped {
            StopReason::Asked => "because the program asked for it",
            StopReason::TimeUp => "because its time was up",
            StopReason::Finished => "because nothing was left to do",
            StopReason::Stuck => "because of a deadlock: tasks still waited, and nothing could wake them",
        };
        writeln!(f, "{:<10} {ended}", "ended")?;
        let (overruns, lost) = (finish.timer_overruns, finish.interrupts_lost);
        writeln!(f, "{:<10} {overruns} timer periods without a run of their own, {lost} interrupts lost", "overruns")?;
        for (place, trouble) in finish.sources.iter().enumerate() {
            let SourceTrouble { name, lost, errors, ended, .. } = trouble;
            let end = ended.as_ref().map_or_else(String::new, |why| format!(", ended: {why}"));
            let heading = if place == 0 { "sources" } else { "" };
            writeln!(f, "{heading:<10} {name}: {lost} interrupts lost, {errors} reads failed{end}")?;
        }
        for (place, mishap) in finish.mishaps.iter().enumerate() {
            writeln!(f, "{:<10} {}", if place == 0 { "mishaps" } else { "" }, befell(mishap))?;
        }
        if finish.more_mishaps > 0 {
            writeln!(f, "{:<10} and {} more", "", finish.more_mishaps)?;
        }
        let strict = match (finish.strict, finish.refused.is_empty()) {
            (true, _) => "yes: the most urgent task that was ready ran",
            (false, false) => "no: the system refused the settings that strict priority needs",
            (false, true) => "no: several CPUs run several tasks at once; the back-end thread_up keeps to one",
        };
        writeln!(f, "{:<10} {strict}", "strict")?;
        for refused in &finish.refused {
            writeln!(f, "{:<10} {refused}", "")?;
        }
        Ok(())
    }
}

fn befell(mishap: &Mishap) -> String {
    let name = &mishap.name;
    match &mishap.what {
        Misfortune::Ended(Ending::Killed, text) if text.is_empty() => format!("{name} was killed"),
        Misfortune::Ended(Ending::Killed, text) => format!("{name} was killed: {text}"),
        Misfortune::Ended(Ending::Panicked, text) => format!("{name} panicked: {text}"),
        Misfortune::Ended(Ending::Returned, text) => format!("{name} ended: {text}"),
        Misfortune::HeldResources => format!("{name} ended while it owned resources; they were handed on"),
        Misfortune::RanAway(span) => format!("{name} kept the CPU for {span} without a call"),
    }
}
