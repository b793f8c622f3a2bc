//! Two of everything: each pair of acts on one recording, the second begun at some moment of the first, which may be
//! killed.
//!
//! The acts are commands of Hairspring and of a user; the recording is one, a stripe, a series, or a series on a
//! stripe. Afterwards each frame that any output called good is readable by the published format and equal to the
//! generator, and no file outside of the recording has changed: neighbours of similar names, the recording it was
//! copied from, and snapshots by hard links. Data that a user removes, moves or truncates may be missing, but no output
//! that ended after that may call it complete.
//!
//! The moments are chosen by a seed, which a failure names: `HAIRSPRING_SEED=N` tries that pair alone. The moment at
//! which the acts meet also depends on the machine, so a repetition may need several tries. `HAIRSPRING_PROOF`
//! multiplies the number of pairs. The act *follow* needs a Python with the package; `HAIRSPRING_PYTHON` names it.

mod acts;
mod copies;
mod judge;
mod shelf;

use std::collections::BTreeMap;
use std::fs;
use std::ops::Range;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use acts::{Act, Doing, Kind, Place, is_of_it, python, recorder};
use judge::{copies, ending, orderly, product, unchanged};
use shelf::{FRAME, epochs, files, journaled};

use crate::{folder, hairspring, stderr};

/// Pairs of an ordinary run.
const PAIRS: u64 = 40;
/// Number of failed pairs that are named.
const MOST_NAMED: usize = 20;
/// The seed of the recordings that are there before; those of the acts are 1 and 2.
const BEFORE: u64 = 3;
const SEEDS: [u64; 3] = [1, 2, BEFORE];

/// State of the recording before the acts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum State {
    Nothing,
    Whole,
    /// Its recorder was killed.
    CutOff,
    Compressed,
}

/// Files beside it, or shared with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Beside {
    /// Neighbours only.
    Neighbours,
    /// A snapshot by hard links of all its files.
    Snapshot,
    /// Its data files lie elsewhere, behind symbolic links.
    Elsewhere,
}

/// A pair, drawn from a seed.
#[derive(Debug)]
struct Pair {
    kind: Kind,
    state: State,
    beside: Beside,
    acts: [Act; 2],
    /// When the second begins, as parts of 1000 of how long the first takes alone.
    begins: u64,
    /// When the first is killed, in the same unit.
    killed: Option<u64>,
}

impl Pair {
    fn draw(seed: u64) -> Self {
        let mut chance = Chance::seeded(seed);
        let kind = Kind::ALL[chance.below(4) as usize];
        let possible: Vec<Act> =
            Act::ALL.into_iter().filter(|act| act.fits(kind) && (*act != Act::Follow || python().is_some())).collect();
        let acts = [0; 2].map(|_| possible[chance.below(possible.len() as u64) as usize]);
        let states: &[State] = match acts[0] {
            Act::Record => &[State::Nothing],
            Act::Resume | Act::Retention => &[State::Nothing, State::Whole, State::CutOff, State::Compressed],
            Act::Recover | Act::RecoverAll => &[State::CutOff, State::CutOff, State::Whole],
            Act::Compress => &[State::Whole],
            Act::Undo => &[State::Compressed],
            _ => &[State::Whole, State::Whole, State::CutOff, State::Compressed],
        };
        let state = states[chance.below(states.len() as u64) as usize];
        // A write through the user's symbolic link goes to the link's target, so only whole recordings have one.
        let beside = match (chance.below(4), state) {
            (0, State::Whole) if !acts.contains(&Act::Truncate) => Beside::Elsewhere,
            (1 | 2, _) if !acts.contains(&Act::Truncate) => Beside::Snapshot,
            _ => Beside::Neighbours,
        };
        let begins = chance.below(1000);
        let killed = (chance.below(2) == 0).then(|| begins + chance.below(1050 - begins));
        Self { kind, state, beside, acts, begins, killed }
    }
}

#[test]
fn of_two_acts_at_once_on_a_recording_neither_lies_nor_destroys_what_is_good() {
    let seeds = seeds(PAIRS);
    if python().is_none() {
        testing::skip("two of everything: follow", "no Python with the package hairspring");
    }
    let mut masters = Masters::default();
    let (mut tried, mut killed, mut failed) = (0, 0, Vec::new());
    for seed in seeds {
        let pair = Pair::draw(seed);
        tried += 1;
        match attempt(&pair, &mut masters) {
            Ok(was_killed) => killed += u64::from(was_killed),
            Err(why) => {
                println!("failed: HAIRSPRING_SEED={seed}\n{pair:?}: {why}");
                failed.push(seed);
                masters.again();
            }
        }
    }
    println!(
        "figure: pairs: {tried}\nfigure: first acts that were killed: {killed}\nfigure: exceptions: {}",
        failed.len()
    );
    assert!(
        failed.is_empty(),
        "{} of {tried}: HAIRSPRING_SEED={:?}",
        failed.len(),
        &failed[..failed.len().min(MOST_NAMED)]
    );
}

