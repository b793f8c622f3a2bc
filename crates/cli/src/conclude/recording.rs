//! `hairspring can "record …"`: plans a recording and, without a sheet, watches a short one at its rate.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use hairspring_advice::job::{AnswerKind, RecordAnswer, RecordEvidence, RecordRequirement};
use hairspring_machine::Nanos;
use hairspring_plan::maxrate::{Doing, ProbeError, Purpose, Recordings};
use hairspring_plan::{Direction, Fits, Plan, Request, Stall, Stream, Sustainable, Topology, Written, sizes};
use hairspring_record::recorder::WriteSettings;
use hairspring_record::session::RecordConfig;
use hairspring_ring::{ByteRate, Bytes};
use hairspring_sheet::Sheet;
use hairspring_source::card::Card;
use hairspring_store::Store;
use hairspring_store::Ways;
use hairspring_store::plain::PlainStore;
use serde_json::{Value, json};

use crate::exit::Failure;
use crate::listing::{clock, span};
use crate::record::plan::{self, evidence};

/// The answer about a recording.
pub(super) struct Recorded {
    pub(super) requirement: RecordRequirement,
    pub(super) answer: RecordAnswer,
    evidence: Option<RecordEvidence>,
}

/// Capacity of the card's own FIFO, as a time of data; a larger one would hide the folder's stalls.
const FIFO: Nanos = Nanos::from_millis(20);
const FIFO_LEAST: u64 = 64 << 10;
const FIFO_MOST: u64 = 64 << 20;
/// The usual length of the watched recording.
pub(super) const LENGTH: Nanos = Nanos::from_secs(20);
/// The part of that time in which a card first waits for the folder.
const FIRST: i64 = 4;

/// Answers from a sheet with the rates of folders.
pub(super) fn from_sheet(requirement: RecordRequirement, sheet: &Sheet, named: &str) -> Result<Recorded, Failure> {
    let (sustainable, fit) = evidence::of(sheet, named, 1, Direction::Record);
    let (mut request, topology) = request(&requirement)?;
    (request.sustainable, request.fit) = (sustainable, fit);
    let answer = RecordAnswer::of(&requirement, &planned(&request, &topology)?, None);
    Ok(Recorded { requirement, answer, evidence: None })
}

/// Records at the rate for a short time, and answers.
pub(super) fn watched(
    requirement: RecordRequirement,
    length: Option<Nanos>,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(f64),
) -> Result<Option<Recorded>, Failure> {
    let (mut request, topology) = request(&requirement)?;
    let first = planned(&request, &topology)?;
    // Answers that need no writing.
    if first.verdict == Fits::No {
        let answer = RecordAnswer::of(&requirement, &first, None);
        return Ok(Some(Recorded { requirement, answer, evidence: None }));
    }
    let evidence = match watch(&requirement, &first, length.unwrap_or(LENGTH), stop, progress) {
        Ok(evidence) => evidence,
        Err(ProbeError::Stopped) => return Ok(None),
        Err(error) => return Err(Failure::failed(format!("could not watch a recording: {error}"))),
    };
    let source = "a first recording, of a card that waits for the disk,".to_owned();
    request.sustainable = Ok(Sustainable { rate: evidence.unpaced, source });
    request.stall.worst = evidence.worst_stall;
    request.stall_is_assumed = false;
    let answer = RecordAnswer::of(&requirement, &planned(&request, &topology)?, Some(&evidence));
    Ok(Some(Recorded { requirement, answer, evidence: Some(evidence) }))
}

fn watch(
    requirement: &RecordRequirement,
    plan: &Plan,
    length: Nanos,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(f64),
) -> Result<RecordEvidence, ProbeError> {
    let folder = requirement.folder.as_deref().unwrap_or(Path::new("."));
    // The layout hardly matters.
    let fifo = requirement.rate.volume_in(FIFO).0.clamp(FIFO_LEAST, FIFO_MOST);
    let card: Card = format!("virtual:1ch,16bit,1MS/s,fifo={fifo}B").parse().map_err(|_| ProbeError::NotVirtual)?;
    let free = PlainStore::new(1, Ways::default()).free_bytes(folder).map_or(Bytes::gib(4), |free| Bytes(free / 2));
    let config = RecordConfig {
        buffer: plan.buffer(),
        write: WriteSettings { block: plan.notify(), ..WriteSettings::default() },
        ..RecordConfig::default()
    };
    let target = folder.join(format!(".hairspring-can-{}", std::process::id()));
    let of = |length| Recordings {
        card: card.clone(),
        targets: vec![target.clone()],
        config: config.clone(),
        length,
        volume: free,
    };
    let mut show = |before: Nanos, doing: Doing<'_>| {
        if let Doing::Recording(recording) = doing {
            progress((before + recording.elapsed).as_secs_f64() / (length + length / FIRST).as_secs_f64());
        }
    };
    let (unpaced, _) = of(length / FIRST).unpaced(stop, &mut |doing| show(Nanos::ZERO, doing))?;
    let probe = of(length).probe(requirement.rate, Purpose::Search, stop, &mut |doing| show(length / FIRST, doing))?;
    Ok(RecordEvidence {
        watched: probe.elapsed,
        volume: probe.volume,
        lost: probe.lost.map(|cause| cause.to_string()),
        high_water_promille: probe.high_water_promille,
        worst_stall: probe.worst_stall,
        buffer: config.buffer,
        unpaced,
    })
}

