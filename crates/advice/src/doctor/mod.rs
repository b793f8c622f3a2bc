//! Doctor: finds the limits of a job on this computer by trying each permitted setting.
//!
//! | step | action |
//! |---|---|
//! | screen | [`BLOCKS`] blocks: one turn each of the unchanged machine, the null arm and every candidate, at random |
//! | combine | the best candidate is kept; the others are tried on top of it, until none helps further |
//! | confirm | the combination against the unchanged machine, in [`CONFIRMING`] fresh pairs A B B A B A A B |
//!
//! A turn is a fresh process ([`Turns`]). The value of a turn is the median of its events. Effects are paired t tests
//! of the logarithms within the blocks; the null region is 2 %, and Holm's procedure bounds the probability of any
//! false effect at 5 %. If the null arm shows an effect, there is no conclusion. A block in which the machine was
//! suspended is void and repeated, at most [`VOID_MOST`] times. *No effect* and *harmful* are results too.
//!
//! The method is that of `hairspring ab`: see [`statistics`](hairspring_sheet::statistics). [`diagnose`] is pure except
//! for the turns, which its caller provides: [`Launches`] starts processes under the settings.

mod launches;

use hairspring_machine::Nanos;
use hairspring_settings::Choice;
use hairspring_sheet::statistics::{Difference, Scale, holm};
use hairspring_suite::interleaving::{Random, in_blocks, median, mirrored};

pub use launches::{Launches, candidates};

/// Turns of each arm while candidates are screened.
pub const BLOCKS: usize = 6;
/// Fresh pairs that confirm the combination.
pub const CONFIRMING: usize = 8;
/// The most blocks that are repeated.
pub const VOID_MOST: usize = 5;
/// A larger difference of the time in suspend is more than the error of two readings.
const SUSPEND_LEAST: Nanos = Nanos::from_millis(1);
/// A smaller effect than this factor does not count.
const NULL: f64 = 1.02;
/// An effect that lies within this factor with 95 % confidence is reported as none.
const SAME: f64 = 1.05;
/// The probability of any false effect.
const LEVEL: f64 = 0.05;
/// The most settings in a combination.
const COMBINED_MOST: usize = 3;

/// Makes one turn: returns the events of the job under some settings, in nanoseconds.
pub trait Turns {
    /// Blocks for the time of a turn.
    ///
    /// # Errors
    /// A sentence with the reason why the settings were refused, or that the job had no event.
    fn take(&mut self, settings: &[Choice]) -> Result<Vec<f64>, String>;

    /// Total time that the machine has been suspended since its start.
    fn suspended(&self) -> Nanos;
}

/// The effect of a setting.
#[derive(Clone, Debug, PartialEq)]
pub enum SettingEffect {
    /// The median gets smaller.
    Helps,
    /// The median stays within 5 %, with 95 % confidence.
    None,
    /// The median gets larger.
    Harms,
    /// The blocks do not decide.
    NotShown,
    /// The setting was refused here, for this reason.
    NotApplied(String),
}

/// A setting, or several, against the unchanged machine.
#[derive(Clone, Debug, PartialEq)]
pub struct TriedSettings {
    /// As `hairspring run --set` takes them: `idle=off,policy=fifo:80`. Empty for the null arm.
    pub settings: String,
    /// The median with the settings over that without them; 1 if they were refused.
    pub ratio: f64,
    /// The 95 % interval of the ratio.
    pub interval: [f64; 2],
    /// The effect.
    pub effect: SettingEffect,
}

/// All events of one arm.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ArmEvents {
    /// In nanoseconds, in the order of time.
    pub values: Vec<f64>,
}

/// The result of a diagnosis.
#[derive(Clone, Debug, PartialEq)]
pub struct Diagnosis {
    /// The null arm: the unchanged machine against itself.
    pub null: TriedSettings,
    /// Each candidate alone: the most helpful first, then those without effect, the harmful ones, and the refused ones.
    pub tried: Vec<TriedSettings>,
    /// The combination on fresh turns; none if nothing helps, or the null arm shows an effect.
    pub confirmed: Option<TriedSettings>,
    /// The events of the fresh turns, unchanged and with the combination.
    pub events: [ArmEvents; 2],
    /// Number of blocks that were void because the machine was suspended during them.
    pub void: usize,
}

