//! Recordings of senders that come late, send rubbish, or have sent more than was taken when the end comes.

use std::io::Write as _;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
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

/// What is sent while the recorder is stopped lies in the kernel when Ctrl-C reaches it. It was left there, and the verdict was
/// "without loss". Also: the time of frame 0 is that of the first data, not that of the command's start.
#[test]
fn what_a_connection_brought_before_ctrl_c_is_recorded_and_timed() {
    let folder = folder();
    let Some((mut child, to)) = begin_listening(folder.path(), "tcp-listen", "", &[]) else {
        return skip("what_a_connection_brought_before_ctrl_c_is_recorded_and_timed", "no prlimit");
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

/// Waits until the program that owns a connection at this port has taken all but so many bytes of what came.
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
        return skip("stray_datagrams_are_counted_and_change_nothing", "no prlimit");
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
    assert_eq!((number(ignored, "foreign"), number(ignored, "malformed")), (1, 1));
    let meta = json(&std::fs::read_to_string(folder.path().join("x.sigmf-meta")).expect("metadata"));
    assert_eq!(&meta["global"]["hairspring:result"]["ignored_datagrams"], ignored);
    assert!(report["reason"].as_str().is_some_and(|reason| reason.contains("from other senders")), "{report:#}");
}

#[test]
fn a_wait_for_a_sender_has_the_end_that_was_asked_for() {
    let folder = folder();
    let Some((child, _)) = begin_listening(folder.path(), "tcp-listen", "", &["--wait", "300ms", "--for", "1h"]) else {
        return skip("a_wait_for_a_sender_has_the_end_that_was_asked_for", "no prlimit");
    };
    let report = report(&child.output(), 7);
    assert_eq!((number(&report, "stored_bytes"), &report["began"]), (0, &Value::Null));
    assert!(report["reason"].as_str().is_some_and(|reason| reason.contains("before any data came")), "{report:#}");
    refused(folder.path(), &["record", "--card", CARD, "--to", "y", "--wait", "0s"], 2, "--wait");
}
