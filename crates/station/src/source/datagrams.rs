//! [`Datagrams`]: UDP, to this host or to a group. Each datagram is an event, stamped by the kernel when it took the
//! packet.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::AsFd;

use hairspring_device::DeviceError;
use hairspring_machine::{Clock, Machine, Nanos};
use hairspring_time::{HeldTimebase, Timebase};

use super::{EventSource, failed, has_come, taken};
use crate::event::{Event, Stamped};
use crate::stop::Stop;
use crate::system::{self, Ready, Received};

/// Only the beginning of a datagram is looked at, in bytes.
const DATAGRAM_BYTES: usize = 64;

/// Age of a packet from which its stamp shows whether the kernel stamped it on arrival or at the read.
const WAITED: Nanos = Nanos::from_millis(1);
/// Most test packets.
const TRIES: u32 = 50;

/// Waits for datagrams. A decimal number at the beginning of one is its cycle.
#[derive(Debug)]
pub struct Datagrams<'t, M: Machine> {
    socket: UdpSocket,
    listen: SocketAddr,
    timebase: HeldTimebase<'t, M>,
    stop: &'t Stop,
    last: u64,
    dropped: u32,
    /// Whether the kernel stamps packets when it takes them.
    kernel_stamps: bool,
}

impl<'t, M: Machine> Datagrams<'t, M> {
    /// Listens on this address. A group is joined on the interface that the system chooses, and the port is shared with
    /// other members. Port 0 means any free port. Blocks for milliseconds, until packets are stamped.
    ///
    /// # Errors
    /// The port is in use; the address is not this host's.
    pub fn listen(listen: SocketAddr, timebase: &'t Timebase<M>, stop: &'t Stop) -> Result<Self, DeviceError> {
        let bind = || -> std::io::Result<UdpSocket> {
            let socket =
                if listen.ip().is_multicast() { system::shared_udp(listen)? } else { UdpSocket::bind(listen)? };
            match listen.ip() {
                IpAddr::V4(group) if group.is_multicast() => {
                    socket.join_multicast_v4(&group, &std::net::Ipv4Addr::UNSPECIFIED)?;
                }
                IpAddr::V6(group) if group.is_multicast() => socket.join_multicast_v6(&group, 0)?,
                _ => {}
            }
            socket.set_nonblocking(true)?;
            system::tell_times_and_losses(socket.as_fd())?;
            Ok(socket)
        };
        let socket = bind().map_err(|error| failed(format!("listen on {listen}"), &error))?;
        let listen = socket.local_addr().unwrap_or(listen);
        let kernel_stamps = kernel_stamps(timebase.machine()).unwrap_or(false);
        let timebase = HeldTimebase::Lent(timebase);
        Ok(Self { socket, listen, timebase, stop, last: 0, dropped: 0, kernel_stamps })
    }

    /// The address on which it listens.
    pub fn address(&self) -> SocketAddr {
        self.listen
    }
}

impl<M: Machine + Send + Sync> EventSource<M> for Datagrams<'_, M> {
    fn name(&self) -> String {
        format!("udp {}", self.listen)
    }

    fn adopt(&mut self, successor: Timebase<M>) {
        self.timebase.adopt(successor);
    }

    fn wait(&mut self) -> Result<Option<Event>, DeviceError> {
        let mut buffer = [0; DATAGRAM_BYTES];
        let waited = !self.kernel_stamps && has_come(self.socket.as_fd())?;
        loop {
            let ready = system::wait(self.socket.as_fd(), self.stop.bell());
            if ready.map_err(|error| failed(format!("wait on {}", self.listen), &error))? == Ready::Bell {
                return Ok(None);
            }
            let Received { bytes, realtime, dropped } = match system::receive(self.socket.as_fd(), &mut buffer) {
                Ok(received) => received,
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => continue,
                Err(error) => return Err(failed(format!("receive on {}", self.listen), &error)),
            };
            let wake = self.timebase.now();
            let missed = dropped.map_or(0, |dropped| dropped.wrapping_sub(self.dropped));
            self.dropped = dropped.unwrap_or(self.dropped);
            self.last += 1 + u64::from(missed);
            let (at, stamped) = match realtime.filter(|_| self.kernel_stamps) {
                Some(realtime) => (taken(&self.timebase, realtime, wake), Stamped::Kernel),
                None => (wake, Stamped::Wake),
            };
            let digits = buffer[..bytes].iter().take_while(|byte| byte.is_ascii_digit()).count();
            let cycle = std::str::from_utf8(&buffer[..digits]).ok().and_then(|number| number.parse().ok());
            let missed = u64::from(missed);
            return Ok(Some(Event { at, stamped, wake, waited, sequence: self.last, missed, cycle }));
        }
    }
}

/// Whether packets are stamped when they are taken. The kernel begins with that some time after the first socket has
/// asked for it; until then a packet gets the time at which it is read, which is useless. So this function sends
/// packets to itself and lets them wait.
fn kernel_stamps<M: Machine>(machine: &M) -> std::io::Result<bool> {
    let socket = UdpSocket::bind((std::net::Ipv4Addr::LOCALHOST, 0))?;
    socket.set_nonblocking(true)?;
    system::tell_times_and_losses(socket.as_fd())?;
    let to = socket.local_addr()?;
    for _ in 0..TRIES {
        socket.send_to(&[], to)?;
        machine.sleep_until(machine.monotonic() + WAITED);
        let realtime = system::receive(socket.as_fd(), &mut [])?.realtime;
        if realtime.is_some_and(|realtime| machine.read(Clock::Realtime) - realtime >= WAITED) {
            return Ok(true);
        }
    }
    Ok(false)
}
