//! The JSON of a recording's metadata, written and read back.

use std::collections::BTreeMap;

use hairspring_machine::{Instant, Nanos};
use serde::{Deserialize, Serialize};

use super::datetime::taken;
use super::version::{self, NAME};
use super::{
    About, Closing, EXTENSION_VERSION, SegmentOf, SigmfError, State, StoredFallback, StoredSegment, clock, datatype,
    paths,
};
use crate::channels::ChannelDescription;
use crate::clock::ClockRecord;
use crate::journal::{GapBounds, RecordingId};
use crate::ledger::{Ledger, RecordingVerdict};
use hairspring_ring::OnOverrun;
use hairspring_ring::gap::{Gap, GapCause, Skip};
use hairspring_ring::layout::{Container, Layout};
use hairspring_ring::units::{Bytes, Frames, SampleRate};
use hairspring_source::Ignored;
use hairspring_source::trigger::Missed;

/// The state of a recording that has not ended.
const RECORDING: &str = "recording";

/// The most gaps and triggers that are also written as annotations, for tools that do not know the extension. The list
/// in `hairspring:result` is complete.
const MOST_ANNOTATIONS: usize = 10_000;

#[derive(Serialize, Deserialize)]
struct Document {
    global: Global,
    captures: Vec<Capture>,
    #[serde(default, skip_deserializing)]
    annotations: Vec<Annotation>,
}

#[derive(Serialize, Deserialize)]
struct Global {
    #[serde(rename = "core:version")]
    version: String,
    #[serde(rename = "core:datatype")]
    datatype: String,
    #[serde(rename = "core:num_channels", default = "one")]
    num_channels: u64,
    #[serde(rename = "core:sample_rate", skip_serializing_if = "Option::is_none")]
    sample_rate: Option<f64>,
    #[serde(rename = "core:hw", default)]
    hardware: String,
    #[serde(rename = "core:recorder", default)]
    recorder: String,
    #[serde(rename = "core:extensions", default)]
    extensions: Vec<Extension>,
    #[serde(rename = "core:collection", default, skip_serializing_if = "Option::is_none")]
    collection: Option<String>,
    #[serde(rename = "hairspring:state")]
    state: Option<String>,
    #[serde(rename = "hairspring:layout")]
    layout: Option<Channels>,
    #[serde(rename = "hairspring:recording")]
    recording: Option<Recording>,
    #[serde(rename = "hairspring:series", skip_serializing_if = "Option::is_none")]
    series: Option<Series>,
    #[serde(rename = "hairspring:channels", default, skip_serializing_if = "Vec::is_empty")]
    channels: Vec<ChannelDescription>,
    #[serde(rename = "hairspring:clock", skip_serializing_if = "Option::is_none")]
    clock: Option<clock::Clock>,
    #[serde(rename = "hairspring:result", skip_serializing_if = "Option::is_none")]
    result: Option<Result>,
}

fn one() -> u64 {
    1
}

#[derive(Serialize, Deserialize)]
struct Extension {
    name: String,
    version: String,
    #[serde(default)]
    optional: bool,
}

#[derive(Serialize, Deserialize)]
struct Channels {
    channels: u32,
    resolution_bits: u32,
    container: String,
}

#[derive(Serialize, Deserialize)]
struct Rate {
    frames: u64,
    seconds: u64,
}

#[derive(Serialize, Deserialize)]
struct Recording {
    id: String,
    member: usize,
    members: Vec<String>,
    /// The same as bytes in hexadecimal digits, if a path is not UTF-8.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    members_bytes: Vec<String>,
    block_bytes: u64,
    rate: Option<Rate>,
    pattern: Option<String>,
    clocked: bool,
    on_overrun: String,
    started_realtime_ns: i64,
    started_monotonic_ns: i64,
    started_within_ns: Option<i64>,
}

#[derive(Serialize, Deserialize)]
struct Series {
    id: String,
    name: String,
    number: u32,
    first_frame: Option<u64>,
    previous: Option<String>,
    #[serde(default)]
    epoch: u16,
    #[serde(default)]
    epoch_frame: u64,
}

#[derive(Serialize, Deserialize)]
struct Result {
    verdict: String,
    reason: String,
    ledger: Ledger,
    gaps: Vec<Hole>,
    skips: Vec<LeftOut>,
    triggers: Vec<Trigger>,
    ladder: Vec<Way>,
    direct_io_proven: bool,
    worst_stall_ns: i64,
    buffer_high_water_bytes: u64,
    buffer_bytes: u64,
    elapsed_ns: i64,
    #[serde(default)]
    ignored_datagrams: BTreeMap<String, u64>,
    #[serde(default)]
    missed_triggers: BTreeMap<String, u64>,
}

