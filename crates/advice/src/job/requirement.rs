//! [`Requirement`]: the requirement of a job, in the words of users.
//!
//! # Grammar
//! Words, with spaces or commas between them; `1 kHz` is one word.
//!
//! ```text
//! loop FREQUENCY|PERIOD jitter SPAN      a thread that is woken periodically runs at most SPAN late
//! react [to SOURCE] SPAN                 at most SPAN from an event until its action has reached the device
//! delay REQUEST within SPAN              a delay returns at most SPAN late, timed by its caller
//! audio RATE/FRAMES                      a loop with the period of a buffer, late by at most half of it
//!
//! and after each:   p99.9 | misses N/h   how often the limit may be missed; p99.9 by default
//!                   ordinary | fifo      the scheduling policy; by default SCHED_FIFO if it is permitted
//!                   for SPAN             for how long the job runs; needs misses N/…
//! ```

use std::collections::VecDeque;
use std::fmt;
use std::str::FromStr;

use hairspring_describe::{DescriptionError, Snippet};
use hairspring_machine::Nanos;
use hairspring_settings::Choice;
use hairspring_suite::workload::{ReactionSource, Workload};

/// Workload, limit and tolerance of a job.
#[derive(Clone, Debug, PartialEq)]
pub struct Requirement {
    /// Activity of the job.
    pub workload: Workload,
    /// The greatest permitted lateness or, for a reaction, the greatest permitted time.
    pub limit: Nanos,
    /// Permitted frequency of misses.
    pub tolerance: Tolerance,
    /// Whether it runs as an ordinary program; otherwise under `SCHED_FIFO` if permitted.
    pub ordinary: bool,
}

/// Permitted frequency of misses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Tolerance {
    /// At most this share of all events: 0.001 for p99.9.
    Share(f64),
    /// At most this number of misses in this time.
    Rate(f64, Nanos),
}

/// The default tolerance.
const USUAL: Tolerance = Tolerance::Share(0.001);
/// The part of a buffer's period that may be lateness; the rest is for the program that fills the buffer.
const BUFFER_SHARE: i64 = 2;
/// Examples of requirements, for errors.
const FORMS: &str =
    "write loop 1kHz jitter 50us, react 100us, delay 10us within 200ns, audio 48kHz/64 or record 400MB/s for 2h";
/// The periods that can be tried: from a minute to a microsecond.
const PERIODS: (Nanos, Nanos) = (Nanos::from_micros(1), Nanos::from_secs(60));

impl Requirement {
    /// The job in words: `a loop of 1 kHz`.
    pub fn subject(&self) -> String {
        match self.workload {
            Workload::Loop(period) => format!("a loop with a period of {period}"),
            Workload::Reaction(source) => format!("a reaction to {}", source.people()),
            Workload::Delay(request) => format!("a delay of {request}"),
            Workload::Gaps => "a polling loop".to_owned(),
        }
    }

    /// The settings that should help a program to meet the requirement: no idle states, and either real-time priority
    /// or, for an ordinary program, timers without slack. A [`doctor`](crate::doctor) finds out whether they help on
    /// this computer.
    pub fn settings(&self) -> Vec<Choice> {
        let priority = if self.ordinary { "slack=1us" } else { "policy=fifo:80" };
        ["idle=off", priority].into_iter().filter_map(|text| text.parse().ok()).collect()
    }

    /// The time in which misses are counted, in words; none if they are a share of all events.
    pub fn per(&self) -> Option<String> {
        match self.tolerance {
            Tolerance::Share(_) => None,
            Tolerance::Rate(_, per) => Some(long(per)),
        }
    }

    /// The permitted frequency of misses, in words: `0.1 %`, `1 in 8 h`.
    pub fn permitted(&self) -> String {
        match self.tolerance {
            Tolerance::Share(share) => format!("{} %", shown(share * 100.0)),
            Tolerance::Rate(misses, per) => format!("{} in {}", shown(misses), long(per)),
        }
    }

