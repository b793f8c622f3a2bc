//! Two programs as the arms of a comparison.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use hairspring_machine::{Cpu, Host};
use hairspring_sheet::Build;
use sha2::{Digest, Sha256};
use tempfile::TempDir;

use super::sentinels::{Sentinels, Sighting};
use super::{AbError, AbRequest, Arms, Asked, nameless};
use crate::probe::{ChapterDeclaration, SheetProgress};
use crate::round::process::{Answer, Ask, ask};
use crate::round::{RoundPart, RoundRequest};
use crate::sheet_run::Aside;

/// The names of the copies: equally long, since the length of a program's name moves its stack.
const NAMES: [&str; 3] = ["a", "b", "c"];

/// The programs, copied into one folder.
pub(super) struct Builds<'r> {
    request: &'r AbRequest,
    cpu: Cpu,
    sentinels: Sentinels,
    interrupted: &'r AtomicBool,
    programs: [PathBuf; 3],
    /// Of the baseline and of the other.
    pub(super) hashes: [String; 2],
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
        sentinels: Sentinels,
        interrupted: &'r AtomicBool,
    ) -> Result<Self, AbError> {
        let failed = |error: std::io::Error| AbError::Build(format!("failed to copy the programs: {error}"));
        let folder = tempfile::tempdir().map_err(failed)?;
        let programs = NAMES.map(|name| folder.path().join(name));
        let of = |program: &Path| std::fs::read(program).map(|bytes| hex(&Sha256::digest(bytes)));
        let mut hashes = [String::new(), String::new()];
        for (arm, program) in [&request.baseline, &request.other, &request.baseline].into_iter().enumerate() {
            let failed = |error| AbError::Build(format!("{} cannot be read: {error}", program.display()));
            std::fs::copy(program, &programs[arm]).map_err(failed)?;
            if let Some(hash) = hashes.get_mut(arm) {
                *hash = of(program).map_err(failed)?;
            }
        }
        let mut this = Self {
            request,
            cpu,
            sentinels,
            interrupted,
            programs,
            hashes,
            builds: [nameless(), nameless()],
            declared: [Vec::new(), Vec::new()],
            notes: Vec::new(),
            _folder: folder,
        };
        for arm in 0..2 {
            let answer = this.ask(arm, &Ask::Declare, 0, &mut |_| {});
            let named = [&request.baseline, &request.other][arm].display().to_string();
            if let Some(failed) = answer.failed {
                let copy = this.programs[arm].display().to_string();
                return Err(AbError::Build(failed.text().replace(&copy, &named)));
            }
            if let Some((build, chapters)) = answer.declared {
                (this.builds[arm], this.declared[arm]) = (build, chapters);
            }
        }
        Ok(this)
    }

    fn ask(&self, arm: usize, asked: &Ask, padding: usize, progress: &mut dyn FnMut(SheetProgress<'_>)) -> Answer {
        let aside = Aside::from(&Host, self.cpu);
        ask(&self.programs[arm], asked, padding, self.interrupted, || aside.step(), progress)
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
        let request = RoundRequest {
            anchors: None,
            rows: asked.rows.to_vec(),
            effort: self.request.effort,
            round: asked.round,
            rounds: asked.rounds,
            cpu: self.request.cpu.map(|cpu| cpu.0),
            priority: self.request.priority,
            seed: self.request.seed,
            disks: None,
            spin: if arm == 1 { self.request.spin.clone() } else { Vec::new() },
        };
        let mut answer = self.ask(arm, &Ask::Take(request), asked.padding, progress);
        if let Some(failed) = answer.failed {
            self.notes.push(format!("round {}, {}: {}", asked.round + 1, NAMES[arm], failed.text()));
        }
        answer.parts.pop().filter(|part| !part.interrupted)
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
