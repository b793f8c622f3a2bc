//! The one message of a tap's socket: the recorder sends a reader two descriptors, or the reason for a refusal.
//!
//! ```text
//!   0  "hairspring-tap\0\0"
//!  16  version of the layout   u32
//!  20  bytes of text           u32     0 with descriptors; else why there are none
//!  24  text
//! ```
//!
//! The numbers are in the byte order of the machine. The descriptors of ring and page, in this order, are attached as
//! SCM_RIGHTS.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};

use hairspring_ring::SharedRing;
use hairspring_ring::page::PAGE_VERSION;
use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
    recvmsg, sendmsg,
};

const MAGIC: [u8; 16] = *b"hairspring-tap\0\0";
const HEAD: usize = 24;
/// The longest text in bytes.
const TEXT_MOST: usize = 232;

/// Sends the descriptors, or the reason for a refusal. Never blocks: the message fits into the buffer of a new socket.
pub(crate) fn send(to: impl AsFd, given: Result<&SharedRing, &str>) -> io::Result<()> {
    let text = given.err().unwrap_or_default();
    let text = &text.as_bytes()[..text.len().min(TEXT_MOST)];
    let mut message = MAGIC.to_vec();
    message.extend((PAGE_VERSION as u32).to_ne_bytes());
    message.extend((text.len() as u32).to_ne_bytes());
    message.extend(text);
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    let files = given.ok().map(|shared| [shared.ring.as_fd(), shared.page.as_fd()]);
    if let Some(files) = &files {
        ancillary.push(SendAncillaryMessage::ScmRights(files));
    }
    let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
    sendmsg(to, &[IoSlice::new(&message)], &mut ancillary, flags)?;
    Ok(())
}

/// Receives the descriptors. Blocks up to the socket's time-out.
///
/// # Errors
/// A sentence that describes what was wrong with the answer.
pub(crate) fn receive(from: impl AsFd) -> Result<SharedRing, String> {
    let mut message = [0; HEAD + TEXT_MOST];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let received = loop {
        match recvmsg(&from, &mut [IoSliceMut::new(&mut message)], &mut ancillary, RecvFlags::CMSG_CLOEXEC) {
            Err(Errno::INTR) => {}
            received => break received,
        }
    };
    let received = received.map_err(|error| match error {
        Errno::AGAIN => "it accepts the connection and does not answer".to_owned(),
        error => io::Error::from(error).to_string(),
    })?;
    let mut files: Vec<OwnedFd> = Vec::new();
    for one in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = one {
            files.extend(rights);
        }
    }
    let answer = &message[..received.bytes];
    let number = |at: usize| answer.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).map(u32::from_ne_bytes);
    if !answer.starts_with(&MAGIC) {
        return Err("it answers with something else than a tap".to_owned());
    }
    let (Some(version), Some(length)) = (number(16), number(20)) else {
        return Err("its answer is cut off".to_owned());
    };
    if length > 0 {
        return Err(format!("it says: {}", String::from_utf8_lossy(&answer[HEAD..]).escape_debug()));
    }
    if u64::from(version) != PAGE_VERSION {
        return Err(format!(
            "its layout has version {version}, and this reader knows version {PAGE_VERSION}: use a reader of the recorder's release"
        ));
    }
    let count = files.len();
    let [ring, page] =
        <[OwnedFd; 2]>::try_from(files).map_err(|_| format!("it sends {count} descriptors, and a tap has 2"))?;
    Ok(SharedRing { ring, page })
}