/// The request for a plan of the recording, without knowledge of the disks.
fn request(requirement: &RecordRequirement) -> Result<(Request, Topology), Failure> {
    let Some(folder) = &requirement.folder else {
        let text = "a recording needs a folder: write `to DIR` after it, or add --dir DIR";
        return Err(Failure::bad_request(text));
    };
    let (topology, names) =
        plan::topology(None)?.with_cards(1).map_err(|error| Failure::bad_request(error.to_string()))?;
    let (target, _) = plan::target(&folder.display().to_string(), &topology)?;
    let streams = names.into_iter().map(|card| Stream { card, rate: requirement.rate }).collect();
    let sustainable = Err("it is not measured yet".to_owned());
    let request = Request {
        direction: Direction::Record,
        streams,
        targets: vec![target],
        span: Some(requirement.span),
        stall: Stall { worst: sizes::STALL_USUAL, sync_interval: sizes::SYNC_INTERVAL },
        stall_is_assumed: true,
        memory: plan::memory(),
        pointer_bits: usize::BITS,
        sustainable,
        fit: None,
        also: Vec::new(),
        written: Written::Both,
    };
    Ok((request, topology))
}

fn planned(request: &Request, topology: &Topology) -> Result<Plan, Failure> {
    Plan::of(request, topology).map_err(|error| Failure::failed(error.to_string()))
}

impl Recorded {
    /// The sentences, most important first.
    pub(super) fn sentences(&self, asked: &str) -> Vec<String> {
        let Self { requirement, answer, evidence } = self;
        // If the answer was known without writing, unknown figures do not matter.
        let decided = evidence.is_none() && answer.outcome == AnswerKind::No;
        let told = answer.reasons.iter().filter(|(kind, _)| !decided || *kind == AnswerKind::No);
        let mut sentences: Vec<String> = told.map(|(_, text)| sentence(text)).collect();
        if let Some(evidence) = evidence {
            let RecordEvidence { watched, volume, high_water_promille, worst_stall, buffer, unpaced, .. } = evidence;
            let lasts = requirement.rate.time_for(*buffer).map_or_else(|| "forever".to_owned(), span);
            sentences.push(format!(
                "Evidence: {volume} in {}; the longest write took {}, and the buffer of {buffer} lasts for {lasts}; it was {:.1} % full \
                 at most. From a card that waits for the disk, the folder accepted {unpaced}: {:.0} % of margin.",
                span(*watched),
                span(*worst_stall),
                *high_water_promille as f64 / 10.0,
                RecordAnswer::margin(requirement, evidence) * 100.0
            ));
        }
        if let Some([least, most]) = answer.losses {
            let text = match least > 0.0 {
                true => format!("Expect between {least:.1} and {most:.0} losses in {}.", clock(requirement.span)),
                false => {
                    format!("Expect at most {most:.1} losses in {}, where 1 is permitted.", clock(requirement.span))
                }
            };
            sentences.push(text);
        }
        sentences.extend(self.turns(asked));
        sentences
    }

    /// The change that would make the answer yes.
    fn turns(&self, asked: &str) -> Option<String> {
        let hours = |span: Nanos| match span.as_secs_f64() {
            seconds if seconds > 7200.0 => format!("{}h", (seconds / 3600.0).ceil()),
            seconds if seconds > 120.0 => format!("{}min", (seconds / 60.0).ceil()),
            seconds => format!("{}s", seconds.ceil()),
        };
        match (self.answer.outcome, &self.evidence) {
            (AnswerKind::Yes, _) => None,
            (AnswerKind::NotShown, _) => {
                let watch = hours(self.answer.watch);
                Some(format!(
                    "A recording three times as long, without loss, would decide it, if there is room: hairspring can \"{asked}\" --watch {watch}"
                ))
            }
            (AnswerKind::No, Some(_)) => {
                Some("`hairspring maxrate --to DIR` finds the highest rate without loss.".to_owned())
            }
            (AnswerKind::No, None) => None,
        }
    }

    pub(super) fn json(&self) -> Value {
        let Self { requirement, answer, evidence } = self;
        json!({
            "rate_bytes_per_s": requirement.rate.bytes_per_s(),
            "span_ns": requirement.span.count(),
            "folder": requirement.folder.as_ref().map(|folder| folder.display().to_string()),
            "reasons": answer.reasons.iter().map(|(kind, text)| json!({ "answer": kind.name(), "text": text })).collect::<Vec<_>>(),
            "losses_at_least": answer.losses.map(|[least, _]| least),
            "losses_at_most": answer.losses.map(|[_, most]| most),
            "would_decide": json!({ "watch_ns": answer.watch.count() }),
            "margin": evidence.as_ref().map(|evidence| RecordAnswer::margin(requirement, evidence)),
            "evidence": evidence.as_ref().map(|evidence| json!({
                "watched_ns": evidence.watched.count(),
                "volume_bytes": evidence.volume.count(),
                "lost": evidence.lost,
                "high_water_promille": evidence.high_water_promille,
                "worst_stall_ns": evidence.worst_stall.count(),
                "buffer_bytes": evidence.buffer.count(),
                "unpaced_bytes_per_s": ByteRate::bytes_per_s(evidence.unpaced),
            })),
        })
    }
}

/// A reason of a plan as a sentence.
fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|letter| letter.to_uppercase().collect::<String>()).unwrap_or_default();
    format!("{first}{}.", letters.as_str())
}
