//! [`Choice`]: a tunable with a value, in text form: `idle=off`, `policy=fifo:80`, `cpu=0+2`,
//! `disk-scheduler:sda=none`.

use std::fmt;
use std::str::FromStr;

use hairspring_machine::{Cpu, CpuSet, Nanos, Policy};

use crate::catalogue::{Interface, Tunable};

/// A tunable and the value chosen for it.
#[derive(Clone, Debug)]
pub struct Choice {
    tunable: &'static Tunable,
    /// Selects one file of several, by the text of the pattern's last `*`.
    only: Option<String>,
    text: String,
    pub(crate) value: Value,
}

/// The parsed value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    Slack(Nanos),
    Policy(Policy),
    Cpus(CpuSet),
    Nice(i32),
    IdleUs(u32),
    PriorityLimit(u64),
    /// In bytes; none means no limit.
    LockLimit(Option<u64>),
    NoHugePages(bool),
    /// The text for files. The kernel decides whether it is valid.
    File(String),
}

/// Why a text is not a choice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChoiceError {
    /// The text has no `=`.
    NoValue(String),
    /// No setting has this id; contains the one with the most similar name, if any.
    Unknown(String, Option<&'static str>),
    /// The setting is advice: it cannot be applied here. The text describes how to apply it.
    Advice(&'static str, &'static str),
    /// The text selects one file of a setting that has only one.
    NotSeveral(&'static str, String),
    /// The setting takes other values.
    Value(&'static str, String, &'static str),
}

impl fmt::Display for ChoiceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoValue(text) => write!(f, "`{text}` has no value: write {text}=VALUE"),
            Self::Unknown(id, near) => {
                write!(f, "no setting is called `{id}`")?;
                match near {
                    Some(near) => write!(f, "; did you mean `{near}`?"),
                    None => f.write_str("; `hairspring settings` lists them"),
                }
            }
            Self::Advice(id, how) => write!(f, "`{id}` cannot be set for a program: {how}"),
            Self::NotSeveral(id, only) => {
                write!(f, "`{id}:{only}` names one of several, and `{id}` is only one: write {id}=VALUE")
            }
            Self::Value(id, value, values) => write!(f, "`{value}` is not a value for `{id}`: it takes {values}"),
        }
    }
}

impl std::error::Error for ChoiceError {}

impl Choice {
    /// The setting.
    pub fn tunable(&self) -> &'static Tunable {
        self.tunable
    }

    /// The value as written.
    pub fn value(&self) -> &str {
        &self.text
    }

    /// The files that take the value; none if the setting is not a file.
    pub fn files(&self) -> Option<String> {
        let Interface::Files(pattern) = self.tunable.interface else { return None };
        match (&self.only, pattern.rsplit_once('*')) {
            (Some(only), Some((before, after))) => Some(format!("{before}{only}{after}")),
            _ => Some(pattern.to_owned()),
        }
    }

    /// Whether both are values of the same setting.
    pub(crate) fn replaces(&self, other: &Self) -> bool {
        self.tunable.id == other.tunable.id && self.only == other.only
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let colon = if self.only.is_some() { ":" } else { "" };
        write!(f, "{}{colon}{}={}", self.tunable.id, self.only.as_deref().unwrap_or_default(), self.text)
    }
}

impl FromStr for Choice {
    type Err = ChoiceError;

    fn from_str(text: &str) -> Result<Self, ChoiceError> {
        let (id, value) = text.split_once('=').ok_or_else(|| ChoiceError::NoValue(text.to_owned()))?;
        let (id, only) = id.split_once(':').map_or((id, None), |(id, only)| (id, Some(only)));
        let tunable = Tunable::find(id).ok_or_else(|| ChoiceError::Unknown(id.to_owned(), nearest(id)))?;
        let understood = match tunable.interface {
            Interface::Advice(how) => return Err(ChoiceError::Advice(tunable.id, how)),
            Interface::Files(_) => file_value(value),
            Interface::Call(_) => call_value(tunable.id, value),
        };
        if let Some(only) = only {
            let several = matches!(tunable.interface, Interface::Files(pattern) if pattern.contains('*'));
            // A part of a file name without slashes, so that it cannot leave the pattern's folder.
            let name = |char: char| char.is_ascii_alphanumeric() || matches!(char, '-' | '_');
            if !several || only.is_empty() || !only.chars().all(name) {
                return Err(ChoiceError::NotSeveral(tunable.id, only.to_owned()));
            }
        }
        let wrong = || ChoiceError::Value(tunable.id, value.to_owned(), tunable.values);
        let only = only.map(str::to_owned);
        Ok(Self { tunable, only, text: value.to_owned(), value: understood.ok_or_else(wrong)? })
    }
}

/// One line of printable text; these files take no more.
fn file_value(text: &str) -> Option<Value> {
    let fits = !text.is_empty() && text.len() <= 4096 && text.chars().all(|char| !char.is_control());
    fits.then(|| Value::File(text.to_owned()))
}

