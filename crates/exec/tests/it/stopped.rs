//! A process that is stopped (SIGSTOP) and goes on: in each stage of an executive nothing is lost, no task is blamed,
//! and lateness is reported. In child processes, which are this binary once more with a stage in the environment.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hairspring_exec::{Backend, Create, ExecConfig, InterruptSource, Misfortune, RunLimit, Services, StopReason};
use hairspring_machine::Nanos;

use crate::backends::{Bench, FOREVER, all, alone, micros, urgency};

const STAGE: &str = "HAIRSPRING_STOPPED_TEST";
/// Longer than the watchdog allows, many times the period of the timer.
const STOP: Duration = Duration::from_secs(1);
const WATCHDOG: Nanos = Nanos::from_millis(500);
const PERIOD: Nanos = Nanos::from_millis(5);

/// Where the process is when it is stopped.
const STAGES: [&str; 5] = ["idle", "computes", "waits_in_the_system", "timer", "interrupt"];

/// Reports to the parent that the stage is reached, and stays in it until the process has been stopped: the clock has
/// jumped.
fn linger(stays: impl Fn()) {
    // Before the report to the parent, which may stop this process at once.
    let begun = Instant::now();
    let mut out = std::io::stdout();
    out.write_all(b"stage\n").and_then(|()| out.flush()).expect("the parent reads");
    let (mut last, mut gap) = (begun, Duration::ZERO);
    while gap < STOP / 2 {
        assert!(last - begun < Duration::from_secs(20), "the parent has not stopped us");
        stays();
        let now = Instant::now();
        gap = now - std::mem::replace(&mut last, now);
    }
}

fn nap() {
    std::thread::sleep(Duration::from_millis(1));
}

/// Computes for a fifth of the time: a parent that is slow to stop us is no runaway.
fn compute_a_little() {
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_millis(1) {}
    std::thread::sleep(Duration::from_millis(4));
}

/// The child process, which is stopped. Prints `whole` if nothing was lost.
fn child(stage: &str, backend: Backend) {
    let real = backend.name();
    let mut bench = Bench::new(backend, &ExecConfig { watchdog: WATCHDOG, ..ExecConfig::default() });
    let number = || Arc::new(AtomicU64::new(0));
    let [expiries, missed, arrived, received] = std::array::from_fn(|_| number());
    let first = bench.executive.now() + Nanos::new(20_000_000);
    let (count, more) = (Arc::clone(&expiries), Arc::clone(&missed));
    let in_timer = stage == "timer";
    let timer = bench.executive.timer("beat", move |ctx, expiry| {
        assert!(ctx.now() >= expiry.deadline);
        more.fetch_add(expiry.missed, Ordering::Relaxed);
        if count.fetch_add(1, Ordering::Relaxed) == 3 && in_timer {
            linger(nap);
        }
    });
    bench.executive.start_periodic(timer.expect("few objects"), first, PERIOD).expect("a sensible period");
    let (count, in_procedure) = (Arc::clone(&arrived), stage == "interrupt");
    let isp = bench.executive.attach("software", InterruptSource::Software, move |_, _| {
        if count.fetch_add(1, Ordering::Relaxed) == 3 && in_procedure {
            linger(nap);
        }
    });
    let isp = isp.expect("software needs nothing");
    let count = Arc::clone(&received);
    let mailbox = bench.mail_task::<u64>("receives", 10, [64, 0, 0, 0], move |_, _, _, _| {
        count.fetch_add(1, Ordering::Relaxed);
    });
    let at = stage.to_owned();
    bench.start("works", 20, move |ctx, _| {
        for turn in 0..40 {
            ctx.send(mailbox, urgency(0), turn).expect("there is room");
            isp.post().expect("the ring has room");
            ctx.delay(micros(2_000)).expect("nobody kills it");
            match at.as_str() {
                _ if turn != 10 => {}
                // The stop comes while the carrier is asleep.
                "idle" => {
                    std::thread::spawn(|| linger(nap));
                    ctx.delay(Nanos::from_millis(1_800)).expect("nobody kills it");
                }
                "computes" => linger(compute_a_little),
                "waits_in_the_system" => linger(nap),
                _ => {}
            }
        }
        ctx.stop();
    });
    // Waits from beginning to end.
    bench.start("waits", 5, |ctx, _| ctx.wait(FOREVER).expect("it unwinds with the run"));
    let finish = bench.executive.run(RunLimit::For(Nanos::from_secs(30)));
    let beats = expiries.load(Ordering::Relaxed) + missed.load(Ordering::Relaxed);
    let runaways = finish.mishaps.iter().filter(|it| matches!(it.what, Misfortune::RanAway(_))).count();
    assert_eq!((runaways, finish.procedure_ran_away), (0, None), "on {real} in {stage}: {finish:?}");
    assert_eq!(finish.stopped, StopReason::Asked, "on {real} in {stage}");
    assert_eq!((arrived.load(Ordering::Relaxed), received.load(Ordering::Relaxed)), (40, 40), "on {real} in {stage}");
    assert_eq!(finish.interrupts_lost, 0);
    // Late, and counted: each period had a run or is counted, and the stop passed many.
    assert_eq!(finish.timer_overruns, missed.load(Ordering::Relaxed), "on {real} in {stage}");
    assert!(finish.timer_overruns >= 100, "on {real} in {stage}: {}", finish.timer_overruns);
    let passed = (bench.executive.now() - first).count().cast_unsigned();
    assert!(beats <= passed / 5_000_000 + 1, "on {real} in {stage}: {beats} beats");
    std::io::stdout().write_all(b"whole\n").expect("the parent reads");
}

/// Sends a signal to a process of ours.
fn signal(name: &str, process: u32) {
    let done = Command::new("kill").args([name, &process.to_string()]).status();
    assert!(done.expect("kill exists").success());
}

#[test]
fn a_process_that_is_stopped_and_goes_on_loses_nothing_and_blames_nobody() {
    // Symptom: a stop of more than the watchdog's time was reported as a runaway of the task that had the CPU.
    const TEST: &str = "stopped::a_process_that_is_stopped_and_goes_on_loses_nothing_and_blames_nobody";
    if let Ok(role) = std::env::var(STAGE) {
        let (back_end, stage) = role.split_once(' ').expect("two words");
        let backend = if back_end == "fiber" { Backend::fiber() } else { Backend::thread_up() };
        return child(stage, backend);
    }
    for backend in all() {
        let name = backend.name();
        if name == "sim" {
            // Lives in no process's time.
            continue;
        }
        let _alone = alone();
        for stage in STAGES {
            let binary = std::env::current_exe().expect("its own path");
            let mut child = Command::new(binary)
                .args(["--exact", TEST, "--nocapture", "--test-threads=1"])
                .env(STAGE, format!("{name} {stage}"))
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .expect("a process");
            let mut out = BufReader::new(child.stdout.take().expect("piped"));
            let mut said = String::new();
            while !said.ends_with("stage\n") {
                assert!(out.read_line(&mut said).expect("text") > 0, "{name} in {stage}: {said}");
            }
            signal("-STOP", child.id());
            std::thread::sleep(STOP);
            signal("-CONT", child.id());
            out.read_to_string(&mut said).expect("text");
            let output = child.wait_with_output().expect("it ends");
            let why = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success() && said.contains("whole"), "{name} in {stage}: {said}{why}");
        }
    }
}
