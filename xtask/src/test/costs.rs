//! What each step cost: its time, and the CPU time of its children.

use std::fmt::Write;
use std::time::Duration;

/// The cost of one step.
pub(super) struct Cost {
    pub(super) step: &'static str,
    pub(super) took: Duration,
    pub(super) cpu: Duration,
}

/// A table, the longest step first. Steps in two lanes overlap, so the whole is shorter than their sum.
pub(super) fn table(mut costs: Vec<Cost>, whole: Duration) -> String {
    costs.sort_by_key(|cost| std::cmp::Reverse(cost.took));
    let cpu = costs.iter().map(|cost| cost.cpu).sum();
    let mut text = format!("{:<12} {:>7} {:>7}\n", "step", "s", "CPU s");
    for Cost { step, took, cpu } in costs.into_iter().chain([Cost { step: "whole run", took: whole, cpu }]) {
        let _ = writeln!(text, "{step:<12} {:>7.1} {:>7.1}", took.as_secs_f64(), cpu.as_secs_f64());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_step_is_first_and_the_whole_is_last() {
        let cost = |step, took, cpu| Cost { step, took: Duration::from_millis(took), cpu: Duration::from_millis(cpu) };
        let text = table(vec![cost("fmt", 900, 800), cost("tests", 61_000, 40_000)], Duration::from_secs(61));
        assert_eq!(
            text,
            "step               s   CPU s\n\
             tests           61.0    40.0\n\
             fmt              0.9     0.8\n\
             whole run       61.0    40.8\n"
        );
    }
}
