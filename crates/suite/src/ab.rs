//! Two builds measured in turns, chapter by chapter.
//!
//! Problem: a machine drifts by more than most changes of a program, so two sheets that were taken one after the other
//! differ in what the machine did between them.
//!
//! Solution: in each round both builds measure each chapter, seconds apart, in fresh processes; the order changes in
//! balanced random blocks (AB BA). The comparison uses the differences inside these pairs. Code that neither build
//! contains is measured before and after each process ([`sentinels`]). A pair in which it moved is void, and is
//! measured again at the end. The void pairs are chosen after the last round, before any figure is read.
//!
//! Conditions: the number of rounds is fixed beforehand, and no decision uses figures while they are taken. One program
//! is one code layout: effects of its layout are attributed to the build.

mod builds;
mod error;
mod pairs;
mod sentinels;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use hairspring_machine::{Cpu, Host, Machine, Nanos};
use hairspring_sheet::{Build, COMPARISON_SCHEMA, ComparedBuild, Interleaved, SCHEMA, Sheet, Taken};

use crate::conditions;
use crate::interleaving::Random;
use crate::merge::{self, Taking};
use crate::probe::{ChapterDeclaration, Effort, SheetProgress, UnknownProbe, among};
use crate::request::choose_cpu;
use crate::round::RoundPart;
use crate::sheet_run::{calibrated, timestamp};
use builds::Builds;
pub use error::AbError;
use pairs::{rows, sentinel_rows, stands_out};
use sentinels::{Limits, Sighting};

/// Rounds of the first stage of [`AbRequest::confirm`].
const SCREEN_ROUNDS: u32 = 5;
/// The most by which the environment of a process is lengthened.
const PADDING_MOST: usize = 4096;

/// Builds, rows, rounds and options of a comparison.
#[derive(Clone, Debug)]
pub struct AbRequest {
    /// The program that the other is compared with; it must be able to be a round. Several are builds of one source:
    /// they take turns, and each of them counts as one value.
    pub baseline: Vec<PathBuf>,
    /// The other program, or as many of them.
    pub other: Vec<PathBuf>,
    /// Prefixes of the ids of the rows; all rows without any.
    pub only: Vec<String>,
    /// Whether rows that only one of the builds has are left out; otherwise they are an error.
    pub common: bool,
    /// Number of rounds: a multiple of the builds of a side.
    pub rounds: u32,
    /// Time budget of a chapter in all rounds of one build.
    pub effort: Effort,
    /// The CPU to measure on; by default the last one that the process may use.
    pub cpu: Option<Cpu>,
    /// The priority for measurements under `SCHED_FIFO`, 1–99.
    pub priority: u8,
    /// Decides every order and the padding of environments.
    pub seed: u64,
    /// Whether to screen first and then measure the conspicuous rows again.
    pub confirm: bool,
    /// Whether to measure a copy of the baseline as a third arm.
    pub null: bool,
    /// For tests of the comparison itself: by how many nanoseconds more than the baseline the other build lengthens
    /// each event of these rows.
    pub spin: Vec<(String, f64)>,
}

/// Result of a comparison.
#[derive(Clone, Debug)]
pub struct AbOutcome {
    /// All pairs.
    pub measured: Interleaved,
    /// An ordinary sheet of each build: the baseline, then the other.
    pub sheets: [Sheet; 2],
    /// Processes that died during the comparison.
    pub notes: Vec<String>,
}

