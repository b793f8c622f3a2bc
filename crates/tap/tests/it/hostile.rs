//! Sockets that are no tap, or a malicious one, and malicious readers.

use std::io::{IoSlice, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use hairspring_ring::{Bytes, Frames};
use hairspring_tap::offer::READERS_MOST;
use hairspring_tap::{TapError, TapOffer, TapPlace, TapReader};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType,
};
use rustix::net::{accept, bind, listen, sendmsg, socket_with};

use super::Recorder;

fn listening(path: &Path) -> OwnedFd {
    let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).expect("a socket");
    bind(&socket, &SocketAddrUnix::new(path).expect("a path")).expect("bound");
    listen(&socket, 4).expect("listening");
    socket
}

/// Checks the error with which a reader refuses this answer of a socket.
#[track_caller]
fn refused(message: &[u8], files: &[BorrowedFd<'_>], expected: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("evil");
    let socket = listening(&path);
    let place = TapPlace::Path(path);
    let reading = std::thread::spawn(move || TapReader::open(&place).map(drop));
    let connection = accept(&socket).expect("a reader");
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(8))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !files.is_empty() {
        assert!(ancillary.push(SendAncillaryMessage::ScmRights(files)));
    }
    sendmsg(&connection, &[IoSlice::new(message)], &mut ancillary, SendFlags::empty()).expect("sent");
    drop(connection);
    let error = reading.join().expect("the reader does not panic").expect_err("it is refused");
    assert!(matches!(error, TapError::Refused(..)) && error.to_string().contains(expected), "{error}");
}

fn greeting(version: u32, text: &str) -> Vec<u8> {
    [b"hairspring-tap\0\0", &version.to_ne_bytes()[..], &(text.len() as u32).to_ne_bytes(), text.as_bytes()].concat()
}

fn memory(length: u64, seals: SealFlags) -> OwnedFd {
    let file = memfd_create(c"evil", MemfdFlags::ALLOW_SEALING | MemfdFlags::CLOEXEC).expect("a file");
    ftruncate(&file, length).expect("a length");
    fcntl_add_seals(&file, seals).expect("sealed");
    file
}

#[test]
fn what_is_no_tap_is_refused_with_what_is_wrong() {
    let (good, none) = (SealFlags::SHRINK | SealFlags::GROW, SealFlags::empty());
    let page = memory(32 << 10, good);
    let ring = memory(64 << 10, good);
    let file = tempfile::tempfile().expect("a file");
    let both = [ring.as_fd(), page.as_fd()];
    refused(b"SSH-2.0-OpenSSH", &[], "something else than a tap");
    refused(b"", &[], "something else than a tap");
    refused(&greeting(1, "")[..20], &both, "cut off");
    refused(&greeting(2, ""), &both, "version 2, and this reader knows version 1");
    refused(&greeting(1, "go \u{1b}[31maway"), &both, "it says: go \\u{1b}[31maway");
    refused(&greeting(1, ""), &[], "0 descriptors");
    refused(&greeting(1, ""), &[both[0]], "1 descriptors");
    refused(&greeting(1, ""), &[both[0], both[1], both[0], both[1]], "descriptors, and a tap has 2");
    // A page that could be truncated under the reader would kill it by SIGBUS.
    refused(&greeting(1, ""), &[both[0], memory(32 << 10, none).as_fd()], "page is not sealed");
    refused(&greeting(1, ""), &[memory(64 << 10, none).as_fd(), both[1]], "ring is not sealed");
    refused(&greeting(1, ""), &[both[0], file.as_fd()], "no file in memory");
    refused(&greeting(1, ""), &[both[0], memory(4096, good).as_fd()], "page has 4 KiB");
    refused(&greeting(1, ""), &[memory(0, good).as_fd(), both[1]], "ring has 0 B");
    // All zero.
    refused(&greeting(1, ""), &both, "no page of a tap");
}

#[test]
fn a_name_that_nobody_offers_says_how_to_offer_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("adc");
    let open = || TapReader::open(&TapPlace::Path(path.clone())).expect_err("nobody offers it");
    assert!(matches!(open(), TapError::NotOffered(_)));
    assert!(open().to_string().contains("hairspring record --tap"));
    // A recorder that was killed leaves its socket.
    drop(listening(&path));
    assert!(matches!(open(), TapError::NotOffered(_)));
    // The next one takes its place; a living one keeps it.
    let offer = TapOffer::bind(&TapPlace::Path(path.clone())).expect("the name is free");
    assert_eq!(path.metadata().expect("a socket").permissions().mode() & 0o777, 0o660);
    let second = TapOffer::bind(&TapPlace::Path(path.clone())).expect_err("the name is taken");
    assert!(second.to_string().contains("another recorder"), "{second}");
    drop(offer);
    assert!(!path.exists());
    std::fs::write(&path, "mine").expect("a file");
    assert!(TapOffer::bind(&TapPlace::Path(path.clone())).is_err());
    assert_eq!(std::fs::read(&path).expect("still there"), b"mine");
}

/// Readers send unrequested bytes, read nothing, or leave at once; then the last place is taken. A good reader beside
/// them gets everything.
#[test]
fn readers_of_ill_will_harm_nobody() {
    let mut recorder = Recorder::begin(Bytes::kib(64));
    let mut good = recorder.reader();
    let path = recorder.socket();
    let connect = || {
        let socket =
            socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).expect("a socket");
        rustix::net::connect(&socket, &SocketAddrUnix::new(&path).expect("a path"))
            .map(|()| std::fs::File::from(socket))
    };
    (0..50).for_each(|_| drop(connect()));
    let mut noisy = connect().expect("connected");
    for _ in 0..10 {
        noisy.write_all(b"give me more").expect("sent");
    }
    let mut held: Vec<TapReader> = Vec::new();
    // The places of readers that left become free at the recorder's next check.
    let told = loop {
        match TapReader::open(&recorder.place) {
            Ok(reader) => held.push(reader),
            Err(error) => break error,
        }
        assert!(held.len() <= READERS_MOST);
    };
    assert!(told.to_string().contains("64 readers look on already"), "{told}");
    drop(held);
    recorder.produce(1000);
    let mut bytes = vec![0; 4000];
    assert_eq!(good.read(&mut bytes).frames, Frames(1000));
    assert!(recorder.counts().refused >= 1);
}
