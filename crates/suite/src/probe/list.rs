//! [`Probes`]: a chapter as a list of probes.

use hairspring_machine::{Host, Machine};
use hairspring_sheet::{Absent, Diagram, Method, Unit};
use hairspring_time::Timebase;

use super::company::company;
use super::context::Context;
use super::declaration::{ChapterDeclaration, RowDeclaration, Slot, TableDeclaration};
use super::reading::Taken;
use super::setting::{Held, Setting};

/// A chapter: its tables in reading order, and its probes in the order in which they run.
pub(crate) struct Probes<M: Machine> {
    declared: ChapterDeclaration,
    /// For each slot, the place of its row: table and index.
    places: Vec<(usize, usize)>,
    probes: Vec<Probe<M>>,
    /// Why a simulated machine cannot run this chapter.
    needs_host: Option<&'static str>,
    /// Whether most of its rows keep the core busy, so that a neighbour on it shows in them.
    pub(crate) needs_core: bool,
    /// Whether rows added from here on run on two CPUs.
    on_two_cpus: bool,
    before: Option<Run<M>>,
    after: Option<Run<M>>,
}

/// A probe: the rows that it fills, the settings of the thread while it runs, and the run.
struct Probe<M: Machine> {
    slots: Vec<Slot>,
    setting: Setting,
    /// Whether a neighbour on the core of the other CPU shows in its rows, too.
    on_two_cpus: bool,
    run: Start<M>,
}

