//! Finds the highest rate at which nothing is lost.
//!
//! **Problem.** A copy loop measures the speed of a disk at the disk's own pace, but a card does not wait. A rate
//! without loss for one second does not predict the disk's next stall.
//!
//! **Method.** The search is open loop: each probe records a card that has its own clock and loses the data that do not
//! fit. The search doubles the rate until something is lost, then halves the bracket at its geometric mean until its
//! ends are within the resolution. Fresh runs confirm the rate that it found; a loss in one of them lowers the rate and
//! restarts the confirmation. The result is a rate at which *all* confirming runs were lossless, and the lowest rate
//! that failed.
//!
//! **What it means.** A time T without loss bounds the rate of loss events: with 95 % confidence it is below 3 / T (the
//! "rule of three", Hanley and Lippman-Hand 1983). To show less than one event per hour, T must be three hours. The
//! recommendation is 95 % of the confirmed rate (AN006 plans with 95–98 %), and only if the buffer was never more than
//! half full.
//!
//! **Limits.** The search measures the disk in its present state: not when its fast part is full, and not while others
//! write to it.

mod recordings;

use hairspring_machine::Nanos;

pub use recordings::{Doing, ProbeError, Recordings};

use hairspring_ring::gap::GapCause;
use hairspring_ring::units::{ByteRate, Bytes};

/// The settings of a search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Search {
    /// The first rate; it should be lossless.
    pub from: ByteRate,
    /// The highest rate to try: a measured limit, or the capacity of the link.
    pub to: ByteRate,
    /// The largest relative difference between the ends of the last bracket, above 0.
    pub resolution: f64,
    /// The number of lossless runs that confirm the result.
    pub confirmations: u32,
}

/// The purpose of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// To narrow the bracket.
    Search,
    /// To confirm the rate; its data are read back and compared.
    Confirm,
}

/// One recording at one rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Probe {
    /// The card's rate.
    pub rate: ByteRate,
    /// Its purpose.
    pub purpose: Purpose,
    /// The time for which it recorded.
    pub elapsed: Nanos,
    /// The bytes that it recorded.
    pub volume: Bytes,
    /// The first loss, if there was one.
    pub lost: Option<GapCause>,
    /// The highest fill of the buffer, in thousandths.
    pub high_water_promille: u64,
    /// The longest that a write took.
    pub worst_stall: Nanos,
    /// Whether every byte was right when read back; `None` if it was not read back.
    pub read_back: Option<bool>,
}

impl Probe {
    /// Whether nothing was lost or wrong.
    pub fn is_lossless(&self) -> bool {
        self.lost.is_none() && self.read_back != Some(false)
    }
}

/// The result of a search.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// The highest rate that all confirming runs recorded without loss; `None` if there is none above a thousandth of
    /// the first rate.
    pub lossless: Option<ByteRate>,
    /// The lowest rate with a loss; `None` if nothing was lost.
    pub failed: Option<Probe>,
    /// Whether the search ended at its ceiling, so that the true maximum is unknown.
    pub at_ceiling: bool,
    /// Every probe, in order.
    pub probes: Vec<Probe>,
    /// The total time of the confirming runs at that rate.
    pub watched: Nanos,
    /// The upper limit of loss events per hour, with 95 % confidence; `None` if nothing was confirmed.
    pub losses_per_hour_below: Option<f64>,
    /// The recommended rate; `None` if nothing was confirmed.
    pub recommended: Option<ByteRate>,
    /// Whether the buffer was more than half full in a confirming run. Then the recommended rate is that of the highest
    /// lossless probe below half full, if there is one.
    pub buffer_was_tight: bool,
}

/// The share of the confirmed rate that is recommended.
const MARGIN: f64 = 0.95;
/// The fill that a buffer should not exceed, in thousandths.
const HALF_FULL_PROMILLE: u64 = 500;
/// How far a card's rate may be from the requested rate, because its clock counts whole frames.
const ROUNDING: f64 = 0.01;
/// The factor by which a failed confirmation lowers the rate, and the most times it may.
const STEP_DOWN: f64 = 0.95;
const MOST_STEPS_DOWN: u32 = 60;

