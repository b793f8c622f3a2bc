//! The source of datagrams beside a plain receiver: a loop of `recv` into one buffer, which checks nothing. A sender on
//! another thread floods a port of the loopback interface; each receiver has its turn in each round. Ours takes the
//! kernel's stamps and counts, checks sender, size and number of each datagram, and copies the samples into the ring.
//! Datagrams that it missed must be in its gaps. It is served as in a recording, whose thread sleeps while several
//! datagrams gather.
//!
//! Sender and receiver have a CPU of their own, as where the sender is another computer. Left alone, the scheduler puts
//! a receiver that blocks for each datagram onto its sender's CPU, and another one elsewhere: then the rates would
//! compare places. Both are shown.

#![expect(unsafe_code, reason = "setsockopt, for a sender that hands the kernel several datagrams by one call")]

use std::io::ErrorKind;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::AsRawFd as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant as StdInstant};

use hairspring_machine::{Cpu, CpuSet, Held, Host, Machine as _, Nanos, Wish};
use hairspring_ring::memory::{Memory, Pages};
use hairspring_ring::{Bytes, Layout, OnOverrun, ring};
use hairspring_sheet::{Figure, Method, Unit};
use hairspring_source::reader::StreamInfo;
use hairspring_source::udp::UdpSource;
use hairspring_source::{Next, Source as _};
use hairspring_suite::interleaving::median;

use crate::report;

const ROUNDS: usize = 9;
const TURN: Duration = Duration::from_millis(400);
/// The receive buffer of both.
const FIFO: Bytes = Bytes::mib(4);
/// As in a recording.
const TOO_SHORT_TO_SLEEP: Nanos = Nanos::from_micros(5);
/// Bytes before the samples: the number.
const HEADER: usize = 8;

/// Traffic of a sender: bytes of samples in a datagram, and datagrams by one call.
const TRAFFIC: [(usize, usize); 3] = [(1_464, 1), (8_192, 1), (1_464, 40)];

/// Compares the two for each kind of traffic.
pub(crate) fn run(quick: bool) -> Result<(), String> {
    println!("## Datagrams\n");
    println!(
        "{ROUNDS} rounds of {} ms each over the loopback interface; bytes of samples that arrived. A plain receiver calls `recv` in a loop \
         and looks at nothing.\n",
        TURN.as_millis()
    );
    println!(
        "| traffic | CPUs | what | n | min | median | max | against |\n| --- | --- | --- | ---: | ---: | ---: | ---: | --- |"
    );
    let cases = TRAFFIC.into_iter().flat_map(|traffic| [true, false].map(|apart| (traffic, apart)));
    for ((samples, burst), apart) in cases {
        let mut rates = [Vec::new(), Vec::new()];
        let rounds = if quick { ROUNDS.div_ceil(4) } else { ROUNDS };
        for round in 0..rounds {
            eprintln!("datagrams of {samples} bytes, {burst} a call, round {} of {rounds}", round + 1);
            let mut turns = [0, 1];
            turns.rotate_left(round % 2);
            for turn in turns {
                rates[turn].push(one(samples, burst, turn == 1, apart)?);
            }
        }
        let medians = [median(&rates[0]), median(&rates[1])];
        for (index, name) in ["plain receiver", "source into the ring"].into_iter().enumerate() {
            let figure = Figure::from_samples(Unit::BytesPerS, Method::Rate, &mut rates[index]);
            let cells = [figure.min, figure.median, figure.max].map(|value| report::cell(value, Unit::BytesPerS));
            let against = match index {
                0 => "–".to_owned(),
                _ => format!("{:.1} % of the plain receiver", medians[1] / medians[0] * 100.0),
            };
            let traffic = format!("{samples} bytes, {burst} a call");
            let place = if apart { "one each" } else { "the scheduler's choice" };
            println!("| {traffic} | {place} | {name} | {} | {} | {against} |", figure.n, cells.join(" | "));
        }
    }
    println!();
    Ok(())
}

/// The rate at which one receiver got samples.
fn one(samples: usize, burst: usize, ours: bool, apart: bool) -> Result<f64, String> {
    let told = |what: &'static str| move |error: std::io::Error| format!("{what}: {error}");
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).map_err(told("bind a port"))?;
    let sender = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).map_err(told("bind a port"))?;
    let address = socket.local_addr().map_err(told("ask for the port"))?;
    sender.connect(address).map_err(told("connect the sender"))?;
    if burst > 1 {
        send_in_segments(&sender, HEADER + samples).map_err(told("set UDP_SEGMENT"))?;
    }
    let (stop, all_sent) = (AtomicBool::new(false), AtomicBool::new(false));
    let cpus = Host.affinity().0;
    let place = |cpu: Option<&Cpu>| {
        let cpu = cpu.filter(|_| apart && cpus.len() > 1)?;
        Held::take(&Host, Wish::Affinity(CpuSet(vec![*cpu]))).ok()
    };
    std::thread::scope(|scope| {
        let _receiver = place(cpus.last());
        let sending = scope.spawn(|| {
            let _sender = place(cpus.first());
            let sent = flood(&sender, samples, burst, &stop);
            // Release: pairs with the Acquire of the source, which has then got the last datagrams.
            all_sent.store(true, Ordering::Release);
            sent
        });
        let received = if ours { source(socket, &stop, &all_sent) } else { plain(&socket, &stop) };
        // Relaxed: a plain flag.
        stop.store(true, Ordering::Relaxed);
        let sent = sending.join().map_err(|_| "send datagrams".to_owned())?.map_err(told("send datagrams"))?;
        let (rate, accounted) = received?;
        match accounted {
            Some(accounted) if accounted != sent * samples as u64 => Err(format!(
                "account for {} bytes that were sent: {accounted} are stored or declared lost",
                sent * samples as u64
            )),
            _ => Ok(rate),
        }
    })
}