/// Measures two builds in turns on this computer. Blocks for twice the time of a sheet and somewhat more; `interrupted`
/// ends it early, and complete pairs are kept. `progress` is called while processes measure.
///
/// # Errors
/// Programs that cannot be rounds or have different rows; bad requests. Nothing was measured then.
pub fn take_ab(
    request: &AbRequest,
    interrupted: &AtomicBool,
    progress: &mut dyn FnMut(SheetProgress<'_>),
) -> Result<AbOutcome, AbError> {
    let cpu = choose_cpu(&Host, request.cpu, request.priority)?;
    several(request)?;
    let began = Host.monotonic();
    let start = timestamp(Host.read(hairspring_machine::Clock::Realtime));
    let timebase = calibrated(&Host)?;
    let mut arms = Builds::new(request, cpu, timebase, interrupted)?;
    let declared = common(&arms.declared, request)?;
    let builds = request.baseline.len();
    let mut course = Course { interrupted, progress, began: began.as_monotonic(), builds };
    let mut random = Random::seeded(request.seed);
    let arms_count = if request.null { 3 } else { 2 };
    let mut screened = None;
    let mut wanted = declared.clone();
    if request.confirm {
        let (turns, _) = course.turns(&mut arms, &wanted, arms_count, SCREEN_ROUNDS, &mut random);
        let rows = rows(&wanted, &turns, 1);
        screened = Some(rows.len());
        let stands_out: BTreeSet<String> = rows.into_iter().filter(stands_out).map(|row| row.id).collect();
        wanted = kept(&wanted, |id| stands_out.contains(id));
    }
    let (turns, limits) = course.turns(&mut arms, &wanted, arms_count, request.rounds, &mut random);
    // Relaxed: a plain flag that publishes no other data.
    let stopped = interrupted.load(Ordering::Relaxed);
    let taken = Taken {
        start,
        duration_s: (Host.monotonic() - began).as_secs_f64(),
        effort: request.effort.name().to_owned(),
        interrupted: stopped,
        rounds: request.rounds,
    };
    // Its pairs decide, and the sentinels which of them count.
    let taking = Taking { began: began.as_monotonic(), interrupted: stopped, alone_ns: None };
    let facts = conditions::read_conditions(&Host, false);
    let sheet = |arm: usize| {
        let chapter = |(index, declared): (usize, &ChapterDeclaration)| {
            let counted = turns.iter().filter(|turn| turn.chapter == index && !turn.void);
            let parts: Vec<&RoundPart> = counted.filter_map(|turn| turn.parts[arm].as_ref()).collect();
            merge::chapter(declared, &parts, taking)
        };
        Sheet {
            schema: SCHEMA.to_owned(),
            hairspring: arms.builds[arm].clone(),
            taken: taken.clone(),
            conditions: facts.clone(),
            notes: Vec::new(),
            summary: None,
            chapters: wanted.iter().enumerate().map(chapter).collect(),
        }
    };
    let side = |arm: usize, paths: &[PathBuf]| ComparedBuild {
        name: paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(","),
        hash: arms.hashes[arm].join(","),
        build: arms.builds[arm].clone(),
    };
    let measured = Interleaved {
        schema: COMPARISON_SCHEMA.to_owned(),
        taken: taken.clone(),
        baseline: side(0, &request.baseline),
        other: side(1, &request.other),
        seed: request.seed,
        rounds: request.rounds as usize,
        builds: request.baseline.len(),
        rows: rows(&wanted, &turns, 1),
        sentinels: sentinel_rows(&turns),
        limits: limits.by_id(),
        null: if request.null { rows(&wanted, &turns, 2) } else { Vec::new() },
        screened,
    };
    Ok(AbOutcome { measured, sheets: [sheet(0), sheet(1)], notes: arms.notes })
}

/// Checks that both sides have equally many builds, and that each is measured equally often.
fn several(request: &AbRequest) -> Result<(), AbError> {
    let (baseline, other) = (request.baseline.len(), request.other.len());
    if baseline == 0 || baseline != other {
        return Err(AbError::Build(format!("{baseline} builds against {other}: name as many on either side")));
    }
    let (rounds, builds) = (request.rounds as usize, baseline);
    if !rounds.is_multiple_of(builds) {
        let (below, above) = (rounds / builds * builds, rounds.next_multiple_of(builds));
        let text = format!("{rounds} rounds are not as many of each of {builds} builds: take {below} or {above}");
        return Err(AbError::Build(text));
    }
    Ok(())
}

/// Source of measurements: builds in processes, or a script in tests.
trait Arms {
    /// Reads the sentinels.
    fn look(&mut self) -> Sighting;

    /// Has an arm measure rows of one chapter; `None` if it did not come to its end.
    fn take(&mut self, arm: usize, turn: &Asked<'_>, progress: &mut dyn FnMut(SheetProgress<'_>)) -> Option<RoundPart>;
}

/// Chapters and rows for an arm to measure in one turn.
struct Asked<'a> {
    rows: &'a [String],
    round: u32,
    rounds: u32,
    /// The same for all arms of a turn.
    padding: usize,
}

