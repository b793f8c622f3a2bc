//! Triggered acquisition: keeps the frames of a stream around events.
//!
//! A [`Trigger`] is a level, an edge, or a call from outside. A [`Gate`] watches the stream for it and decides for each
//! frame whether to keep it. A shot is `pre` frames before the trigger and `post` frames from the trigger on.
//!
//! ```text
//!             pre      post             pre      post
//!          ├───────┼─────────┤       ├───────┼─────────┤
//!   ───────┴───────T─────────┴───────┴───────T─────────┴─────
//!          │ shot 0          │       │ shot 1          │
//! ```
//!
//! As text: `level:ch0>0.5`, `level:ch1<-0.2`, `rising:ch0@0.5` (or `edge:ch0/0.5`), `falling:ch0@0.5` (or
//! `edge:ch0\0.5`), each edge with an optional hysteresis (`rising:ch0@0.5~0.05`), and `external`. A level is a part of
//! the full scale from −1 to 1, or a value as it is stored: `100cnt`. The full scale of `n` bits is 2^(n−1) counts;
//! unsigned containers have their middle at 0; digital lines are 0 or 1, floating-point values are taken as they are.

mod external;
mod gate;
mod probe;

use std::fmt;
use std::str::FromStr;

use hairspring_ring::layout::{Container, Layout};

pub use external::ExternalTrigger;
pub use gate::{Decision, Gate};

/// The event that starts a shot.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Trigger {
    /// A channel is beyond a level.
    Level {
        /// Which channel, from 0.
        channel: u32,
        /// The side of the level.
        side: Side,
        /// The level.
        level: Level,
    },
    /// A channel crosses a level.
    Edge {
        /// Which channel, from 0.
        channel: u32,
        /// The direction.
        slope: Slope,
        /// The level that it reaches.
        level: Level,
        /// Hysteresis: between two edges the signal must go this far beyond the other side of the level, so that noise
        /// makes no edges.
        hysteresis: Level,
    },
    /// A call from outside, through an [`ExternalTrigger`].
    External,
}

/// The side of a level, the level itself excluded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Greater than the level.
    Above,
    /// Less than the level.
    Below,
}

/// The direction of an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slope {
    /// From below the level to the level or above it.
    Rising,
    /// From above the level to the level or below it.
    Falling,
}

/// A value of a sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Level {
    /// As a part of the full scale, −1 to 1.
    FullScale(f64),
    /// As the number that is stored.
    Counts(f64),
}

/// Number of shots of a trigger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shots {
    /// Once.
    Single,
    /// Again as soon as a shot is over, up to this number of shots or without end.
    Repeated(Option<u64>),
}

impl Shots {
    /// The most shots; `None` for no limit.
    pub fn limit(self) -> Option<u64> {
        match self {
            Self::Single => Some(1),
            Self::Repeated(limit) => limit,
        }
    }
}

/// Triggers that made no shot, or an incomplete one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Missed {
    /// Shots that were lost entirely in gaps. They have no number.
    pub lost_shots: u64,
    /// Shots that lack frames before their trigger, because the trigger came too early after the beginning, a gap or
    /// the shot before.
    pub short_shots: u64,
    /// Calls from outside during a shot, or for frames that never came.
    pub ignored_calls: u64,
    /// Calls from outside that were refused because too many calls waited.
    pub refused_calls: u64,
}

impl Missed {
    /// Each count with its stable name in files and JSON.
    pub fn named(&self) -> [(&'static str, u64); 4] {
        let Self { lost_shots, short_shots, ignored_calls, refused_calls } = *self;
        [
            ("lost_shots", lost_shots),
            ("short_shots", short_shots),
            ("ignored_calls", ignored_calls),
            ("refused_calls", refused_calls),
        ]
    }

    /// From the counts in the order of [`Missed::named`].
    #[inline]
    pub fn of([lost_shots, short_shots, ignored_calls, refused_calls]: [u64; 4]) -> Self {
        Self { lost_shots, short_shots, ignored_calls, refused_calls }
    }

    /// The counts that are not zero, for people.
    pub fn remarks(&self) -> Vec<String> {
        let texts = [
            ("shot", "lost as a whole"),
            ("shot", "without all frames before the trigger"),
            ("trigger from outside", "ignored during a shot or without frames"),
            ("trigger from outside", "refused because too many waited"),
        ];
        let told = self.named().into_iter().zip(texts).filter(|((_, count), _)| *count > 0);
        told.map(|((_, count), (noun, text))| {
            let noun = if count == 1 {
                noun.to_owned()
            } else {
                noun.replacen("shot", "shots", 1).replacen("trigger", "triggers", 1)
            };
            format!("{count} {noun} {text}")
        })
        .collect()
    }
}

/// Why a trigger is invalid or can never fire, and what to write instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TriggerError(String);

impl fmt::Display for TriggerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for TriggerError {}

impl Level {
    /// The smallest and largest value that a sample of this layout can have.
    fn range(layout: Layout) -> (f64, f64) {
        let full = 2_f64.powi(i32::try_from(layout.resolution_bits()).unwrap_or(32));
        match layout.container() {
            Container::Bits => (0.0, 1.0),
            Container::F32 | Container::F64 => (f64::from(f32::MIN), f64::from(f32::MAX)),
            Container::U8 | Container::U16 | Container::U32 => (0.0, full - 1.0),
            _ => (-full / 2.0, full / 2.0 - 1.0),
        }
    }

