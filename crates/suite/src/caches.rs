//! The sizes of the caches, as the machine's facts have them.

use hairspring_machine::facts::Facts;

/// The size of one second-level cache in bytes.
pub(crate) fn second_level(facts: &Facts) -> Option<u64> {
    sizes(facts.value("cpu.caches")?).find(|(level, _)| *level == 2).map(|(_, bytes)| bytes)
}

/// The size of one cache of the last level in bytes.
pub(crate) fn last_level(facts: &Facts) -> Option<u64> {
    sizes(facts.value("cpu.caches")?).max().map(|(_, bytes)| bytes)
}

/// Level and size of each cache that holds data, from `L1d 2 × 48 KiB per 1 CPU, L2 2 × 2 MiB per 1 CPU`.
fn sizes(caches: &str) -> impl Iterator<Item = (u32, u64)> + '_ {
    caches.split(", ").filter_map(|cache| {
        let (name, rest) = cache.trim().split_once(' ')?;
        let level = name.strip_prefix('L')?.trim_end_matches('d').parse().ok()?;
        let mut words = rest.split_once("× ")?.1.split_whitespace();
        let number: u64 = words.next()?.parse().ok()?;
        let unit = match words.next()? {
            "KiB" => 1 << 10,
            "MiB" => 1 << 20,
            _ => return None,
        };
        Some((level, number * unit))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caches_are_found_in_the_text_of_the_fact() {
        let caches =
            "L1d 2 × 48 KiB per 1 CPU, L1i 2 × 64 KiB per 1 CPU, L2 2 × 2 MiB per 1 CPU, L3 1 × 480 MiB per 2 CPUs";
        let found: Vec<(u32, u64)> = sizes(caches).collect();
        assert_eq!(found, [(1, 48 << 10), (2, 2 << 20), (3, 480 << 20)]);
        assert_eq!(sizes("L2 4 × 512 KiB per 2 CPUs").next(), Some((2, 512 << 10)));
        assert_eq!(sizes("L1i 2 × size not told per 1 CPU, unknown").next(), None);
    }
}
