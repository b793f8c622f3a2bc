//! State of a running station, published to other processes in a page of shared memory.
//!
//! **Problem.** Operators, bridges and screens want to see a station. A bridge may hang, die, or read slowly; the units
//! must not notice.
//!
//! **Solution.** One thread, the station's main thread, copies the state into a page of shared memory some ten times a
//! second ([`StatePublisher`]). Any number of processes map the page for reading only ([`StateReader`]). The writer
//! takes no lock and makes no call for them, so it does not know how many there are. A sequence lock
//! ([`Sequenced`](hairspring_ring::sequenced::Sequenced)) gives each reader one whole state or none.
//!
//! **Conditions.** States, never events: a slow reader sees fewer of them. So all counters are absolute, and the latest
//! event carries its own stamp. Reader and writer use one kernel, because the age of a state is counted by
//! `CLOCK_MONOTONIC`.
//!
//! **What can go wrong.** A station that is killed, also in the middle of a write, no longer changes the page. A reader
//! then keeps the last whole state and reports how long the station has been silent ([`Validity`]).
//!
//! **Layout** (`layout.rs`). The file has [`PAGE_BYTES`] bytes, all of it native 64-bit words: the word `hsState1`, the
//! sequence (odd while the state is written), the station's block of 64 words, and a block of 64 words for each unit.

mod histogram;
mod layout;
mod place;
mod publisher;
mod reader;
mod state;

pub use histogram::{LATENCY_EDGES_NS, LatencyHistogram};
#[doc(hidden)]
pub use layout::published_again;
pub use place::folders;
pub use publisher::{PAGE_BYTES, STATE_FILE, StatePublisher, bracketed_realtime};
pub use reader::{SILENT_AFTER, StateReader, StateView, Validity};
pub use state::{ClockReading, LatestEvent, Phase, StationState, UnitLatency, UnitProperties, UnitState};
