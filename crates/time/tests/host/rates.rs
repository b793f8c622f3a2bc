//! Delays on this machine while a child process changes the rate of the kernel's clock. A binary of its own, because
//! cargo runs binaries one after the other: beside it no other test could compare two clocks.
//!
//! The rate outlives the process that changed it. So a process of its own waits until the test has ended, by SIGKILL
//! too, and gives it back.
//!
//! With `HAIRSPRING_PROOF=N` in the environment, N times as many delays; 34 makes a million.
#![cfg(target_os = "linux")]
#![expect(unsafe_code, reason = "on the ledger: adjtimex, which has no safe binding")]

use std::io::{Error, Write};
use std::mem::MaybeUninit;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use hairspring_time::{Host, LongDelay, Machine, Nanos, Timebase};
use testing::process::{Other, do_job, until_told};

/// Delays in an ordinary run, some seconds.
const DELAYS: u64 = 30_000;
/// Delays with one time base; then a new one, so that its scale does not run too far away from the kernel's clock.
const DELAYS_OF_ONE: u64 = 256;
/// The most that `adjtimex` changes the rate, in its unit of 2⁻¹⁶ ppm.
const MOST: libc::c_long = 500 << 16;

/// The most time until the rate is given back for a process that was killed. It takes milliseconds.
const GIVEN_BACK_WITHIN: Nanos = Nanos::from_secs(20);

/// There is one rate, so one test at a time changes it.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// The rate of the kernel's clock, which is given back in the end, also if this process panics or is killed.
struct Rate {
    before: libc::c_long,
    guardian: Option<Other>,
    _alone: MutexGuard<'static, ()>,
}

impl Rate {
    fn adjust(modes: libc::c_uint, frequency: libc::c_long) -> Result<libc::c_long, Error> {
        // SAFETY: all zeros is a valid timex: it changes nothing.
        let mut state: libc::timex = unsafe { MaybeUninit::zeroed().assume_init() };
        (state.modes, state.freq) = (modes, frequency);
        // SAFETY: the structure is writable and outlives the call.
        let result = unsafe { libc::adjtimex(&raw mut state) };
        if result < 0 { Err(Error::last_os_error()) } else { Ok(state.freq) }
    }

    fn now() -> libc::c_long {
        Self::adjust(0, 0).expect("reading is permitted")
    }

    /// Takes it, if that is permitted.
    fn take() -> Result<Self, Error> {
        let alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let before = Self::adjust(0, 0)?;
        Self::adjust(libc::ADJ_FREQUENCY, before)?;
        let guardian = in_a_group_of_its_own("give-back", before);
        Ok(Self { before, guardian: Some(guardian), _alone: alone })
    }

    fn step_to(&self, frequency: libc::c_long) {
        Self::adjust(libc::ADJ_FREQUENCY, self.before.saturating_add(frequency).clamp(-MOST, MOST))
            .expect("permitted before");
    }
}

impl Drop for Rate {
    fn drop(&mut self) {
        let _ = Self::adjust(libc::ADJ_FREQUENCY, self.before);
        if let Some(guardian) = self.guardian.take() {
            guardian.finish();
        }
    }
}

/// Starts a process that a signal to this one's group does not reach.
fn in_a_group_of_its_own(job: &str, before: libc::c_long) -> Other {
    let mut command = Command::new(std::env::current_exe().expect("this binary"));
    command.process_group(0);
    Other::start_by(command, job, &std::env::temp_dir(), before)
}

/// Body of this binary as a child; does nothing otherwise.
#[test]
#[expect(clippy::exit, reason = "a child whose parent was killed has nobody to talk to")]
fn a_job() {
    do_job(|job, _, before, ready| match job {
        "give-back" => {
            ready();
            // The parent's end of the pipe is closed when the parent ends in any way.
            until_told(&AtomicBool::new(false));
            Rate::adjust(libc::ADJ_FREQUENCY, before.parse().expect("a rate")).expect("permitted before");
            // The test harness would complain that its output has no reader.
            std::process::exit(0);
        }
        "step-and-die" => {
            let rate = Rate::take().expect("permitted before");
            rate.step_to(if rate.before > 0 { -MOST } else { MOST });
            assert_ne!(Rate::now(), rate.before, "nothing was changed");
            ready();
            // The whole group, as a proof is killed at its limit.
            let _ = Command::new("kill").args(["-KILL", "0"]).status();
            unreachable!("it was killed");
        }
        _ => panic!("no such job: {job}"),
    });
}

/// A fixed sequence of random numbers (xorshift64, Marsaglia 2003).
struct Random(u64);

