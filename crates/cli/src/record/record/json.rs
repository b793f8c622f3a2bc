//! The report of a recording as JSON: `hairspring.recording/1`.

use hairspring_record::series::SeriesSummary;
use hairspring_record::session::Recorded;
use hairspring_ring::{ByteRate, Bytes};
use hairspring_source::udp::MOST_PAUSE;
use hairspring_store::{Direct, Fallback};
use hairspring_time::Nanos;
use serde_json::{Value, json};

use super::request::Request;
use super::worst;
use crate::record::account::{self, append};

/// One object. For several cards it has sums or the worst value, and each card under `cards`.
pub(crate) fn report(recorded: &[Recorded], request: &Request) -> String {
    let cards: Vec<Value> = recorded.iter().enumerate().map(|(number, one)| card(one, request, number)).collect();
    let value = match &cards[..] {
        [only] => only.clone(),
        _ => total(recorded, cards),
    };
    format!("{value:#}\n")
}

fn card(card: &Recorded, request: &Request, number: usize) -> Value {
    let (outcome, ledger, layout) = (&card.outcome, &card.outcome.ledger, card.description.layout);
    let mut value = json!({
        "schema": "hairspring.recording/1",
        "card": request.card(number),
        "verdict": outcome.verdict.name(),
        "reason": outcome.reason,
        "source_end": outcome.end.name(),
        "channels": layout.channels(),
        "frames": layout.frames_in(Bytes(ledger.stored_bytes)).0,
        "shots": outcome.triggers.len(),
    });
    append(&mut value, account::json(ledger, &outcome.gaps, layout));
    let more = json!({
        "rate_wanted_bytes_per_s": card.description.rate.map(|rate| layout.byte_rate(rate).bytes_per_s()),
        "rate_reached_bytes_per_s": card.rate_reached().map(ByteRate::bytes_per_s),
        "elapsed_ns": card.elapsed.count(),
        "finished_ns": card.finished.count(),
        "worst_stall_ns": outcome.worst_stall.count(),
        "buffer_high_water": outcome.high_water.0,
        "buffer_high_water_bytes": outcome.high_water.0,
        "buffer_bytes": outcome.buffer.0,
        "pages": card.granted.pages.name(),
        "pages_refused": card.granted.refused,
        "notify_bytes": request.config().write.block.0,
        "block_bytes": outcome.block.0,
        "ladder": outcome.fallbacks.iter().map(fallback).collect::<Vec<_>>(),
        "direct_io_proven": outcome.direct == Direct::Proven,
        "recorder_cpu_ns": card.recorder_cpu.count(),
        "checksum_ns": outcome.checksum_time.count(),
        "source_cpu_ns": card.source_cpu.count(),
        "receive_pauses": card.pauses,
        "reordered_datagrams": card.reordered,
        "receive_pause_most_ns": (card.pauses > 0).then(|| MOST_PAUSE.count()),
        "files": files([card]),
        "began": card.began.map(|began| json!({
            "realtime_ns": began.realtime.count(),
            "monotonic_ns": began.monotonic.as_monotonic().count(),
            "within_ns": began.within.count(),
        })),
        "threads": super::threads::json(&card.grants),
        "series": card.series.as_ref().map(series),
        "ignored_datagrams": counts(&outcome.ignored.named()),
        "missed_triggers": counts(&outcome.missed.named()),
    });
    append(&mut value, more);
    value
}

fn series(series: &SeriesSummary) -> Value {
    json!({
        "segments": series.segments,
        "first_number": series.first_number,
        "last_number": series.last_number,
        "kept_segments": series.kept,
        "pinned_segments": series.pinned,
        "dropped_segments": series.dropped_segments,
        "dropped_bytes": series.dropped_bytes,
        "overdue_cuts": series.overdue_cuts,
        "cut_high_water_bytes": series.cut_high_water.0,
        "stopped": series.stopped,
        "out_of_space": series.is_out_of_space,
        "low_space_bytes": series.least_free.map(|least| least.0),
        "troubles": series.troubles,
    })
}

