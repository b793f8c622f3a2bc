//! A plan as JSON: `hairspring.plan/1`. The unit stands last in each name; unknown values are null.

use hairspring_plan::{Capacity, Direction, Fits, Load, Plan, Request, Topology};
use hairspring_ring::{ByteRate, Bytes};
use hairspring_source::card::Card;
use hairspring_time::Nanos;
use serde_json::{Value, json};

use super::Shown;

pub(crate) fn json(shown: &Shown) -> String {
    let mut value = one(&shown.plan, &shown.request, &shown.topology, &shown.cards);
    value["schema"] = json!("hairspring.plan/1");
    value["what_if"] = match &shown.what_if {
        None => Value::Null,
        Some((change, topology, plan)) => {
            let mut changed = one(plan, &shown.request, topology, &shown.cards);
            changed["change"] = json!(change);
            changed
        }
    };
    format!("{value:#}\n")
}

fn one(plan: &Plan, request: &Request, topology: &Topology, cards: &[Card]) -> Value {
    let reasons =
        plan.reasons.iter().map(|reason| json!({ "verdict": reason.fits.map(Fits::name), "text": reason.text }));
    let volumes =
        plan.volumes.iter().map(|(span, bytes)| json!({ "duration_ns": span.count(), "volume_bytes": bytes.count() }));
    let cards = plan.sizes.iter().zip(cards).map(|(sizes, card)| {
        json!({
            "name": sizes.card,
            "card": card.to_string(),
            "rate_bytes_per_s": sizes.rate.bytes_per_s(),
            "notify_bytes": sizes.notify.count(),
            "buffer_bytes": sizes.buffer.count(),
            "buffer_wanted_bytes": sizes.wanted.count(),
            "buffer_lasts_ns": sizes.lasts.map(Nanos::count),
        })
    });
    let targets = request.targets.iter().map(|target| {
        json!({
            "name": target.name,
            "disks": target.disks,
            "free_bytes": target.free.map(Bytes::count),
        })
    });
    let memory = request.memory.map(|memory| {
        json!({
            "total_bytes": memory.total.count(),
            "available_bytes": memory.available.count(),
            "for_buffers_bytes": plan.memory_for_buffers.map(Bytes::count),
        })
    });
    let sustainable =
        request.sustainable.as_ref().ok().map(
            |sustainable| json!({ "rate_bytes_per_s": sustainable.rate.bytes_per_s(), "source": sustainable.source }),
        );
    let links = plan.links.iter().map(|(device, text)| json!({ "device": device, "text": text }));
    json!({
        "verdict": plan.verdict.name(),
        "answer": hairspring_advice::job::AnswerKind::of_plan(plan.verdict).name(),
        "reasons": reasons.collect::<Vec<_>>(),
        "direction": match request.direction {
            Direction::Record => "record",
            Direction::Play => "play",
        },
        "rate_bytes_per_s": plan.rate.bytes_per_s(),
        "duration_ns": request.span.map(Nanos::count),
        "volume_bytes": plan.volume.map(Bytes::count),
        "volumes": volumes.collect::<Vec<_>>(),
        "cards": cards.collect::<Vec<_>>(),
        "notify_bytes": plan.notify().count(),
        "buffer_bytes": plan.buffer().count(),
        "buffer_lasts_ns": plan.buffer_lasts().map(Nanos::count),
        "stall_budget_ns": request.stall.budget().count(),
        "memory": memory,
        "targets": targets.collect::<Vec<_>>(),
        "room_lasts_ns": plan.room_lasts.map(Nanos::count),
        "sustainable": sustainable,
        "limiting": plan.loads.limiting().map(limiting),
        "most_bytes_per_s": plan.most.map(ByteRate::bytes_per_s),
        "topology": {
            "name": topology.name,
            "segments": plan.loads.loads.iter().filter(|load| load.below.is_some()).map(segment).collect::<Vec<_>>(),
        },
        "links": links.collect::<Vec<_>>(),
    })
}

fn limiting(load: &Load) -> Value {
    json!({
        "segment": load.name,
        "load_bytes_per_s": load.counted().bytes_per_s(),
        "capacity_bytes_per_s": capacity(load),
    })
}

fn capacity(load: &Load) -> Option<f64> {
    match &load.capacity {
        Capacity::Known { sure, .. } => Some(sure.bytes_per_s()),
        _ => None,
    }
}

fn segment(load: &Load) -> Value {
    let (shared, how) = match &load.capacity {
        Capacity::Known { shared, how, .. } => (Some(*shared), how.as_str()),
        Capacity::Ample => (None, "the inside of a chip"),
        Capacity::Unknown(why) => (None, why.as_str()),
    };
    json!({
        "segment": load.name,
        "below": load.below,
        "up_bytes_per_s": load.up.bytes_per_s(),
        "down_bytes_per_s": load.down.bytes_per_s(),
        "load_bytes_per_s": load.counted().bytes_per_s(),
        "capacity_bytes_per_s": capacity(load),
        "half_duplex": shared,
        "what": how,
    })
}