    /// The limit in words: `late by at most 50 µs in 99.9 % of the periods`.
    pub fn demand(&self) -> String {
        let Self { limit, tolerance, .. } = self;
        let (verb, plural) = match self.workload {
            Workload::Loop(_) => ("late by at most", "periods"),
            Workload::Reaction(_) => ("done within", "events"),
            Workload::Delay(_) => ("late by at most", "delays"),
            Workload::Gaps => ("held up for at most", "gaps"),
        };
        match tolerance {
            Tolerance::Share(share) => {
                format!("{verb} {limit} in {} % of the {plural}", shown((1.0 - share) * 100.0))
            }
            Tolerance::Rate(misses, per) => format!("{verb} {limit}, except {} in {}", shown(*misses), long(*per)),
        }
    }
}

/// A span in hours or days where it is a whole number of them.
fn long(span: Nanos) -> String {
    let units = [("d", 86_400_000_000_000), ("h", 3_600_000_000_000), ("min", 60_000_000_000)];
    let whole = units.into_iter().find(|(_, length)| span.count() % length == 0);
    whole.map_or_else(|| span.to_string(), |(unit, length)| format!("{} {unit}", span.count() / length))
}

/// A number without noise in its last digits.
fn shown(number: f64) -> String {
    let text = format!("{number:.9}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}, {}{}",
            self.subject(),
            self.demand(),
            if self.ordinary { ", as an ordinary program" } else { "" }
        )
    }
}

impl FromStr for Requirement {
    type Err = DescriptionError;

    fn from_str(text: &str) -> Result<Self, DescriptionError> {
        let mut words = Words::of(text);
        let kind = words.next(FORMS)?;
        let mut limit = Nanos::ZERO;
        let workload = match kind.text() {
            "loop" => {
                let period = period(words.next("write how often it runs, like 1kHz, or its period, like 250us")?)?;
                words.word("jitter", "write `jitter` and the greatest lateness, like jitter 50us")?;
                Workload::Loop(period)
            }
            "react" => {
                let source = match words.skip("to") {
                    true => source(words.next("write what it reacts to, like to udp")?)?,
                    false => ReactionSource::Eventfd,
                };
                Workload::Reaction(source)
            }
            "delay" => {
                let request = span(words.next("write the delay, like 10us")?)?;
                words.word("within", "write `within` and the greatest lateness, like within 200ns")?;
                Workload::Delay(request)
            }
            "audio" => {
                let period = audio(words.next("write rate and frames of a buffer, like 48kHz/64")?)?;
                limit = Nanos::new(period.count() / BUFFER_SHARE);
                Workload::Loop(period)
            }
            _ => return Err(kind.wrong(FORMS)),
        };
        if kind.text() != "audio" {
            limit = span(words.next("write the limit, like 50us")?)?;
        }
        let (mut tolerance, mut ordinary, mut lasting) = (None, None, None);
        while let Some(word) = words.left.pop_front() {
            let again = || word.wrong("this is said twice");
            match word.text() {
                "ordinary" | "fifo" => {
                    if ordinary.replace(word.text() == "ordinary").is_some() {
                        return Err(again());
                    }
                }
                "misses" => {
                    let rate = rate(words.next("write how many misses in what time, like 1/h")?)?;
                    if tolerance.replace(rate).is_some() {
                        return Err(again());
                    }
                }
                "for" => {
                    let span = span(words.next("write how long the job runs, like 8h")?)?;
                    if lasting.replace((word, span)).is_some() {
                        return Err(again());
                    }
                }
                text if text.starts_with('p') => {
                    if tolerance.replace(quantile(word)?).is_some() {
                        return Err(again());
                    }
                }
                _ => return Err(word.wrong("write p99.9, misses 1/h, for 8h, ordinary or fifo here")),
            }
        }
        if let Some((word, span)) = lasting {
            // One miss in the whole job, unless a rate is given: then the job's length does not matter.
            match tolerance {
                None => tolerance = Some(Tolerance::Rate(1.0, span)),
                Some(Tolerance::Rate(..)) => {}
                Some(Tolerance::Share(_)) => {
                    return Err(
                        word.wrong("a percentile does not count misses over time: leave this out, or write misses 1/h")
                    );
                }
            }
        }
        Ok(Self { workload, limit, tolerance: tolerance.unwrap_or(USUAL), ordinary: ordinary.unwrap_or(false) })
    }
}

/// The rest of a requirement's words.
pub(super) struct Words<'t> {
    left: VecDeque<Snippet<'t>>,
    end: Snippet<'t>,
}

