//! The reasons of a plan's verdict as sentences: the limits, the unknowns, and the remedies.

use super::topology::{BusDevice, Capacity, Place, SegmentKind, Topology};
use super::{Direction, Fits, Load, Plan, Request, Target, exact, rounded};

/// A reason, or a remark without influence on the verdict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanReason {
    /// Its verdict; `None` for a remark.
    pub fits: Option<Fits>,
    /// The sentence.
    pub text: String,
}

impl PlanReason {
    fn new(fits: Fits, text: String) -> Self {
        Self { fits: Some(fits), text }
    }

    fn remark(text: String) -> Self {
        Self { fits: None, text }
    }
}

/// All reasons, the worst first, remarks last.
pub(super) fn of(plan: &Plan, request: &Request, topology: &Topology) -> Vec<PlanReason> {
    let mut reasons = Vec::new();
    reasons.extend(limit(plan, request));
    reasons.extend(unknown_links(plan, request));
    reasons.extend(disks(plan, request, topology));
    reasons.extend(room(plan, request));
    reasons.extend(memory(plan, request));
    reasons.extend(places(plan, request));
    reasons.extend(stripes(request, topology));
    reasons.extend(resting(plan, topology));
    reasons.extend(nodes(request, topology));
    // A stable sort keeps equally bad reasons in the order of the path through the machine.
    reasons.sort_by_key(|reason| std::cmp::Reverse(reason.fits));
    reasons
}

/// The limiting segment, and every other segment that is not enough.
fn limit(plan: &Plan, request: &Request) -> Vec<PlanReason> {
    let limiting = plan.loads.limiting();
    let written = request.written;
    let used = plan.loads.loads.iter().filter(|load| load.is_used());
    let mut named: Vec<&Load> = used.filter(|load| matches!(load.fits(), Fits::No | Fits::Tight)).collect();
    if named.is_empty() {
        named.extend(limiting);
    }
    let reasons = named.into_iter().filter_map(|load| {
        let Capacity::Known { sure, most, shared, how } = &load.capacity else { return None };
        let twice = match (load.twice, shared) {
            (true, true) => "; the data cross it twice, and it is half duplex",
            (false, true) if load.up.bytes_per_s() > 0.0 && load.down.bytes_per_s() > 0.0 => "; it is half duplex",
            _ => "",
        };
        let carries = format!("{} ({how}) has to carry {}", load.name, written.rate(load.counted()));
        let of = match most == sure {
            true => format!("of at most {}", written.rate(*most)),
            false => format!("of between {} and {}", written.rate(*sure), written.rate(*most)),
        };
        let through = match plan.most.filter(|_| limiting.is_some_and(|limiting| limiting.name == load.name)) {
            Some(most) => format!(": it is full with {} of streams", written.rate(most)),
            None => String::new(),
        };
        Some(PlanReason::new(load.fits(), format!("{carries} {of}{twice}{through}")))
    });
    reasons.collect()
}

/// Segments of unknown capacity. A measured rate of a disk covers the disk's own links.
fn unknown_links(plan: &Plan, request: &Request) -> Vec<PlanReason> {
    let used = plan.loads.loads.iter().filter(|load| load.is_used());
    let reasons = used.filter_map(|load| {
        let Capacity::Unknown(why) = &load.capacity else { return None };
        let of_cards = match request.direction {
            Direction::Record => load.up,
            Direction::Play => load.down,
        };
        let text = format!("the capacity of {} is not known: {why}", load.name);
        let proven = request.sustainable.is_ok() && of_cards.bytes_per_s() == 0.0;
        Some(match proven {
            true => PlanReason::remark(format!("{text}; the measured rate includes it")),
            false => PlanReason::new(Fits::Unknown, text),
        })
    });
    reasons.collect()
}

/// The rate of the disks.
fn disks(plan: &Plan, request: &Request, topology: &Topology) -> Vec<PlanReason> {
    if request.targets.is_empty() {
        return Vec::new();
    }
    let written = request.written;
    let does = match request.direction {
        Direction::Record => "written",
        Direction::Play => "read",
    };
    match &request.sustainable {
        Ok(sustainable) => {
            let fits = sustainable.carries(plan.rate);
            let share = plan.rate.bytes_per_s() / sustainable.rate.bytes_per_s().max(1.0) * 100.0;
            let words = match fits {
                Fits::WithMargin => "within the 95 % that are planned with",
                Fits::Tight => "without the margin of 5 % that is planned with",
                _ => "more than was reached",
            };
            let needed = format!("{} are to be {does}", written.rate(plan.rate));
            let there =
                format!("{share:.0} % of the {} that {} shows", written.rate(sustainable.rate), sustainable.source);
            vec![PlanReason::new(fits, format!("{needed}, {there}: {words}"))]
        }
        Err(why) => {
            let states = |device: Option<&BusDevice>| {
                device.is_some_and(|device| match request.direction {
                    Direction::Record => device.takes.is_some(),
                    Direction::Play => device.gives.is_some(),
                })
            };
            let mut disks = request.targets.iter().flat_map(|target| &target.disks);
            let known = request.targets.iter().all(|target| !target.disks.is_empty());
            match known && disks.all(|disk| states(topology.device(disk))) {
                // Then the disks are among the loads.
                true => Vec::new(),
                false => {
                    vec![PlanReason::new(Fits::Unknown, format!("the rate that the disks sustain is not known: {why}"))]
                }
            }
        }
    }
}

