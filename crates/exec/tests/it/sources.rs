//! Sources of interrupts that fail: a run reports each failure, once, and none of them holds anything up.

use std::fs::File;
use std::io::Write;
use std::net::UdpSocket;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hairspring_exec::{Arrival, Backend, ExecConfig, Executive, InterruptSource, IspCtx, RunLimit, SourceTrouble};
use hairspring_machine::Nanos;

use crate::backends::{all, alone, hush, panic_on_purpose};
use crate::interrupts_descriptors::{bytes_ready, reads_that_wait};

/// Far longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(20);

/// Those whose time is real: a descriptor has no place in virtual time.
fn real() -> impl Iterator<Item = Backend> {
    all().into_iter().filter(|backend| backend.name() != "sim")
}

/// Waits until it holds, with a limit: a test that waits for ever would report nothing.
#[track_caller]
fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < PATIENCE, "{what}");
        std::thread::yield_now();
    }
}

/// Runs until a run reports a source that ended, and adds up the reports.
#[track_caller]
fn troubles_until_the_end(executive: &mut Executive) -> SourceTrouble {
    let mut sum = SourceTrouble { isp: 0, name: String::new(), lost: 0, errors: 0, ended: None };
    wait_until("nobody told that the source has ended", || {
        let finish = executive.run(RunLimit::For(Nanos::from_millis(2)));
        assert_eq!(finish.clean(), finish.sources.is_empty());
        for trouble in finish.sources {
            sum = SourceTrouble { lost: sum.lost + trouble.lost, errors: sum.errors + trouble.errors, ..trouble };
        }
        sum.ended.is_some()
    });
    assert_eq!(executive.run(RunLimit::For(Nanos::from_millis(2))).sources, [], "told once");
    sum
}

#[track_caller]
fn check_end(errors: u64, ended: &str, source: impl Fn() -> InterruptSource) {
    for backend in real() {
        let name = backend.name();
        let _alone = alone();
        let mut executive = Executive::new(backend, &ExecConfig::default()).expect("an executive");
        executive.attach("healthy", InterruptSource::Software, |_, _| {}).expect("software needs nothing");
        executive.attach("dies", source(), |_, _| {}).expect("a thread");
        let expected =
            SourceTrouble { isp: 1, name: "dies".to_owned(), lost: 0, errors, ended: Some(ended.to_owned()) };
        assert_eq!(troubles_until_the_end(&mut executive), expected, "on {name}");
    }
}

#[test]
fn the_end_of_a_sources_data_is_told() {
    check_end(0, "the end of its data", || {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(writer);
        InterruptSource::Readable(OwnedFd::from(reader))
    });
}

#[test]
fn a_descriptor_that_cannot_be_read_is_given_up_and_told() {
    let why = "1000 reads in a row failed: Is a directory (os error 21)";
    check_end(1_000, why, || InterruptSource::Readable(OwnedFd::from(File::open("/").expect("it is there"))));
}

/// Symptom: a source was silent for ever after one error, without a report: a timer that was cancelled by a new date, a
/// socket whose peer was not there yet, an event that another reader had taken.
#[test]
fn an_error_of_one_read_is_counted_and_the_source_goes_on() {
    for backend in real() {
        let name = backend.name();
        let _alone = alone();
        let mut executive = Executive::new(backend, &ExecConfig::default()).expect("an executive");
        let bind = |to: &str| UdpSocket::bind(to).expect("a port of this host");
        let (socket, peer) = (bind("127.0.0.1:0"), bind("127.0.0.1:0"));
        let (address, port) = (socket.local_addr().expect("it is bound"), peer.local_addr().expect("it is bound"));
        socket.connect(port).expect("no packet is needed");
        drop(peer);
        let sender = socket.try_clone().expect("a descriptor");
        let came = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&came);
        let procedure = move |ctx: &IspCtx<'_>, _| {
            count.fetch_add(1, Ordering::SeqCst);
            ctx.stop();
        };
        executive.attach("socket", InterruptSource::Readable(OwnedFd::from(socket)), procedure).expect("a thread");
        // The socket has no peer: the kernel refuses the message, and the next read returns the error.
        sender.send(b"x").expect("it leaves");
        let mut told = Vec::new();
        wait_until("nobody told of the error", || {
            told = executive.run(RunLimit::For(Nanos::from_millis(2))).sources;
            !told.is_empty()
        });
        let expected = SourceTrouble { isp: 0, name: "socket".to_owned(), lost: 0, errors: 1, ended: None };
        assert_eq!(told, [expected], "on {name}");
        bind(&port.to_string()).send_to(b"y", address).expect("it leaves");
        let finish = executive.run(crate::backends::LIMIT);
        assert_eq!((came.load(Ordering::SeqCst), finish.sources), (1, Vec::new()), "on {name}");
    }
}