/// Runs the search. `probe` records at a rate and returns the result; it is called some 10 to 30 times.
///
/// # Errors
/// The error of `probe`; the results until then are lost.
pub fn search<E>(search: &Search, probe: &mut dyn FnMut(ByteRate, Purpose) -> Result<Probe, E>) -> Result<Found, E> {
    let mut probes = Vec::new();
    let mut run = |rate: f64, purpose| -> Result<bool, E> {
        let rate = ByteRate::new(rate).unwrap_or(search.from);
        let result = probe(rate, purpose)?;
        probes.push(result);
        Ok(result.is_lossless())
    };
    let top = search.to.bytes_per_s().max(search.from.bytes_per_s());
    let bottom = search.from.bytes_per_s() / 1000.0;
    let mut good = None;
    let mut bad = None;
    let mut rate = search.from.bytes_per_s();
    // Bracket: up by doubling, or down by halving.
    while (good.is_none() || bad.is_none()) && rate >= bottom {
        if run(rate, Purpose::Search)? {
            good = Some(rate);
            if rate >= top {
                break;
            }
            rate = if bad.is_some() { rate } else { (rate * 2.0).min(top) };
        } else {
            bad = Some(rate);
            rate = if good.is_some() { rate } else { rate / 2.0 };
        }
    }
    // Halve the bracket.
    while let (Some(low), Some(high)) = (good, bad)
        && high / low > 1.0 + search.resolution.max(1e-4)
    {
        let middle = f64::sqrt(low * high);
        *(if run(middle, Purpose::Search)? { &mut good } else { &mut bad }) = Some(middle);
    }
    // Confirm.
    let wanted = search.confirmations.max(1);
    let mut candidate = good;
    let (mut confirmed, mut steps) = (0, 0);
    while let Some(rate) = candidate {
        confirmed = 0;
        while confirmed < wanted && run(rate, Purpose::Confirm)? {
            confirmed += 1;
        }
        if confirmed == wanted {
            break;
        }
        confirmed = 0;
        steps += 1;
        candidate = (steps < MOST_STEPS_DOWN && rate * STEP_DOWN >= bottom).then_some(rate * STEP_DOWN);
    }
    Ok(sum_up(confirmed as usize, top, probes))
}