/// All arms on one chapter in one round.
struct Turn {
    round: u32,
    /// Index of the chapter.
    chapter: usize,
    /// The arms in the order in which they measured.
    order: Vec<usize>,
    /// Before the first, between, and after the last.
    sightings: Vec<Sighting>,
    /// Whether the machine moved during the turn; set after the last round.
    void: bool,
    /// Measured parts, by arm.
    parts: Vec<Option<RoundPart>>,
}

/// A run of turns, as it is shown.
struct Course<'c> {
    interrupted: &'c AtomicBool,
    progress: &'c mut dyn FnMut(SheetProgress<'_>),
    /// On `CLOCK_MONOTONIC`.
    began: Nanos,
    /// Number of builds of a side.
    builds: usize,
}

impl Course<'_> {
    /// An uncounted turn of each chapter, then all rounds, then the void ones once more. Returns also the reasons why
    /// they were void.
    fn turns(
        &mut self,
        arms: &mut dyn Arms,
        chapters: &[ChapterDeclaration],
        count: usize,
        rounds: u32,
        random: &mut Random,
    ) -> (Vec<Turn>, Limits) {
        let ids: Vec<Vec<String>> = chapters.iter().map(|chapter| ids(chapter).map(str::to_owned).collect()).collect();
        // Each build is first as often as its counterpart.
        let mut blocks: Vec<Option<Vec<usize>>> = vec![None; chapters.len() * self.builds];
        let builds = self.builds;
        let block = |chapter: usize, round: u32| chapter * builds + round as usize % builds;
        let all = (rounds as usize + 1) * chapters.len();
        let (mut turns, mut done): (Vec<Turn>, usize) = (Vec::new(), 0);
        let mut complete = true;
        'rounds: for counted in std::iter::once(None).chain((0..rounds).map(Some)) {
            for chapter in random.order(chapters.len()) {
                let what = match counted {
                    None => "warm-up".to_owned(),
                    Some(round) => format!("round {} of {rounds}", round + 1),
                };
                let (round, padding) = (counted.unwrap_or(0), random.below(PADDING_MOST));
                let asked = Asked { rows: &ids[chapter], round, rounds, padding };
                let order = match counted {
                    None => random.order(count),
                    Some(_) => next(&mut blocks[block(chapter, round)], count, random),
                };
                let turn = self.turn(arms, chapter, &asked, order, (&what, done as f64 / all as f64));
                done += 1;
                let Some(turn) = turn else {
                    complete = false;
                    break 'rounds;
                };
                turns.extend(counted.map(|_| turn));
            }
        }
        let limits = Limits::of(turns.iter().map(|turn| turn.sightings.as_slice()));
        for turn in &mut turns {
            turn.void = limits.moved(&turn.sightings);
        }
        let again = turns.iter().filter(|turn| turn.void && complete);
        let again: Vec<(u32, usize)> = again.map(|turn| (turn.round, turn.chapter)).collect();
        let void = again.len();
        for (number, (round, chapter)) in again.into_iter().enumerate() {
            let asked = Asked { rows: &ids[chapter], round, rounds, padding: random.below(PADDING_MOST) };
            let order = next(&mut blocks[block(chapter, round)], count, random);
            let what = format!("again, {} of {void} that were disturbed", number + 1);
            let Some(mut turn) = self.turn(arms, chapter, &asked, order, (&what, 1.0)) else { break };
            turn.void = limits.moved(&turn.sightings);
            turns.push(turn);
        }
        (turns, limits)
    }

    /// One turn; `None` if it was interrupted.
    fn turn(
        &mut self,
        arms: &mut dyn Arms,
        chapter: usize,
        asked: &Asked<'_>,
        order: Vec<usize>,
        (what, done): (&str, f64),
    ) -> Option<Turn> {
        let mut sightings = vec![arms.look()];
        let mut parts: Vec<Option<RoundPart>> = order.iter().map(|_| None).collect();
        for arm in &order {
            let (began, progress) = (self.began, &mut *self.progress);
            parts[*arm] = arms.take(*arm, asked, &mut |of| {
                let measuring = format!("{what}, {}: {}", ["A", "B", "A again"][*arm], of.measuring);
                let passed = Host.monotonic().as_monotonic() - began;
                // Remaining time, estimated from the progress so far.
                let total = Nanos::new((passed.count() as f64 / done.max(0.001)) as i64);
                progress(SheetProgress { measuring: &measuring, done: passed, total: total.max(passed) });
            });
            // Relaxed: a plain flag that publishes no other data.
            if self.interrupted.load(Ordering::Relaxed) {
                return None;
            }
            sightings.push(arms.look());
        }
        Some(Turn { round: asked.round, chapter, order, sightings, void: false, parts })
    }
}

