//! A random sample of the mutants of all parts, for machines on which all of them would take weeks.
//!
//! Promises: the seed alone decides in which order the mutants of a part are drawn. So a larger sample contains each
//! smaller one, and the results of several runs add up. Each part has its share of the sample by its number of mutants.
//! cargo-mutants shuffles its mutants, so those that were tried when the time was over are random, too.
//!
//! The survival rate of each part has the interval of Wilson's score. That of all parts is the mean of the parts'
//! rates, weighted by their numbers of mutants; the parts' variances, each with one found and one living mutant added,
//! make its interval.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use super::list::Exceptions;
use super::results::Outcome;
use super::{Mutant, NOT_RUN, PARTS, Verdict, defect, mutants, try_some};

/// Intervals are of 95 %.
const Z: f64 = 1.96;

/// Counts of the outcomes of a part's drawn mutants.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Tally {
    /// Mutants of the part, drawn or not.
    all: usize,
    drawn: usize,
    found: usize,
    live: usize,
    do_not_compile: usize,
}

/// Draws `count` mutants of all parts, and tries those of the parts in `only`, or of all, for `seconds` at most.
pub(crate) fn prove(count: usize, seed: u64, seconds: u32, only: &[String]) -> Verdict {
    attempt(count, seed, seconds, only).unwrap_or_else(defect)
}

fn attempt(count: usize, seed: u64, seconds: u32, only: &[String]) -> Result<Verdict, String> {
    if let Some(unknown) = only.iter().find(|name| !PARTS.iter().any(|part| part.name == **name)) {
        return Err(format!("there is no part {unknown}"));
    }
    if super::is_missing() {
        return Ok(Verdict::not_run(super::MISSING.to_owned()));
    }
    let exceptions = Exceptions::read(super::EXCEPTIONS.as_ref())?;
    let every: Vec<Vec<Mutant>> =
        PARTS.iter().map(|part| mutants(part, &exceptions.arguments())).collect::<Result<_, _>>()?;
    let total: usize = every.iter().map(Vec::len).sum();
    let end = Instant::now() + Duration::from_secs(seconds.into());
    let (mut figures, mut tallies, mut living, mut excused) = (Map::new(), Vec::new(), Vec::new(), 0);
    for (part, mutants) in PARTS.iter().zip(every) {
        let all = mutants.len();
        let drawn = draw(mutants.clone(), seed, (count * all).div_ceil(total.max(1)));
        let wanted = only.is_empty() || only.iter().any(|name| name == part.name);
        let left = end.saturating_duration_since(Instant::now()).as_secs() as u32;
        let (results, _) = try_some(part, &exceptions, &mutants, &drawn, if wanted { left } else { 0 })?;
        let with = |outcome: Outcome| -> Vec<&Mutant> {
            drawn.iter().filter(|mutant| results.outcome(mutant) == Some(outcome)).collect()
        };
        let lives = with(Outcome::Lives);
        let tally = Tally {
            all,
            drawn: drawn.len(),
            found: with(Outcome::Killed).len() + with(Outcome::Hangs).len(),
            live: lives.len(),
            do_not_compile: with(Outcome::DoesNotCompile).len(),
        };
        for mutant in lives {
            match exceptions.reason(mutant) {
                Some(_) => excused += 1,
                None => living.push(format!("{} — {}", mutant.name, mutant.code)),
            }
        }
        figures.insert(part.name.to_owned(), tally.said());
        tallies.push(tally);
    }
    let sum = |of: fn(&Tally) -> usize| tallies.iter().map(of).sum::<usize>();
    let untried = sum(|tally| tally.drawn - tally.tried());
    figures.insert("mutants".to_owned(), json!(total));
    figures.insert("drawn with seed".to_owned(), json!(seed));
    figures.insert("drawn".to_owned(), json!(sum(|tally| tally.drawn)));
    figures.insert("tried".to_owned(), json!(sum(Tally::tried)));
    figures.insert("found by a test".to_owned(), json!(sum(|tally| tally.found)));
    figures.insert("do not compile".to_owned(), json!(sum(|tally| tally.do_not_compile)));
    figures.insert("live for a reason".to_owned(), json!(excused));
    figures.insert("live".to_owned(), json!(living.len()));
    figures.insert("survive of all parts, percent and its interval of 95 %".to_owned(), overall(&tallies));
    for (number, mutant) in living.iter().enumerate() {
        figures.insert(format!("lives {}", number + 1), json!(mutant));
    }
    if untried > 0 && living.is_empty() {
        figures.insert(NOT_RUN.to_owned(), json!(format!("{untried} of the drawn mutants are not tried yet")));
    }
    Ok(Verdict { passed: untried == 0 && living.is_empty(), figures })
}

/// The first `count` of the mutants in the order of this seed. Where a mutant stands in its file does not change its
/// place in the order.
fn draw(mutants: Vec<Mutant>, seed: u64, count: usize) -> Vec<Mutant> {
    let mut same = BTreeMap::<String, u64>::new();
    let mut placed: Vec<(u64, Mutant)> = Vec::new();
    for mutant in mutants {
        let number = same.entry(mutant.what.clone()).or_default();
        *number += 1;
        placed.push((place(seed, *number, &mutant.what), mutant));
    }
    placed.sort_by_key(|(place, _)| *place);
    placed.into_iter().take(count).map(|(_, mutant)| mutant).collect()
}