/// The seeds of this run: `ordinary` of them, and `HAIRSPRING_PROOF` times as many in a proof; or the one of
/// `HAIRSPRING_SEED`.
fn seeds(ordinary: u64) -> Range<u64> {
    let number = |name: &str| std::env::var(name).ok().and_then(|value| value.parse::<u64>().ok());
    match (number("HAIRSPRING_SEED"), number("HAIRSPRING_PROOF")) {
        (Some(seed), _) => seed..seed + 1,
        (None, times) => 0..ordinary * times.unwrap_or(1),
    }
}

/// Recordings in each state, made once; pairs act on copies. And how long each act takes alone.
#[derive(Default)]
struct Masters {
    made: BTreeMap<(Kind, State), (tempfile::TempDir, u64)>,
    lengths: BTreeMap<Act, Duration>,
}

impl Masters {
    /// A folder with the members' folders, and the frames that are owed.
    fn of(&mut self, kind: Kind, state: State) -> Result<(PathBuf, u64), String> {
        if let Some((folder, owed)) = self.made.get(&(kind, state)) {
            return Ok((folder.path().to_owned(), *owed));
        }
        let home = folder();
        let place = Place { named: home.path().to_owned(), out: home.path().to_owned(), kind };
        neighbours(&place)?;
        let mut owed = 0;
        if state != State::Nothing {
            let mut recording = recorder(&place.target(), kind, BEFORE);
            if state == State::CutOff {
                let mut child = recording.stdout(std::process::Stdio::null()).spawn().map_err(|why| why.to_string())?;
                crate::wait_until("a block in a journal", || journaled(home.path()) > 8 << 10);
                child.kill().and_then(|()| child.wait()).map_err(|why| why.to_string())?;
                owed = journaled_of(&place) / FRAME as u64;
            } else {
                must(&mut recording)?;
                owed = acts::FRAMES;
            }
        }
        if state == State::Compressed {
            let base = place.named.join("d1/x").display().to_string();
            must(&mut hairspring(&["compress", "--quiet", &base]))?;
        }
        let path = home.path().to_owned();
        self.made.insert((kind, state), (home, owed));
        Ok((path, owed))
    }

    /// Makes them anew: a failed pair may have changed them.
    fn again(&mut self) {
        self.made.clear();
    }

    /// Usual duration of an act: that of its last run without interference.
    fn length(&self, act: Act) -> Duration {
        self.lengths.get(&act).copied().unwrap_or(Duration::from_millis(120))
    }
}

/// Other recordings and files in the folders, with names that are nearly the recording's.
fn neighbours(place: &Place) -> Result<(), String> {
    for member in place.kind.members() {
        let folder = place.named.join(member);
        fs::create_dir_all(&folder).map_err(|why| why.to_string())?;
        for name in ["x2", "x-0", "a-x"] {
            let target = folder.join(name).display().to_string();
            let card = "unpaced:2ch,16bit,data=noise:9,frames=300";
            must(&mut hairspring(&["record", "--quiet", "--buffer", "1MiB", "--card", card, "--to", &target]))?;
        }
        fs::write(folder.join("x-000000.notes"), "a user's").map_err(|why| why.to_string())?;
    }
    Ok(())
}

/// Whether a file is an unnamed temporary one, as a killed command leaves it.
fn is_unfinished(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "tmp")
}

fn must(command: &mut Command) -> Result<(), String> {
    let output = command.output().map_err(|why| why.to_string())?;
    if output.status.success() { Ok(()) } else { Err(format!("{command:?}: {}: {}", output.status, stderr(&output))) }
}

/// Bytes of blocks in the journals of the recording alone.
fn journaled_of(place: &Place) -> u64 {
    journaled(&place.named).saturating_sub(neighbours_bytes(place))
}

fn neighbours_bytes(place: &Place) -> u64 {
    place.kind.members().len() as u64 * 3 * 300 * FRAME as u64
}