impl Diagnosis {
    /// Whether the unchanged machine shows no effect against itself, so that effects of candidates can be trusted.
    pub fn is_conclusive(&self) -> bool {
        !matches!(self.null.effect, SettingEffect::Helps | SettingEffect::Harms)
    }
}

/// The most turns of a diagnosis, to estimate its time.
pub fn turns_most(candidates: usize) -> usize {
    let combining: usize = (1..COMBINED_MOST).map(|kept| candidates.saturating_sub(kept) + 1).sum();
    BLOCKS * (candidates + 2 + combining) + 2 * CONFIRMING
}

/// Tries the candidates. `progress` receives the number of turns made. Once `stopped`, it ends early with the result of
/// the complete blocks.
///
/// # Errors
/// The job cannot run on the unchanged machine.
pub fn diagnose(
    turns: &mut dyn Turns,
    candidates: &[Choice],
    seed: u64,
    stopped: &dyn Fn() -> bool,
    progress: &mut dyn FnMut(usize),
) -> Result<Diagnosis, String> {
    let mut run = Run { turns, random: Random::seeded(seed), stopped, progress, made: 0, void: 0 };
    let arms: Vec<Vec<Choice>> =
        std::iter::once(Vec::new()).chain(candidates.iter().map(|choice| vec![choice.clone()])).collect();
    let mut screened = run.compare(&[], &arms)?;
    let null = screened.remove(0);
    let mut diagnosis = Diagnosis { null, tried: screened, confirmed: None, events: Default::default(), void: 0 };
    if diagnosis.is_conclusive() {
        let mut kept = run.combine(candidates, &diagnosis.tried)?;
        if !kept.is_empty() && !stopped() {
            let (confirmed, events) = run.confirm(&mut kept)?;
            diagnosis.confirmed = Some(confirmed);
            diagnosis.events = events;
        }
    }
    diagnosis.void = run.void;
    diagnosis.tried.sort_by(|one, other| rank(one).total_cmp(&rank(other)));
    Ok(diagnosis)
}

/// Helpful settings first, ordered by their least certain effect; then those without effect, harmful ones, and refused
/// ones.
fn rank(tried: &TriedSettings) -> f64 {
    match tried.effect {
        SettingEffect::Helps => tried.interval[1],
        SettingEffect::NotShown => 10.0 + tried.ratio,
        SettingEffect::None => 1e3,
        SettingEffect::Harms => 1e6 + tried.ratio,
        SettingEffect::NotApplied(_) => f64::INFINITY,
    }
}

struct Run<'r> {
    turns: &'r mut dyn Turns,
    random: Random,
    stopped: &'r dyn Fn() -> bool,
    progress: &'r mut dyn FnMut(usize),
    made: usize,
    void: usize,
}

