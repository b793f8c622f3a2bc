//! Real-time settings of the calling thread, in force until the handle is freed.
//!
//! A handle belongs to the thread that made it. A thread's settings end with the thread; then any thread may free the
//! handle, which releases the memory lock.

#![expect(unsafe_code, reason = "names of exported functions are the linker's")]
#![expect(non_camel_case_types, reason = "names of C")]

use std::ffi::{CString, c_char, c_int};
use std::mem::offset_of;

use hairspring_machine::Owner;
use hairspring_time::{Cpu, Grant, Host, Machine, Nanos, Policy, RealTime, RealTimeGuard};

use crate::error::{Failure, HS_E_RANGE, HS_E_REFUSED, HS_E_THREAD, door};
use crate::handle::{Alone, Kind, Shared, free, make};
use crate::pointer::{Numbers, Place, is_of_size, read};

/// Leaves the policy unchanged.
pub const HS_POLICY_KEEP: c_int = 0;
/// The ordinary policy of the system (SCHED_OTHER).
pub const HS_POLICY_OTHER: c_int = 1;
/// Runs until it blocks or a higher priority is ready; priority 1 to 99.
pub const HS_POLICY_FIFO: c_int = 2;
/// As HS_POLICY_FIFO, but round-robin among equal priorities; priority 1 to 99.
pub const HS_POLICY_ROUND_ROBIN: c_int = 3;

/// In hs_wishes.idle_ns: no idle states at all; CPUs without work poll.
pub const HS_IDLE_OFF: c_int = 1;

/// The setting was not asked for.
pub const HS_NOT_ASKED: c_int = 0;
/// It is in force.
pub const HS_GRANTED: c_int = 1;
/// The system refused it.
pub const HS_REFUSED: c_int = 2;

/// Settings in force. The handle belongs to the thread that made it; once that thread has ended, to any thread.
pub struct hs_real_time(());

pub(crate) struct OwnedRealTime {
    /// None once it has been released.
    guard: Option<RealTimeGuard<'static, Host>>,
    refusal: Option<CString>,
    owner: Owner,
}

impl Kind for hs_real_time {
    type Owned = OwnedRealTime;
    const WORD: u64 = u64::from_le_bytes(*b"realtime");
    const NAME: &'static str = "real-time setting";
}

static HOST: Host = Host;

// SAFETY: the guard holds no pointers into its thread: it names its owner and the machine, and releases what it holds
// only if the calling thread is that owner or the owner has ended (`Owner`, checked by `is_own` here and by `Held`
// itself).
unsafe impl Send for OwnedRealTime {}
// SAFETY: as above; a shared reference gives out the owner and the grants, which nothing changes after the handle was
// made.
unsafe impl Sync for OwnedRealTime {}

/// Requests to the system for the calling thread. Zero in all fields except size and cpu requests nothing.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hs_wishes {
    /// sizeof(struct hs_wishes): by this size a later library recognizes the version of the header.
    pub size: usize,
    /// HS_POLICY_…
    pub policy: c_int,
    /// 1 to 99 with HS_POLICY_FIFO and HS_POLICY_ROUND_ROBIN; else ignored.
    pub priority: c_int,
    /// The CPU to stay on, from 0; negative: any.
    pub cpu: c_int,
    /// Whether to lock the memory of the process; any byte but 0 means yes.
    pub lock_memory: bool,
    /// The timer slack, from 1; 0 or negative leaves it unchanged.
    pub slack_ns: i64,
    /// The longest time that any CPU of the machine may take to leave an idle state, HS_IDLE_OFF or whole microseconds;
    /// 0 or negative leaves it unchanged. The limit belongs to the process and ends with it, also after SIGKILL.
    pub idle_ns: i64,
}

/// hs_wishes as received: a caller may store any byte in the boolean, as VBA does, whose True is 255.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct Wishes {
    size: usize,
    policy: c_int,
    priority: c_int,
    cpu: c_int,
    lock_memory: u8,
    slack_ns: i64,
    idle_ns: i64,
}

// SAFETY: integers.
unsafe impl Numbers for Wishes {}

