//! [`Pace`]: when to look again at a socket that is empty now, while datagrams come fast.
//!
//! **Problem.** A receiver that is faster than its sender empties the socket after each few datagrams and sleeps. For
//! the next datagram the kernel wakes it, on the CPU that delivers the datagram: that of the network card's interrupt,
//! or on the loopback interface that of the sender. This wake-up costs more than the datagram. So the stream is slower
//! than with a receiver that is too slow to sleep.
//!
//! **Solution.** While datagrams come fast, the source sleeps for a fixed time instead of waiting for the socket. The
//! kernel then does not wake the thread for each datagram, and one call takes all.
//!
//! **Conditions.** The pause is as long as [`WANTED`] messages take at the present pace, but never longer than
//! [`MOST_PAUSE`]. The kernel's buffer must last for twice the pause and [`MOST_LATE`], so that a pause that ends late
//! loses nothing. If fewer than [`WORTHWHILE`] messages would arrive in the pause, the source waits for the socket: a
//! slow stream is never delayed. After a pause without messages it waits for the socket, too.
//!
//! **What it costs.** Samples get into the ring later by at most the pause plus the lateness of the caller's sleep. The
//! kernel's stamps do not change, because it stamps datagrams on arrival.

use hairspring_machine::{Instant, Nanos};
use hairspring_ring::units::Bytes;

/// Longest pause, during which several datagrams gather in the kernel's buffer.
pub const MOST_PAUSE: Nanos = Nanos::from_micros(100);

/// Messages to wait for: as many as one call takes.
const WANTED: u64 = 32;

/// Fewer are not waited for: each wake-up brings that many without a pause.
const WORTHWHILE: u64 = 4;

/// Greatest lateness of a pause: the slack of the kernel's timers and a wake-up.
const MOST_LATE: Nanos = Nanos::from_micros(100);

/// Overhead that the kernel charges to a receive buffer for each message; it charges the bytes up to twice.
const CHARGE_BYTES: u64 = 768;

/// Rate of messages, and how long they may stay in the kernel's buffer.
#[derive(Debug)]
pub(super) struct Pace {
    /// Most bytes that the kernel may charge to the receive buffer.
    buffer_bytes: u64,
    /// When the socket was found empty last.
    empty_at: Option<Instant>,
    /// Messages and bytes received since then.
    messages: u64,
    bytes: u64,
    pauses: u64,
}

impl Pace {
    /// For a receive buffer of `buffer` bytes of payload.
    pub(super) fn new(buffer: Bytes) -> Self {
        Self { buffer_bytes: buffer.0.saturating_mul(2), empty_at: None, messages: 0, bytes: 0, pauses: 0 }
    }

    /// Records that one call brought this many messages and bytes.
    pub(super) fn took(&mut self, messages: usize, bytes: u64) {
        self.messages += messages as u64;
        self.bytes += bytes;
    }

    /// Records that a call at `now` found the socket empty. Returns the pause before the next call; `None` to wait for
    /// the socket.
    pub(super) fn pause(&mut self, now: Instant) -> Option<Nanos> {
        let (messages, bytes) = (std::mem::take(&mut self.messages), std::mem::take(&mut self.bytes));
        let since = self.empty_at.replace(now)?;
        let span = u64::try_from((now - since).count()).ok().filter(|span| *span > 0)?;
        let charge = bytes.checked_div(messages)?.saturating_mul(2) + CHARGE_BYTES;
        // The time in which this many messages arrive.
        let time_for =
            |count: u64| Nanos::new(i64::try_from(span.saturating_mul(count) / messages).unwrap_or(i64::MAX));
        let lasts = Nanos::new(time_for(self.buffer_bytes / charge).count() / 2);
        let pause = time_for(WANTED).min(MOST_PAUSE).min(lasts - MOST_LATE);
        (pause >= time_for(WORTHWHILE) && pause > Nanos::ZERO).then(|| {
            self.pauses += 1;
            pause
        })
    }

    /// Number of pauses.
    pub(super) fn pauses(&self) -> u64 {
        self.pauses
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The pause after `messages` of `each` bytes arrived within `span_ns`.
    #[track_caller]
    fn check(buffer: Bytes, messages: usize, each: u64, span_ns: i64, expected_us: Option<i64>) {
        let mut pace = Pace::new(buffer);
        assert_eq!(pace.pause(Instant::BOOT), None, "nothing is known of the pace");
        pace.took(messages, messages as u64 * each);
        let now = Instant::BOOT + Nanos::new(span_ns);
        let pause = pace.pause(now);
        assert_eq!(pause, expected_us.map(Nanos::from_micros), "{messages} of {each} bytes in {span_ns} ns");
        assert_eq!(pace.pauses(), u64::from(pause.is_some()));
        // After a pause without messages the source waits for the socket.
        assert_eq!(pace.pause(now + MOST_PAUSE), None);
    }

    #[test]
    fn fast_datagrams_are_waited_for_together_and_slow_ones_are_not() {
        let large = Bytes::mib(4);
        check(large, 10, 1000, 10_000, Some(32));
        check(large, 1, 1000, 1_000, Some(32));
        check(large, 10, 1000, 100_000, Some(100));
        // Four in 100 µs, and a little less.
        check(large, 10, 1000, 250_000, Some(100));
        check(large, 10, 1000, 260_000, None);
        check(large, 1, 1000, 1_000_000_000, None);
        check(large, 0, 1000, 1_000, None);
        check(large, 10, 1000, 0, None);
    }

    #[test]
    fn the_kernels_buffer_lasts_for_twice_a_pause_that_ends_late() {
        // 425,984 bytes, as without privileges: 153 of these datagrams, which is 306 µs at this pace.
        check(Bytes(212_992), 10, 1000, 20_000, Some(53));
        check(Bytes(212_992), 10, 1000, 10_000, None);
        check(Bytes(212_992), 10, 1000, 100_000, Some(100));
        check(Bytes(0), 10, 1000, 10_000, None);
        check(Bytes(u64::MAX), usize::MAX / 2, 1, i64::MAX, None);
    }
}