impl<'t> Words<'t> {
    /// A number and a unit after it are one word.
    pub(super) fn of(text: &'t str) -> Self {
        let whole = Snippet::of(text);
        let mut left: VecDeque<Snippet<'t>> = VecDeque::new();
        for word in whole.words() {
            match left.back_mut() {
                Some(number) if is_number(number.text()) && word.text().starts_with(char::is_alphabetic) => {
                    *number = number.to(word);
                }
                _ => left.push_back(word),
            }
        }
        Self { left, end: whole.end() }
    }

    /// The next word; if there is none, an error at the end that names the expected syntax.
    pub(super) fn next(&mut self, write: &str) -> Result<Snippet<'t>, DescriptionError> {
        self.left.pop_front().ok_or_else(|| self.end.wrong(write))
    }

    /// Requires this word.
    pub(super) fn word(&mut self, wanted: &str, write: &str) -> Result<(), DescriptionError> {
        let word = self.next(write)?;
        if word.text() == wanted { Ok(()) } else { Err(word.wrong(write)) }
    }

    /// Requires the end; otherwise an error at the next word.
    pub(super) fn end(&self, write: &str) -> Result<(), DescriptionError> {
        self.left.front().map_or(Ok(()), |word| Err(word.wrong(write)))
    }

    /// An error after the last word.
    pub(super) fn after(&self, write: &str) -> DescriptionError {
        self.end.wrong(write)
    }

    /// Reads this word if it comes next.
    fn skip(&mut self, wanted: &str) -> bool {
        let comes = self.left.front().is_some_and(|word| word.text() == wanted);
        if comes {
            self.left.pop_front();
        }
        comes
    }
}

fn is_number(text: &str) -> bool {
    text.parse::<f64>().is_ok()
}

/// A span above zero.
pub(super) fn span(word: Snippet<'_>) -> Result<Nanos, DescriptionError> {
    let span: Nanos = word.parse()?;
    if span > Nanos::ZERO { Ok(span) } else { Err(word.wrong("write a span above zero, like 50us")) }
}

/// A frequency in hertz.
fn frequency(text: &str) -> Option<f64> {
    let text = text.trim();
    let (number, unit) = text.split_at(text.find(|c: char| c.is_ascii_alphabetic())?);
    let factor = match unit {
        "Hz" => 1.0,
        "kHz" => 1e3,
        "MHz" => 1e6,
        _ => return None,
    };
    let hertz = number.trim().parse::<f64>().ok()? * factor;
    (hertz.is_finite() && hertz > 0.0).then_some(hertz)
}

/// The period of a loop, from its period or its frequency.
fn period(word: Snippet<'_>) -> Result<Nanos, DescriptionError> {
    let period = match frequency(word.text()) {
        Some(hertz) => Nanos::new((1e9 / hertz).round() as i64),
        None => word.parse_or("write how often it runs, like 1kHz, or its period, like 250us")?,
    };
    let (least, most) = PERIODS;
    if (least..=most).contains(&period) {
        Ok(period)
    } else {
        Err(word.wrong(format!("write a period from {least} to {most}")))
    }
}

/// The period of a buffer, from `RATE/FRAMES`.
fn audio(word: Snippet<'_>) -> Result<Nanos, DescriptionError> {
    const WRITE: &str = "write rate and frames of a buffer, like 48kHz/64";
    let (rate, frames) = word.split_first('/').ok_or_else(|| word.wrong(WRITE))?;
    let rate = frequency(rate.text()).ok_or_else(|| rate.wrong(WRITE))?;
    let count: u32 = frames.parse_or(WRITE)?;
    let period = Nanos::new((f64::from(count) * 1e9 / rate).round() as i64);
    let (least, most) = PERIODS;
    if (least..=most).contains(&period) {
        Ok(period)
    } else {
        Err(word.wrong(format!("this buffer lasts {period}: write one of {least} to {most}")))
    }
}

fn source(word: Snippet<'_>) -> Result<ReactionSource, DescriptionError> {
    let named = ReactionSource::ALL.into_iter().find(|source| source.segment() == word.text());
    named.ok_or_else(|| {
        let names: Vec<&str> = ReactionSource::ALL.iter().map(|source| source.segment()).collect();
        word.wrong(format!("write one of {}", names.join(", ")))
    })
}