#[derive(Serialize, Deserialize)]
struct Hole {
    first_frame: u64,
    frames: u64,
    cause: String,
    found_ns: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    bounds: Option<[u64; 2]>,
}

#[derive(Serialize, Deserialize)]
struct LeftOut {
    first_frame: u64,
    frames: u64,
}

#[derive(Serialize, Deserialize)]
struct Trigger {
    shot: u64,
    frame: u64,
}

#[derive(Serialize, Deserialize)]
struct Way {
    name: String,
    refused: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct Capture {
    #[serde(rename = "core:sample_start")]
    sample_start: u64,
    #[serde(rename = "core:global_index", skip_serializing_if = "Option::is_none")]
    global_index: Option<u64>,
    #[serde(rename = "core:datetime", skip_serializing_if = "Option::is_none")]
    datetime: Option<String>,
    #[serde(rename = "hairspring:frames", skip_serializing_if = "Option::is_none")]
    frames: Option<u64>,
}

impl Capture {
    /// A piece of the file without frames: the block that was planned for it went to another target.
    fn hole(sample_start: u64, frames: u64) -> Self {
        Self { sample_start, global_index: None, datetime: None, frames: Some(frames) }
    }
}

#[derive(Serialize)]
struct Annotation {
    #[serde(rename = "core:sample_start")]
    sample_start: u64,
    #[serde(rename = "core:sample_count")]
    sample_count: u64,
    #[serde(rename = "core:label")]
    label: String,
    #[serde(rename = "core:comment")]
    comment: String,
}

/// Renders the metadata of one member. Without a closing its state is `recording`.
///
/// Segments that follow one another in the file and in the source become one.
pub fn render(about: &About, closing: Option<&Closing>, segments: &[StoredSegment]) -> Vec<u8> {
    let (datatype, num_channels, frames_per_sample) = datatype(about.layout);
    let segments = merged(segments);
    let document = Document {
        global: Global {
            version: "1.2.5".to_owned(),
            datatype: datatype.to_owned(),
            num_channels,
            sample_rate: about.rate.map(|rate| rate.as_hz() / frames_per_sample as f64),
            hardware: about.hardware.clone(),
            recorder: about.software.clone(),
            extensions: vec![Extension {
                name: NAME.to_owned(),
                version: EXTENSION_VERSION.to_owned(),
                optional: true,
            }],
            collection: about.series.as_ref().map(|of| of.name.clone()),
            state: Some(closing.map_or(RECORDING, |closing| closing.state.name()).to_owned()),
            layout: Some(Channels {
                channels: about.layout.channels(),
                resolution_bits: about.layout.resolution_bits(),
                container: about.layout.container().to_string(),
            }),
            recording: Some(recording_of(about)),
            series: about.series.as_ref().map(|of| Series {
                id: of.id.to_string(),
                name: of.name.clone(),
                number: of.number,
                first_frame: of.first.map(|first| first.0),
                previous: of.previous.map(|id| id.to_string()),
                epoch: of.epoch,
                epoch_frame: of.epoch_first.0,
            }),
            channels: about.channels.clone(),
            clock: clock::written(about),
            result: closing.map(result_of),
        },
        captures: captures(about, &segments, frames_per_sample),
        annotations: closing.map(|closing| annotations(closing, &segments, frames_per_sample)).unwrap_or_default(),
    };
    let mut text = serde_json::to_vec_pretty(&document).unwrap_or_else(|_| unreachable!("numbers, texts and lists"));
    text.push(b'\n');
    text
}

fn merged(segments: &[StoredSegment]) -> Vec<StoredSegment> {
    let mut merged: Vec<StoredSegment> = Vec::with_capacity(segments.len());
    for segment in segments.iter().filter(|segment| segment.frames.0 > 0) {
        match merged.last_mut() {
            Some(last)
                if last.sample_start.0 + last.frames.0 == segment.sample_start.0
                    && last.first.0 + last.frames.0 == segment.first.0 =>
            {
                last.frames.0 += segment.frames.0;
            }
            _ => merged.push(*segment),
        }
    }
    merged
}

fn captures(about: &About, segments: &[StoredSegment], frames_per_sample: u64) -> Vec<Capture> {
    let mut captures = Vec::with_capacity(segments.len());
    let mut next = 0;
    for segment in segments {
        if segment.sample_start.0 > next {
            captures.push(Capture::hole(next / frames_per_sample, segment.sample_start.0 - next));
        }
        captures.push(Capture {
            sample_start: segment.sample_start.0 / frames_per_sample,
            global_index: Some(segment.first.0 / frames_per_sample),
            datetime: None,
            frames: Some(segment.frames.0),
        });
        next = segment.sample_start.0 + segment.frames.0;
    }
    if captures.is_empty() {
        captures.push(Capture { sample_start: 0, global_index: None, datetime: None, frames: None });
    }
    if let Some(capture) = captures.iter_mut().find(|capture| segments.is_empty() || capture.global_index.is_some()) {
        let first = segments.first().map_or(Frames(0), |segment| segment.first);
        capture.datetime = taken(about, first);
    }
    captures
}

fn annotations(closing: &Closing, segments: &[StoredSegment], frames_per_sample: u64) -> Vec<Annotation> {
    let mut by_first: Vec<&StoredSegment> = segments.iter().collect();
    by_first.sort_by_key(|segment| segment.first);
    // The place of a frame in this file.
    let place = |frame: u64| {
        let number = by_first.partition_point(|segment| segment.first.0 <= frame).checked_sub(1)?;
        let segment = by_first.get(number)?;
        let into = frame - segment.first.0;
        (into < segment.frames.0).then(|| (segment.sample_start.0 + into) / frames_per_sample)
    };
    let gaps = closing.gaps.iter().filter_map(|gap| {
        let sample_start = place(gap.end().0)?;
        let comment = format!("{} are missing before this one: {}", gap.frames, gap.cause);
        Some(Annotation { sample_start, sample_count: 0, label: "gap".to_owned(), comment })
    });
    let triggers = closing.triggers.iter().filter_map(|(shot, frame)| {
        let sample_start = place(frame.0)?;
        let comment = format!("shot {shot}, frame {} of the source", frame.0);
        Some(Annotation { sample_start, sample_count: 1, label: "trigger".to_owned(), comment })
    });
    let behind = segments.iter().map(|segment| segment.sample_start.0 + segment.frames.0);
    let holes = std::iter::once(0).chain(behind).zip(segments).filter_map(|(end, segment)| {
        let sample_count = segment.sample_start.0.checked_sub(end).filter(|frames| *frames > 0)? / frames_per_sample;
        let comment = "no samples: the block planned for this place is in another file".to_owned();
        Some(Annotation { sample_start: end / frames_per_sample, sample_count, label: "hole".to_owned(), comment })
    });
    let all = gaps.take(MOST_ANNOTATIONS).chain(triggers.take(MOST_ANNOTATIONS)).chain(holes.take(MOST_ANNOTATIONS));
    let mut all: Vec<Annotation> = all.collect();
    all.sort_by_key(|annotation| annotation.sample_start);
    all
}

fn recording_of(about: &About) -> Recording {
    let (members, members_bytes) = paths::written(&about.members);
    Recording {
        id: about.id.to_string(),
        member: about.member,
        members,
        members_bytes,
        block_bytes: about.block.0,
        rate: about.rate.map(SampleRate::as_fraction).map(|(frames, seconds)| Rate { frames, seconds }),
        pattern: about.pattern.clone(),
        clocked: about.clocked,
        on_overrun: about.on_overrun.name().to_owned(),
        started_realtime_ns: about.started_realtime.count(),
        started_monotonic_ns: about.started_monotonic.as_monotonic().count(),
        started_within_ns: about.started_within.map(Nanos::count),
    }
}

fn result_of(closing: &Closing) -> Result {
    let hole = |gap: &Gap| Hole {
        first_frame: gap.first.0,
        frames: gap.frames.0,
        cause: gap.cause.name().to_owned(),
        found_ns: gap.found.as_monotonic().count(),
        bounds: closing.bounds.iter().find(|one| one.first == gap.first).map(|one| [one.least.0, one.most.0]),
    };
    Result {
        verdict: closing.verdict.name().to_owned(),
        reason: closing.reason.clone(),
        ledger: closing.ledger,
        gaps: closing.gaps.iter().map(hole).collect(),
        skips: closing.skips.iter().map(|skip| LeftOut { first_frame: skip.first.0, frames: skip.frames.0 }).collect(),
        triggers: closing.triggers.iter().map(|(shot, frame)| Trigger { shot: *shot, frame: frame.0 }).collect(),
        ladder: closing
            .fallbacks
            .iter()
            .map(|way| Way { name: way.name.clone(), refused: way.refused.clone() })
            .collect(),
        direct_io_proven: closing.direct_io_proven,
        worst_stall_ns: closing.worst_stall.count(),
        buffer_high_water_bytes: closing.buffer_high_water.0,
        buffer_bytes: closing.buffer.0,
        elapsed_ns: closing.elapsed.count(),
        ignored_datagrams: closing.ignored.named().map(|(name, count)| (name.to_owned(), count)).into(),
        missed_triggers: closing.missed.named().map(|(name, count)| (name.to_owned(), count)).into(),
    }
}

/// Reads metadata back. Unknown keys are skipped. The required keys must be present and consistent.
///
/// # Errors
/// See [`SigmfError`].
pub fn parse(bytes: &[u8]) -> std::result::Result<(About, Option<Closing>, Vec<StoredSegment>), SigmfError> {
    let value = |what: &str| SigmfError::Value(what.to_owned());
    // The version comes first, because a newer version need not be readable otherwise.
    version::stated(bytes)?;
    let document: Document = serde_json::from_slice(bytes).map_err(|error| SigmfError::NotSigmf(error.to_string()))?;
    let global = document.global;
    let layout = global.layout.ok_or_else(|| value("it lacks hairspring:layout"))?;
    let recording = global.recording.ok_or_else(|| value("it lacks hairspring:recording"))?;
    let state = global.state.ok_or_else(|| value("it lacks hairspring:state"))?;
    let mut about = about_of(recording, &layout, global.hardware, global.recorder)?;
    about.series = global.series.map(series_of).transpose()?;
    if !matches!(global.channels.len(), 0) && global.channels.len() != about.layout.channels() as usize {
        return Err(value("hairspring:channels has another number of channels than hairspring:layout"));
    }
    about.channels = global.channels;
    about.clock = global.clock.map(clock::read).unwrap_or_default();
    let (expected, num_channels, frames_per_sample) = datatype(about.layout);
    if global.datatype != expected || global.num_channels != num_channels {
        return Err(value("core:datatype and core:num_channels do not fit hairspring:layout"));
    }
    let closing = match (global.result, state.as_str()) {
        (None, RECORDING) => None,
        (Some(result), state) => Some(closing_of(result, state)?),
        (None, _) => return Err(value("it has ended, but lacks hairspring:result")),
    };
    let segments = segments_of(document.captures, frames_per_sample)?;
    Ok((about, closing, segments))
}

fn about_of(
    recording: Recording,
    layout: &Channels,
    hardware: String,
    software: String,
) -> std::result::Result<About, SigmfError> {
    let value = |what: String| SigmfError::Value(what);
    let container = Container::ALL.into_iter().find(|container| container.to_string() == layout.container);
    let container = container.ok_or_else(|| value(format!("unknown container '{}'", layout.container)))?;
    let layout = Layout::stored_as(layout.channels, layout.resolution_bits, container)
        .map_err(|error| value(error.to_string()))?;
    let rate = match recording.rate {
        None => None,
        Some(rate) => Some(
            SampleRate::new(rate.frames, rate.seconds).ok_or_else(|| value("an impossible sample rate".to_owned()))?,
        ),
    };
    if recording.block_bytes == 0 || !recording.block_bytes.is_multiple_of(layout.grain().bytes) {
        return Err(value(format!("blocks of {} bytes are not whole frames", recording.block_bytes)));
    }
    if recording.member >= recording.members.len() || recording.members.len() > usize::from(u16::MAX) {
        return Err(value(format!("it says that it is member {} of {}", recording.member, recording.members.len())));
    }
    let on_overrun = OnOverrun::ALL.into_iter().find(|policy| policy.name() == recording.on_overrun);
    Ok(About {
        id: recording.id.parse().map_err(|error| value(format!("'{}': {error}", recording.id)))?,
        layout,
        rate,
        hardware,
        pattern: recording.pattern,
        started_realtime: Nanos::new(recording.started_realtime_ns),
        started_monotonic: Instant::from_monotonic(Nanos::new(recording.started_monotonic_ns)),
        started_within: recording.started_within_ns.map(Nanos::new),
        block: Bytes(recording.block_bytes),
        members: paths::read(recording.members, &recording.members_bytes),
        member: recording.member,
        on_overrun: on_overrun.ok_or_else(|| value(format!("unknown policy '{}'", recording.on_overrun)))?,
        clocked: recording.clocked,
        software,
        channels: Vec::new(),
        clock: ClockRecord::default(),
        series: None,
    })
}

fn series_of(series: Series) -> std::result::Result<SegmentOf, SigmfError> {
    let id = |text: String| -> std::result::Result<RecordingId, SigmfError> {
        text.parse().map_err(|error| SigmfError::Value(format!("'{text}': {error}")))
    };
    Ok(SegmentOf {
        id: id(series.id)?,
        name: series.name,
        number: series.number,
        first: series.first_frame.map(Frames),
        previous: series.previous.map(id).transpose()?,
        epoch: series.epoch,
        epoch_first: Frames(series.epoch_frame),
    })
}

fn closing_of(result: Result, state: &str) -> std::result::Result<Closing, SigmfError> {
    let verdict_of = |name: &str| RecordingVerdict::ALL.into_iter().find(|verdict| verdict.name() == name);
    let unknown = |what: &str, name: &str| SigmfError::Value(format!("unknown {what} '{name}'"));
    let state = match state {
        "recovered" => State::Recovered,
        name => State::Ended(verdict_of(name).ok_or_else(|| unknown("state", name))?),
    };
    let mut gaps = Vec::with_capacity(result.gaps.len());
    let mut bounds = Vec::new();
    for hole in result.gaps {
        if let Some([least, most]) = hole.bounds {
            bounds.push(GapBounds { first: Frames(hole.first_frame), least: Frames(least), most: Frames(most) });
        }
        let cause = GapCause::ALL.into_iter().find(|cause| cause.name() == hole.cause);
        gaps.push(Gap {
            first: Frames(hole.first_frame),
            frames: Frames(hole.frames),
            cause: cause.ok_or_else(|| unknown("cause of a gap", &hole.cause))?,
            found: Instant::from_monotonic(Nanos::new(hole.found_ns)),
        });
    }
    let ledger = result.ledger;
    // Recordings of older versions do not have them. Counts that only a newer version knows are skipped.
    let (datagrams, triggers) = (result.ignored_datagrams, result.missed_triggers);
    let ignored = Ignored::default().named().map(|(name, _)| datagrams.get(name).copied().unwrap_or(0));
    let missed = Missed::default().named().map(|(name, _)| triggers.get(name).copied().unwrap_or(0));
    Ok(Closing {
        verdict: verdict_of(&result.verdict).ok_or_else(|| unknown("verdict", &result.verdict))?,
        reason: result.reason,
        state,
        ledger: Ledger { earlier_bytes: ledger.earlier_bytes.min(ledger.left_out_bytes), ..ledger },
        gaps,
        bounds,
        skips: result
            .skips
            .iter()
            .map(|skip| Skip { first: Frames(skip.first_frame), frames: Frames(skip.frames) })
            .collect(),
        triggers: result.triggers.iter().map(|trigger| (trigger.shot, Frames(trigger.frame))).collect(),
        fallbacks: result
            .ladder
            .into_iter()
            .map(|way| StoredFallback { name: way.name, refused: way.refused })
            .collect(),
        direct_io_proven: result.direct_io_proven,
        worst_stall: Nanos::new(result.worst_stall_ns),
        buffer_high_water: Bytes(result.buffer_high_water_bytes),
        buffer: Bytes(result.buffer_bytes),
        elapsed: Nanos::new(result.elapsed_ns),
        ignored: Ignored::of(ignored),
        missed: Missed::of(missed),
    })
}

fn segments_of(captures: Vec<Capture>, frames_per_sample: u64) -> std::result::Result<Vec<StoredSegment>, SigmfError> {
    let mut segments = Vec::with_capacity(captures.len());
    let mut next = 0_u64;
    for capture in captures {
        // An empty recording has one capture without length.
        let Some(frames) = capture.frames else { continue };
        let sample_start = capture.sample_start.checked_mul(frames_per_sample);
        let (Some(end), true) = (next.checked_add(frames), sample_start == Some(next)) else {
            return Err(SigmfError::Value("its captures do not follow one another".to_owned()));
        };
        let Some(first) = capture.global_index else {
            next = end;
            continue;
        };
        let Some(first) = first.checked_mul(frames_per_sample) else {
            return Err(SigmfError::Value("its captures do not follow one another".to_owned()));
        };
        if first.checked_add(frames).is_none() {
            return Err(SigmfError::Value("its captures do not follow one another".to_owned()));
        }
        segments.push(StoredSegment { sample_start: Frames(next), first: Frames(first), frames: Frames(frames) });
        next = end;
    }
    Ok(segments)
}