/// All cards together: sums where they make sense, otherwise the worst value.
fn total(recorded: &[Recorded], cards: Vec<Value>) -> Value {
    let sum = |name: &str| cards.iter().filter_map(|card| card[name].as_i64()).sum::<i64>();
    let rate = |name: &str| {
        let rates: Vec<f64> = cards.iter().filter_map(|card| card[name].as_f64()).collect();
        (!rates.is_empty()).then(|| rates.iter().sum::<f64>())
    };
    let worst_of = |name: &str| cards.iter().filter_map(|card| card[name].as_i64()).max();
    let span = |read: fn(&Recorded) -> Nanos| recorded.iter().map(read).max().unwrap_or(Nanos::ZERO).count();
    let reasons = recorded.iter().enumerate().map(|(number, one)| format!("card {number}: {}", one.outcome.reason));
    let mut value = json!({
        "schema": "hairspring.recording/1",
        "verdict": worst(recorded).name(),
        "reason": reasons.collect::<Vec<_>>().join("; "),
        "produced_bytes": sum("produced_bytes"),
        "stored_bytes": sum("stored_bytes"),
        "durable_bytes": sum("durable_bytes"),
        "lost_bytes": sum("lost_bytes"),
        "lost_samples": sum("lost_samples"),
        "left_out_bytes": sum("left_out_bytes"),
        "unaccounted_bytes": sum("unaccounted_bytes"),
        "gaps": recorded.iter().enumerate().flat_map(|(number, one)| {
            one.outcome.gaps.iter().map(move |each| {
                let mut value = account::gap(each);
                append(&mut value, json!({ "card": number }));
                value
            })
        }).collect::<Vec<_>>(),
        "shots": sum("shots"),
    });
    let more = json!({
        "rate_wanted_bytes_per_s": rate("rate_wanted_bytes_per_s"),
        "rate_reached_bytes_per_s": rate("rate_reached_bytes_per_s"),
        "elapsed_ns": span(|card| card.elapsed),
        "finished_ns": span(|card| card.finished),
        "worst_stall_ns": worst_of("worst_stall_ns"),
        "buffer_high_water": worst_of("buffer_high_water"),
        "buffer_high_water_bytes": worst_of("buffer_high_water"),
        "buffer_bytes": sum("buffer_bytes"),
        "ladder": fallbacks(recorded),
        "direct_io_proven": recorded.iter().all(|card| card.outcome.direct == Direct::Proven),
        "recorder_cpu_ns": sum("recorder_cpu_ns"),
        "checksum_ns": sum("checksum_ns"),
        "source_cpu_ns": sum("source_cpu_ns"),
        "files": files(recorded),
        "cards": cards,
    });
    append(&mut value, more);
    value
}

fn counts(named: &[(&str, u64)]) -> Value {
    named.iter().map(|(name, count)| ((*name).to_owned(), Value::from(*count))).collect()
}

pub(crate) fn fallback(fallback: &Fallback) -> Value {
    json!({ "name": fallback.name, "used": fallback.refused.is_none(), "refused": fallback.refused })
}

/// A fallback counts as used if every card used it.
fn fallbacks(recorded: &[Recorded]) -> Vec<Value> {
    let mut fallbacks: Vec<Fallback> = Vec::new();
    for each in recorded.iter().flat_map(|card| &card.outcome.fallbacks) {
        match fallbacks.iter_mut().find(|known| known.name == each.name) {
            Some(known) => known.refused = known.refused.take().or_else(|| each.refused.clone()),
            None => fallbacks.push(each.clone()),
        }
    }
    fallbacks.iter().map(fallback).collect()
}

fn files<'r>(recorded: impl IntoIterator<Item = &'r Recorded>) -> Vec<String> {
    recorded.into_iter().flat_map(|card| &card.outcome.files).map(|file| file.display().to_string()).collect()
}