    /// As the number that is stored.
    fn counts(self, layout: Layout) -> f64 {
        let half = 2_f64.powi(i32::try_from(layout.resolution_bits()).unwrap_or(32) - 1);
        match (self, layout.container()) {
            (Self::Counts(counts), _) => counts,
            (Self::FullScale(part), Container::Bits | Container::F32) => part,
            (Self::FullScale(part), Container::U8 | Container::U16) => (part + 1.0) * half,
            (Self::FullScale(part), _) => part * half,
        }
    }

    /// As a distance between two numbers that are stored.
    fn distance(self, layout: Layout) -> f64 {
        self.counts(layout) - Self::FullScale(0.0).counts(layout) * f64::from(u8::from(!self.is_counts()))
    }

    fn is_counts(self) -> bool {
        matches!(self, Self::Counts(_))
    }

    fn parse(text: &str) -> Result<Self, TriggerError> {
        let number = |text: &str| text.trim().parse::<f64>().ok().filter(|number| number.is_finite());
        let level = match text.trim().strip_suffix("cnt") {
            Some(counts) => number(counts).map(Self::Counts),
            None => number(text).map(Self::FullScale),
        };
        match level {
            Some(Self::FullScale(part)) if !(-1.0..=1.0).contains(&part) => Err(TriggerError(format!(
                "the level '{text}' is beyond the full scale: write a part of it from -1 to 1, or counts as 100cnt"
            ))),
            Some(level) => Ok(level),
            None => Err(TriggerError(format!(
                "'{text}' is not a level: write a part of the full scale as 0.5 or -0.25, or counts as 100cnt"
            ))),
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::FullScale(part) => write!(f, "{part}"),
            Self::Counts(counts) => write!(f, "{counts}cnt"),
        }
    }
}

impl Trigger {
    /// The channel that it watches; `None` for an external trigger.
    pub fn channel(&self) -> Option<u32> {
        match self {
            Self::Level { channel, .. } | Self::Edge { channel, .. } => Some(*channel),
            Self::External => None,
        }
    }
}

impl fmt::Display for Trigger {
    /// As it is written on the command line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Level { channel, side, level } => {
                let sign = if *side == Side::Above { '>' } else { '<' };
                write!(f, "level:ch{channel}{sign}{level}")
            }
            Self::Edge { channel, slope, level, hysteresis } => {
                let name = if *slope == Slope::Rising { "rising" } else { "falling" };
                write!(f, "{name}:ch{channel}@{level}")?;
                let (Level::FullScale(width) | Level::Counts(width)) = *hysteresis;
                if width > 0.0 { write!(f, "~{hysteresis}") } else { Ok(()) }
            }
            Self::External => f.write_str("external"),
        }
    }
}

impl FromStr for Trigger {
    type Err = TriggerError;