/// `confirmed` is how many of the last probes confirm the answer; 0 if there is none.
fn sum_up(confirmed: usize, top: f64, probes: Vec<Probe>) -> Found {
    let confirming = probes[probes.len() - confirmed..].iter();
    // The rate that the card really made, which may be rounded.
    let lossless = confirming.clone().map(|probe| probe.rate).next();
    let watched = confirming.clone().fold(Nanos::ZERO, |sum, probe| sum + probe.elapsed);
    let tight = confirming.clone().any(|probe| probe.high_water_promille > HALF_FULL_PROMILLE);
    let failed = probes.iter().filter(|probe| !probe.is_lossless());
    let failed = failed.min_by(|a, b| a.rate.bytes_per_s().total_cmp(&b.rate.bytes_per_s())).copied();
    let roomy = probes.iter().filter(|probe| {
        probe.is_lossless()
            && probe.high_water_promille <= HALF_FULL_PROMILLE
            && lossless.is_some_and(|rate| probe.rate <= rate)
    });
    let roomy = roomy.map(|probe| probe.rate.bytes_per_s()).max_by(f64::total_cmp);
    let base = if tight { roomy } else { lossless.map(ByteRate::bytes_per_s) };
    let seconds = watched.as_secs_f64();
    Found {
        lossless,
        at_ceiling: failed.is_none() && lossless.is_some_and(|rate| rate.bytes_per_s() >= top * (1.0 - ROUNDING)),
        failed,
        watched,
        losses_per_hour_below: (lossless.is_some() && seconds > 0.0).then(|| 3.0 / seconds * 3600.0),
        recommended: base.and_then(|rate| ByteRate::new(rate * MARGIN)),
        buffer_was_tight: tight,
        probes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(bytes_per_s: f64) -> ByteRate {
        ByteRate::new(bytes_per_s).expect("a rate")
    }

    fn settings(from: f64, to: f64) -> Search {
        Search { from: rate(from), to: rate(to), resolution: 0.02, confirmations: 3 }
    }

    fn result(rate: ByteRate, purpose: Purpose, lossless: bool) -> Result<Probe, String> {
        Ok(Probe {
            // As a card does whose clock counts whole frames.
            rate: ByteRate::new((rate.bytes_per_s() / 8.0).floor() * 8.0).expect("a rate"),
            purpose,
            elapsed: Nanos::from_secs(10),
            volume: rate.volume_in(Nanos::from_secs(10)),
            lost: (!lossless).then_some(GapCause::BufferFull),
            high_water_promille: 100,
            worst_stall: Nanos::from_millis(1),
            read_back: (purpose == Purpose::Confirm).then_some(true),
        })
    }

    #[test]
    fn the_limit_is_bracketed_from_below_and_above() {
        for (limit, from) in [(777e6, 10e6), (777e6, 9e9), (10e6, 10e6)] {
            let found =
                search(&settings(from, 1e10), &mut |rate, purpose| result(rate, purpose, rate.bytes_per_s() <= limit));
            let found = found.expect("no error");
            let (good, bad) = (found.lossless.expect("found").bytes_per_s(), found.failed.expect("bracketed").rate);
            assert!(good <= limit && bad.bytes_per_s() > limit && bad.bytes_per_s() / good <= 1.021, "{good} {bad}");
            assert_eq!(found.recommended.map(ByteRate::bytes_per_s), Some(good * 0.95));
            assert_eq!(found.watched, Nanos::from_secs(30));
            assert_eq!(found.losses_per_hour_below, Some(360.0));
            assert!(!found.at_ceiling);
        }
    }

    #[test]
    fn a_loss_while_confirming_lowers_what_is_quoted() {
        let mut losses = 2;
        let found = search(&settings(100e6, 1e9), &mut |rate, purpose| {
            let unlucky = purpose == Purpose::Confirm && losses > 0;
            losses -= u32::from(unlucky);
            result(rate, purpose, rate.bytes_per_s() <= 500e6 && !unlucky)
        });
        let found = found.expect("no error");
        let quoted = found.lossless.expect("found").bytes_per_s();
        assert!(quoted < 500e6 * 0.95 * 0.95 * 1.03, "{quoted}");
        assert!(found.failed.expect("it failed").rate.bytes_per_s() > quoted);
        // A run that read back wrong data is a loss, too.
        let found = search(&settings(100e6, 200e6), &mut |rate, purpose| {
            let mut probe = result(rate, purpose, true)?;
            probe.read_back = probe.read_back.map(|_| rate.bytes_per_s() < 150e6);
            Ok::<_, String>(probe)
        });
        assert!(found.expect("no error").lossless.expect("found").bytes_per_s() < 150e6);
    }

    #[test]
    fn a_ceiling_without_loss_is_told_as_such() {
        let found = search(&settings(100e6, 350e6), &mut |rate, purpose| result(rate, purpose, true));
        let found = found.expect("no error");
        assert!(found.at_ceiling && found.failed.is_none());
        assert_eq!(found.lossless.map(ByteRate::bytes_per_s), Some(350e6));
    }

    #[test]
    fn where_nothing_goes_well_nothing_is_quoted() {
        let found = search(&settings(100e6, 1e9), &mut |rate, purpose| result(rate, purpose, false)).expect("no error");
        assert_eq!((found.lossless, found.recommended, found.losses_per_hour_below), (None, None, None));
        assert!(found.failed.is_some());
    }

    #[test]
    fn a_buffer_that_was_more_than_half_full_lowers_the_recommendation() {
        let found = search(&settings(100e6, 800e6), &mut |rate, purpose| {
            let mut probe = result(rate, purpose, true)?;
            probe.high_water_promille = if rate.bytes_per_s() > 300e6 { 700 } else { 200 };
            Ok::<_, String>(probe)
        });
        let found = found.expect("no error");
        assert!(found.buffer_was_tight);
        assert_eq!(found.recommended.map(ByteRate::bytes_per_s), Some(200e6 * 0.95));
    }
}