impl Random {
    fn between(&mut self, least: i64, most: i64) -> i64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        least + (self.0 % (most - least + 1).unsigned_abs()).cast_signed()
    }
}

/// Ends the thread that changes the rate, also after a panic.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        // Relaxed: the flag carries no data.
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Makes delays of every kind with one time base; returns how many were early.
fn early_of(count: u64, random: &mut Random) -> u64 {
    let timebase = Timebase::calibrate(Host).expect("this machine has a counter or a clock");
    let mut long = LongDelay::new(&timebase);
    let mut early = 0;
    for number in 0..count {
        // The longer ones are where a change of 500 ppm shows beside what the readings around a delay take.
        let request =
            Nanos::new(random.between(20_000, 120_000)) * if number % 8 < 5 && number % 16 >= 8 { 10 } else { 1 };
        let before = Host.monotonic();
        let deadline = timebase.now() + request;
        let report = match number % 5 {
            0 => timebase.delay(request),
            1 => timebase.delay_polling(request, Nanos::from_micros(15)),
            2 => long.delay(request * 3),
            3 => timebase.delay_until(deadline),
            _ => long.delay_until(deadline),
        };
        let after = Host.monotonic();
        let report = report.expect("in bounds");
        let too_soon = match number % 5 {
            2 => after - before < request * 3,
            0 | 1 => after - before < request,
            _ => after < deadline || timebase.now_ordered().since(deadline).expect("one epoch") < Nanos::ZERO,
        };
        if too_soon || report.late < Nanos::ZERO {
            early += 1;
            let _ = writeln!(std::io::stderr(), "early, kind {}: {report:?}", number % 5);
        }
    }
    early
}

#[test]
fn no_delay_is_early_while_the_kernels_rate_steps_by_500_ppm() {
    const NAME: &str = "rates::no_delay_is_early_while_the_kernels_rate_steps_by_500_ppm";
    let rate = match Rate::take() {
        Ok(rate) => rate,
        Err(error) => {
            testing::skip(NAME, format!("change the rate of the kernel's clock: {error}"));
            return;
        }
    };
    let times = std::env::var("HAIRSPRING_PROOF").ok().and_then(|factor| factor.parse().ok()).unwrap_or(1);
    let (ended, changes, mut early, mut made) = (AtomicBool::new(false), AtomicU64::new(0), 0, 0);
    std::thread::scope(|scope| {
        let ends = Ends(&ended);
        scope.spawn(|| {
            let mut random = Random(0x9E37_79B9_7F4A_7C15);
            while !ended.load(Ordering::Relaxed) {
                rate.step_to(if random.between(0, 1) == 0 { -MOST } else { MOST });
                changes.fetch_add(1, Ordering::Relaxed);
                Host.sleep_until(Host.monotonic() + Nanos::new(random.between(100_000, 3_000_000)));
            }
        });
        let mut random = Random(0x2545_F491_4F6C_DD1D);
        while made < DELAYS * times {
            early += early_of(DELAYS_OF_ONE, &mut random);
            made += DELAYS_OF_ONE;
        }
        drop(ends);
    });
    let changes = changes.into_inner();
    let before = rate.before;
    drop(rate);
    println!("figure: delays: {made}\nfigure: changes of the rate by ±500 ppm: {changes}\nfigure: early: {early}");
    assert_eq!(early, 0, "of {made} delays, with {changes} changes of the rate");
    assert!(changes > 100, "the rate was hardly changed: {changes} times in {made} delays");
    assert_eq!(Rate::now(), before, "the rate was not given back");
}

/// Regression: a proof that was killed at its limit left the kernel's clock 500 ppm fast, and the proofs and
/// measurements after it ran with that. The test gave the rate back when it was dropped, and SIGKILL drops nothing.
#[test]
fn a_test_that_is_killed_with_its_group_gives_the_rate_back() {
    const NAME: &str = "rates::a_test_that_is_killed_with_its_group_gives_the_rate_back";
    // Held, so that the other test changes nothing meanwhile.
    let rate = match Rate::take() {
        Ok(rate) => rate,
        Err(error) => {
            testing::skip(NAME, format!("change the rate of the kernel's clock: {error}"));
            return;
        }
    };
    let before = rate.before;
    let killed = in_a_group_of_its_own("step-and-die", before);
    let limit = Host.monotonic() + GIVEN_BACK_WITHIN;
    while Rate::now() != before {
        assert!(Host.monotonic() < limit, "the rate is {} × 2⁻¹⁶ ppm, before {before}", Rate::now());
        Host.sleep_until(Host.monotonic() + Nanos::from_millis(5));
    }
    killed.kill();
}
