//! Real files, pipes and connections.

use std::io::Write as _;
use std::net::Ipv4Addr;
use std::thread;

use super::*;
use crate::card::Card;
use crate::source::test_consumer::{TestConsumer, hear_out, pair};
use hairspring_ring::OnOverrun;
use hairspring_ring::Producer;

const DATA: Pattern = Pattern::Noise { seed: 4 };

/// Three channels of 12 bits, packed: grains of two frames and nine bytes.
fn layout() -> Layout {
    Layout::stored_as(3, 12, hairspring_ring::layout::Container::Packed12).expect("exists")
}

fn about() -> StreamInfo {
    StreamInfo { layout: layout(), rate: None, pattern: Some(DATA), frames: None, hardware: "test".to_owned() }
}

fn data(length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    DATA.fill(layout(), Frames(0), &mut bytes);
    bytes
}

fn ears() -> (Producer, TestConsumer) {
    pair(layout(), DATA, Bytes::kib(4), OnOverrun::Block)
}

#[test]
fn whatever_the_pieces_are_every_byte_arrives_once() {
    let (read, mut write) = io::pipe().expect("a pipe");
    let writer = thread::spawn(move || {
        let data = data(9 * 20_000);
        let mut rest = &data[..];
        for length in (1..).map(|number| number * 7 % 5003 + 1) {
            let (piece, after) = rest.split_at(length.min(rest.len()));
            write.write_all(piece).expect("a reader");
            rest = after;
            if rest.is_empty() {
                break;
            }
        }
    });
    let (mut ring, mut listener) = ears();
    let mut reader = ReaderSource::new(File::from(OwnedFd::from(read)), about());
    assert_eq!(hear_out(&mut reader, &mut ring, &mut listener), End::Finished);
    assert_eq!((listener.frame, listener.gaps.len()), (40_000, 0));
    writer.join().expect("no panic");
}

#[test]
fn a_frame_that_is_cut_off_at_the_end_is_a_gap() {
    let (read, mut write) = io::pipe().expect("a pipe");
    write.write_all(&data(9 * 10 + 1)).expect("room");
    drop(write);
    let (mut ring, mut listener) = ears();
    let mut reader = ReaderSource::new(File::from(OwnedFd::from(read)), about());
    assert_eq!(hear_out(&mut reader, &mut ring, &mut listener), End::Finished);
    let [gap] = &listener.gaps[..] else { panic!("{:?}", listener.gaps) };
    assert_eq!((gap.first, gap.frames, gap.cause), (Frames(20), Frames(2), GapCause::Source));
}

#[test]
fn a_file_is_read_to_its_end_or_to_the_limit() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), data(9 * 1000)).expect("space");
    for (limit, frames) in [(None, 2000), (Some(Frames(99)), 100), (Some(Frames(5000)), 2000)] {
        let card = format!("file:{},3ch,packed,data=noise,seed=4", file.path().display());
        let mut source = card.parse::<Card>().expect("a card").open(limit).expect("a file");
        let (mut ring, mut listener) = ears();
        assert_eq!(hear_out(&mut *source, &mut ring, &mut listener), End::Finished);
        assert_eq!((listener.frame, listener.gaps.len()), (frames, 0));
        assert!(!source.describe().clocked);
    }
}

#[test]
fn a_named_pipe_waits_for_its_writer_and_ends_with_it() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&path).status();
    if !made.is_ok_and(|status| status.success()) {
        testing::skip("a_named_pipe_waits_for_its_writer_and_ends_with_it", "no mkfifo");
        return;
    }
    let as_file = format!("file:{},3ch,packed", path.display()).parse::<Card>().expect("a card");
    let refused = as_file.open(None).err().expect("a pipe").to_string();
    assert!(refused.contains("write pipe:"), "{refused}");
    let card = format!("pipe:{},3ch,packed", path.display()).parse::<Card>().expect("a card");
    let mut source = card.open(None).expect("a pipe");
    let (mut ring, mut listener) = ears();
    assert!(matches!(source.service(Instant::BOOT, &mut ring), Next::Readable(..)), "nobody writes yet");
    let mut write = std::fs::OpenOptions::new().write(true).open(&path).expect("a reader");
    assert!(matches!(source.service(Instant::BOOT, &mut ring), Next::Readable(..)), "nothing was written yet");
    write.write_all(&data(90)).expect("room");
    drop(write);
    assert_eq!(hear_out(&mut *source, &mut ring, &mut listener), End::Finished);
    assert_eq!(listener.frame, 20);
}

#[test]
fn what_does_not_exist_says_what_to_do() {
    let opened = |text: &str| text.parse::<Card>().expect("a card").open(None).err().expect(text).to_string();
    assert!(opened("file:/nowhere/at-all,1ch,8bit").contains("name an existing file"));
    assert!(opened("file:/tmp,1ch,8bit").contains("name an existing file"));
    assert!(opened("pipe:/dev/null,1ch,8bit").contains("write file:"));
    let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port").local_addr().expect("an address");
    assert!(opened(&format!("tcp:{free},1ch,8bit")).contains("tcp-listen:"));
}

