//! [`exact_span`]: prints a span of time for a description, so that it can be read again without loss.

/// A span in the largest unit that leaves a whole number: `1500us`, `2s`.
pub fn exact_span(span_ns: i64) -> String {
    let units = [("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000), ("ns", 1)];
    let (unit, length) = units.into_iter().find(|(_, length)| span_ns % length == 0).unwrap_or(("ns", 1));
    format!("{}{unit}", span_ns / length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_whole_numbers_of_the_largest_unit() {
        let spans = [0, 1, 1_500, 1_000_000, -2_000_000_000, 90_000_000_000];
        assert_eq!(spans.map(exact_span), ["0s", "1ns", "1500ns", "1ms", "-2s", "90s"]);
    }
}