/// The order of the next turn of a chapter: a random one, then its reverse, so that no arm is first more often than
/// another.
fn next(block: &mut Option<Vec<usize>>, count: usize, random: &mut Random) -> Vec<usize> {
    if let Some(reverse) = block.take() {
        return reverse;
    }
    let order = random.order(count);
    *block = Some(order.iter().rev().copied().collect());
    order
}

fn ids(chapter: &ChapterDeclaration) -> impl Iterator<Item = &str> {
    chapter.tables.iter().flat_map(|table| &table.rows).map(|row| row.id.as_str())
}

/// The rows of these chapters that `keep` accepts.
fn kept(chapters: &[ChapterDeclaration], keep: impl Fn(&str) -> bool) -> Vec<ChapterDeclaration> {
    let mut chapters = chapters.to_vec();
    for chapter in &mut chapters {
        chapter.tables.iter_mut().for_each(|table| table.rows.retain(|row| keep(&row.id)));
        chapter.tables.retain(|table| !table.rows.is_empty());
    }
    chapters.retain(|chapter| !chapter.tables.is_empty());
    chapters
}

/// The requested rows that both builds have, as the baseline declares them.
fn common(declared: &[Vec<ChapterDeclaration>; 2], request: &AbRequest) -> Result<Vec<ChapterDeclaration>, AbError> {
    let of = |side: usize| declared[side].iter().flat_map(ids).map(str::to_owned).collect::<Vec<String>>();
    let (baseline, other) = (of(0), of(1));
    let asked = |all: &[String]| among(all, &request.only);
    let (from_baseline, from_other) = (asked(&baseline), asked(&other));
    let (Ok(wanted), Ok(in_other)) = (&from_baseline, &from_other) else {
        return Err(AbError::NoSuchRow(
            from_baseline
                .err()
                .or(from_other.err())
                .unwrap_or(UnknownProbe { prefix: String::new(), similar: Vec::new() }),
        ));
    };
    let without = |ids: &[String], others: &[String]| -> Vec<String> {
        let others: BTreeSet<&String> = others.iter().collect();
        ids.iter().filter(|id| !others.contains(id)).cloned().collect()
    };
    let (only_baseline, only_other) = (without(wanted, in_other), without(in_other, wanted));
    if !(request.common || only_baseline.is_empty() && only_other.is_empty()) {
        return Err(AbError::Rows(only_baseline, only_other));
    }
    let both: BTreeSet<&String> = wanted.iter().filter(|id| in_other.contains(id)).collect();
    Ok(kept(&declared[0], |id| both.contains(&id.to_owned())))
}

/// A build without version, commit, compiler and flags.
fn nameless() -> Build {
    let unknown = || "unknown".to_owned();
    Build { version: unknown(), commit: None, compiler: unknown(), flags: unknown() }
}

#[cfg(test)]
mod tests {
    use hairspring_sheet::{InterleavedRow, Method, Unit};

    use super::*;
    use crate::probe::{Found, Reading, RowDeclaration, TableDeclaration};

    /// A simulated machine: each process has its own speed, chapters drift, and a script disturbs moments.
    struct Scripted {
        random: Random,
        /// Relative slowdown of the other build.
        change: f64,
        /// Variation between processes.
        process: f64,
        /// Indices of sentinel readings that show a disturbance.
        disturbed: Vec<usize>,
        looks: usize,
        turns: usize,
        /// A row that the other build stops measuring after the given number of turns.
        vanishes_after: usize,
        /// The flag of the user, raised at this turn.
        interrupts: Option<(usize, &'static AtomicBool)>,
    }