const _: () = {
    assert!(size_of::<Wishes>() == size_of::<hs_wishes>() && align_of::<Wishes>() == align_of::<hs_wishes>());
    assert!(offset_of!(Wishes, lock_memory) == offset_of!(hs_wishes, lock_memory));
    assert!(offset_of!(Wishes, slack_ns) == offset_of!(hs_wishes, slack_ns));
    assert!(offset_of!(Wishes, idle_ns) == offset_of!(hs_wishes, idle_ns));
};

/// Result of each setting: HS_NOT_ASKED, HS_GRANTED or HS_REFUSED.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hs_grants {
    /// sizeof(struct hs_grants), set by the caller.
    pub size: usize,
    /// The policy with its priority.
    pub policy: c_int,
    /// The CPU.
    pub cpu: c_int,
    /// The lock of the memory.
    pub lock_memory: c_int,
    /// The timer slack.
    pub slack: c_int,
    /// The limit on idle states.
    pub idle: c_int,
    /// The first refusal with its remedy, NULL if there was none; lives as long as the handle.
    pub refusal: *const c_char,
}

// SAFETY: integers, and a pointer that is not followed.
unsafe impl Numbers for hs_grants {}

/// Memory for an hs_grants; the caller has set its size.
fn sized(place: &Place<hs_grants>) -> Result<(), Failure> {
    is_of_size::<hs_grants>("struct hs_grants", place.holds().size)
}

/// Applies settings to the calling thread until hs_real_time_free(). A refusal is not an error: hs_real_time_grants()
/// reports it, and the other settings are applied. Handles can be freed in any order: for each setting, the newest wish
/// whose handle is not freed is in force. `grants` may be NULL. HS_E_RANGE (also of a size that is not set),
/// HS_E_THREAD (the thread is ending).
#[unsafe(no_mangle)]
pub extern "C" fn hs_real_time_apply(
    wishes: *const hs_wishes,
    real_time: *mut *mut hs_real_time,
    grants: *mut hs_grants,
) -> c_int {
    door(|| {
        let (place, told) = (Place::new(real_time)?, Place::wanted(grants)?);
        told.as_ref().map_or(Ok(()), sized)?;
        let wishes = asked(read(wishes.cast())?)?;
        let settings = HOST.thread_settings().ok_or_else(|| {
            Failure::new(HS_E_THREAD, "apply real-time settings: the thread is ending, and its own values are gone")
        })?;
        let guard = wishes.apply(&HOST);
        let refusal = guard.refused().map(|refused| CString::new(format!("failed to {refused}")).unwrap_or_default());
        let handle = make::<hs_real_time>(OwnedRealTime { guard: Some(guard), refusal, owner: settings.owner() });
        if let Some(told) = told {
            told.put(Shared::of(handle)?.grants());
        }
        place.put(handle);
        Ok(())
    })
}

/// Reports which wishes were granted. HS_E_RANGE (the size is not set), HS_E_THREAD (another thread made the handle and
/// has not ended).
#[unsafe(no_mangle)]
pub extern "C" fn hs_real_time_grants(real_time: *const hs_real_time, grants: *mut hs_grants) -> c_int {
    door(|| {
        let place = Place::new(grants)?;
        sized(&place)?;
        let owned = Shared::of(real_time)?;
        owned.is_own()?;
        place.put(owned.grants());
        Ok(())
    })
}

/// Restores the settings. When a thread has freed all of its handles, its settings are those from before the first.
/// When the thread that made the handle has ended, any thread may free it, which releases the memory lock and the limit
/// on idle states. NULL is allowed. HS_E_THREAD (another thread made the handle and has not ended), HS_E_REFUSED (the
/// system refused to restore a setting; the handle is freed, and the rest restored), HS_E_FREED.
#[unsafe(no_mangle)]
pub extern "C" fn hs_real_time_free(real_time: *mut hs_real_time) -> c_int {
    door(|| {
        if real_time.is_null() {
            return Ok(());
        }
        Shared::of(real_time)?.is_own()?;
        let guard = Alone::of(real_time)?.guard.take();
        free(real_time)?;
        let released = guard.map_or(Ok(()), RealTimeGuard::release);
        released.map_err(|refusals| {
            let refusals: Vec<String> = refusals.iter().map(ToString::to_string).collect();
            Failure::new(HS_E_REFUSED, refusals.join("; "))
        })
    })
}

