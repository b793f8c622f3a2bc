//! The conditions above all tables, and the format of a row of statistics.

use hairspring_machine::{Cpu, Host, Machine};
use hairspring_sheet::render::quantity;
use hairspring_sheet::{Figure, Unit};

/// The conditions of the machine, without which a ratio means nothing.
pub(crate) fn conditions(cpu: Cpu) {
    let facts = Host.facts();
    for id in ["cpu.model", "cpu.online", "kernel.release", "kernel.clocksource", "load.average"] {
        println!("* {id}: {}", facts.value(id).unwrap_or("unknown"));
    }
    println!("* measured on CPU {}\n", cpu.0);
}

/// A number with its unit, or a dash.
pub(crate) fn cell(value: Option<f64>, unit: Unit) -> String {
    value.map_or_else(|| "–".to_owned(), |value| quantity(value, unit).to_string())
}

/// The statistics of a figure as cells: n, min, median, p99, max.
pub(crate) fn statistics(figure: &Figure) -> String {
    let cells = [figure.min, figure.median, figure.p99, figure.max].map(|value| cell(value, figure.unit));
    format!("{} | {}", figure.n, cells.join(" | "))
}
