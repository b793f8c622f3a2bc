//! The commands that measure this computer and compare the results.

pub(crate) mod ab;
pub(crate) mod archive;
pub(crate) mod clock;
pub(crate) mod compare;
pub(crate) mod delay;
pub(crate) mod destination;
pub(crate) mod drift;
pub(crate) mod historic;
pub(crate) mod historic_pairs;
pub(crate) mod progress;
pub(crate) mod round;
pub(crate) mod sheet;

use crate::page::commands;

commands! { "Measure":
    Sheet(sheet),
    Compare(compare),
    Archive(archive),
    Ab(ab),
    Delay(delay),
    Clock(clock),
}