#[test]
fn connections_from_either_side_are_read_to_their_end() {
    // From this side, identified by its text.
    let sender = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let address = sender.local_addr().expect("an address");
    let writer = thread::spawn(move || {
        sender.accept().expect("a caller").0.write_all(&data(9 * 30_000)).expect("a reader");
    });
    let card = format!("tcp:{address},3ch,packed,1MS/s,data=noise,seed=4").parse::<Card>().expect("a card");
    let mut source = card.open(None).expect("a connection");
    let (mut ring, mut listener) = ears();
    assert_eq!(hear_out(&mut *source, &mut ring, &mut listener), End::Finished);
    assert_eq!((listener.frame, listener.gaps.len()), (60_000, 0));
    writer.join().expect("no panic");

    // From the other side.
    let here = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let address = here.local_addr().expect("an address");
    let mut source = ReaderSource::listening(here, about()).expect("not blocking");
    let (mut ring, mut listener) = ears();
    assert!(matches!(source.service(Instant::BOOT, &mut ring), Next::Readable(..)), "nobody called yet");
    let writer = thread::spawn(move || {
        TcpStream::connect(address).expect("a listener").write_all(&data(9 * 30_000)).expect("a reader");
    });
    assert_eq!(hear_out(&mut source, &mut ring, &mut listener), End::Finished);
    assert_eq!((listener.frame, listener.gaps.len()), (60_000, 0));
    writer.join().expect("no panic");
}

#[test]
fn a_connection_that_breaks_is_a_failure_with_the_systems_number() {
    let sender = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let mut stream = TcpStream::connect(sender.local_addr().expect("an address")).expect("a listener");
    let (peer, _) = sender.accept().expect("a caller");
    stream.write_all(b"never read").expect("room");
    // Closing with unread data resets the connection. The peek ensures that the bytes have arrived.
    let mut byte = [0];
    peer.peek(&mut byte).expect("a byte");
    drop(peer);
    let mut source = ReaderSource::connected(stream, about()).expect("not blocking");
    let (mut ring, mut listener) = ears();
    assert_eq!(hear_out(&mut source, &mut ring, &mut listener), End::Failed(libc::ECONNRESET));
}

#[test]
fn a_reader_that_is_stopped_ends_at_once_and_stays_so() {
    let (read, mut write) = io::pipe().expect("a pipe");
    write.write_all(&data(95)).expect("room");
    let mut reader = ReaderSource::new(File::from(OwnedFd::from(read)), about());
    let (mut ring, mut listener) = ears();
    assert!(matches!(reader.service(Instant::BOOT, &mut ring), Next::Readable(..)));
    assert_eq!(reader.stop(Instant::BOOT, &mut ring), Next::Ended(End::Stopped));
    assert_eq!(reader.service(Instant::BOOT, &mut ring), Next::Ended(End::Stopped));
    ring.close(End::Stopped);
    listener.finish();
    assert_eq!((listener.frame, listener.gaps.len()), (20, 0));
    assert_eq!(reader.counters().produced_bytes, 90);
}

/// Serves and stops until the end, with a consumer that takes everything.
fn stop_and_hear(reader: &mut ReaderSource, ring: &mut Producer, listener: &mut TestConsumer) -> End {
    loop {
        match reader.stop(Instant::BOOT, ring) {
            Next::Ended(end) => {
                ring.close(end);
                assert_eq!(listener.finish(), end);
                return end;
            }
            Next::Readable(..) => panic!("a stop waits for nothing"),
            Next::At(_) | Next::Room => listener.listen(u64::MAX),
        }
    }
}

/// Bytes that a sender had written before the stop were left in the kernel, and the verdict was "without loss". The
/// ring is smaller than the pipe's contents, so that draining needs several turns.
#[test]
fn a_stop_drains_what_a_pipe_holds_and_no_more() {
    let (read, mut write) = io::pipe().expect("a pipe");
    write.write_all(&data(9 * 5000 + 4)).expect("room");
    let mut reader = ReaderSource::new(File::from(OwnedFd::from(read)), about());
    let (mut ring, mut listener) = ears();
    // The ring is full.
    assert_eq!(reader.service(Instant::BOOT, &mut ring), Next::Room);
    // A sender that goes on writing does not delay the end.
    assert!(matches!(reader.stop(Instant::BOOT, &mut ring), Next::Room));
    write.write_all(&data(9 * 1000)).expect("room");
    assert_eq!(stop_and_hear(&mut reader, &mut ring, &mut listener), End::Stopped);
    assert_eq!((listener.frame, listener.gaps.len()), (10_000, 0));
}

#[test]
fn a_stop_drains_what_a_connection_holds_also_of_one_that_waits() {
    for is_accepted in [true, false] {
        let here = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let mut write = TcpStream::connect(here.local_addr().expect("an address")).expect("a listener");
        let mut reader = ReaderSource::listening(here, about()).expect("not blocking");
        let (mut ring, mut listener) = ears();
        if is_accepted {
            reader.service(Instant::BOOT, &mut ring);
        }
        write.write_all(&data(9 * 1000)).expect("room");
        assert_eq!(stop_and_hear(&mut reader, &mut ring, &mut listener), End::Stopped);
        assert_eq!((listener.frame, listener.gaps.len()), (2000, 0), "{is_accepted}");
    }
}

/// A file keeps its unread data: a stop does not read the rest.
#[test]
fn a_stop_leaves_the_rest_of_a_file() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), data(9 * 5000)).expect("space");
    let mut reader = ReaderSource::new(File::open(file.path()).expect("a file"), about());
    let (mut ring, mut listener) = ears();
    assert_eq!(reader.service(Instant::BOOT, &mut ring), Next::Room);
    assert_eq!(stop_and_hear(&mut reader, &mut ring, &mut listener), End::Stopped);
    assert_eq!(listener.frame, 4096 / 9 * 2);
}