/// The room on the targets.
fn room(plan: &Plan, request: &Request) -> Option<PlanReason> {
    let written = request.written;
    if request.targets.is_empty() || request.direction == Direction::Play {
        return None;
    }
    let Some(lasts) = plan.room_lasts else {
        let unknown = request.targets.iter().find(|target| target.free.is_none())?;
        let text = format!("the room on {} is not known", unknown.name);
        return Some(match request.span {
            Some(_) => PlanReason::new(Fits::Unknown, text),
            None => PlanReason::remark(text),
        });
    };
    let (span, volume) = (request.span?, plan.volume?);
    let needs = format!("{} make {}", exact(span), written.amount(volume));
    let lasts_text = format!("the room on {} lasts for {}", names(&request.targets), rounded(lasts));
    let margin = lasts.as_secs_f64() * super::sizes::MARGIN;
    Some(match span {
        _ if span > lasts => {
            PlanReason::new(Fits::No, format!("{needs}, but {lasts_text}: free more, or add a folder"))
        }
        _ if span.as_secs_f64() > margin => PlanReason::new(Fits::Tight, format!("{needs}, and {lasts_text}")),
        _ => PlanReason::new(Fits::WithMargin, format!("{needs}, and {lasts_text}")),
    })
}

fn names(targets: &[Target]) -> String {
    targets.iter().map(|target| target.name.as_str()).collect::<Vec<_>>().join(", ")
}

/// The memory for the buffers.
fn memory(plan: &Plan, request: &Request) -> Vec<PlanReason> {
    let written = request.written;
    let mut reasons = Vec::new();
    let budget = rounded(request.stall.budget());
    match (plan.memory_for_buffers, plan.buffer_lasts()) {
        (Some(room), Some(lasts)) if plan.sizes.iter().any(|sizes| sizes.buffer < sizes.wanted) => {
            let wanted = plan.sizes.iter().fold(0_u64, |sum, sizes| sum.saturating_add(sizes.wanted.0));
            reasons.push(PlanReason::new(
                if plan.buffer() > room { Fits::No } else { Fits::Tight },
                format!(
                    "to outlast {budget} takes buffers of {}, but a quarter of the memory, or what is free of it, is {}: \
                     {} last for {}",
                    written.size(hairspring_ring::Bytes(wanted)),
                    written.amount(room),
                    written.size(plan.buffer()),
                    rounded(lasts)
                ),
            ));
        }
        (None, _) => {
            reasons.push(PlanReason::remark("the memory is not known: check the buffers against it".into()));
        }
        _ => {}
    }
    if request.stall_is_assumed && !request.targets.is_empty() {
        let worst = request.stall.worst;
        let text = format!("the worst stall of the disks is assumed as {worst}: measure it, and state it with --stall");
        reasons.push(PlanReason::remark(text));
    }
    reasons
}

/// Devices without a known place.
fn places(plan: &Plan, request: &Request) -> Vec<PlanReason> {
    let reasons = plan.loads.unplaced.iter().map(|name| {
        let card = request.streams.iter().any(|stream| stream.card == *name);
        PlanReason::remark(match card {
            true => format!(
                "the way of {name} to memory is left out, for its place is not known: put it somewhere with --what-if \
                 \"move {name} to SEGMENT\""
            ),
            false => format!("the way of {name} to memory is left out, for its place is not known"),
        })
    });
    reasons.collect()
}

/// Remarks on striping.
fn stripes(request: &Request, topology: &Topology) -> Vec<PlanReason> {
    let mut reasons = Vec::new();
    let mut disks: Vec<&String> = request.targets.iter().flat_map(|target| &target.disks).collect();
    let uses = disks.len();
    disks.sort();
    disks.dedup();
    let count = disks.len();
    if uses > count {
        let text = "several folders are on one disk: striping over them gains nothing";
        reasons.push(PlanReason::remark(text.to_owned()));
    }
    if count > 1 && request.direction == Direction::Record {
        reasons.push(PlanReason::remark(format!(
            "the data are striped over {count} disks without redundancy: the failure of any one loses the recording, which \
             is about {count} times as likely as with one"
        )));
    }
    let segment = |disk: &&String| match topology.device(disk)?.place {
        Place::On(segment) => Some(segment),
        _ => None,
    };
    let first = disks.first().and_then(segment);
    if let Some(shared) = first.filter(|_| count > 1 && disks.iter().all(|disk| segment(disk) == first)) {
        let name = &topology.segments()[shared].name;
        reasons.push(PlanReason::remark(format!("all {count} disks are behind {name} and share what it carries")));
    }
    reasons
}

/// Links that run slower than both ends support.
fn resting(plan: &Plan, topology: &Topology) -> Vec<PlanReason> {
    let mut reasons = Vec::new();
    for (load, segment) in plan.loads.loads.iter().zip(topology.segments()) {
        let SegmentKind::Pcie(state) = &segment.kind else { continue };
        if let (true, Some(now), Some(best)) = (load.is_used() && state.is_below_its_best(), state.now, state.best) {
            reasons.push(PlanReason::remark(format!(
                "the link at {} runs as {now}, and both ends support {best}: downtrained or idle, read it again under load",
                segment.name
            )));
        }
    }
    reasons
}

/// Streams whose devices are near to different memory nodes.
fn nodes(request: &Request, topology: &Topology) -> Option<PlanReason> {
    let cards = request.streams.iter().map(|stream| &stream.card);
    let disks = request.targets.iter().flat_map(|target| &target.disks);
    let node = |name: &String| Some((name.clone(), topology.device(name)?.numa_node?));
    let nodes: Vec<(String, u32)> = cards.chain(disks).filter_map(node).collect();
    let (first, other) = nodes.iter().find_map(|a| Some((a, nodes.iter().find(|b| b.1 != a.1)?)))?;
    Some(PlanReason::remark(format!(
        "{} is near to memory node {} and {} to node {}: the data cross between the processors",
        first.0, first.1, other.0, other.1
    )))
}