fn asked(wishes: Wishes) -> Result<RealTime, Failure> {
    is_of_size::<Wishes>("struct hs_wishes", wishes.size)?;
    let priority = || match wishes.priority {
        1..=99 => Ok(wishes.priority as u8),
        other => Err(Failure::new(HS_E_RANGE, format!("set the priority {other}: choose 1 to 99"))),
    };
    let policy = match wishes.policy {
        HS_POLICY_KEEP => None,
        HS_POLICY_OTHER => Some(Policy::Other),
        HS_POLICY_FIFO => Some(Policy::Fifo(priority()?)),
        HS_POLICY_ROUND_ROBIN => Some(Policy::RoundRobin(priority()?)),
        other => return Err(Failure::new(HS_E_RANGE, format!("set the policy {other}: choose 0 to 3"))),
    };
    Ok(RealTime {
        policy,
        cpu: u32::try_from(wishes.cpu).ok().map(Cpu),
        lock_memory: wishes.lock_memory != 0,
        slack: (wishes.slack_ns > 0).then(|| Nanos::new(wishes.slack_ns)),
        // No idle state has a latency below one microsecond, so such a limit turns idle states off.
        idle: (wishes.idle_ns > 0).then(|| Nanos::new(wishes.idle_ns)),
    })
}

impl OwnedRealTime {
    fn is_own(&self) -> Result<(), Failure> {
        if self.owner.admits(&HOST) {
            return Ok(());
        }
        Err(Failure::new(HS_E_THREAD, "use these real-time settings: they belong to the thread that asked for them"))
    }

    fn grants(&self) -> hs_grants {
        let fate = |setting: &str| {
            let grants = self.guard.as_ref().map_or(&[][..], RealTimeGuard::grants);
            let fates = grants.iter().map(|grant| match grant {
                Grant::Granted(name) => (*name, HS_GRANTED),
                Grant::Refused(name, _) => (*name, HS_REFUSED),
            });
            fates.filter(|(name, _)| *name == setting).map(|(_, fate)| fate).next().unwrap_or(HS_NOT_ASKED)
        };
        hs_grants {
            size: size_of::<hs_grants>(),
            policy: fate("policy"),
            cpu: fate("cpu"),
            lock_memory: fate("lock_memory"),
            slack: fate("slack"),
            idle: fate("idle"),
            refusal: self.refusal.as_ref().map_or(std::ptr::null(), |refusal| refusal.as_ptr()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTHING: Wishes = Wishes {
        size: size_of::<Wishes>(),
        policy: HS_POLICY_KEEP,
        priority: 0,
        cpu: -1,
        lock_memory: 0,
        slack_ns: 0,
        idle_ns: 0,
    };

    #[test]
    fn zero_asks_for_nothing_and_one_for_no_idle_states() {
        assert_eq!(asked(NOTHING).unwrap(), RealTime::default());
        for (idle_ns, idle) in
            [(-1, None), (HS_IDLE_OFF.into(), Some(Nanos::new(1))), (20_000, Some(Nanos::from_micros(20)))]
        {
            assert_eq!(asked(Wishes { idle_ns, ..NOTHING }).unwrap().idle, idle);
        }
    }

    #[test]
    fn a_structure_of_another_header_is_refused() {
        for size in [0, size_of::<Wishes>() - 8, size_of::<Wishes>() + 8] {
            assert_eq!(asked(Wishes { size, ..NOTHING }).unwrap_err().tell(), HS_E_RANGE, "{size}");
        }
    }

    #[test]
    fn any_byte_but_zero_asks_for_the_lock_of_the_memory() {
        for byte in 0..=u8::MAX {
            let wishes = Wishes { lock_memory: byte, ..NOTHING };
            let place: *const hs_wishes = (&raw const wishes).cast();
            assert_eq!(asked(read(place.cast()).unwrap()).unwrap().lock_memory, byte != 0, "{byte}");
        }
    }
}