impl Run<'_> {
    fn turn(&mut self, settings: &[Choice]) -> Result<Vec<f64>, String> {
        let taken = self.turns.take(settings);
        self.made += 1;
        (self.progress)(self.made);
        taken.and_then(|values| if values.is_empty() { Err("no event came".to_owned()) } else { Ok(values) })
    }

    /// Whether the machine has been suspended since a time; then the measurements since are void.
    fn was_suspended(&mut self, since: Nanos) -> Result<bool, String> {
        if self.turns.suspended() - since < SUSPEND_LEAST {
            return Ok(false);
        }
        self.void += 1;
        if self.void > VOID_MOST { Err("the machine is suspended again and again".to_owned()) } else { Ok(true) }
    }

    /// Makes `count` blocks. A block in which the machine was suspended is void and repeated.
    fn blocks<T>(
        &mut self,
        count: usize,
        mut order: impl FnMut(&mut Self, usize) -> Vec<usize>,
        mut take: impl FnMut(&mut Self, usize) -> Result<T, String>,
    ) -> Result<Vec<Vec<T>>, String> {
        let (mut whole, stopped) = (Vec::new(), self.stopped);
        while whole.len() < count && !stopped() {
            let suspended = self.turns.suspended();
            let order = order(self, whole.len());
            let made = in_blocks([order], stopped, |arm| take(self, arm))?;
            if !self.was_suspended(suspended)? {
                whole.extend(made);
            }
        }
        Ok(whole)
    }

    /// Each arm against the base, in blocks.
    fn compare(&mut self, base: &[Choice], arms: &[Vec<Choice>]) -> Result<Vec<TriedSettings>, String> {
        let mut refused: Vec<Option<String>> = vec![None; arms.len()];
        let order = |run: &mut Self, _| run.random.order(arms.len() + 1);
        // The last index is the base.
        let blocks = self.blocks(BLOCKS, order, |run, arm| match arms.get(arm) {
            None => run.turn(base).map(|values| Some(centre(&values))),
            Some(settings) if refused[arm].is_none() => Ok(match run.turn(settings) {
                Ok(values) => Some(centre(&values)),
                Err(why) => {
                    refused[arm] = Some(why);
                    None
                }
            }),
            Some(_) => Ok(None),
        })?;
        let pairs_of = |arm: usize| -> Vec<[f64; 2]> {
            blocks.iter().filter_map(|block| Some([block[arms.len()]?, block[arm]?])).collect()
        };
        let differences: Vec<Option<Difference>> =
            (0..arms.len()).map(|arm| Difference::paired(&pairs_of(arm), Scale::Log, None)).collect();
        let chances: Vec<f64> = differences.iter().map(|one| one.map_or(1.0, |one| one.p_beyond(NULL.ln()))).collect();
        let shown = holm(&chances, LEVEL);
        let judged = arms.iter().zip(differences).zip(shown).zip(refused);
        Ok(judged.map(|(((arm, difference), shown), refused)| judge(arm, difference, shown, refused)).collect())
    }

    /// Combines the best of the helpful candidates with those that still help on top of it.
    fn combine(&mut self, candidates: &[Choice], tried: &[TriedSettings]) -> Result<Vec<Choice>, String> {
        let best = |tried: &[TriedSettings]| {
            let helpful = tried.iter().enumerate().filter(|(_, one)| one.effect == SettingEffect::Helps);
            helpful.min_by(|(_, one), (_, other)| one.interval[1].total_cmp(&other.interval[1])).map(|(at, _)| at)
        };
        let Some(first) = best(tried) else { return Ok(Vec::new()) };
        let mut kept = vec![candidates[first].clone()];
        while kept.len() < COMBINED_MOST && !(self.stopped)() {
            let others: Vec<&Choice> = candidates
                .iter()
                .zip(tried)
                .filter(|(choice, one)| {
                    let usable = !matches!(one.effect, SettingEffect::Harms | SettingEffect::NotApplied(_));
                    usable && kept.iter().all(|kept| kept.tunable().id != choice.tunable().id)
                })
                .map(|(choice, _)| choice)
                .collect();
            if others.is_empty() {
                break;
            }
            let on_top = |choice: &&Choice| kept.iter().chain([*choice]).cloned().collect();
            let arms: Vec<Vec<Choice>> = others.iter().map(on_top).collect();
            let added = self.compare(&kept.clone(), &arms)?;
            match best(&added) {
                Some(at) => kept.push(others[at].clone()),
                None => break,
            }
        }
        Ok(kept)
    }

    /// Compares the combination with the unchanged machine, in fresh turns.
    fn confirm(&mut self, kept: &mut [Choice]) -> Result<(TriedSettings, [ArmEvents; 2]), String> {
        let settings = |arm| if arm == 0 { Vec::new() } else { kept.to_vec() };
        let blocks = self.blocks(CONFIRMING, |_, block| mirrored(block), |run, arm| run.turn(&settings(arm)))?;
        let (mut pairs, mut events) = (Vec::new(), [ArmEvents::default(), ArmEvents::default()]);
        for block in blocks {
            pairs.push([0, 1].map(|arm| centre(&block[arm])));
            for (events, values) in events.iter_mut().zip(block) {
                events.values.extend(values);
            }
        }
        let difference = Difference::paired(&pairs, Scale::Log, None);
        let shown = difference.is_some_and(|difference| difference.p_beyond(NULL.ln()) <= LEVEL);
        Ok((judge(kept, difference, shown, None), events))
    }
}