/// Sends until `stop` is set, then a few datagrams slowly, which arrive. Returns the number of datagrams sent.
fn flood(sender: &UdpSocket, samples: usize, burst: usize, stop: &AtomicBool) -> std::io::Result<u64> {
    let each = HEADER + samples;
    let mut bytes = vec![0; each * burst];
    let mut number = 0_u64;
    let mut last = 0;
    while last < 3 {
        // Relaxed: a plain flag.
        if stop.load(Ordering::Relaxed) {
            last += 1;
            std::thread::sleep(Duration::from_millis(50));
        }
        for datagram in bytes.chunks_exact_mut(each) {
            datagram[..HEADER].copy_from_slice(&number.to_le_bytes());
            number += 1;
        }
        match sender.send(&bytes) {
            Ok(_) => {}
            // The buffer of the sender was full: nothing was sent.
            Err(error) if error.kind() == ErrorKind::WouldBlock || error.raw_os_error() == Some(libc::ENOBUFS) => {
                number -= burst as u64;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(number)
}

/// `recv` in a loop.
fn plain(socket: &UdpSocket, stop: &AtomicBool) -> Result<(f64, Option<u64>), String> {
    let told = |error: std::io::Error| format!("receive: {error}");
    rustix::net::sockopt::set_socket_recv_buffer_size(socket, FIFO.count() as usize)
        .map_err(|error| told(error.into()))?;
    socket.set_read_timeout(Some(Duration::from_millis(100))).map_err(told)?;
    let mut buffer = vec![0; 65_536];
    let (began, mut bytes) = (StdInstant::now(), 0);
    loop {
        let took = began.elapsed();
        // Relaxed: a plain flag.
        if took >= TURN && !stop.swap(true, Ordering::Relaxed) {
            return Ok((f64::from(bytes) / took.as_secs_f64(), None));
        }
        match socket.recv(&mut buffer) {
            Ok(length) => bytes += (length - HEADER) as u32,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => return Err(told(error)),
        }
    }
}

/// The source and a ring whose consumer lets everything go. Returns the rate, and all bytes that it stored or declared
/// lost.
fn source(socket: UdpSocket, stop: &AtomicBool, sent: &AtomicBool) -> Result<(f64, Option<u64>), String> {
    let told = |error: &dyn std::fmt::Display| format!("receive: {error}");
    socket.set_nonblocking(true).map_err(|error| told(&error))?;
    let layout = Layout::analogue(1, 16).map_err(|error| told(&error))?;
    let about = StreamInfo { layout, rate: None, pattern: None, frames: None, hardware: "udp".to_owned() };
    let sequence = "u64le".parse().map_err(|error: &str| error.to_owned())?;
    let mut source =
        UdpSource::new(socket, Some(sequence), None, Some(FIFO), Vec::new(), about).map_err(|error| told(&error))?;
    let memory = Memory::mirrored(Bytes::mib(16), Bytes::mib(16), Pages::Small).map_err(|error| told(&error))?;
    let (mut producer, mut consumer) =
        ring(Arc::new(memory), Bytes::mib(1), OnOverrun::Gap).map_err(|error| told(&error))?;
    let began = StdInstant::now();
    let mut rate = None;
    loop {
        // Acquire: datagrams sent before lie in the socket now, and the call below takes them.
        let all = sent.load(Ordering::Acquire);
        let next = source.service(Host.monotonic(), &mut producer);
        let available = consumer.available();
        consumer.take(available);
        while consumer.gap_before(producer.position()).is_some() {}
        consumer.release(producer.position());
        let took = began.elapsed();
        if took >= TURN && rate.is_none() {
            rate = Some(producer.position() as f64 / took.as_secs_f64());
            // Relaxed: a plain flag.
            stop.store(true, Ordering::Relaxed);
        }
        match next {
            Next::Readable(_) => producer.notifier().wait(source.descriptor(), Nanos::from_millis(200)),
            Next::Ended(end) => return Err(format!("receive: the source ended ({end:?})")),
            // As the thread does that serves a source in a recording.
            Next::At(when) if when - Host.monotonic() > TOO_SHORT_TO_SLEEP => {
                std::thread::sleep((when - Host.monotonic()).try_into().unwrap_or_default());
            }
            Next::At(_) | Next::Room => {}
        }
        if let Some(rate) = rate.filter(|_| all && matches!(next, Next::Readable(_))) {
            return Ok((rate, Some(source.counters().produced_bytes)));
        }
    }
}

/// Makes the kernel cut the data of one call into datagrams of this size.
fn send_in_segments(sender: &UdpSocket, bytes: usize) -> std::io::Result<()> {
    let value = bytes as libc::c_int;
    let length = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: reads the four bytes of `value`, which live until the call returns.
    let result = unsafe {
        libc::setsockopt(sender.as_raw_fd(), libc::SOL_UDP, libc::UDP_SEGMENT, (&raw const value).cast(), length)
    };
    if result == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
}