    impl Scripted {
        fn new(change: f64, seed: u64) -> Self {
            Self {
                random: Random::seeded(seed),
                change,
                process: 0.03,
                disturbed: Vec::new(),
                looks: 0,
                turns: 0,
                vanishes_after: usize::MAX,
                interrupts: None,
            }
        }

        /// About normal, with a standard deviation of 1.
        fn normal(&mut self) -> f64 {
            (0..12).map(|_| self.random.below(10_000) as f64 / 10_000.0).sum::<f64>() - 6.0
        }
    }

    impl Arms for Scripted {
        fn look(&mut self) -> Sighting {
            self.looks += 1;
            let moved = if self.disturbed.contains(&self.looks) { 1.2 } else { 1.0 };
            Sighting { at: Nanos::from_secs(self.looks as i64), took_ns: [100.0 * moved; 4], stolen: Nanos::ZERO }
        }

        fn take(
            &mut self,
            arm: usize,
            asked: &Asked<'_>,
            _progress: &mut dyn FnMut(SheetProgress<'_>),
        ) -> Option<RoundPart> {
            self.turns += 1;
            if let Some((turn, flag)) = self.interrupts {
                flag.store(self.turns >= turn, Ordering::Relaxed);
            }
            // The whole machine slows down all the time: by 30 % over 200 processes.
            let drift = 1.0 + 0.3 * self.turns as f64 / 200.0;
            let mut rows = Vec::new();
            for (index, id) in asked.rows.iter().enumerate() {
                let change = if arm == 1 { 1.0 + self.change } else { 1.0 };
                let value = 1000.0 * drift * change * (1.0 + self.process * self.normal());
                let gone = arm == 1 && index == 0 && self.turns > self.vanishes_after;
                let absent = Found::Absent(hairspring_sheet::Absent::final_("it is gone"));
                rows.push((id.clone(), if gone { absent } else { Found::Reading(Reading::samples(vec![value; 3])) }));
            }
            Some(RoundPart {
                chapter: "one".to_owned(),
                round: asked.round,
                process: 0,
                began_ns: 0,
                interrupted: false,
                rows,
                series: Vec::new(),
                incidents: Vec::new(),
                notes: Vec::new(),
                head: Vec::new(),
            })
        }
    }

    /// Two chapters of `rows` rows each.
    fn declared(rows: usize) -> Vec<ChapterDeclaration> {
        let chapter = |id: &str| {
            let row = |number: usize| {
                let id = format!("{id}.table.{number}");
                RowDeclaration::new(id.clone(), id, Unit::Ns, Method::Mean, "")
            };
            let table = TableDeclaration {
                id: format!("{id}.table"),
                title: String::new(),
                limits: String::new(),
                rows: (0..rows).map(row).collect(),
                diagram: None,
            };
            ChapterDeclaration { id: id.to_owned(), title: String::new(), intro: String::new(), tables: vec![table] }
        };
        vec![chapter("one"), chapter("two")]
    }

    fn run(scripted: &mut Scripted, arms: usize, rounds: u32, seed: u64) -> Vec<Turn> {
        let flag: &'static AtomicBool = match scripted.interrupts {
            Some((_, flag)) => flag,
            None => Box::leak(Box::new(AtomicBool::new(false))),
        };
        let mut silent = |_: SheetProgress<'_>| {};
        let mut course = Course { interrupted: flag, progress: &mut silent, began: Nanos::ZERO, builds: 1 };
        course.turns(scripted, &declared(20), arms, rounds, &mut Random::seeded(seed)).0
    }

    /// The share of rows whose pairs show a change at 5 %.
    fn told(turns: &[Turn], arm: usize) -> f64 {
        let rows = rows(&declared(20), turns, arm);
        rows.iter().filter(|row| stands_out(row)).count() as f64 / rows.len() as f64
    }

    #[test]
    fn every_build_is_first_equally_often_and_drift_declares_nothing() {
        for seed in 0..5 {
            let mut scripted = Scripted::new(0.0, seed);
            let turns = run(&mut scripted, 2, 10, seed);
            assert_eq!(turns.len(), 20);
            for chapter in 0..2 {
                let first = turns.iter().filter(|turn| turn.chapter == chapter && turn.order[0] == 0).count();
                assert_eq!(first, 5, "seed {seed}");
            }
            assert!(told(&turns, 1) <= 0.05, "seed {seed}: {}", told(&turns, 1));
        }
    }

