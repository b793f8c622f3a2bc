//! Profiles: how long a piece of code takes, call by call.

#![expect(unsafe_code, reason = "names of exported functions are the linker's")]
#![expect(non_camel_case_types, reason = "names of C")]

use std::ffi::c_int;

use hairspring_time::{Host, Nanos, Ordering, Profile, Start};

use crate::error::{Failure, HS_ABSENT_NS, HS_E_ORDER, HS_OK, door};
use crate::handle::{Alone, Kind, Shared, free, make};
use crate::pointer::Place;
use crate::timebase::hs_timebase;

/// The number of pairs of calls from which the cost of a pair is measured.
const COST_PAIRS: usize = 101;

/// Spans that may have begun within each other.
const DEPTH: usize = 16;

/// The spans of one piece of code. One thread at a time.
pub struct hs_profile(());

pub(crate) struct OwnedProfile {
    profile: Profile<'static, Host>,
    /// The spans that have begun, the latest last; their room is allocated at the start.
    begun: Vec<Start>,
    cost: Nanos,
}

impl Kind for hs_profile {
    type Owned = OwnedProfile;
    const WORD: u64 = u64::from_le_bytes(*b"profilen");
    const NAME: &'static str = "profile";
}

/// The figures of a profile; HS_ABSENT_NS for a figure without samples.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hs_summary {
    /// Spans in all, the first included.
    pub count: u64,
    /// The first span, which is longer because caches are cold.
    pub first_ns: i64,
    /// The shortest of the other spans,
    pub min_ns: i64,
    /// their median,
    pub median_ns: i64,
    /// the longest,
    pub max_ns: i64,
    /// and their arithmetic mean.
    pub mean_ns: i64,
    /// The median of an empty span between hs_profile_start() and hs_profile_stop(); every figure above contains it.
    pub call_cost_ns: i64,
}

/// Makes an empty profile: allocates some 300 KiB and measures the cost of its own calls. With `ordered` 0 the CPU may
/// move code across the stamps, which is cheaper; otherwise each stamp waits for every earlier instruction. Free it
/// with hs_profile_free(); the time base may be freed before.
#[unsafe(no_mangle)]
pub extern "C" fn hs_profile_new(timebase: *const hs_timebase, ordered: c_int, profile: *mut *mut hs_profile) -> c_int {
    door(|| {
        let place = Place::new(profile)?;
        let timebase = Shared::of(timebase)?.timebase.clone();
        let ordering = if ordered == 0 { Ordering::Unordered } else { Ordering::Ordered };
        let profile = Profile::new(timebase.clone(), ordering);
        let handle = make(OwnedProfile { profile, begun: Vec::with_capacity(DEPTH), cost: Nanos::ZERO });
        let mut spans = [0; COST_PAIRS];
        for span in &mut spans {
            if hs_profile_start(handle) != HS_OK || hs_profile_stop(handle, span) != HS_OK {
                return Err(Failure::new(HS_E_ORDER, "measure a span of nothing"));
            }
        }
        spans.sort_unstable();
        let mut owned = Alone::of(handle)?;
        owned.cost = Nanos::new(spans[COST_PAIRS / 2]);
        owned.profile = Profile::new(timebase, ordering);
        drop(owned);
        place.put(handle);
        Ok(())
    })
}

/// Lets a profile use the successor that hs_timebase_refine() made of its time base. Its rate also converts the spans
/// recorded so far. The successor may be freed afterwards. If it takes time from another source, spans under way are
/// forgotten. HS_E_BUSY.
#[unsafe(no_mangle)]
pub extern "C" fn hs_profile_adopt(profile: *mut hs_profile, successor: *const hs_timebase) -> c_int {
    door(|| {
        let successor = Shared::of(successor)?.timebase.clone();
        let mut owned = Alone::of(profile)?;
        if successor.source() != owned.profile.timebase().source() {
            owned.begun.clear();
        }
        owned.profile.adopt(successor);
        Ok(())
    })
}

/// Begins a span. Spans nest 16 deep; beyond that the outermost is forgotten. Real-time safe.
#[unsafe(no_mangle)]
pub extern "C" fn hs_profile_start(profile: *mut hs_profile) -> c_int {
    door(|| {
        let mut owned = Alone::of(profile)?;
        if owned.begun.len() == DEPTH {
            owned.begun.remove(0);
        }
        let start = owned.profile.start();
        owned.begun.push(start);
        Ok(())
    })
}

/// Ends the span that began last and records it. `span_ns` may be NULL. Real-time safe. HS_E_ORDER (none has begun).
#[unsafe(no_mangle)]
pub extern "C" fn hs_profile_stop(profile: *mut hs_profile, span_ns: *mut i64) -> c_int {
    door(|| {
        let mut owned = Alone::of(profile)?;
        let Some(begun) = owned.begun.pop() else {
            return Err(Failure::new(HS_E_ORDER, "end a span: none has begun; call hs_profile_start first"));
        };
        let span = owned.profile.stop(begun);
        if let Some(place) = Place::wanted(span_ns)? {
            place.put(span.count());
        }
        Ok(())
    })
}

/// The figures so far.
#[unsafe(no_mangle)]
pub extern "C" fn hs_profile_summary(profile: *const hs_profile, summary: *mut hs_summary) -> c_int {
    door(|| {
        let place = Place::new(summary)?;
        let owned = Alone::of(profile)?;
        let known = owned.profile.summary();
        let ns = |figure: Option<Nanos>| figure.map_or(HS_ABSENT_NS, Nanos::count);
        place.put(hs_summary {
            count: known.count,
            first_ns: ns(known.first),
            min_ns: ns(known.min),
            median_ns: ns(known.median),
            max_ns: ns(known.max),
            mean_ns: ns(known.mean),
            call_cost_ns: owned.cost.count(),
        });
        Ok(())
    })
}

/// Frees a profile. NULL is allowed. HS_E_FREED, HS_E_BUSY.
#[unsafe(no_mangle)]
pub extern "C" fn hs_profile_free(profile: *mut hs_profile) -> c_int {
    door(|| free(profile))
}
