//! Recordings of senders that come late, send rubbish, or have sent more than was taken when the end comes.

use std::io::Write as _;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{SystemTime, UNIX_EPOCH};

use super::*;

/// `record` of one stream with no more than 64 open files, and an address for its sender.
fn begin_listening(folder: &Path, kind: &str, more: &str, arguments: &[&str]) -> Option<(Ended, SocketAddr)> {
    let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|free| free.local_addr()).expect("a free port");
    let mut command = Command::new("prlimit");
    command.args(["--nofile=64", crate::HAIRSPRING, "record", "--buffer", "4MiB", "--format", "json", "--to", "x"]);
    command.args(["--card", &format!("{kind}:{free},2ch,16bit{more}")]).args(arguments).current_dir(folder);
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().ok()?;
    let mut child = Ended(Some(child));
    let start = Instant::now();
    while !folder.join("x.sigmf-meta").exists() {
        assert!(start.elapsed() < PATIENCE && child.child().try_wait().expect("it can be asked").is_none(), "no start");
        std::thread::sleep(Duration::from_millis(5));
    }
    Some((child, free))
}

fn since_1970() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_nanos() as i64
}

/// Regression: data sent while the recorder is stopped lie in the kernel when Ctrl-C arrives. They were left there, and
/// the verdict was "without loss". Also: the time of frame 0 is that of the first data, not that of the command's
/// start.
#[test]
fn what_a_connection_brought_before_ctrl_c_is_recorded_and_timed() {
    let folder = folder();
    let Some((mut child, to)) = begin_listening(folder.path(), "tcp-listen", "", &[]) else {
        return testing::skip("what_a_connection_brought_before_ctrl_c_is_recorded_and_timed", "no prlimit");
    };
    let mut stream = TcpStream::connect(to).expect("a listener");
    // The recorder runs, and sees the data later than they come: both times would be taken for that of frame 0.
    let start = Instant::now();
    while !folder.path().join("x.sigmf-meta").exists() {
        assert!(start.elapsed() < PATIENCE, "the recording does not begin");
        std::thread::sleep(Duration::from_millis(5));
    }
    std::thread::sleep(Duration::from_millis(100));
    signal(child.child(), "STOP");
    let before = since_1970();
    stream.write_all(&[1; 40_000]).expect("room in the kernel");
    let after = since_1970();
    std::thread::sleep(Duration::from_millis(20));
    signal(child.child(), "CONT");
    wait_for_bytes(to.port(), 0);
    signal(child.child(), "STOP");
    stream.write_all(&[2; 10_000]).expect("room in the kernel");
    signal(child.child(), "INT");
    signal(child.child(), "CONT");
    let report = report(&child.output(), 0);
    assert_eq!((number(&report, "durable_bytes"), number(&report, "lost_bytes")), (50_000, 0), "{report:#}");
    let (latest, within) =
        (number(&report["began"], "realtime_ns") as i64, number(&report["began"], "within_ns") as i64);
    assert!(before <= latest && latest - within <= after, "{before} {after} {report:#}");
    let meta = std::fs::read_to_string(folder.path().join("x.sigmf-meta")).expect("metadata");
    let meta = json(&meta);
    assert_eq!(meta["global"]["hairspring:recording"]["started_realtime_ns"], latest);
    assert!(meta["captures"][0]["core:datetime"].is_string(), "{meta:#}");
}

