//! The layout of tracepoints in memory, from their `format` files, and the decoding of their bytes.
//!
//! Offsets differ between kernels, so fields are found by name. A record that is too short for a field is ignored.

use std::collections::HashMap;
use std::sync::Arc;

use hairspring_machine::Nanos;

use crate::host::TracerSettings;
use crate::record::{Context, KernelEvent, KernelTask, LeftAs, Softirq, Vector};

/// The meaning of a tracepoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Meaning {
    Switch,
    Waking,
    Vector(Vector, Way),
    Interrupt(Way),
    Softirq(Way),
    Work(Way),
    Fault,
    Nmi,
    Idle,
    Frequency,
}

/// An entry, or an exit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    In,
    Out,
}

/// A tracepoint: its path under `events`, and its meaning.
#[derive(Clone, Debug)]
pub(crate) struct Tracepoint {
    pub(crate) path: String,
    pub(crate) meaning: Meaning,
}

/// The tracepoints that are read, entries before exits. The task switch comes last: a history is known from the first
/// switch on, and by then all others are on.
pub(crate) fn tracepoints(settings: &TracerSettings) -> Vec<Tracepoint> {
    let mut all = Vec::new();
    let mut add = |path: &str, meaning| all.push(Tracepoint { path: path.to_owned(), meaning });
    for vector in Vector::ALL.into_iter().filter(|vector| settings.rare_vectors || !vector.is_rare()) {
        add(&format!("irq_vectors/{}_entry", vector.name()), Meaning::Vector(vector, Way::In));
        add(&format!("irq_vectors/{}_exit", vector.name()), Meaning::Vector(vector, Way::Out));
    }
    add("irq/irq_handler_entry", Meaning::Interrupt(Way::In));
    add("irq/irq_handler_exit", Meaning::Interrupt(Way::Out));
    add("irq/softirq_entry", Meaning::Softirq(Way::In));
    add("irq/softirq_exit", Meaning::Softirq(Way::Out));
    add("workqueue/workqueue_execute_start", Meaning::Work(Way::In));
    add("workqueue/workqueue_execute_end", Meaning::Work(Way::Out));
    add("nmi/nmi_handler", Meaning::Nmi);
    add("power/cpu_frequency", Meaning::Frequency);
    if settings.faults {
        add("exceptions/page_fault_user", Meaning::Fault);
        add("exceptions/page_fault_kernel", Meaning::Fault);
    }
    if settings.wakings {
        add("sched/sched_waking", Meaning::Waking);
        add("power/cpu_idle", Meaning::Idle);
    }
    add(SWITCH, Meaning::Switch);
    all
}

/// The task switch, without which there are no tasks.
pub(crate) const SWITCH: &str = "sched/sched_switch";

/// The layout of a tracepoint's fields.
#[derive(Clone, Debug)]
pub(crate) struct Format {
    /// The number by which records name the tracepoint.
    pub(crate) id: u16,
    fields: HashMap<String, (usize, usize)>,
}

impl Format {
    /// Parses a `format` file; `None` if it is not one.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let id = text.lines().find_map(|line| line.strip_prefix("ID:"))?.trim().parse().ok()?;
        let fields = text.lines().filter_map(field).collect();
        Some(Self { id, fields })
    }

    /// A number of any size, with its sign.
    fn number(&self, name: &str, bytes: &[u8]) -> Option<i64> {
        let raw = self.bytes(name, bytes)?;
        Some(match raw.len() {
            4 => i64::from(i32::from_ne_bytes(raw.try_into().ok()?)),
            8 => i64::from_ne_bytes(raw.try_into().ok()?),
            2 => i64::from(i16::from_ne_bytes(raw.try_into().ok()?)),
            _ => return None,
        })
    }

    fn bytes<'b>(&self, name: &str, bytes: &'b [u8]) -> Option<&'b [u8]> {
        let &(offset, size) = self.fields.get(name)?;
        bytes.get(offset..offset + size)
    }

    /// A text whose place is in its field: the offset in the lower half, the length in the upper.
    fn text(&self, name: &str, bytes: &[u8]) -> Option<String> {
        let place = usize::try_from(self.number(name, bytes)?).ok()?;
        let text = bytes.get(place & 0xffff..(place & 0xffff) + (place >> 16))?;
        Some(String::from_utf8_lossy(text.split(|&byte| byte == 0).next()?).into_owned())
    }

    fn task(&self, side: &str, bytes: &[u8]) -> Option<KernelTask> {
        let name = self.bytes(&format!("{side}_comm"), bytes)?;
        let pid = u32::try_from(self.number(&format!("{side}_pid"), bytes)?).ok()?;
        let priority = i16::try_from(self.number(&format!("{side}_prio"), bytes)?).ok()?;
        Some(KernelTask::from_bytes(pid, name, priority))
    }
}

/// `\tfield:int prev_pid;\toffset:24;\tsize:4;\tsigned:1;`, `char prev_comm[16]`, `__data_loc char[] name`.
fn field(line: &str) -> Option<(String, (usize, usize))> {
    let mut parts = line.trim().split(';').map(str::trim);
    let declaration = parts.next()?.strip_prefix("field:")?;
    let name = declaration.rsplit(' ').next()?.split('[').next()?.trim_start_matches('*');
    let mut offset = None;
    let mut size = None;
    for part in parts {
        match part.split_once(':') {
            Some(("offset", number)) => offset = number.parse().ok(),
            Some(("size", number)) => size = number.parse().ok(),
            _ => {}
        }
    }
    Some((name.to_owned(), (offset?, size?)))
}