type Run<M> = Box<dyn FnOnce(&mut Context<'_, M>)>;
type HostRun<M> = Box<dyn FnOnce(&mut Context<'_, M>, &Timebase<Host>)>;

enum Start<M: Machine> {
    Anywhere(Run<M>),
    OnHost(HostRun<M>),
}

/// A table that rows can be declared in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TableSlot(usize);

/// A row as a chapter declares it. Its id is the id of its table, a dot and its own suffix.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    suffix: String,
    label: String,
    unit: Unit,
    method: Method,
    measures: String,
}

impl Row {
    pub(crate) fn new(
        suffix: impl Into<String>,
        label: impl Into<String>,
        unit: Unit,
        method: Method,
        measures: impl Into<String>,
    ) -> Self {
        Self { suffix: suffix.into(), label: label.into(), unit, method, measures: measures.into() }
    }
}

impl<M: Machine + Clone + Sync + 'static> Probes<M> {
    /// A chapter without tables and probes. Its id is the first segment of all ids in it.
    pub(crate) fn new(id: &'static str, title: &'static str, intro: &'static str) -> Self {
        Self {
            declared: ChapterDeclaration {
                id: id.to_owned(),
                title: title.to_owned(),
                intro: intro.to_owned(),
                tables: Vec::new(),
            },
            places: Vec::new(),
            probes: Vec::new(),
            needs_host: None,
            needs_core: false,
            on_two_cpus: false,
            before: None,
            after: None,
        }
    }

    /// Makes the whole chapter absent on a simulated machine, for this reason.
    pub(crate) fn needs_host(&mut self, why: &'static str) {
        self.needs_host = Some(why);
    }

    /// Marks the chapter as one to measure while no neighbour uses the core, as far as the order of chapters allows.
    pub(crate) fn needs_core(&mut self) {
        self.needs_core = true;
    }

    /// Adds probes that keep a second CPU busy, too: a round counts for their rows only if both have their cores to
    /// themselves.
    pub(crate) fn on_two_cpus<R>(&mut self, add: impl FnOnce(&mut Self) -> R) -> R {
        self.on_two_cpus = true;
        let added = add(self);
        self.on_two_cpus = false;
        added
    }

    /// Adds a table below the others. `limits` names the bounds of the number of samples and of the range of the
    /// figures.
    pub(crate) fn table(&mut self, id: impl Into<String>, title: impl Into<String>, limits: &'static str) -> TableSlot {
        let (id, title, limits) = (id.into(), title.into(), limits.to_owned());
        self.declared.tables.push(TableDeclaration { id, title, limits, rows: Vec::new(), diagram: None });
        TableSlot(self.declared.tables.len() - 1)
    }

    /// Draws the events that the rows of a table measure.
    pub(crate) fn draw(&mut self, table: TableSlot, diagram: Option<Diagram>) {
        self.declared.tables[table.0].diagram = diagram;
    }

    /// Declares a row at the end of a table.
    pub(crate) fn row(&mut self, table: TableSlot, row: Row) -> Slot {
        let of = &mut self.declared.tables[table.0];
        let id = if row.suffix.is_empty() { of.id.clone() } else { format!("{}.{}", of.id, row.suffix) };
        of.rows.push(RowDeclaration::new(id, row.label, row.unit, row.method, row.measures));
        self.places.push((table.0, of.rows.len() - 1));
        Slot(self.places.len() - 1)
    }

    /// Adds a probe of several rows. It runs if one of them is wanted, and enters its findings by their slots.
    pub(crate) fn several(
        &mut self,
        setting: Setting,
        slots: impl IntoIterator<Item = Slot>,
        run: impl FnOnce(&mut Context<'_, M>) + 'static,
    ) {
        self.add(setting, slots, Start::Anywhere(Box::new(run)));
    }

    fn add(&mut self, setting: Setting, slots: impl IntoIterator<Item = Slot>, run: Start<M>) {
        let (slots, on_two_cpus) = (slots.into_iter().collect(), self.on_two_cpus);
        self.probes.push(Probe { slots, setting, on_two_cpus, run });
    }

    /// Adds a probe of one row.
    pub(crate) fn one(
        &mut self,
        setting: Setting,
        table: TableSlot,
        row: Row,
        run: impl FnOnce(&mut Context<'_, M>) -> Taken + 'static,
    ) {
        let slot = self.row(table, row);
        self.several(setting, [slot], move |context| {
            let taken = run(context);
            context.enter(slot, taken);
        });
    }

    /// Adds a probe of several rows that runs on this computer only, with a time base of this computer.
    pub(crate) fn several_on_host(
        &mut self,
        setting: Setting,
        slots: impl IntoIterator<Item = Slot>,
        run: impl FnOnce(&mut Context<'_, M>, &Timebase<Host>) + 'static,
    ) {
        self.add(setting, slots, Start::OnHost(Box::new(run)));
    }

    /// Adds a probe of one row that runs on this computer only.
    pub(crate) fn one_on_host(
        &mut self,
        setting: Setting,
        table: TableSlot,
        row: Row,
        run: impl FnOnce(&mut Context<'_, M>, &Timebase<Host>) -> Taken + 'static,
    ) {
        let slot = self.row(table, row);
        self.several_on_host(setting, [slot], move |context, timebase| {
            let taken = run(context, timebase);
            context.enter(slot, taken);
        });
    }

    /// Sets a function to run before the first probe of the chapter.
    pub(crate) fn before(&mut self, run: impl FnOnce(&mut Context<'_, M>) + 'static) {
        self.before = Some(Box::new(run));
    }

    /// Sets a function to run after the last probe of the chapter.
    pub(crate) fn after(&mut self, run: impl FnOnce(&mut Context<'_, M>) + 'static) {
        self.after = Some(Box::new(run));
    }

    /// The rows that stand in its tables, in reading order.
    pub(crate) fn declaration(&self) -> &ChapterDeclaration {
        &self.declared
    }

    /// The declared row of each slot.
    pub(crate) fn rows(&self) -> impl Iterator<Item = &RowDeclaration> {
        self.places.iter().map(|(table, row)| &self.declared.tables[*table].rows[*row])
    }

    /// The slots that no probe fills.
    #[cfg(test)]
    pub(super) fn without_probe(&self) -> Vec<&str> {
        let filled = |slot: usize| self.probes.iter().any(|probe| probe.slots.contains(&Slot(slot)));
        self.rows().enumerate().filter(|(slot, _)| !filled(*slot)).map(|(_, row)| row.id.as_str()).collect()
    }

    /// Runs the probes whose rows are wanted. The context must have been opened for this chapter.
    pub(crate) fn run(self, context: &mut Context<'_, M>) {
        let timebase = context.host_timebase();
        if let Some(why) = self.needs_host.filter(|_| timebase.is_none()) {
            context.absent_everywhere(&Absent::new(why, "take the sheet on a real machine"));
            return;
        }
        if let Some(before) = self.before {
            before(context);
        }
        let machine = context.machine.clone();
        let mut held: Option<Held<'_, M>> = None;
        // The slower of the loops on the CPUs that a probe uses.
        let look = |context: &Context<'_, M>, on_two_cpus: bool| {
            let cpus = [Some(context.cpu), context.other.filter(|_| on_two_cpus)];
            let timebase = timebase.as_ref()?;
            cpus.into_iter().flatten().map(|cpu| company(timebase, cpu)).max_by(f64::total_cmp)
        };
        let mut latest = None;
        for probe in self.probes {
            if !probe.slots.iter().any(|slot| context.wants(*slot)) {
                continue;
            }
            let before_probe = match latest {
                Some((on_two_cpus, after_probe)) if on_two_cpus == probe.on_two_cpus => after_probe,
                _ => look(context, probe.on_two_cpus),
            };
            if held.as_ref().is_none_or(|held| !held.suits(probe.setting)) {
                // The settings before are given back first.
                drop(held.take());
                held = Some(Held::take(probe.setting, context, &machine));
            }
            context.begin(&probe.slots);
            if let Some(absent) = held.as_ref().and_then(Held::refused) {
                probe.slots.iter().for_each(|slot| context.absent(*slot, absent.clone()));
                continue;
            }
            match (probe.run, &timebase) {
                (Start::Anywhere(run), _) => run(context),
                (Start::OnHost(run), Some(timebase)) => run(context, timebase),
                (Start::OnHost(_), None) => {
                    let absent = Absent::final_(
                        "it needs a real machine, and its chapter does not say so: a defect of hairspring",
                    );
                    probe.slots.iter().for_each(|slot| context.absent(*slot, absent.clone()));
                }
            }
            let after_probe = look(context, probe.on_two_cpus);
            if let (Some(before), Some(after)) = (before_probe, after_probe) {
                context.keep_company(before.max(after));
            }
            latest = Some((probe.on_two_cpus, after_probe));
        }
        drop(held);
        context.begin(&[]);
        if let Some(after) = self.after {
            after(context);
        }
    }
}

#[cfg(test)]
mod tests {
    use hairspring_machine::Sim;
    use hairspring_machine::sim::Script;
    use hairspring_sheet::Note;

    use super::super::reading::{Found, Reading};
    use super::*;

    const IDS: [&str; 2] = ["chapter.table.first", "chapter.table.second"];

    /// A chapter with two rows, each with a probe; its findings, and the notes at the head.
    fn taken(
        first: impl FnOnce(&mut Context<'_, Sim>, [Slot; 2]) + 'static,
    ) -> (Vec<(String, Option<Found>)>, Vec<Note>) {
        let mut probes = Probes::new("chapter", "Chapter", "Two rows.");
        let table = probes.table("chapter.table", "Table", "none");
        let row = |suffix| Row::new(suffix, suffix, Unit::Ns, Method::Stamp, "nothing");
        let slots = ["first", "second"].map(|suffix| probes.row(table, row(suffix)));
        probes.several(Setting::AsStarted, [slots[0]], move |context| first(context, slots));
        probes.several(Setting::AsStarted, [slots[1]], move |context| context.put(slots[1], Reading::single(2.0)));
        let sim = Sim::new(Script::default());
        let interrupted = std::sync::atomic::AtomicBool::new(false);
        let mut said = |_: super::super::SheetProgress<'_>| {};
        let mut context = Context::for_test(&sim, &interrupted, &mut said);
        context.open(probes.rows(), &IDS.map(str::to_owned));
        probes.run(&mut context);
        (context.close().collect(), context.head)
    }

    fn figure(value: f64) -> Option<Found> {
        Some(Found::Reading(Reading::single(value)))
    }

    #[test]
    fn a_run_fills_its_rows_with_their_unit_and_method() {
        let (rows, head) = taken(|context, [first, _]| context.put(first, Reading::single(1.0)));
        assert_eq!(rows, [(IDS[0].to_owned(), figure(1.0)), (IDS[1].to_owned(), figure(2.0))]);
        assert_eq!(head, []);
    }

    #[test]
    fn a_value_for_a_row_of_another_probe_is_not_dropped_silently() {
        let (rows, head) = taken(|context, [_, second]| context.put(second, Reading::single(1.0)));
        assert_eq!(rows, [(IDS[0].to_owned(), None), (IDS[1].to_owned(), figure(2.0))]);
        let [note] = head.as_slice() else { panic!("one defect, one note: {head:?}") };
        assert!(IDS.iter().all(|id| note.text.contains(id)) && note.text.contains("defect"), "{}", note.text);
    }
}
