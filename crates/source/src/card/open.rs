//! Opening a card: from its description to a source.

use std::fs::{File, OpenOptions};
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream, ToSocketAddrs as _, UdpSocket};
use std::os::fd::AsFd as _;
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::time::Duration;

use super::{Card, CardError, CardKind};
use crate::pattern::Pattern;
use crate::source::Source;
use crate::source::descriptor::bind_to_group;
use crate::source::reader::{ReaderSource, StreamInfo};
use crate::source::udp::UdpSource;
use crate::source::virtual_card::{Settings, UnpacedCard, VirtualCard};
use hairspring_ring::units::{Bytes, Frames};

/// The longest time for a connection.
const PATIENCE: Duration = Duration::from_secs(10);

impl Card {
    /// Opens the source. It ends after `limit` frames, or after the card's own limit if that is less. Both are rounded
    /// up to whole grains.
    ///
    /// Looks up names, and connects for `tcp`, which takes at most ten seconds for each address. Nothing else blocks.
    ///
    /// # Errors
    /// The system's refusal, with a remedy.
    pub fn open(&self, limit: Option<Frames>) -> Result<Box<dyn Source>, CardError> {
        let frames = [self.frames, limit].into_iter().flatten().min();
        let pattern = self.pattern.unwrap_or(Pattern::Noise { seed: 0 });
        let refused = |remedy| move |error| self.refused(error, remedy);
        Ok(match (self.kind, self.rate()) {
            (CardKind::Virtual, Some(rate)) => Box::new(VirtualCard::new(Settings {
                layout: self.layout,
                rate,
                pattern,
                fifo: self.fifo.unwrap_or(Bytes::mib(64)),
                jitter: self.jitter,
                hiccups: self.hiccups.clone(),
                bus: self.bus,
                frames,
            })),
            (CardKind::Virtual | CardKind::Unpaced, _) => Box::new(UnpacedCard::new(self.layout, pattern, frames)),
            (CardKind::File, _) => Box::new(ReaderSource::new(self.open_path(false)?, self.about(frames))),
            (CardKind::Pipe, _) => Box::new(ReaderSource::new(self.open_path(true)?, self.about(frames))),
            (CardKind::Stdin, _) => {
                let input = io::stdin().as_fd().try_clone_to_owned().map_err(refused("give this command an input"))?;
                Box::new(ReaderSource::new(File::from(input), self.about(frames)))
            }
            (CardKind::Tcp, _) => {
                let remedy = "start the sender first, or make this side wait: write tcp-listen:";
                let connected = self.try_addresses(remedy, |address| TcpStream::connect_timeout(&address, PATIENCE))?;
                Box::new(ReaderSource::connected(connected, self.about(frames)).map_err(refused(remedy))?)
            }
            (CardKind::TcpListen, _) => {
                let remedy = "choose an address of this computer, 0.0.0.0 for all, and a free port";
                let listener = self.try_addresses(remedy, TcpListener::bind)?;
                Box::new(ReaderSource::listening(listener, self.about(frames)).map_err(refused(remedy))?)
            }
            (CardKind::Udp, _) => {
                let remedy =
                    "choose an address of this computer, 0.0.0.0 for all, or a multicast group, and a free port";
                let socket = self.try_addresses(remedy, |address| self.bind(address))?;
                let (sequence, header_bytes, from) = (self.sequence, self.header_bytes, self.senders()?);
                let source = UdpSource::new(socket, sequence, header_bytes, self.fifo, from, self.about(frames));
                Box::new(source.map_err(refused(remedy))?)
            }
        })
    }

    fn about(&self, frames: Option<Frames>) -> StreamInfo {
        let hardware = format!("{} {}", self.kind.name(), self.address).trim_end().to_owned();
        StreamInfo { layout: self.layout, rate: self.rate(), pattern: self.pattern, frames, hardware }
    }

    fn refused(&self, error: io::Error, remedy: &'static str) -> CardError {
        CardError::Open { what: format!("{} {}", self.kind.name(), self.address).trim_end().to_owned(), error, remedy }
    }

    fn open_path(&self, pipe: bool) -> Result<File, CardError> {
        let remedy = "name an existing file that you may read";
        let kind = std::fs::metadata(&self.address).map_err(|error| self.refused(error, remedy))?.file_type();
        if kind.is_dir() {
            return Err(self.refused(io::ErrorKind::IsADirectory.into(), remedy));
        }
        if kind.is_fifo() != pipe {
            let remedy = if pipe { "it is not a named pipe: write file:" } else { "it is a named pipe: write pipe:" };
            return Err(self.refused(io::ErrorKind::InvalidInput.into(), remedy));
        }
        // Not blocking: opening a pipe would wait for its writer.
        let opened = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(&self.address);
        opened.map_err(|error| self.refused(error, remedy))
    }

    /// Tries each address of the name. Returns the first success, or the last error.
    fn try_addresses<T>(
        &self,
        remedy: &'static str,
        mut attempt: impl FnMut(SocketAddr) -> io::Result<T>,
    ) -> Result<T, CardError> {
        let addresses = self.address.to_socket_addrs();
        let addresses = addresses.map_err(|error| self.refused(error, "name an existing host, or its address"))?;
        let mut last = io::ErrorKind::AddrNotAvailable.into();
        for address in addresses {
            match attempt(address) {
                Ok(opened) => return Ok(opened),
                Err(error) => last = error,
            }
        }
        Err(self.refused(last, remedy))
    }

    /// The addresses of the accepted sender; empty to accept the first one.
    fn senders(&self) -> Result<Vec<SocketAddr>, CardError> {
        let Some(from) = &self.from else { return Ok(Vec::new()) };
        let found = from.to_socket_addrs().map(Iterator::collect);
        found.map_err(|error| self.refused(error, "from= names an unknown host: write its address"))
    }

    /// Binds the socket, and joins the group of a multicast address. It binds to the group itself, so that no other
    /// datagrams arrive.
    fn bind(&self, address: SocketAddr) -> io::Result<UdpSocket> {
        // Several programs may listen to a group, but only one to a unicast address.
        let socket = match address.ip().is_multicast() {
            true => bind_to_group(address)?,
            false => UdpSocket::bind(address)?,
        };
        match (address.ip(), self.join) {
            (IpAddr::V4(group), join) if group.is_multicast() => {
                let interface = match join {
                    None => Ipv4Addr::UNSPECIFIED,
                    Some(IpAddr::V4(interface)) => interface,
                    Some(IpAddr::V6(_)) => return Err(io::ErrorKind::InvalidInput.into()),
                };
                socket.join_multicast_v4(&group, &interface)?;
            }
            (IpAddr::V6(group), None) if group.is_multicast() => socket.join_multicast_v6(&group, 0)?,
            (_, None) => {}
            // An interface is for a group of IPv4.
            (_, Some(_)) => return Err(io::ErrorKind::InvalidInput.into()),
        }
        Ok(socket)
    }
}