    fn from_str(text: &str) -> Result<Self, TriggerError> {
        let unknown = || {
            TriggerError(format!(
                "'{text}' is not a trigger: write level:ch0>0.5, level:ch0<-0.5, rising:ch0@0.5, falling:ch0@0.5~0.1 or external"
            ))
        };
        let text = text.trim();
        if text == "external" {
            return Ok(Self::External);
        }
        let (kind, rest) = text.split_once(':').ok_or_else(unknown)?;
        let rest = rest.trim().strip_prefix("ch").ok_or_else(unknown)?;
        let digits = rest.find(|c: char| !c.is_ascii_digit()).ok_or_else(unknown)?;
        let channel = rest[..digits].parse().map_err(|_| unknown())?;
        let mut behind = rest[digits..].trim_start().chars();
        let sign = behind.next().ok_or_else(unknown)?;
        let value = behind.as_str();
        let edge = |slope| {
            let (level, hysteresis) = value.split_once('~').unwrap_or((value, "0"));
            let (level, hysteresis) = (Level::parse(level)?, Level::parse(hysteresis)?);
            let (Level::FullScale(width) | Level::Counts(width)) = hysteresis;
            if width < 0.0 {
                return Err(TriggerError(format!("the hysteresis {hysteresis} is negative: write its width")));
            }
            Ok(Self::Edge { channel, slope, level, hysteresis })
        };
        match (kind.trim(), sign) {
            ("level", '>') => Ok(Self::Level { channel, side: Side::Above, level: Level::parse(value)? }),
            ("level", '<') => Ok(Self::Level { channel, side: Side::Below, level: Level::parse(value)? }),
            ("rising", '@') | ("edge", '/') => edge(Slope::Rising),
            ("falling", '@') | ("edge", '\\') => edge(Slope::Falling),
            _ => Err(unknown()),
        }
    }
}

impl FromStr for Shots {
    type Err = TriggerError;

    /// Reads `single`, `repeated`, or the number of shots.
    fn from_str(text: &str) -> Result<Self, TriggerError> {
        match text.trim() {
            "single" => Ok(Self::Single),
            "repeated" => Ok(Self::Repeated(None)),
            text => match text.parse::<u64>() {
                Ok(shots) if shots > 0 => Ok(Self::Repeated(Some(shots))),
                _ => Err(TriggerError(format!(
                    "'{text}' is not a number of shots: write single, repeated, or 1 and more"
                ))),
            },
        }
    }
}

impl fmt::Display for Shots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Single => f.write_str("single"),
            Self::Repeated(None) => f.write_str("repeated"),
            Self::Repeated(Some(shots)) => write!(f, "{shots}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn triggers_are_read_and_written_alike() {
        for text in [
            "level:ch0>0.5",
            "level:ch11<-0.25",
            "level:ch1>100cnt",
            "rising:ch0@0.5",
            "falling:ch3@-3cnt~2cnt",
            "rising:ch0@0~0.05",
            "external",
        ] {
            let trigger: Trigger = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(trigger.to_string(), text);
        }
        assert_eq!("edge:ch0/0.5".parse::<Trigger>(), "rising:ch0@0.5".parse());
        assert_eq!("edge:ch0\\0.5 ~ 0.1".parse::<Trigger>(), "falling:ch0@0.5~0.1".parse());
        for text in ["single", "repeated", "7"] {
            assert_eq!(text.parse::<Shots>().map(|shots| shots.to_string()), Ok(text.to_owned()));
        }
    }

    #[test]
    fn what_is_no_trigger_is_refused_with_what_to_write() {
        for wrong in [
            "",
            "level",
            "level:",
            "level:ch",
            "level:ch0",
            "level:ch0=1",
            "level:ch0>",
            "level:ch0>x",
            "level:0>1",
            "level:ch0>nan",
            "level:ch-1>0",
            "rising:ch0>0.5",
            "rising:ch0@0.5~-0.1",
            "level:ch99999999999>0",
            "ch0>0",
            "level:ch0>1.5",
            "level:ch0>inf",
            "level:ch0>cnt",
            "externally",
            "level:ché>1",
        ] {
            let error = wrong.parse::<Trigger>().expect_err(wrong);
            assert!(error.to_string().contains("write"), "{error}");
        }
        for wrong in ["", "0", "-1", "twice"] {
            assert!(wrong.parse::<Shots>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn levels_are_parts_of_the_full_scale_of_the_layout() {
        let signed = Layout::analogue(1, 14).expect("exists");
        let unsigned = Layout::stored_as(1, 8, Container::U8).expect("exists");
        assert_eq!(Level::FullScale(0.5).counts(signed), 4096.0);
        assert_eq!(Level::FullScale(-1.0).counts(unsigned), 0.0);
        assert_eq!(Level::FullScale(0.5).counts(unsigned), 192.0);
        assert_eq!(Level::FullScale(0.5).distance(unsigned), 64.0);
        assert_eq!(Level::Counts(7.0).distance(unsigned), 7.0);
    }
}
