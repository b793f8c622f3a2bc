//! [`TapOffer`]: the socket by which a recorder hands its ring to readers.
//!
//! One thread of the caller serves it. It waits in one call for connections and for readers that leave; it wakes for
//! nothing else, so it costs nothing while no reader connects. The connection of a reader stays open and is never read:
//! when the recorder dies, the kernel closes it, which notifies the reader.
//!
//! The socket has the mode 0660: processes of its owner and of its group may connect. A reader can harm only itself,
//! because it has a connection of its own and both descriptors are sealed.

use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use hairspring_machine::Nanos;
use hairspring_ring::SharedRing;
use hairspring_ring::notifier::Notifier;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{Mode, fchmod};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use rustix::net::{accept_with, bind, listen, socket_with, sockopt::socket_peercred};

use crate::greeting;
use crate::place::TapPlace;

/// Most readers at once. Each costs the recorder one descriptor; the next one is refused.
pub const READERS_MOST: usize = 64;
/// Connections that wait for being accepted.
const WAITING_MOST: i32 = 16;
/// How long to wait before the next try to accept a reader when descriptors are short.
const NO_ROOM: Nanos = Nanos::from_millis(200);
/// Owner and group.
const MODE: u32 = 0o660;

/// Counts of admitted and refused readers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TapCounts {
    /// Readers that got the descriptors.
    pub admitted: u64,
    /// Readers refused for lack of room.
    pub refused: u64,
    /// The users of the readers, each once, in order of arrival.
    pub users: Vec<u32>,
}

/// A socket that is bound, so that its name is taken. Dropping it removes the socket.
#[derive(Debug)]
pub struct TapOffer {
    socket: OwnedFd,
    path: PathBuf,
    /// The file's device and inode: at the removal the name may belong to another socket.
    file: (u64, u64),
}

impl TapOffer {
    /// Makes the socket, and the folder of taps if it is missing. A socket that a recorder left when it died is
    /// replaced.
    ///
    /// # Errors
    /// `AddrInUse` if another recorder offers this name; otherwise the system's error.
    pub fn bind(place: &TapPlace) -> io::Result<Self> {
        let path = place.to_offer();
        if let (TapPlace::Name(_), Some(folder)) = (place, path.parent()) {
            make_folder(folder)?;
        }
        clear(&path)?;
        let address = SocketAddrUnix::new(&path)?;
        let socket = socket_with(
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::CLOEXEC | SocketFlags::NONBLOCK,
            None,
        )?;
        // Set the mode before `bind`, so that other users can never connect in between. The second call restores the
        // bits that the umask removed.
        fchmod(&socket, Mode::from_raw_mode(MODE))?;
        bind(&socket, &address)?;
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(MODE))?;
        let file = std::fs::symlink_metadata(&path)?;
        let offer = Self { socket, path, file: (file.dev(), file.ino()) };
        listen(&offer.socket, WAITING_MOST)?;
        Ok(offer)
    }

    /// The path of the socket.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Sends the ring to every reader that connects, until `stop` is notified. Blocks and allocates: not for a thread
    /// that serves a source or a disk.
    ///
    /// # Errors
    /// The system cannot wait for connections. A reader that fails is no error.
    pub fn serve(&self, shared: &SharedRing, stop: &Notifier) -> io::Result<TapCounts> {
        let mut counts = TapCounts::default();
        let mut readers: Vec<OwnedFd> = Vec::new();
        loop {
            let nothing = PollFlags::empty();
            let mut waits = vec![PollFd::new(stop, PollFlags::IN), PollFd::new(&self.socket, PollFlags::IN)];
            // Without requested events `poll` still reports that the reader has gone. Bytes that a reader sends are
            // never read.
            waits.extend(readers.iter().map(|reader| PollFd::new(reader, nothing)));
            match poll(&mut waits, None) {
                Ok(_) => {}
                Err(Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            }
            let found: Vec<PollFlags> = waits.iter().map(PollFd::revents).collect();
            drop(waits);
            if !found[0].is_empty() {
                return Ok(counts);
            }
            let mut gone = found[2..].iter().map(|found| !found.is_empty());
            readers.retain(|_| !gone.next().unwrap_or(false));
            if !found[1].is_empty() && !self.admit(shared, &mut readers, &mut counts) {
                stop.wait(None, NO_ROOM);
            }
        }
    }

    /// Accepts every connection that waits; `false` if the system has no room for one.
    fn admit(&self, shared: &SharedRing, readers: &mut Vec<OwnedFd>, counts: &mut TapCounts) -> bool {
        loop {
            let reader = match accept_with(&self.socket, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK) {
                Ok(reader) => reader,
                Err(Errno::AGAIN) => return true,
                // The reader left before it was accepted.
                Err(Errno::CONNABORTED | Errno::INTR) => continue,
                // Descriptors or memory are short. The connection still waits, so the next wait would end at once.
                Err(_) => return false,
            };
            if readers.len() >= READERS_MOST {
                counts.refused += 1;
                let _ = greeting::send(&reader, Err(&format!("{READERS_MOST} readers look on already")));
                continue;
            }
            if greeting::send(&reader, Ok(shared)).is_err() {
                continue;
            }
            counts.admitted += 1;
            if let Ok(peer) = socket_peercred(&reader)
                && !counts.users.contains(&peer.uid.as_raw())
            {
                counts.users.push(peer.uid.as_raw());
            }
            readers.push(reader);
        }
    }
}

impl Drop for TapOffer {
    fn drop(&mut self) {
        let ours = std::fs::symlink_metadata(&self.path).is_ok_and(|file| (file.dev(), file.ino()) == self.file);
        if ours {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// The folder of a session's taps belongs to the user alone; the system's folder is readable by all.
fn make_folder(folder: &Path) -> io::Result<()> {
    let mode = if folder.starts_with("/run/hairspring") { 0o755 } else { 0o700 };
    match std::fs::DirBuilder::new().mode(mode).create(folder) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

/// Removes a socket without a listener.
fn clear(path: &Path) -> io::Result<()> {
    let Ok(found) = std::fs::symlink_metadata(path) else { return Ok(()) };
    let taken = |text: &str| Err(io::Error::new(ErrorKind::AddrInUse, text));
    if !found.file_type().is_socket() {
        return taken("there is a file of another kind: choose another name, or remove it");
    }
    match crate::reader::dial(path) {
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => std::fs::remove_file(path),
        _ => taken("another recorder offers a tap of this name: choose another name"),
    }
}