    #[test]
    fn a_change_is_told_with_its_size_and_the_null_arm_tells_none() {
        let turns = run(&mut Scripted::new(0.2, 1), 3, 10, 1);
        assert!(told(&turns, 1) > 0.95, "{}", told(&turns, 1));
        assert!(told(&turns, 2) <= 0.05, "{}", told(&turns, 2));
        for row in rows(&declared(20), &turns, 1) {
            let ratios: Vec<f64> = row.pairs.iter().filter_map(|pair| Some(pair.other? / pair.baseline?)).collect();
            let ratio = crate::interleaving::median(&ratios);
            assert!((ratio / 1.2 - 1.0).abs() < 0.08, "{}: {ratio}", row.id);
        }
    }

    #[test]
    fn disturbed_pairs_are_void_and_measured_again() {
        let mut scripted = Scripted::new(0.0, 1);
        // Two chapters warm up with three looks each; then the second look of the first pair.
        scripted.disturbed = vec![8];
        let turns = run(&mut scripted, 2, 5, 1);
        assert_eq!(turns.len(), 11);
        let void: Vec<&Turn> = turns.iter().filter(|turn| turn.void).collect();
        assert_eq!(void.len(), 1);
        let again = turns.last().expect("there are turns");
        assert_eq!((again.round, again.chapter, again.void), (void[0].round, void[0].chapter, false));
        let pairs = &rows(&declared(20), &turns, 1)[void[0].chapter * 20].pairs;
        assert_eq!(pairs.iter().filter(|pair| !pair.void).count(), 5);
        let sentinels = sentinel_rows(&turns);
        assert_eq!(sentinels.len(), 4);
        assert!(sentinels.iter().all(|row| row.pairs.len() == 11), "{sentinels:?}");
    }

    #[test]
    fn an_interruption_keeps_complete_pairs_and_a_row_that_vanishes_keeps_the_pairs_before() {
        let mut scripted = Scripted::new(0.0, 1);
        scripted.interrupts = Some((10, Box::leak(Box::new(AtomicBool::new(false)))));
        // Two chapters warm up with two processes each; the third pair after that is not complete.
        let turns = run(&mut scripted, 2, 5, 1);
        assert_eq!(turns.len(), 2);
        let mut scripted = Scripted::new(0.0, 1);
        scripted.vanishes_after = 12;
        let turns = run(&mut scripted, 2, 5, 1);
        let rows = rows(&declared(20), &turns, 1);
        let complete = |row: &InterleavedRow| row.pairs.iter().filter(|pair| pair.other.is_some()).count();
        assert!(complete(&rows[0]) < 5 && complete(&rows[1]) == 5, "{} {}", complete(&rows[0]), complete(&rows[1]));
    }

    #[test]
    fn builds_must_have_the_same_rows_unless_common_ones_are_enough() {
        let all = declared(3);
        let fewer = kept(&all, |id| id != "two.table.1");
        let request = |only: &[&str], common| AbRequest {
            baseline: vec![PathBuf::new()],
            other: vec![PathBuf::new()],
            only: only.iter().map(|only| (*only).to_owned()).collect(),
            common,
            rounds: 5,
            effort: Effort::Quick,
            cpu: None,
            priority: 80,
            seed: 1,
            confirm: false,
            null: false,
            spin: Vec::new(),
        };
        let refused = common(&[all.clone(), fewer.clone()], &request(&[], false)).expect_err("they differ");
        assert_eq!(refused, AbError::Rows(vec!["two.table.1".to_owned()], Vec::new()));
        assert!(refused.to_string().contains("--common"), "{refused}");
        let both = common(&[all.clone(), fewer.clone()], &request(&[], true)).expect("the common rows");
        assert_eq!(both, fewer);
        let one = common(&[all.clone(), fewer.clone()], &request(&["one"], false)).expect("here they agree");
        assert_eq!(one.len(), 1);
        assert!(matches!(common(&[all, fewer], &request(&["three"], false)), Err(AbError::NoSuchRow(_))));
    }
}
