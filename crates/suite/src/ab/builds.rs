//! Two programs as the arms of a comparison.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use hairspring_machine::{Cpu, Host};
use hairspring_sheet::Build;
use hairspring_time::Timebase;
use sha2::{Digest, Sha256};
use tempfile::TempDir;

use super::sentinels::{Sentinels, Sighting};
use super::{AbError, AbRequest, Arms, Asked, nameless};
use crate::callers::told_to_copies;
use crate::probe::{ChapterDeclaration, SheetProgress};
use crate::round::process::{Answer, Ask, Started, ask};
use crate::round::{RoundPart, RoundRequest};
use crate::sheet_run::Aside;

/// The names of the arms: the baseline, the other side, the baseline once more.
const NAMES: [&str; 3] = ["a", "b", "c"];

/// A copy of a program, and the variable that points it to the programs installed with the original.
struct Copied {
    program: PathBuf,
    beside: Option<(&'static str, PathBuf)>,
}

/// The programs, copied into one folder.
pub(super) struct Builds<'r> {
    request: &'r AbRequest,
    cpu: Cpu,
    sentinels: Sentinels,
    /// Anchors of this process's time base, passed on so that no round has to calibrate.
    anchors: String,
    interrupted: &'r AtomicBool,
    /// For each arm its builds, which take turns.
    programs: [Vec<Copied>; 3],
    /// The builds of the baseline and of the other side.
    pub(super) hashes: [Vec<String>; 2],
    pub(super) builds: [Build; 2],
    pub(super) declared: [Vec<ChapterDeclaration>; 2],
    pub(super) notes: Vec<String>,
    _folder: TempDir,
}

impl<'r> Builds<'r> {
    /// Copies the programs and asks them for their rows.
    pub(super) fn new(
        request: &'r AbRequest,
        cpu: Cpu,
        timebase: Timebase<Host>,
        interrupted: &'r AtomicBool,
    ) -> Result<Self, AbError> {
        let failed = |error: std::io::Error| AbError::Build(format!("failed to copy the programs: {error}"));
        let folder = tempfile::tempdir().map_err(failed)?;
        let sides = [&request.baseline, &request.other, &request.baseline];
        let (mut programs, mut hashes) = ([const { Vec::new() }; 3], [const { Vec::new() }; 2]);
        for (arm, side) in sides.into_iter().enumerate() {
            for (number, program) in side.iter().enumerate() {
                // Names of equal length, because the length of a program's name moves its stack.
                let copy = folder.path().join(format!("{}{number:03}", NAMES[arm]));
                let failed = |error| AbError::Build(format!("{} cannot be read: {error}", program.display()));
                std::fs::copy(program, &copy).map_err(failed)?;
                if let Some(hashes) = hashes.get_mut(arm) {
                    hashes.push(hex(&Sha256::digest(std::fs::read(&copy).map_err(failed)?)));
                }
                programs[arm].push(Copied { program: copy, beside: told_to_copies(program) });
            }
        }
        let mut this = Self {
            request,
            cpu,
            anchors: timebase.anchors().to_string(),
            sentinels: Sentinels::new(timebase, cpu),
            interrupted,
            programs,
            hashes,
            builds: [nameless(), nameless()],
            declared: [Vec::new(), Vec::new()],
            notes: Vec::new(),
            _folder: folder,
        };
        for (arm, side) in sides.into_iter().take(2).enumerate() {
            for (number, named) in side.iter().enumerate() {
                let copied = &this.programs[arm][number];
                let answer = this.ask(copied, &Ask::Declare, 0, &mut |_| {});
                if let Some(failed) = answer.failed {
                    let copy = copied.program.display().to_string();
                    return Err(AbError::Build(failed.text().replace(&copy, &named.display().to_string())));
                }
                let (build, declared) = answer.declared.unwrap_or_else(|| (nameless(), Vec::new()));
                if number == 0 {
                    (this.builds[arm], this.declared[arm]) = (build, declared);
                } else if declared != this.declared[arm] {
                    let (named, first) = (named.display(), side[0].display());
                    let text = format!("{named} has other rows than {first}: the builds of a side have one source");
                    return Err(AbError::Build(text));
                }
            }
        }
        Ok(this)
    }

    fn ask(&self, copied: &Copied, asked: &Ask, padding: usize, progress: &mut dyn FnMut(SheetProgress<'_>)) -> Answer {
        let aside = Aside::from(&Host, self.cpu);
        let Copied { program, beside } = copied;
        let started =
            Started { program, padding, variable: beside.as_ref().map(|(name, value)| (*name, value.as_path())) };
        ask(&started, asked, self.interrupted, || aside.step(), progress)
    }
}

impl Arms for Builds<'_> {
    fn look(&mut self) -> Sighting {
        self.sentinels.look()
    }

    fn take(
        &mut self,
        arm: usize,
        asked: &Asked<'_>,
        progress: &mut dyn FnMut(SheetProgress<'_>),
    ) -> Option<RoundPart> {
        let request = requested(self.request, &self.anchors, arm, asked);
        let builds = &self.programs[arm];
        let build = &builds[asked.round as usize % builds.len()];
        let mut answer = self.ask(build, &Ask::Take(request), asked.padding, progress);
        if let Some(failed) = answer.failed {
            self.notes.push(format!("round {}, {}: {}", asked.round + 1, NAMES[arm], failed.text()));
        }
        answer.parts.pop().filter(|part| !part.interrupted)
    }
}

/// The request for one round of an arm.
fn requested(request: &AbRequest, anchors: &str, arm: usize, asked: &Asked<'_>) -> RoundRequest {
    RoundRequest {
        rows: asked.rows.to_vec(),
        effort: request.effort,
        round: asked.round,
        rounds: asked.rounds,
        cpu: request.cpu.map(|cpu| cpu.0),
        priority: request.priority,
        seed: request.seed,
        disks: None,
        anchors: Some(anchors.to_owned()),
        redact: false,
        alone_ns: None,
        // The others make the same calls without a step.
        spin: request.spin.iter().map(|(id, ns)| (id.clone(), if arm == 1 { *ns } else { 0.0 })).collect(),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::Effort;

    #[test]
    fn every_arm_goes_on_with_the_time_base_of_this_process_and_one_is_lengthened() {
        let request = AbRequest {
            baseline: vec![PathBuf::new()],
            other: vec![PathBuf::new()],
            only: Vec::new(),
            common: false,
            rounds: 5,
            effort: Effort::Quick,
            cpu: None,
            priority: 80,
            seed: 1,
            confirm: false,
            null: true,
            spin: vec![("one.row".to_owned(), 5.0)],
        };
        let asked = Asked { rows: &["one.row".to_owned()], round: 3, rounds: 5, padding: 0 };
        let anchors = Timebase::calibrate(Host).expect("a time base").anchors().to_string();
        for (arm, name) in NAMES.iter().enumerate() {
            let requested = requested(&request, &anchors, arm, &asked);
            assert_eq!(requested.anchors.as_deref(), Some(anchors.as_str()), "{name}");
            assert!(anchors.parse::<hairspring_time::Anchors>().is_ok(), "{anchors}");
            assert_eq!((requested.round, requested.spin[0].1), (3, if arm == 1 { 5.0 } else { 0.0 }));
        }
    }
}