fn call_value(id: &str, text: &str) -> Option<Value> {
    match id {
        "slack" => span(text).filter(|slack| *slack > Nanos::ZERO).map(Value::Slack),
        "policy" => policy(text).map(Value::Policy),
        "cpu" => {
            let cpus: Option<Vec<Cpu>> = text.split('+').map(|cpu| cpu.parse().ok().map(Cpu)).collect();
            cpus.map(|cpus| Value::Cpus(CpuSet(cpus)))
        }
        "nice" => text.parse().ok().filter(|nice| (-20..=19).contains(nice)).map(Value::Nice),
        "rtprio-limit" => text.parse().ok().filter(|limit| *limit <= 99).map(Value::PriorityLimit),
        "memlock-limit" if text == "unlimited" => Some(Value::LockLimit(None)),
        "memlock-limit" => text.parse().ok().map(|bytes| Value::LockLimit(Some(bytes))),
        "no-huge-pages" => match text {
            "yes" => Some(Value::NoHugePages(true)),
            "no" => Some(Value::NoHugePages(false)),
            _ => None,
        },
        "idle" if text == "off" => Some(Value::IdleUs(0)),
        "idle" => {
            let span = span(text)?.count();
            u32::try_from(span / 1_000).ok().filter(|_| span % 1_000 == 0).map(Value::IdleUs)
        }
        _ => None,
    }
}

fn policy(text: &str) -> Option<Policy> {
    let priority = |text: &str| text.parse().ok().filter(|priority| (1..=99).contains(priority));
    match text.split_once(':') {
        None => (text == "other").then_some(Policy::Other),
        Some(("fifo", number)) => priority(number).map(Policy::Fifo),
        Some(("rr", number)) => priority(number).map(Policy::RoundRobin),
        Some(_) => None,
    }
}

fn span(text: &str) -> Option<Nanos> {
    text.parse::<Nanos>().ok().filter(|span| !span.is_negative())
}

/// The id that differs from this one least: at most two letters changed, left out or added.
fn nearest(id: &str) -> Option<&'static str> {
    let near = Tunable::all().map(|tunable| (strsim::levenshtein(id, tunable.id), tunable.id)).min()?;
    (near.0 <= 2).then_some(near.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Result<Value, String> {
        text.parse::<Choice>().map(|choice| choice.value).map_err(|error| error.to_string())
    }

    #[test]
    fn choices_are_understood() {
        let cpus = |cpus: &[u32]| Value::Cpus(CpuSet(cpus.iter().copied().map(Cpu).collect()));
        for (text, expected) in [
            ("idle=off", Value::IdleUs(0)),
            ("idle=10us", Value::IdleUs(10)),
            ("policy=fifo:80", Value::Policy(Policy::Fifo(80))),
            ("policy=rr:1", Value::Policy(Policy::RoundRobin(1))),
            ("policy=other", Value::Policy(Policy::Other)),
            ("cpu=1", cpus(&[1])),
            ("cpu=0+2", cpus(&[0, 2])),
            ("slack=1us", Value::Slack(Nanos::from_micros(1))),
            ("nice=-5", Value::Nice(-5)),
            ("rtprio-limit=99", Value::PriorityLimit(99)),
            ("memlock-limit=unlimited", Value::LockLimit(None)),
            ("memlock-limit=4096", Value::LockLimit(Some(4096))),
            ("no-huge-pages=yes", Value::NoHugePages(true)),
            ("rt-throttling=-1", Value::File("-1".to_owned())),
            ("disk-scheduler:sda=none", Value::File("none".to_owned())),
        ] {
            assert_eq!(value(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_choice_says_what_would_be_one() {
        for (text, says) in [
            ("idle", "write idle=VALUE"),
            ("idel=off", "did you mean `idle`?"),
            ("zzzzzzzz=1", "`hairspring settings` lists them"),
            ("policy=fifo:100", "it takes fifo:1..99, rr:1..99 or other"),
            ("policy=fifo", "it takes fifo:1..99"),
            ("slack=0ns", "is not a value for `slack`"),
            ("idle=1ns", "is not a value for `idle`"),
            ("cpu=", "is not a value for `cpu`"),
            ("nice=20", "it takes -20..19"),
            ("swappiness=", "is not a value"),
            ("swappiness=1\n2", "is not a value"),
            ("firmware=x", "cannot be set for a program"),
            ("rtprio-limit=100", "it takes 0..99"),
            ("swappiness:1=10", "`swappiness` is only one"),
            ("idle:1=off", "`idle` is only one"),
            ("disk-scheduler:=none", "names one of several"),
            ("disk-scheduler:../x=none", "names one of several"),
        ] {
            let error = value(text).expect_err(text);
            assert!(error.contains(says), "{text}: {error}");
        }
    }

    #[test]
    fn one_file_of_several_can_be_named() {
        let files = |text: &str| text.parse::<Choice>().expect("a choice").files();
        assert_eq!(files("idle-state:2=1").as_deref(), Some("/sys/devices/system/cpu/cpu*/cpuidle/state2/disable"));
        assert_eq!(files("interrupt-cpus:41=0").as_deref(), Some("/proc/irq/41/smp_affinity_list"));
        assert_eq!(files("swappiness=10").as_deref(), Some("/proc/sys/vm/swappiness"));
        assert_eq!(files("idle=off"), None);
    }

    #[test]
    fn every_setting_that_can_be_applied_is_understood() {
        for tunable in Tunable::all().filter(|tunable| matches!(tunable.interface, Interface::Call(_))) {
            let some = ["1us", "fifo:1", "1", "off", "yes"].iter().any(|text| call_value(tunable.id, text).is_some());
            assert!(some, "{} takes no value", tunable.id);
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_a_choice_or_an_error(text in ".{0,40}") {
            if let Ok(choice) = text.parse::<Choice>() {
                proptest::prop_assert_eq!(choice.to_string(), text);
            }
        }
    }
}
