//! Invariant 3: time in a public signature has a type, or its raw number carries the unit last.
//!
//! Checks parameters, results and public fields of the crates that handle time. A raw number whose name speaks of time
//! and does not end in a unit is a violation: `late: u64` could be anything, `late_ns: u64` cannot.

use super::source::{Source, is_name, words};
use super::{Repository, Violation};

const CRATES: &[&str] =
    &["machine", "time", "exec", "ring", "source", "store", "recording", "record", "play", "plan", "device", "station"];
const RAW: &[&str] = &["u32", "i32", "u64", "i64", "u128", "i128", "usize", "f32", "f64"];
const TIMELY: &[&str] = &[
    "time",
    "times",
    "delay",
    "delays",
    "deadline",
    "deadlines",
    "duration",
    "durations",
    "latency",
    "latencies",
    "late",
    "lateness",
    "timeout",
    "timeouts",
    "elapsed",
    "period",
    "periods",
    "interval",
    "intervals",
];
/// Units, and words that make the number something other than a time.
const UNITS: &[&str] = &[
    "ns", "us", "ms", "s", "ticks", "cycles", "hz", "khz", "mhz", "ppm", "ppb", "count", "number", "ratio", "percent",
];

pub(crate) fn find(repository: &Repository) -> Vec<Violation> {
    let mut violations = Vec::new();
    for source in &repository.sources {
        let watched = source.crate_name().is_some_and(|name| CRATES.contains(&name)) && source.path.contains("/src/");
        if watched && !source.is_outside_the_product() {
            check(source, &mut violations);
        }
    }
    violations
}

fn check(source: &Source, violations: &mut Vec<Violation>) {
    // Test items become spaces, so that braces and offsets stay.
    let lines = source.code.iter().zip(&source.test);
    let code: Vec<&str> = lines.map(|(line, test)| if *test { "" } else { line.as_str() }).collect();
    let code = code.join("\n");
    let mut report = |at: usize, name: &str, kind: &str| {
        let line = code[..at].matches('\n').count() + 1;
        let what = format!("{name}: {kind} is a bare time; use Nanos, Ticks or Instant, or end its name in a unit");
        violations.push(Violation { path: source.path.clone(), line, what });
    };
    let traits = public_traits(&code);
    for at in words(&code, "fn") {
        if !(is_public(&code, at) || traits.iter().any(|(begin, end)| (*begin..*end).contains(&at))) {
            continue;
        }
        let Some(signature) = signature(&code[at..]) else { continue };
        for (name, kind) in signature.parameters() {
            if is_bare(name, kind) {
                report(at, name, kind);
            }
        }
        if is_bare(signature.name, signature.result) {
            report(at, signature.name, signature.result);
        }
    }
    for at in words(&code, "pub") {
        let rest = code[at + 3..].trim_start_matches([' ']);
        let name: &str = &rest[..rest.find(|c| !is_name(c)).unwrap_or(rest.len())];
        if let Some(kind) = rest[name.len()..].strip_prefix(": ") {
            let kind = &kind[..kind.find([',', '\n', '}', ')']).unwrap_or(kind.len())];
            if is_bare(name, kind) {
                report(at, name, kind);
            }
        }
    }
}

/// Whether the function at `at` begins with `pub`, possibly with other keywords between.
fn is_public(code: &str, at: usize) -> bool {
    let mut before = code[..at].trim_end();
    loop {
        let shorter = ["const", "async", "unsafe", "extern"]
            .iter()
            .find_map(|word| before.strip_suffix(word).filter(|rest| !rest.ends_with(is_name)))
            // The name of an ABI is a string, so it is blanked.
            .map(str::trim_end);
        match shorter {
            Some(rest) => before = rest,
            None => return before.strip_suffix("pub").is_some_and(|rest| !rest.ends_with(is_name)),
        }
    }
}

/// The bodies of public traits, whose functions are implicitly public.
fn public_traits(code: &str) -> Vec<(usize, usize)> {
    let begins = words(code, "trait").filter(|&at| is_public(code, at));
    begins
        .filter_map(|at| {
            let open = at + code[at..].find('{')?;
            Some((open, open + closing(&code[open..], '{', '}')?))
        })
        .collect()
}

struct Signature<'a> {
    name: &'a str,
    inside: &'a str,
    result: &'a str,
}