/// `p99.9`: the share of events that may exceed the limit.
fn quantile(word: Snippet<'_>) -> Result<Tolerance, DescriptionError> {
    let percent = word.text().strip_prefix('p').and_then(|number| number.parse::<f64>().ok());
    let beyond = percent.map(|percent| (100.0 - percent) / 100.0);
    match beyond.filter(|beyond| (1e-9..1.0).contains(beyond)) {
        Some(beyond) => Ok(Tolerance::Share(beyond)),
        None => Err(word.wrong("write a percentile below 100, like p99.9; no measurement can show 100 %")),
    }
}

/// `1/h`, `2/10min`.
fn rate(word: Snippet<'_>) -> Result<Tolerance, DescriptionError> {
    const WRITE: &str = "write how many misses in what time, like 1/h or 3/10min";
    let (misses, per) = word.split_first('/').ok_or_else(|| word.wrong(WRITE))?;
    let count: f64 = misses.parse_or(WRITE)?;
    if !(count.is_finite() && count > 0.0) {
        return Err(misses.wrong("write at least one: no measurement can show that there will be none"));
    }
    // `h` alone is an hour.
    let span: Option<Nanos> = per.text().parse().ok().or_else(|| format!("1{}", per.text()).parse().ok());
    match span.filter(|span| *span > Nanos::ZERO) {
        Some(span) => Ok(Tolerance::Rate(count, span)),
        None => Err(per.wrong(WRITE)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn reads(text: &str, shown: &str) {
        let requirement: Requirement = text.parse().unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(requirement.to_string(), shown);
    }

    #[test]
    fn requirements_are_read_as_people_write_them() {
        reads("loop 1kHz jitter 50us", "a loop with a period of 1 ms, late by at most 50 µs in 99.9 % of the periods");
        reads(
            "loop 1 kHz, jitter 50 us",
            "a loop with a period of 1 ms, late by at most 50 µs in 99.9 % of the periods",
        );
        reads(
            "loop 250us jitter 20us misses 1/h ordinary",
            "a loop with a period of 250 µs, late by at most 20 µs, except 1 in 1 h, as an ordinary program",
        );
        reads("loop 1kHz jitter 50us for 8h", "a loop with a period of 1 ms, late by at most 50 µs, except 1 in 8 h");
        reads("react 100us p99.99", "a reaction to an eventfd, done within 100 µs in 99.99 % of the events");
        reads("react to udp 1ms", "a reaction to a UDP datagram, done within 1 ms in 99.9 % of the events");
        reads("delay 10us within 200ns", "a delay of 10 µs, late by at most 200 ns in 99.9 % of the delays");
        reads(
            "audio 48kHz/64",
            "a loop with a period of 1.333 ms, late by at most 666.666 µs in 99.9 % of the periods",
        );
    }

    #[track_caller]
    fn points(text: &str, at: &str, why: &str) {
        let error = text.parse::<Requirement>().expect_err("no requirement");
        assert_eq!(&text[error.place()], at, "{error}");
        assert!(error.why().contains(why), "{error}");
    }

    #[test]
    fn an_error_points_at_the_word() {
        points("", "", "loop 1kHz jitter 50us");
        points("lop 1kHz jitter 50us", "lop", "loop 1kHz jitter 50us");
        points("loop 1kHz", "", "jitter 50us");
        points("loop 1kHz late 50us", "late", "jitter");
        points("loop 1THz jitter 50us", "1THz", "1kHz");
        points("loop 2MHz jitter 50us", "2MHz", "a period from");
        points("loop 1kHz jitter 50", "50", "unit");
        points("loop 1kHz jitter 0us", "0us", "above zero");
        points("react to thunder 1ms", "thunder", "eventfd");
        points("react 100us p100", "p100", "no measurement can show 100 %");
        points("react 100us p99 p99", "p99", "twice");
        points("loop 1kHz jitter 50us misses 0/h", "0", "at least one");
        points("loop 1kHz jitter 50us p99 for 8h", "for", "does not count misses over time");
        points("audio 48kHz", "48kHz", "48kHz/64");
        points("loop 1kHz jitter 50us never", "never", "p99.9");
    }
}
