//! Scenarios: each is one object with its quantities and the run that measures them, written once against the [`Port`].
//!
//! A [`Group`] is a table of the sheet: the scenarios of its quantities.

mod clock_service;
mod compared;
mod diagrams;
mod interrupts;
mod mailbox;
mod rhealstone;
mod services;
mod switching;
mod thread_metric;
mod waitwake;

use hairspring_sheet::{Diagram, Method, Unit};

use super::bench::{BackgroundLoad, Bench, Cache, Found, chained};
use super::port::Port;
use crate::probe::{Row, Taken};

/// Method of measuring a quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    /// By a pair of stamps.
    Stamp,
    /// By a loop between two stamps with hot caches, else by a pair of stamps around one round.
    Loop,
    /// By a loop with the event less the same loop without it. With dirty caches the event is stamped instead.
    Diff,
    /// By the difference of two chains of tasks if calls are too short for stamps, else by stamps.
    Chain,
    /// By operations over time.
    Rate,
}

impl How {
    /// The method on one executive.
    pub(crate) fn method<P: Port>(self, cache: Cache) -> Method {
        match self {
            Self::Loop if cache == Cache::Hot => Method::Mean,
            Self::Diff if cache == Cache::Hot => Method::Diff,
            Self::Chain if chained::<P>(cache) => Method::Diff,
            Self::Chain | Self::Stamp | Self::Loop | Self::Diff => Method::Stamp,
            Self::Rate => Method::Rate,
        }
    }
}

/// A quantity: its segment in ids, its label, its description, and its method.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Quantity {
    pub(crate) segment: &'static str,
    label: &'static str,
    measures: &'static str,
    how: How,
    /// The event before which the caches are made dirty.
    dirty_before: &'static str,
}

/// A quantity with dirty caches before each event.
const fn quantity(segment: &'static str, label: &'static str, how: How, measures: &'static str) -> Quantity {
    Quantity { segment, label, measures, how, dirty_before: "event" }
}

impl Quantity {
    /// The same quantity with dirty caches before each round.
    const fn by_round(self) -> Self {
        Self { dirty_before: "round", ..self }
    }

    /// The method on one executive.
    pub(crate) fn method<P: Port>(&self, cache: Cache) -> Method {
        self.how.method::<P>(cache)
    }

    /// The row with these caches and this load.
    pub(crate) fn row<P: Port>(&self, cache: Cache, load: BackgroundLoad) -> Row {
        let (quantity, label, measures) = (self.segment, self.label, self.measures);
        let between = if quantity.is_empty() { "" } else { "." };
        let (cache_segment, load_segment) = (cache.segment(), load.segment());
        let caches = match cache {
            Cache::Hot => "caches as the previous round left them".to_owned(),
            Cache::Dirty => format!("caches overwritten before each {}", self.dirty_before),
        };
        let rest = match load {
            BackgroundLoad::Idle => "no added load",
            BackgroundLoad::Loaded => "another CPU streams through memory",
        };
        Row::new(
            format!("{quantity}{between}{cache_segment}.{load_segment}"),
            format!("{label} {cache_segment}, {load_segment}"),
            Unit::Ns,
            self.method::<P>(cache),
            format!("{measures}; {caches}, {rest}"),
        )
    }
}

/// A scenario: its quantities, and the run that finds them all, in their order.
pub(crate) struct Scenario {
    pub(crate) quantities: Vec<Quantity>,
    pub(crate) run: fn(&Bench, Cache) -> Vec<Found>,
}

/// The scenarios of one table.
pub(crate) struct Group {
    /// Its segment in ids, and its title.
    pub(crate) segment: &'static str,
    pub(crate) title: &'static str,
    pub(crate) diagram: Option<Diagram>,
    pub(crate) scenarios: Vec<Scenario>,
}

/// A probe without variants: its row, and the run.
pub(crate) struct Component {
    pub(crate) segment: &'static str,
    pub(crate) label: &'static str,
    pub(crate) measures: &'static str,
    pub(crate) how: How,
    /// Index of its own place among those that its run may lengthen.
    pub(crate) place: usize,
    pub(crate) run: fn(&Bench) -> Found,
}

impl Component {
    /// The row on one executive.
    pub(crate) fn row<P: Port>(&self, unit: Unit) -> Row {
        Row::new(self.segment, self.label, unit, self.how.method::<P>(Cache::Hot), self.measures)
    }

    /// The readings for the sheet.
    pub(crate) fn take(&self, bench: &Bench) -> Taken {
        (self.run)(bench)?.reading(Cache::Hot, bench)
    }
}

/// All tables of scenarios, in reading order.
pub(crate) fn groups<P: Port>() -> [Group; 6] {
    [
        waitwake::group::<P>(),
        mailbox::group::<P>(),
        clock_service::timers::<P>(),
        clock_service::delays::<P>(),
        interrupts::group::<P>(),
        switching::group::<P>(),
    ]
}

pub use compared::{Compared, Round};
pub(crate) use interrupts::longest;
pub(crate) use rhealstone::components;
pub(crate) use services::services;
pub(crate) use thread_metric::tests;
pub(crate) use waitwake::LINKS;