/// Waits until the program that owns a connection at this port has taken all but `left` bytes of the data received.
fn wait_for_bytes(port: u16, left: u64) {
    let start = Instant::now();
    let waiting = || {
        let table = std::fs::read_to_string("/proc/net/tcp").expect("the kernel's table");
        let local = format!(":{port:04X}");
        let rows = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        let ours = rows.filter(|row| row.len() > 4 && row[1].ends_with(&local) && row[3] == "01");
        let sizes = ours.filter_map(|row| u64::from_str_radix(row[4].split(':').nth(1)?, 16).ok());
        sizes.sum::<u64>()
    };
    while waiting() > left {
        assert!(start.elapsed() < PATIENCE, "nobody takes the data");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn stray_datagrams_are_counted_and_change_nothing() {
    let folder = folder();
    let Some((mut child, to)) = begin_listening(folder.path(), "udp", ",seq=u32be", &["--frames", "2500"]) else {
        return testing::skip("stray_datagrams_are_counted_and_change_nothing", "no prlimit");
    };
    let [sender, stranger] = [(); 2].map(|()| UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port"));
    let datagram = |number: u32| [&number.to_be_bytes()[..], &[7; 1000]].concat();
    sender.send_to(&datagram(0), to).expect("sent");
    signal(child.child(), "STOP");
    stranger.send_to(b"abc", to).expect("sent");
    sender.send_to(b"abc", to).expect("sent");
    for number in 1..10 {
        sender.send_to(&datagram(number), to).expect("sent");
    }
    signal(child.child(), "CONT");
    let report = report(&child.output(), 0);
    assert_eq!((number(&report, "stored_bytes"), &report["verdict"]), (10_000, &"complete".into()), "{report:#}");
    let ignored = &report["ignored_datagrams"];
    // A stranger is heard only until the socket is connected to the sender, which may be before or behind its datagram.
    let foreign = number(ignored, "foreign");
    assert!(foreign <= 1 && number(ignored, "malformed") == 1, "{ignored:#}");
    let meta = json(&std::fs::read_to_string(folder.path().join("x.sigmf-meta")).expect("metadata"));
    assert_eq!(&meta["global"]["hairspring:result"]["ignored_datagrams"], ignored);
    let says_so = report["reason"].as_str().is_some_and(|reason| reason.contains("from other senders"));
    assert_eq!(says_so, foreign == 1, "{report:#}");
}

/// Sends numbered datagrams of [`EACH`] frames by the clock, a thousand a second on the average, however late the
/// thread is.
struct Sending {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// Frames of a datagram; each frame is the datagram's number.
const EACH: u64 = 250;

impl Sending {
    fn begin(to: SocketAddr) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
            let (start, mut number) = (Instant::now(), 0_u32);
            // Relaxed: a plain flag.
            while !told.load(Ordering::Relaxed) {
                while u128::from(number) < start.elapsed().as_millis() {
                    let frames = number.to_le_bytes().repeat(EACH as usize);
                    // No process listens while the recording is dead.
                    let _ = socket.send_to(&[&number.to_be_bytes()[..], &frames].concat(), to);
                    number += 1;
                }
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        Self { stop, thread: Some(thread) }
    }
}

impl Drop for Sending {
    fn drop(&mut self) {
        // Relaxed: a plain flag.
        self.stop.store(true, Ordering::Relaxed);
        let ended = self.thread.take().map(JoinHandle::join);
        assert!(std::thread::panicking() || ended.is_none_or(|ended| ended.is_ok()), "the sender panicked");
    }
}

/// The number with which a segment's data begin.
fn first_number(folder: &Path, segment: &str) -> u64 {
    let data = std::fs::read(folder.join(format!("{segment}.sigmf-data"))).expect("data");
    u32::from_le_bytes(*data.first_chunk().expect("a frame")).into()
}

/// A sender that counts on while no recorder runs shows the number of missing frames; one that began anew does not.
#[test]
fn a_series_whose_sender_went_on_is_resumed_with_the_gap_that_its_numbers_say() {
    let folder = folder();
    let free = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|free| free.local_addr()).expect("a free port");
    // With its rate, because that of a sender on a busy computer is not the same from one second to the next.
    let card = format!("udp:{free},2ch,16bit,250kS/s,seq=u32be");
    let asked = ["--card", &card, "--to", "x", "--segment", "64KiB", "--notify", "16KiB", "--resume"];
    let asked = [&asked[..], &["--on-overrun", "gap"]].concat();
    let segments_later = |running: &mut Ended, number: u64| {
        let start = Instant::now();
        while !folder.path().join(format!("x-{number:06}.sigmf-meta")).exists() {
            assert!(start.elapsed() < PATIENCE, "no segment {number}");
            assert!(running.child().try_wait().expect("it can be asked").is_none(), "it ended too early");
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    let sending = Sending::begin(free);
    let mut running = begin(folder.path(), &asked);
    segments_later(&mut running, 20);
    signal(running.child(), "KILL");
    drop(running);
    let zero = first_number(folder.path(), "x-000000");
    let mut running = begin(folder.path(), &asked);
    segments_later(&mut running, 40);
    signal(running.child(), "KILL");
    drop(running);
    drop(sending);
    let sending = Sending::begin(free);
    let last = recorded(folder.path(), &[&asked[..], &["--frames", "5000"]].concat(), 4);
    drop(sending);
    let meta = |number: u64| {
        let name = format!("x-{number:06}");
        (json(&std::fs::read_to_string(folder.path().join(format!("{name}.sigmf-meta"))).expect("metadata")), name)
    };
    let gap_of = |meta: &Value| {
        let mut gaps = items(&meta["global"]["hairspring:result"], "gaps").filter(|gap| gap["cause"] == "resumed");
        gaps.next().cloned().unwrap_or_else(|| panic!("no gap: {meta:#}"))
    };
    // The first segment of the second run is the one at which the epoch begins.
    let epoch = |segment: u64| number(&meta(segment).0["global"]["hairspring:series"], "epoch");
    let is_there = |segment: &u64| folder.path().join(format!("x-{segment:06}.sigmf-meta")).exists();
    let second = (0..1000).filter(is_there).find(|segment| epoch(*segment) == 1).expect("a second run");
    let (resumed, name) = meta(second);
    let gap = gap_of(&resumed);
    assert_eq!(gap["bounds"], Value::Null, "it is exact: {gap:#}");
    let after = number(&gap, "first_frame") + number(&gap, "frames");
    assert_eq!(after, (first_number(folder.path(), &name) - zero) * EACH, "what the sender counts: {gap:#}");
    let (anew, _) = meta(number(&last["series"], "first_number"));
    let reason = anew["global"]["hairspring:result"]["reason"].as_str().expect("a reason");
    assert!(reason.contains("it was resumed: ") && !reason.contains("by the numbers"), "{reason}");
    let whole = about(folder.path(), &["verify", "x"], 4);
    assert_eq!((number(&whole, "unaccounted_bytes"), &whole["faults"]), (0, &Value::Array(Vec::new())), "{whole:#}");
}

#[test]
fn a_wait_for_a_sender_has_the_end_that_was_asked_for() {
    let folder = folder();
    let Some((child, _)) = begin_listening(folder.path(), "tcp-listen", "", &["--wait", "300ms", "--for", "1h"]) else {
        return testing::skip("a_wait_for_a_sender_has_the_end_that_was_asked_for", "no prlimit");
    };
    let report = report(&child.output(), 7);
    assert_eq!((number(&report, "stored_bytes"), &report["began"]), (0, &Value::Null));
    assert!(report["reason"].as_str().is_some_and(|reason| reason.contains("before any data came")), "{report:#}");
    refused(folder.path(), &["record", "--card", CARD, "--to", "y", "--wait", "0s"], 2, "--wait");
}

/// `--for` counted frames and ignored the clock, so a recording whose sender stopped had no end.
#[test]
fn a_length_in_time_ends_by_time_where_the_sender_falls_silent() {
    let folder = folder();
    let arguments = ["--for", "300ms", "--on-overrun", "gap"];
    let Some((child, to)) = begin_listening(folder.path(), "udp", ",10kS/s,seq=u32be", &arguments) else {
        return testing::skip("a_length_in_time_ends_by_time_where_the_sender_falls_silent", "no prlimit");
    };
    let sender = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    for number in 0..4_u32 {
        sender.send_to(&[&number.to_be_bytes()[..], &[7; 1000]].concat(), to).expect("sent");
    }
    let silent = report(&child.output(), 0);
    assert_eq!((number(&silent, "stored_bytes"), &silent["verdict"]), (4000, &"stopped".into()), "{silent:#}");
    let reason = silent["reason"].as_str().expect("a reason");
    assert!(reason.contains("its time was over") && reason.contains("1000 of 3000 frames"), "{reason}");
}