/// A number that only these three decide: FNV-1a, then the last steps of SplitMix64.
fn place(seed: u64, number: u64, what: &str) -> u64 {
    let bytes = seed.to_le_bytes().into_iter().chain(number.to_le_bytes()).chain(what.bytes());
    let hash =
        bytes.fold(0xCBF2_9CE4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01B3));
    let mixed = (hash ^ (hash >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB) ^ (mixed >> 31)
}

impl Tally {
    fn tried(&self) -> usize {
        self.found + self.live + self.do_not_compile
    }

    fn said(&self) -> Value {
        json!({
            "mutants": self.all,
            "drawn": self.drawn,
            "tried": self.tried(),
            "found": self.found,
            "live": self.live,
            "do not compile": self.do_not_compile,
            "survive, percent and its interval of 95 %": percent(wilson(self.live, self.found + self.live)),
        })
    }
}

/// The share, and Wilson's interval.
fn wilson(hits: usize, of: usize) -> Option<[f64; 3]> {
    let (hits, n) = (hits as f64, of as f64);
    let share = hits / n;
    let middle = (share + Z * Z / (2.0 * n)) / (1.0 + Z * Z / n);
    let half = Z * (share * (1.0 - share) / n + Z * Z / (4.0 * n * n)).sqrt() / (1.0 + Z * Z / n);
    (of > 0).then_some([share, (middle - half).max(0.0), (middle + half).min(1.0)])
}

/// The share that survives of the mutants of those parts of which any were tried.
fn overall(tallies: &[Tally]) -> Value {
    let tried: Vec<&Tally> = tallies.iter().filter(|tally| tally.found + tally.live > 0).collect();
    let all: usize = tried.iter().map(|tally| tally.all).sum();
    let (mut share, mut variance) = (0.0, 0.0);
    for tally in &tried {
        let (weight, live, n) = (tally.all as f64 / all as f64, tally.live as f64, (tally.found + tally.live) as f64);
        let likely = (live + 1.0) / (n + 2.0);
        share += weight * live / n;
        variance += weight * weight * likely * (1.0 - likely) / (n + 2.0);
    }
    let half = Z * variance.sqrt();
    percent((all > 0).then_some([share, (share - half).max(0.0), (share + half).min(1.0)]))
}

fn percent(shares: Option<[f64; 3]>) -> Value {
    json!(shares.map(|shares| shares.map(|share| (share * 1000.0).round() / 10.0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mutant(line: usize, what: &str) -> Mutant {
        let (file, code) = ("a.rs".to_owned(), String::new());
        Mutant {
            name: format!("a.rs:{line}:1: {what}"),
            file,
            what: format!("a.rs: {what}"),
            code,
            listed: Value::Null,
        }
    }

    fn names(mutants: &[Mutant]) -> Vec<&str> {
        mutants.iter().map(|mutant| mutant.what.as_str()).collect()
    }

    #[test]
    fn a_larger_sample_contains_the_smaller_and_lines_that_move_change_nothing() {
        let all = |shift: usize| (0..100).map(|n| mutant(n + shift, &format!("replace {}", n / 2))).collect::<Vec<_>>();
        let (small, large) = (draw(all(0), 1, 10), draw(all(7), 1, 30));
        assert_eq!(names(&small), names(&large[..10]));
        assert_ne!(names(&small), names(&draw(all(0), 2, 10)), "another seed");
        assert_eq!(draw(all(0), 1, 1000).len(), 100);
        let in_order = names(&all(0)[..10]) == names(&small);
        assert!(!in_order, "in the order of the file");
    }

    #[test]
    fn every_mutant_is_drawn_as_often_as_any_other() {
        let mut drawn = [0_u32; 50];
        for seed in 0..1000 {
            for mutant in draw((0..50).map(|n| mutant(n, &n.to_string())).collect(), seed, 10) {
                drawn[mutant.what["a.rs: ".len()..].parse::<usize>().unwrap()] += 1;
            }
        }
        // 200 each; five standard deviations are 63.
        assert!(drawn.iter().all(|times| (137..=263).contains(times)), "{drawn:?}");
    }

    #[test]
    fn intervals_are_those_of_the_textbook() {
        // Newcombe 1998, table I: 81 of 263, and 0 of 20.
        let near = |found: Option<[f64; 3]>, wanted: [f64; 3]| {
            assert!(found.unwrap().iter().zip(wanted).all(|(a, b)| (a - b).abs() < 5e-5), "{found:?}");
        };
        near(wilson(81, 263), [0.3080, 0.2553, 0.3662]);
        near(wilson(0, 20), [0.0, 0.0, 0.1611]);
        assert_eq!(wilson(0, 0), None);
    }

    #[test]
    fn parts_count_by_their_numbers_of_mutants() {
        let tally = |all, found, live| Tally { all, drawn: 20, found, live, do_not_compile: 0 };
        let both = overall(&[tally(900, 20, 0), tally(100, 10, 10)]);
        assert_eq!(both[0], json!(5.0));
        assert_eq!(overall(&[tally(900, 0, 0), tally(100, 10, 10)])[0], json!(50.0), "a part that was not tried");
        assert_eq!(overall(&[]), Value::Null);
    }
}