/// Reads `fn name<…>(…) -> … {` from its beginning.
fn signature(code: &str) -> Option<Signature<'_>> {
    let after = code["fn".len()..].trim_start();
    let name = &after[..after.find(|c| !is_name(c))?];
    let mut rest = after[name.len()..].trim_start();
    if rest.starts_with('<') {
        rest = rest[closing(&rest.replace("->", "  "), '<', '>')? + 1..].trim_start();
    }
    let close = rest.starts_with('(').then(|| closing(rest, '(', ')')).flatten()?;
    let tail = &rest[close + 1..];
    let tail = &tail[..tail.find(['{', ';']).unwrap_or(tail.len())];
    let tail = words(tail, "where").next().map_or(tail, |at| &tail[..at]);
    let result = tail.trim().strip_prefix("->").map_or("", str::trim);
    Some(Signature { name, inside: &rest[1..close], result })
}

impl<'a> Signature<'a> {
    /// Names and types, `self` left out.
    fn parameters(&self) -> Vec<(&'a str, &'a str)> {
        let (mut depth, mut begin, mut parts) = (0_i32, 0, Vec::new());
        for (at, character) in self.inside.char_indices() {
            match character {
                '(' | '[' | '<' => depth += 1,
                ')' | ']' => depth -= 1,
                '>' if !self.inside[..at].ends_with('-') => depth -= 1,
                ',' if depth == 0 => {
                    parts.push(&self.inside[begin..at]);
                    begin = at + 1;
                }
                _ => {}
            }
        }
        parts.push(&self.inside[begin..]);
        let named = parts.into_iter().filter_map(|part| part.split_once(':'));
        named.map(|(name, kind)| (name.trim().trim_start_matches("mut "), kind.trim())).collect()
    }
}

/// The place where the bracket at the beginning of `text` closes.
fn closing(text: &str, open: char, close: char) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, character) in text.char_indices() {
        if character == open {
            depth += 1;
        } else if character == close {
            depth -= 1;
            if depth == 0 {
                return Some(at);
            }
        }
    }
    None
}

/// A raw number, alone or in an Option, Result, reference or slice, under a name that speaks of time without a unit.
fn is_bare(name: &str, kind: &str) -> bool {
    let mut parts = name.split('_');
    let unit = name.rsplit('_').next().is_some_and(|last| UNITS.contains(&last));
    let first = kind.trim_start_matches(['&', '[', ' ']).trim_start_matches("mut ");
    let inner = ["Option<", "Result<", "Vec<"].iter().find_map(|wrapper| first.strip_prefix(wrapper)).unwrap_or(first);
    let inner = &inner[..inner.find(|c| !is_name(c)).unwrap_or(inner.len())];
    RAW.contains(&inner) && !unit && parts.any(|part| TIMELY.contains(&part))
}

#[cfg(test)]
mod tests {
    use super::super::expect;
    use super::*;

    const FILE: &str = "crates/time/src/delay.rs";

    #[test]
    fn bare_times_in_public_signatures_are_caught() {
        let bad = "pub fn wait(&self, timeout: u64) {}\npub const fn late(&self) -> Option<f64> { None }\n\
                   pub fn many<F: Fn(u64) -> u8>(\n    f: F,\n    max_delay: &[u128],\n) -> u8 {}\n\
                   pub trait T {\n    fn elapsed(&self) -> u64;\n}\npub struct S {\n    pub late: u64,\n}\n";
        expect(find, &[(FILE, bad)], &[(FILE, 1), (FILE, 2), (FILE, 3), (FILE, 8), (FILE, 11)]);
    }

    #[test]
    fn units_types_private_functions_and_other_words_pass() {
        let clean = "pub fn wait(timeout_ns: u64, delay: Nanos, template: u64, calculate: f64) -> u64 { 0 }\n\
                     fn late(delay: u64) -> u64 { 0 }\npub(crate) fn elapsed() -> u64 { 0 }\n\
                     pub fn late_ns(&self) -> u64 { 0 }\npub fn latency() -> Nanos { let late: u64 = 0; x }\n\
                     // pub fn delay(x: u64) -> u64\npub struct S {\n    pub late_ns: u64,\n    late: u64,\n}\n\
                     #[cfg(test)]\nmod tests {\n    pub fn late() -> u64 { 0 }\n}\n";
        expect(find, &[(FILE, clean)], &[]);
        let bad = "pub fn late() -> u64 { 0 }\n";
        expect(find, &[("crates/sheet/src/a.rs", bad), ("crates/time/tests/it.rs", bad)], &[]);
    }
}