/// Tries a pair. Returns whether the first act was killed.
fn attempt(pair: &Pair, masters: &mut Masters) -> Result<bool, String> {
    let (master, owed) = masters.of(pair.kind, pair.state)?;
    let home = folder();
    let place = Place { named: home.path().join("named"), out: home.path().join("out"), kind: pair.kind };
    fs::create_dir(&place.out).map_err(|why| why.to_string())?;
    must(Command::new("cp").arg("-a").arg(&master).arg(&place.named))?;
    match pair.beside {
        Beside::Neighbours => {}
        Beside::Snapshot => must(Command::new("cp").arg("-al").arg(&place.named).arg(home.path().join("snapshot")))?,
        Beside::Elsewhere => put_elsewhere(&place, &home.path().join("elsewhere"))?,
    }
    let others = || -> BTreeMap<PathBuf, Vec<u8>> {
        let mut all = files(&master);
        all.extend(files(home.path()).into_iter().filter(|(path, _)| {
            !path.starts_with(&place.out)
                && !(path.starts_with(&place.named) && (is_of_it(path) || is_unfinished(path)))
        }));
        all
    };
    let own = || -> BTreeMap<PathBuf, Vec<u8>> {
        files(&place.named).into_iter().filter(|(path, _)| is_of_it(path)).collect()
    };
    let (others_before, own_before) = (others(), own());
    let unfinished_before: Vec<PathBuf> = files(&place.named).into_keys().filter(|path| is_unfinished(path)).collect();

    let begun = Instant::now();
    let length = masters.length(pair.acts[0]);
    let at = |part: u64| begun + length * part as u32 / 1000;
    let mut first = Doing::begin(pair.acts[0], &place, 1);
    first.until(at(pair.begins));
    let journals = shelf::open_journals(&place.named);
    let mut second = Doing::begin(pair.acts[1], &place, 2);
    let in_them = || journals.iter().map(shelf::blocks).sum::<u64>();
    let by_then = in_them();
    let mut in_journals = 0;
    if let Some(part) = pair.killed {
        first.until(at(part));
        in_journals = journaled_of(&place) / FRAME as u64;
        first.kill();
    }
    let second_came = second.finish();
    let recorder_runs = first.act.records() && first.runs();
    let first_came = first.finish();
    let recorded_on = in_them() > by_then;
    if !(first_came && second_came) {
        return Err("an act does not end".to_owned());
    }
    if let (None, Some(ended), true) = (pair.killed, first.ended, pair.acts[1].only_reads()) {
        masters.lengths.insert(first.act, ended - begun);
    }
    let pairs = [&first, &second];
    let told =
        || pairs.map(|doing| format!("\n  {:?} {:?}: {}", doing.act, doing.code(), short(&doing.says()))).concat();
    let judge = || -> Result<(), String> {
        for doing in pairs {
            orderly(doing)?;
        }
        if recorder_runs && second.says().contains("recover") && !matches!(second.act, Act::Recover | Act::RecoverAll) {
            return Err("recovery is advised beside a recorder".to_owned());
        }
        unchanged(&others_before, &others())?;
        let mut unfinished = files(&place.named).into_keys().filter(|path| is_unfinished(path));
        if !first.was_killed
            && let Some(left) = unfinished.find(|path| !unfinished_before.contains(path))
        {
            return Err(format!("{} is left behind", left.display()));
        }
        if pairs.iter().all(|doing| doing.act.only_reads()) {
            unchanged(&own_before, &own()).map_err(|why| format!("by readers: {why}"))?;
        }
        let epochs = epochs(home.path());
        for doing in pairs {
            product(doing, &epochs).map_err(|why| format!("what {:?} made: {why}", doing.act))?;
        }
        let copied = copies(&place, pairs, owed)?;
        // No act on a copy changes the recording.
        unchanged(&copied.0, &own()).map_err(|why| format!("by what was done to a copy: {why}"))?;
        unchanged(&others_before, &others()).map_err(|why| format!("by what was done to a copy: {why}"))?;
        ending(&place, pair, [&first, &second], recorded_on, owed, in_journals)?;
        unchanged(&others_before, &others()).map_err(|why| format!("by the last recovery: {why}"))
    };
    judge().map_err(|why| format!("{why}{}", told()))?;
    Ok(first.was_killed)
}

fn short(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(600).collect()
}

/// Moves the data files of a recording to another folder, and leaves symbolic links.
fn put_elsewhere(place: &Place, elsewhere: &Path) -> Result<(), String> {
    for path in files(&place.named).into_keys().filter(|path| is_of_it(path)) {
        if path.extension().is_some_and(|ending| ending == "sigmf-data") {
            let there = elsewhere.join(path.strip_prefix(&place.named).expect("below it"));
            fs::create_dir_all(there.parent().expect("a folder")).map_err(|why| why.to_string())?;
            fs::rename(&path, &there).and_then(|()| symlink(&there, &path)).map_err(|why| why.to_string())?;
        }
    }
    Ok(())
}

/// Pseudo-random numbers, the same in every run (xorshift).
struct Chance(u64);

impl Chance {
    fn seeded(seed: u64) -> Self {
        let mut chance = Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        for _ in 0..4 {
            chance.below(2);
        }
        chance
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) % limit
    }
}
