//! [`Scope`]: an independent observer that stamps every edge of a virtual board.
//!
//! It runs on a CPU of its own and polls the output lines, which costs the board no access. After a change it stores
//! the time and the new state. The board numbers its writes, so the scope counts those that it missed: two writes
//! between two looks, or while it was preempted.
//!
//! **What a stamp means.** The change happened between two looks: each edge has the time before the first and that
//! after the second. So preemption of the scope widens the interval, but never makes it wrong.

use std::fmt::Write;
use std::sync::atomic::{AtomicBool, Ordering};

use hairspring_machine::{Machine, Nanos, Ticks};
use hairspring_time::Timebase;

use crate::device::Lines;
use crate::driver::virtual_board::VirtualBoard;

/// A change of the lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    /// Before the last look that showed the old state …
    pub after: Nanos,
    /// … and after the first at which they were like this; both since the scope began.
    pub seen: Nanos,
    /// State of the lines.
    pub lines: Lines,
    /// Other writes between the two looks.
    pub missed: u32,
}

/// The edges that a scope has recorded.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Traced {
    /// The lines at the beginning.
    pub begin: Lines,
    /// The changes, in order.
    pub edges: Vec<Edge>,
    /// Edges that were dropped because there was no room.
    pub dropped: u64,
    /// Duration of the watch.
    pub span: Nanos,
    /// Another process truncated the board's file, which ended the watch.
    pub board_gone: bool,
}

/// The observer.
#[derive(Clone, Copy, Debug)]
pub struct Scope {
    /// Longest duration. It polls all the time, so keep it short under `SCHED_FIFO`.
    pub span: Nanos,
    /// Most changes that it stores.
    pub most_edges: usize,
}

impl Scope {
    /// Polls until the span is over, `stop` is set or the board's file is truncated. Blocks, and uses the whole CPU;
    /// allocates at the beginning only.
    pub fn watch<M: Machine>(&self, board: &VirtualBoard<'_, M>, timebase: &Timebase<M>, stop: &AtomicBool) -> Traced {
        let mut edges = Vec::with_capacity(self.most_edges);
        let begin = timebase.stamp_ordered();
        let span_ticks = timebase.ticks_for_at_least(self.span);
        let (first, mut writes) = board.outputs();
        // The change is later than the previous look, which is later than the stamp taken before it.
        let (mut before_last, mut last) = (begin, timebase.stamp_ordered());
        let (mut lines, mut dropped) = (first, 0);
        let since = |stamp: Ticks| timebase.nanos(stamp.since(begin));
        loop {
            // Before the look, so that changes before the stop are seen. Acquire: pairs with the Release of the thread
            // that sets it.
            let is_last = last.since(begin) >= span_ticks || stop.load(Ordering::Acquire);
            let (now_lines, now_writes) = board.outputs();
            let now = timebase.stamp_ordered();
            if board.is_gone() {
                return Traced { begin: first, edges, dropped, span: since(last), board_gone: true };
            }
            if now_writes != writes {
                let missed = now_writes.wrapping_sub(writes) - 1;
                // A write that changes no line is no edge.
                if now_lines != lines || missed > 0 {
                    if edges.len() < self.most_edges {
                        edges.push(Edge { after: since(before_last), seen: since(now), lines: now_lines, missed });
                    } else {
                        dropped += 1;
                    }
                }
                (lines, writes) = (now_lines, now_writes);
            }
            (before_last, last) = (last, now);
            if is_last {
                return Traced { begin: first, edges, dropped, span: since(now), board_gone: false };
            }
        }
    }
}

impl Traced {
    /// Writes that were not seen one by one.
    pub fn missed(&self) -> u64 {
        self.edges.iter().map(|edge| u64::from(edge.missed)).sum()
    }

    /// The widths of the pulses of one line, each with its lower and upper bound; only pulses for which both edges were
    /// seen singly.
    pub fn widths(&self, line: u32) -> Vec<(Nanos, Nanos)> {
        let mut up: Option<&Edge> = None;
        let mut was_high = self.begin.is_high(line);
        let mut widths = Vec::new();
        for edge in &self.edges {
            if edge.missed > 0 {
                up = None;
            } else if edge.lines.is_high(line) && !was_high {
                up = Some(edge);
            } else if let (false, Some(begun)) = (edge.lines.is_high(line), up) {
                widths.push((edge.after - begun.seen, edge.seen - begun.after));
                up = None;
            }
            was_high = edge.lines.is_high(line);
        }
        widths
    }

    /// A value change dump (IEEE 1364) of the lines that changed, for GTKWave and PulseView: in nanoseconds, one wire
    /// per line, and an event `missed` for unseen writes.
    pub fn to_vcd(&self) -> String {
        let changed = self
            .edges
            .iter()
            .fold((0, self.begin.0), |(changed, before), edge| (changed | (before ^ edge.lines.0), edge.lines.0));
        let lines: Vec<u32> = (0..u32::BITS).filter(|line| changed.0 >> line & 1 == 1).collect();
        let name = |line: u32| char::from(b'!' + line as u8);
        let mut text = "$timescale 1 ns $end\n$scope module board $end\n".to_owned();
        for line in &lines {
            let _ = writeln!(text, "$var wire 1 {} line{line} $end", name(*line));
        }
        text.push_str("$var event 1 ~ missed $end\n$upscope $end\n$enddefinitions $end\n#0\n");
        let mut before = !self.begin.0;
        let states = std::iter::once((None, self.begin.0, 0));
        let changes = self.edges.iter().map(|edge| (Some(edge.seen), edge.lines.0, edge.missed));
        for (at, now, missed) in states.chain(changes) {
            if let Some(at) = at {
                let _ = writeln!(text, "#{}", at.count());
            }
            for line in lines.iter().filter(|line| (before ^ now) >> **line & 1 == 1) {
                let _ = writeln!(text, "{}{}", now >> line & 1, name(*line));
            }
            if missed > 0 {
                text.push_str("1~\n");
            }
            before = now;
        }
        let _ = writeln!(text, "#{}", self.span.count());
        text
    }
}
