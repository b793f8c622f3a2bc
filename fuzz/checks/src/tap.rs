//! A live tap with a malicious recorder: its greeting, its descriptors, its page and its ring are any bytes. A reader
//! refuses it or reads on, and copies only as much as it has room for.

use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use hairspring_ring::Frames;
use hairspring_ring::page::{PAGE_BYTES, PAGE_VERSION};
use hairspring_tap::TapReader;
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType, sendmsg, socketpair,
};

use crate::Input;

/// The head of the page, in words of 8 bytes: magic, version, id, capacity, channels, bits, container, rate, text.
fn page(capacity: u64) -> Vec<u8> {
    let facts = [u64::from_ne_bytes(*b"hairtap\0"), PAGE_VERSION, 1, 2, capacity, 2, 16, 3, 1000, 1, 0];
    let mut page: Vec<u8> = facts.iter().flat_map(|word| word.to_ne_bytes()).collect();
    page.resize(PAGE_BYTES, 0);
    // Head and frontier.
    page[128..136].copy_from_slice(&(capacity / 2).to_ne_bytes());
    page[256..264].copy_from_slice(&(capacity / 2).to_ne_bytes());
    page
}

fn in_memory(bytes: &[u8], seals: SealFlags) -> OwnedFd {
    let file = memfd_create(c"tap", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).expect("memory");
    let mut written = 0;
    while written < bytes.len() {
        written += rustix::io::write(&file, &bytes[written..]).expect("written");
    }
    fcntl_add_seals(&file, seals).expect("sealed");
    file
}

fn greet(to: impl AsFd, message: &[u8], files: &[BorrowedFd<'_>]) {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !files.is_empty() {
        ancillary.push(SendAncillaryMessage::ScmRights(files));
    }
    let _ = sendmsg(to, &[IoSlice::new(message)], &mut ancillary, SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
}

/// Checks the module's promise.
///
/// # Panics
/// The bytes break it.
pub fn check(bytes: &[u8]) {
    let mut input = Input(bytes);
    let what = input.byte();
    let (ours, theirs) =
        socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).expect("a pair");
    if what & 1 == 1 {
        // Any greeting, with descriptors that are none of a tap.
        let files = [ours.as_fd(), theirs.as_fd(), theirs.as_fd()];
        greet(&theirs, input.take(300), &files[..usize::from(what >> 1) % 4]);
        drop(theirs);
        assert!(TapReader::over(ours).is_err());
        return;
    }
    let capacity = 4096 * (1 + u64::from(what >> 1 & 3));
    let mut page = page(capacity);
    let mut into = vec![0_u8; usize::from(input.short()) % 9000];
    let reads = input.byte() % 8;
    while !input.is_empty() {
        let place = usize::from(input.short()) % (PAGE_BYTES / 8) * 8;
        let word = input.long();
        page[place..place + 8].copy_from_slice(&word.to_ne_bytes());
    }
    let seals = if what & 8 == 0 { SealFlags::SHRINK | SealFlags::GROW } else { SealFlags::GROW };
    let (ring, page) = (in_memory(&vec![7; capacity as usize], seals), in_memory(&page, seals));
    let mut message = b"hairspring-tap\0\0".to_vec();
    message.extend((PAGE_VERSION as u32).to_ne_bytes());
    message.extend(0_u32.to_ne_bytes());
    greet(&theirs, &message, &[ring.as_fd(), page.as_fd()]);
    let Ok(mut reader) = TapReader::over(ours) else { return };
    assert!(seals.contains(SealFlags::SHRINK), "a file that could be cut was accepted");
    let grain = reader.layout().grain();
    for number in 0..reads {
        let _ = (reader.available(), reader.gaps(), reader.clocks(), reader.head(), reader.rate());
        let piece = reader.read(&mut into);
        assert!(reader.layout().bytes_of(piece.frames).0 <= into.len() as u64);
        assert!(piece.frames.0.is_multiple_of(grain.frames), "{piece:?}");
        let _ = (reader.skip_to_newest(Frames(u64::from(number))), reader.missed());
    }
    let _ = (reader.wait(Frames(1), Duration::ZERO), reader.channels_text().len());
}
