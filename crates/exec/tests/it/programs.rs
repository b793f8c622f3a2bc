//! The programs on every back-end: to the nanosecond in virtual time; elsewhere what holds however busy the machine is.

use hairspring_exec::programs::{self, BACKENDS, ProgramRun, inversion, sampler, shutter};
use hairspring_exec::{Misfortune, ResourceProtocol, StopReason};
use hairspring_machine::Nanos;

/// Room for every call of any of them.
const CALLS: usize = 100_000;

#[track_caller]
fn sampled(backend: &str, setup: &sampler::SamplerSetup) -> ProgramRun<sampler::SamplerReport> {
    let backend = programs::backend(backend).expect("a name from the list");
    sampler::run(backend, setup, Some(CALLS)).expect("it runs")
}

#[track_caller]
fn exposed(backend: &str) -> ProgramRun<shutter::ShutterReport> {
    let backend = programs::backend(backend).expect("a name from the list");
    shutter::run(backend, &shutter::ShutterSetup::default(), Some(CALLS)).expect("it runs")
}

#[track_caller]
fn inverted(backend: &str) -> ProgramRun<inversion::InversionReport> {
    let backend = programs::backend(backend).expect("a name from the list");
    inversion::run(backend, &inversion::InversionSetup::default(), Some(CALLS)).expect("it runs")
}

#[test]
fn in_virtual_time_every_program_says_the_same_in_every_run() {
    for program in programs::all() {
        let run = || {
            let backend = programs::backend("sim").expect("a name from the list");
            program.run(backend, Some(CALLS)).expect("it runs")
        };
        let (once, again) = (run(), run());
        assert_eq!(once.trace, again.trace, "{}", program.name);
        insta::assert_snapshot!(program.name, once.to_string());
    }
}

#[test]
fn every_sample_is_written_or_counted_and_none_is_early() {
    for backend in BACKENDS {
        let setup = sampler::SamplerSetup { samples: 100, ..sampler::SamplerSetup::default() };
        let ProgramRun { report, finish, .. } = sampled(backend, &setup);
        assert_eq!(finish.stopped, StopReason::Finished, "{backend}");
        assert_eq!(report.samples.len() as u64 + report.lost + report.skipped, 100, "{backend}");
        assert_eq!(report.overruns, finish.timer_overruns, "{backend}");
        assert!(report.lateness().iter().all(|late| !late.is_negative()), "{backend}");
        let due: Vec<_> = report.samples.iter().map(|sample| sample.due).collect();
        assert!(
            due.windows(2).all(|pair| pair[0] < pair[1] && (pair[1] - pair[0]).count() % 1_000_000 == 0),
            "{backend}"
        );
    }
}

#[test]
fn samples_that_a_small_mailbox_cannot_take_are_lost_and_counted_and_the_sampler_stays_on_time() {
    let roomy = sampled("sim", &sampler::SamplerSetup::default()).report;
    let small = sampled("sim", &sampler::SamplerSetup { mailbox: 1, ..sampler::SamplerSetup::default() }).report;
    assert_eq!((roomy.lost, small.samples.len() as u64 + small.lost), (0, 200));
    assert!(small.lost > 0);
    assert_eq!((small.skipped, small.overruns), (0, 0));
}

/// How often an experiment is made again that a pause of the host has spoilt.
const ATTEMPTS: usize = 5;

#[test]
fn a_shutter_is_never_closed_early_and_an_exposure_that_hangs_is_aborted() {
    for backend in BACKENDS {
        // A pause of more than the limit can cost an order its exposure: the sequence is killed before it has opened.
        let is_whole = (0..ATTEMPTS).any(|_| {
            let ProgramRun { report, finish, .. } = exposed(backend);
            assert_eq!(finish.stopped, StopReason::Finished, "{backend}");
            // An exposure that was aborted, as a pause of the host can cause, is closed at any time.
            let is_right =
                |exposure: &shutter::ShutterExposure| exposure.aborted || exposure.measured() >= report.wanted;
            assert!(report.exposures.iter().all(is_right), "{backend}: {report}");
            let aborted = report.exposures.iter().filter(|exposure| exposure.aborted).count();
            let killed = finish.mishaps.iter().filter(|mishap| matches!(mishap.what, Misfortune::Ended(..))).count();
            let is_whole = report.exposures.len() == 3;
            assert!(if is_whole { aborted == killed } else { aborted <= killed }, "{backend}: {report}");
            assert!(!is_whole || report.exposures[1].aborted, "{backend}: {report}");
            is_whole
        });
        assert!(is_whole, "{backend}: an exposure is missing in each of {ATTEMPTS} runs");
    }
}

#[test]
fn an_inversion_lasts_as_long_as_the_middle_task_runs_and_protocols_end_it() {
    let setup = inversion::InversionSetup::default();
    for backend in ["sim", "fiber", "thread_up"] {
        let run = inverted(backend);
        assert_eq!((run.finish.stopped, run.report.waits.len()), (StopReason::Finished, 3), "{backend}");
        if run.finish.strict {
            let waited = run.report.waited(ResourceProtocol::None);
            assert!(waited >= Some(setup.middle), "{backend}: {}", run.report);
        }
    }
    // Without disturbance, a protocol leaves only the rest of the low task's work.
    let report = inverted("sim").report;
    let bound = report.expected.0 + Nanos::from_micros(100);
    assert!(report.waits[1..].iter().all(|&(_, waited)| waited < bound), "{report}");
}

#[test]
fn on_several_cpus_every_scene_of_the_inversion_comes_to_its_end() {
    let run = inverted("thread_smp");
    assert_eq!((run.finish.stopped, run.report.waits.len()), (StopReason::Finished, 3), "{}", run.report);
}

#[test]
fn a_trace_of_every_back_end_comes_out_the_same_when_it_is_played_again() {
    for backend in BACKENDS {
        for program in programs::all() {
            let run = program.run(programs::backend(backend).expect("a name from the list"), Some(CALLS));
            let trace = run.expect("it runs").trace.expect("it was asked for");
            assert_eq!((trace.backend, trace.lost), (backend, 0), "{}", program.name);
            let events = trace.replay().unwrap_or_else(|error| panic!("{} on {backend}: {error}", program.name));
            // The shutter's are 70, and 8 fewer for each exposure that a pause of the host costs it.
            assert!(events.len() > 40, "{} on {backend}: {} events", program.name, events.len());
        }
    }
}

#[test]
fn a_back_end_that_does_not_exist_is_refused_with_those_that_do() {
    let refused = programs::backends(Some("fibre")).expect_err("there is none");
    assert!(refused.to_string().contains("sim, fiber, thread_up, thread_smp"), "{refused}");
    assert_eq!(programs::backends(Some("thread-up")).map(|found| found.len()).ok(), Some(1));
}