/// The logarithm of the median, which must be above zero.
fn centre(values: &[f64]) -> f64 {
    median(values).max(1.0)
}

fn judge(settings: &[Choice], difference: Option<Difference>, shown: bool, refused: Option<String>) -> TriedSettings {
    let names: Vec<String> = settings.iter().map(ToString::to_string).collect();
    let settings = names.join(",");
    let Some(difference) = difference.filter(|_| refused.is_none()) else {
        let effect = match refused {
            Some(why) => SettingEffect::NotApplied(why),
            None => SettingEffect::NotShown,
        };
        return TriedSettings { settings, ratio: 1.0, interval: [0.0, f64::INFINITY], effect };
    };
    let effect = if shown && difference.estimate < 0.0 {
        SettingEffect::Helps
    } else if shown {
        SettingEffect::Harms
    } else if difference.equivalent_within(SAME.ln()) {
        SettingEffect::None
    } else {
        SettingEffect::NotShown
    };
    let interval = difference.interval(LEVEL).map(f64::exp);
    TriedSettings { settings, ratio: difference.estimate.exp(), interval, effect }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A machine on which each setting changes the median by a factor; the noise differs between turns.
    struct Scripted {
        factors: Vec<(&'static str, f64)>,
        noise: f64,
        /// Every turn is slower than the one before by this factor.
        drift: f64,
        turns: u32,
        random: Random,
    }

    impl Turns for Scripted {
        fn take(&mut self, settings: &[Choice]) -> Result<Vec<f64>, String> {
            self.turns += 1;
            let named: Vec<String> = settings.iter().map(ToString::to_string).collect();
            if named.iter().any(|name| name == "nice=-20") {
                return Err("no permission".to_owned());
            }
            let factor: f64 = self
                .factors
                .iter()
                .filter(|(id, _)| named.iter().any(|name| name == id))
                .map(|(_, factor)| factor)
                .product();
            let noise = 1.0 + self.noise * (self.random.below(2001) as f64 / 1000.0 - 1.0);
            let value = 30_000.0 * factor * noise * self.drift.powi(self.turns as i32);
            Ok(vec![value * 0.9, value, value * 1.3])
        }

        fn suspended(&self) -> Nanos {
            Nanos::ZERO
        }
    }

    fn scripted(factors: &[(&'static str, f64)], noise: f64, drift: f64, seed: u64) -> Diagnosis {
        let choices = ["idle=off", "policy=fifo:80", "slack=1us", "nice=-20"]
            .map(|text| text.parse::<Choice>().expect("a choice"));
        let mut machine =
            Scripted { factors: factors.to_vec(), noise, drift, turns: 0, random: Random::seeded(seed + 1) };
        diagnose(&mut machine, &choices, seed, &|| false, &mut |_| {}).expect("it runs as it is")
    }

    #[test]
    fn what_helps_is_found_combined_and_confirmed() {
        let found = scripted(&[("idle=off", 0.1), ("policy=fifo:80", 0.7), ("slack=1us", 1.5)], 0.05, 1.0, 7);
        let effects: Vec<(&str, &SettingEffect)> =
            found.tried.iter().map(|one| (one.settings.as_str(), &one.effect)).collect();
        assert_eq!(
            effects,
            [
                ("idle=off", &SettingEffect::Helps),
                ("policy=fifo:80", &SettingEffect::Helps),
                ("slack=1us", &SettingEffect::Harms),
                ("nice=-20", &SettingEffect::NotApplied("no permission".to_owned())),
            ]
        );
        let confirmed = found.confirmed.expect("two settings help");
        assert_eq!(confirmed.settings, "idle=off,policy=fifo:80");
        assert!(
            (confirmed.ratio - 0.07).abs() < 0.01 && confirmed.interval[0] < 0.07 && 0.07 < confirmed.interval[1],
            "{confirmed:?}"
        );
        assert_eq!(found.events.map(|events| events.values.len()), [3 * CONFIRMING; 2]);
    }

    #[test]
    fn where_nothing_helps_nothing_is_advised() {
        let mut false_effects = 0;
        for seed in 0..200 {
            let found = scripted(&[], 0.03, 1.0, seed);
            let declared =
                found.tried.iter().any(|one| matches!(one.effect, SettingEffect::Helps | SettingEffect::Harms));
            false_effects += usize::from(declared || !found.is_conclusive());
        }
        assert!(false_effects <= 14, "{false_effects} of 200");
    }

    #[test]
    fn a_drift_is_no_effect() {
        let mut declared = 0;
        for seed in 0..100 {
            let found = scripted(&[], 0.01, 1.002, seed);
            declared += usize::from(found.confirmed.is_some());
        }
        assert!(declared <= 7, "{declared} of 100");
    }

    /// A machine on which no setting helps and which is suspended during these turns, whose values would look like an
    /// effect.
    struct Suspended {
        machine: Scripted,
        at: Vec<u32>,
        suspended: Nanos,
    }

    impl Turns for Suspended {
        fn take(&mut self, settings: &[Choice]) -> Result<Vec<f64>, String> {
            let values = self.machine.take(settings)?;
            if !self.at.contains(&self.machine.turns) {
                return Ok(values);
            }
            self.suspended += Nanos::from_secs(60);
            Ok(values.iter().map(|value| value * 1e6).collect())
        }

        fn suspended(&self) -> Nanos {
            self.suspended
        }
    }

    fn suspended_at(at: Vec<u32>) -> Result<Diagnosis, String> {
        let choices = ["idle=off", "slack=1us"].map(|text| text.parse::<Choice>().expect("a choice"));
        let factors = vec![("idle=off", 0.5)];
        let machine = Scripted { factors, noise: 0.02, drift: 1.0, turns: 0, random: Random::seeded(3) };
        let mut turns = Suspended { machine, at, suspended: Nanos::ZERO };
        diagnose(&mut turns, &choices, 5, &|| false, &mut |_| {})
    }

    #[test]
    fn a_block_with_a_suspend_is_void_and_made_anew() {
        let calm = suspended_at(Vec::new()).expect("it runs");
        // In the first block, in the fourth, and among the confirming pairs.
        let found = suspended_at(vec![2, 15, 50]).expect("it runs");
        assert_eq!((calm.void, found.void), (0, 3));
        for found in [calm, found] {
            let confirmed = found.confirmed.expect("idle=off helps");
            assert_eq!(confirmed.settings, "idle=off");
            assert!((confirmed.ratio - 0.5).abs() < 0.02, "{confirmed:?}");
            assert!(found.events.iter().all(|events| events.values.iter().all(|value| *value < 1e6)));
        }
        let refused = suspended_at((1..100).collect()).expect_err("every block is void");
        assert!(refused.contains("again and again"), "{refused}");
    }

    #[test]
    fn a_job_that_cannot_run_is_an_error() {
        struct Never;
        impl Turns for Never {
            fn take(&mut self, _: &[Choice]) -> Result<Vec<f64>, String> {
                Err("no such device".to_owned())
            }

            fn suspended(&self) -> Nanos {
                Nanos::ZERO
            }
        }
        assert_eq!(diagnose(&mut Never, &[], 1, &|| false, &mut |_| {}), Err("no such device".to_owned()));
    }

    #[test]
    fn the_turns_told_beforehand_are_enough() {
        for seed in 0..20 {
            let choices = ["idle=off", "policy=fifo:80", "slack=1us", "cpu=0"]
                .map(|text| text.parse::<Choice>().expect("a choice"));
            let factors = vec![("idle=off", 0.5), ("policy=fifo:80", 0.5), ("slack=1us", 0.5), ("cpu=0", 0.5)];
            let mut machine = Scripted { factors, noise: 0.05, drift: 1.0, turns: 0, random: Random::seeded(seed) };
            let mut made = 0;
            diagnose(&mut machine, &choices, seed, &|| false, &mut |turns| made = turns).expect("it runs");
            assert!(made <= turns_most(choices.len()), "{made}");
        }
    }
}