#[test]
fn a_raw_procedure_of_fibers_that_panics_ends_its_source_and_is_told() {
    hush();
    let mut executive = Executive::new(Backend::fiber(), &ExecConfig::default()).expect("an executive");
    let (reader, mut writer) = std::io::pipe().expect("a pipe");
    let procedure = |_: Arrival| panic_on_purpose();
    executive.attach_raw("raw", InterruptSource::Readable(OwnedFd::from(reader)), procedure).expect("a thread");
    writer.write_all(b"x").expect("it is read");
    let ended = Some("its procedure panicked: on purpose".to_owned());
    let expected = SourceTrouble { isp: 0, name: "raw".to_owned(), lost: 0, errors: 0, ended };
    assert_eq!(troubles_until_the_end(&mut executive), expected);
}

#[test]
fn a_source_that_floods_is_told_by_its_name() {
    for backend in all() {
        let name = backend.name();
        let _alone = alone();
        let mut executive = Executive::new(backend, &ExecConfig::default()).expect("an executive");
        executive.attach("calm", InterruptSource::Software, |_, _| {}).expect("software needs nothing");
        let isp = executive.attach("flood", InterruptSource::Software, |_, _| {}).expect("software needs nothing");
        let lost = (0..1_000).filter(|_| isp.post().is_err()).count() as u64;
        assert!(lost > 0);
        let finish = executive.run(RunLimit::For(Nanos::from_millis(2)));
        let expected = SourceTrouble { isp: 1, name: "flood".to_owned(), lost, errors: 0, ended: None };
        assert_eq!((finish.sources, finish.interrupts_lost), (vec![expected], lost), "on {name}");
    }
}

/// Symptom: dropping an executive never came to an end. Cause: the thread of a source was in a read that waits, and was
/// waited for. It is left behind now, and its later reads are not delivered.
#[test]
fn a_source_in_a_read_that_waits_does_not_hold_up_the_end_of_its_executive() {
    for backend in real() {
        let name = backend.name();
        let (reader, mut writer) = reads_that_wait();
        let also_reader = reader.try_clone().expect("a descriptor");
        let (gone, is_gone) = std::sync::mpsc::channel();
        let came = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&came);
        // The executive of fibers stays on its thread.
        let owner = std::thread::spawn(move || {
            let _alone = alone();
            let mut executive = Executive::new(backend, &ExecConfig::default()).expect("an executive");
            let procedure = move |_: Arrival| {
                count.fetch_add(1, Ordering::SeqCst);
            };
            executive
                .attach_raw("waits", InterruptSource::Readable(OwnedFd::from(reader)), procedure)
                .expect("a thread");
            writer.write_all(b"x").expect("there is room");
            wait_until("it is not read", || bytes_ready(&also_reader) == 0);
            drop(executive);
            let _ = gone.send(writer);
        });
        let Ok(mut writer) = is_gone.recv_timeout(PATIENCE) else { panic!("the executive did not end on {name}") };
        owner.join().expect("it does not panic");
        writer.write_all(b"y").expect("there is room");
        wait_until("its thread never ended", || Arc::strong_count(&came) == 1);
        assert_eq!(came.load(Ordering::SeqCst), 0, "delivered after the end on {name}");
    }
}
