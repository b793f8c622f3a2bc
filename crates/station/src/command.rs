//! [`CommandSocket`]: sets and gets properties from other processes of this host, answered by the thread that watches
//! the station.
//!
//! **Protocol.** A Unix socket of packets (`SOCK_SEQPACKET`). A packet is a request, and has one answer:
//!
//! ```text
//! get shutter.width             ok 20000
//! set shutter.width 30000       ok 30000
//! set shutter.width 30000 cycle 17 from 10.0.0.7:4711 as alice
//!                               no 30000 ns is outside the limits of width: 5000 to 25000 ns
//! ```
//!
//! `from` and `as` name the client for which a bridge asks: these are claims, for the log and for the station's list of
//! accounts. The identity of the process itself comes from the kernel (`SO_PEERCRED`).
//!
//! **Who may ask.** Root, and processes of the station's own user or group; others are refused. The file of the socket
//! has mode 0660.
//!
//! **It never waits.** Everything is non-blocking and bounded: connections, requests per call, bytes of a request. A
//! client that does not take its answer is disconnected.

use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use hairspring_device::DeviceError;
use hairspring_device::refusal::refusal;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType, accept_with, bind, listen, recv,
    send, socket_with, sockopt,
};

use crate::property::Property;

/// The name of the socket in the folder of a station.
pub const COMMAND_FILE: &str = "command";
/// Most connections; more wait in the kernel's queue or are refused by it.
const CLIENTS_MOST: usize = 16;
/// Most requests of a client that one call answers.
const REQUESTS_MOST: usize = 32;
/// Bytes of a request.
const REQUEST_BYTES: usize = 512;

/// The client that asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Process id, user and group, as the kernel reports them.
    pub process: u32,
    /// Its user.
    pub user: u32,
    /// Its group.
    pub group: u32,
    /// The address on whose behalf it asks, if it names one.
    pub from: Option<String>,
    /// The account on whose behalf it asks, if it names one.
    pub account: Option<String>,
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { process, user, .. } = self;
        write!(f, "process {process} of user {user}")?;
        if let Some(from) = &self.from {
            write!(f, ", for {from}")?;
        }
        if let Some(account) = &self.account {
            write!(f, ", who says to be {account:?}")?;
        }
        Ok(())
    }
}

/// Requests about properties.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PropertyRequest {
    /// The value in force.
    Get {
        /// The unit.
        unit: String,
        /// Its property.
        property: Property,
    },
    /// To set a value.
    Set {
        /// The unit.
        unit: String,
        /// Its property.
        property: Property,
        /// The new value.
        value: i64,
        /// The cycle at whose event to apply it; without one, the next event.
        cycle: Option<u64>,
    },
}

impl fmt::Display for PropertyRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Get { unit, property } => write!(f, "get {unit}.{property}"),
            Self::Set { unit, property, value, cycle } => {
                write!(f, "set {unit}.{property} {value}")?;
                cycle.map_or(Ok(()), |cycle| write!(f, " cycle {cycle}"))
            }
        }
    }
}

/// Parses a request: the request itself, and the address and the account on whose behalf it is made.
///
/// # Errors
/// A sentence that shows the correct form.
pub fn parse(text: &str) -> Result<(PropertyRequest, Option<String>, Option<String>), String> {
    const FORM: &str =
        "write: get UNIT.PROPERTY, or set UNIT.PROPERTY VALUE [cycle NUMBER] [from ADDRESS] [as ACCOUNT]";
    let (text, account) = match text.split_once(" as ") {
        Some((text, account)) => (text, Some(account.to_owned())),
        None => (text, None),
    };
    let mut words = text.split_ascii_whitespace();
    let (act, name) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let (unit, property) = name.rsplit_once('.').ok_or(FORM)?;
    let (unit, property) = (unit.to_owned(), property.parse()?);
    if act == "get" {
        return if words.next().is_none() {
            Ok((PropertyRequest::Get { unit, property }, None, account))
        } else {
            Err(FORM.into())
        };
    }
    if act != "set" {
        return Err(FORM.to_owned());
    }
    let value = words.next().ok_or(FORM)?;
    let value = value.parse().map_err(|_| format!("{value:?} is no value of {property}: write a whole number"))?;
    let (mut cycle, mut from) = (None, None);
    while let Some(word) = words.next() {
        match (word, words.next()) {
            ("cycle", Some(number)) => {
                cycle = Some(number.parse().map_err(|_| format!("{number:?} is no cycle: write a whole number"))?);
            }
            ("from", Some(address)) => from = Some(address.to_owned()),
            _ => return Err(FORM.to_owned()),
        }
    }
    Ok((PropertyRequest::Set { unit, property, value, cycle }, from, account))
}

/// The socket of a station, and its clients.
#[derive(Debug)]
pub struct CommandSocket {
    path: PathBuf,
    listener: OwnedFd,
    clients: Vec<(OwnedFd, Peer)>,
}

impl CommandSocket {
    /// Makes the socket in this folder. It replaces the socket of a dead station: the folder has one station at a time.
    ///
    /// # Errors
    /// The system refused.
    pub fn bind(folder: &Path) -> Result<Self, DeviceError> {
        let path = folder.join(COMMAND_FILE);
        let made = Self::made(&path).map_err(|error| {
            let attempted = format!("make the socket {}", path.display());
            refusal(attempted, &error, "choose a shorter name, or a folder that this user may write to")
        })?;
        Ok(Self { path, listener: made, clients: Vec::new() })
    }

