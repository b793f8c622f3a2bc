//! [`Tally`]: the blames of many gaps, by culprit.

use std::collections::BTreeMap;

use hairspring_machine::Nanos;

use crate::blame::Blame;
use crate::culprit::{Culprit, CulpritKind};

/// The most culprits in a tally. Over hours the number of task names is unlimited; later ones count under their kind
/// only.
const NAMES_MOST: usize = 10_000;

/// The time that culprits took from a thread.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    by_culprit: BTreeMap<Culprit, Toll>,
    by_kind: BTreeMap<CulpritKind, Toll>,
    whole: Toll,
}

/// The time of one culprit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Toll {
    /// Number of gaps of which it took the greatest share.
    pub gaps: u64,
    /// Total time that it took, including gaps of which another took more.
    pub total: Nanos,
    /// The longest time that it took of one gap.
    pub longest: Nanos,
}

impl Toll {
    fn add(&mut self, time: Nanos, chief: bool) {
        self.gaps += u64::from(chief);
        self.total += time;
        self.longest = self.longest.max(time);
    }
}

impl Tally {
    /// An empty one.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the blame for one gap or wake-up.
    pub fn add(&mut self, blame: &Blame) {
        let shares = blame.shares();
        self.whole.add(blame.time(), true);
        let mut kinds = BTreeMap::<CulpritKind, Nanos>::new();
        for (place, share) in shares.iter().enumerate() {
            *kinds.entry(share.culprit.kind()).or_default() += share.time;
            if self.by_culprit.len() < NAMES_MOST || self.by_culprit.contains_key(&share.culprit) {
                self.by_culprit.entry(share.culprit.clone()).or_default().add(share.time, place == 0);
            }
        }
        let chief = kinds.iter().max_by_key(|(_, time)| **time).map(|(kind, _)| *kind);
        for (kind, time) in kinds {
            self.by_kind.entry(kind).or_default().add(time, Some(kind) == chief);
        }
    }

    /// The time of all culprits.
    pub fn whole(&self) -> Toll {
        self.whole
    }

    /// The time of all culprits of one kind. A gap counts for the kind that took the most of it.
    pub fn of_kind(&self, kind: CulpritKind) -> Toll {
        self.by_kind.get(&kind).copied().unwrap_or_default()
    }

    /// The share of one kind in the lost time, from 0 to 1; `None` if no time was lost.
    pub fn share_of_kind(&self, kind: CulpritKind) -> Option<f64> {
        let whole = self.whole.total.count();
        (whole > 0).then(|| self.of_kind(kind).total.count() as f64 / whole as f64)
    }

    /// Every culprit with its time, the greatest total first.
    pub fn culprits(&self) -> Vec<(&Culprit, Toll)> {
        let mut all: Vec<_> = self.by_culprit.iter().map(|(culprit, toll)| (culprit, *toll)).collect();
        all.sort_by_key(|(_, toll)| std::cmp::Reverse(toll.total));
        all
    }
}