/// Reads the records of tracepoints.
#[derive(Debug, Default)]
pub(crate) struct Decoder {
    known: HashMap<u16, (Format, Meaning)>,
    lines: HashMap<i64, Arc<str>>,
}

impl Decoder {
    /// Adds a tracepoint, whose records are read from now on.
    pub(crate) fn learn(&mut self, format: Format, meaning: Meaning) {
        self.known.insert(format.id, (format, meaning));
    }

    /// Decodes the raw bytes of a record; `None` if its tracepoint is unknown. `name_of` names a function by its
    /// address.
    pub(crate) fn decode(
        &mut self,
        raw: &[u8],
        mut name_of: impl FnMut(u64) -> Option<Arc<str>>,
    ) -> Option<KernelEvent> {
        let id = u16::from_ne_bytes(raw.get(..2)?.try_into().ok()?);
        let (format, meaning) = self.known.get(&id)?;
        let number = |name: &str| format.number(name, raw);
        let pid = |name: &str| number(name).and_then(|pid| u32::try_from(pid).ok());
        let through = |way, context| match way {
            Way::In => KernelEvent::Enter(context),
            Way::Out => KernelEvent::Exit(context),
        };
        Some(match *meaning {
            Meaning::Switch => KernelEvent::Switch {
                from: format.task("prev", raw)?,
                left_as: left_as(number("prev_state")?),
                to: format.task("next", raw)?,
            },
            Meaning::Waking => KernelEvent::Waking { pid: pid("pid")? },
            Meaning::Vector(vector, way) => through(way, Context::Vector(vector)),
            Meaning::Interrupt(way) => {
                let irq = number("irq")?;
                let name = match (way, self.lines.get(&irq)) {
                    (_, Some(name)) if way == Way::Out => Arc::clone(name),
                    (Way::Out, _) => Arc::from(""),
                    (Way::In, known) => {
                        let name = format.text("name", raw)?;
                        match known {
                            Some(known) if **known == *name => Arc::clone(known),
                            _ => Arc::from(name),
                        }
                    }
                };
                self.lines.insert(irq, Arc::clone(&name));
                through(way, Context::Interrupt { irq: u32::try_from(irq).ok()?, name })
            }
            Meaning::Softirq(way) => through(way, Context::Softirq(Softirq(pid("vec")?))),
            Meaning::Work(Way::In) => {
                let function = number("function")?.cast_unsigned();
                KernelEvent::WorkBegins { pid: pid("common_pid")?, function: name_of(function) }
            }
            Meaning::Work(Way::Out) => KernelEvent::WorkEnds { pid: pid("common_pid")? },
            Meaning::Fault => KernelEvent::Fault { pid: pid("common_pid")? },
            Meaning::Nmi => KernelEvent::Nmi(Nanos::new(number("delta_ns")?.max(0))),
            Meaning::Idle => {
                // The CPU leaves its idle state: all bits set.
                let state = number("state")?;
                KernelEvent::Idle(u32::try_from(state).ok())
            }
            Meaning::Frequency => KernelEvent::Frequency,
        })
    }
}

/// A runnable task has no bit of a waiting state; the bit above those of all states means that it was preempted.
fn left_as(state: i64) -> LeftAs {
    const WAITS: i64 = 0xff;
    if state & WAITS == 0 { LeftAs::Runnable } else { LeftAs::Blocked }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERRUPT: &str = "name: irq_handler_entry\nID: 225\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
        \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
        \tfield:int irq;\toffset:8;\tsize:4;\tsigned:1;\n\
        \tfield:__data_loc char[] name;\toffset:12;\tsize:4;\tsigned:0;\n";

    fn interrupt() -> Vec<u8> {
        let mut raw = vec![225, 0, 0, 0];
        raw.extend(7_i32.to_ne_bytes());
        raw.extend(36_i32.to_ne_bytes());
        raw.extend((16_i32 | 4 << 16).to_ne_bytes());
        raw.extend(b"req\0");
        raw
    }

    fn decoder() -> Decoder {
        let mut decoder = Decoder::default();
        decoder.learn(Format::parse(INTERRUPT).expect("a format"), Meaning::Interrupt(Way::In));
        decoder
    }

    #[test]
    fn a_record_is_read_where_its_format_says() {
        let expected = Context::Interrupt { irq: 36, name: Arc::from("req") };
        assert_eq!(decoder().decode(&interrupt(), |_| None), Some(KernelEvent::Enter(expected)));
    }

    #[test]
    fn a_record_cut_anywhere_is_no_record() {
        let whole = interrupt();
        for length in 0..whole.len() {
            assert_eq!(decoder().decode(&whole[..length], |_| None), None, "{length} bytes");
        }
    }

    #[test]
    fn names_are_found_behind_arrays_and_pointers() {
        let of = |line| field(line).map(|(name, place)| (name, place.0, place.1));
        assert_eq!(
            of("\tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;"),
            Some(("prev_comm".to_owned(), 8, 16))
        );
        assert_eq!(
            of("\tfield:void * function;\toffset:16;\tsize:8;\tsigned:0;"),
            Some(("function".to_owned(), 16, 8))
        );
        assert_eq!(of("\tfield:void *function;\toffset:16;\tsize:8;\tsigned:0;"), Some(("function".to_owned(), 16, 8)));
        assert_eq!(of("print fmt: \"irq=%d\""), None);
    }

    #[test]
    fn a_preempted_task_is_runnable_and_a_waiting_one_is_not() {
        assert_eq!([0, 0x100].map(left_as), [LeftAs::Runnable; 2]);
        assert_eq!([1, 2, 4, 0x80, 0x102].map(left_as), [LeftAs::Blocked; 5]);
    }
}