    fn made(path: &Path) -> io::Result<OwnedFd> {
        match std::fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let listener = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
        bind(&listener, &SocketAddrUnix::new(path)?)?;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o660))?;
        listen(&listener, CLIENTS_MOST as i32)?;
        Ok(listener)
    }

    /// Answers all requests since the last call. `answer` returns the value for an `ok`, or the sentence of a refusal;
    /// requests of strangers and malformed ones never reach it. Does not block.
    pub fn look(&mut self, answer: &mut dyn FnMut(&Peer, &PropertyRequest) -> Result<i64, String>) {
        while self.clients.len() < CLIENTS_MOST {
            let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
            let Ok(client) = accept_with(&self.listener, flags) else { break };
            let Ok(credentials) = sockopt::socket_peercred(&client) else { continue };
            let peer = Peer {
                process: credentials.pid.as_raw_nonzero().get().cast_unsigned(),
                user: credentials.uid.as_raw(),
                group: credentials.gid.as_raw(),
                from: None,
                account: None,
            };
            self.clients.push((client, peer));
        }
        self.clients.retain(|(client, peer)| serve(client, peer, answer));
    }
}

impl Drop for CommandSocket {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Answers the requests of one client; false if it has gone or does not take its answers.
fn serve(
    client: &OwnedFd,
    peer: &Peer,
    answer: &mut dyn FnMut(&Peer, &PropertyRequest) -> Result<i64, String>,
) -> bool {
    let mut buffer = [0; REQUEST_BYTES + 1];
    for _ in 0..REQUESTS_MOST {
        let length = match recv(client, &mut buffer, RecvFlags::empty()) {
            Ok((0, _)) => return false,
            Ok((length, _)) => length,
            Err(Errno::AGAIN | Errno::INTR) => return true,
            Err(_) => return false,
        };
        let answered = match str::from_utf8(&buffer[..length]) {
            _ if length > REQUEST_BYTES => Err(format!("a request has at most {REQUEST_BYTES} bytes")),
            Err(_) => Err("a request is UTF-8".to_owned()),
            Ok(text) => answered(peer, text, answer),
        };
        let text = match answered {
            Ok(value) => format!("ok {value}"),
            Err(why) => format!("no {why}"),
        };
        if send(client, text.as_bytes(), SendFlags::NOSIGNAL | SendFlags::DONTWAIT).is_err() {
            return false;
        }
    }
    true
}

fn answered(
    peer: &Peer,
    text: &str,
    answer: &mut dyn FnMut(&Peer, &PropertyRequest) -> Result<i64, String>,
) -> Result<i64, String> {
    let own = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    if !is_known(peer, own) {
        return Err(format!("user {} is a stranger here: join the group of the station's user", peer.user));
    }
    let (request, from, account) = parse(text)?;
    answer(&Peer { from, account, ..peer.clone() }, &request)
}

/// Whether a process may use a station of this user and group.
fn is_known(peer: &Peer, (user, group): (u32, u32)) -> bool {
    peer.user == 0 || peer.user == user || peer.group == group
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn requests_say_what_is_asked_and_for_whom() {
        let set = |value, cycle| PropertyRequest::Set { unit: "a".to_owned(), property: Property::Width, value, cycle };
        let text = |text: &str| Some(text.to_owned());
        for (request, read) in [
            ("set a.width 30", (set(30, None), None, None)),
            ("set a.width -3 cycle 17", (set(-3, Some(17)), None, None)),
            (
                "set a.width 3 cycle 17 from [::1]:99 as Alice as root",
                (set(3, Some(17)), text("[::1]:99"), text("Alice as root")),
            ),
        ] {
            assert_eq!(parse(request), Ok(read), "{request}");
        }
        let get = PropertyRequest::Get { unit: "b.c".to_owned(), property: Property::Enable };
        assert_eq!(parse("get b.c.enable"), Ok((get, None, None)));
        for (request, says) in [
            ("", "write: get"),
            ("get", "write: get"),
            ("get a.width 3", "write: get"),
            ("put a.width 3", "write: get"),
            ("set a.width", "write: get"),
            ("set a.colour 3", "there is no property \"colour\"; there are enable"),
            ("set a.width 3.5", "\"3.5\" is no value of width: write a whole number"),
            ("set a.width red", "\"red\" is no value"),
            ("set a.width 3 cycle -1", "\"-1\" is no cycle"),
            ("set a.width 3 soon", "write: get"),
        ] {
            assert!(parse(request).is_err_and(|why| why.starts_with(says)), "{request}");
        }
    }

    proptest! {
        /// Also texts that are nearly correct.
        #[test]
        fn any_text_is_a_request_that_is_read_again_or_a_sentence(
            words in prop::collection::vec("get|set|a.width|b.c.enable|[0-9]{1,22}|-?[0-9]|cycle|from|as|[^ ]{0,9}", 0..9),
        ) {
            match parse(&words.join(" ")) {
                Ok((request, ..)) => prop_assert_eq!(parse(&request.to_string()).map(|(again, ..)| again), Ok(request)),
                Err(why) => prop_assert!(!why.is_empty()),
            }
        }
    }

    #[test]
    fn strangers_are_those_of_another_user_and_group() {
        let peer = |user, group| Peer { process: 1, user, group, from: None, account: None };
        for (user, group, known) in [(0, 5, true), (100, 5, true), (101, 50, true), (101, 5, false)] {
            assert_eq!(is_known(&peer(user, group), (100, 50)), known, "{user} {group}");
        }
    }
}
