//! [`Sample`]: the states of all tasks at one time, as the back-ends fill it and the publisher reads it.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use hairspring_exec_core::{Moment, TaskId, TaskState, TaskView};
use hairspring_machine::Nanos;

use crate::system::stack::StackUse;
use crate::system::sync::whole;

/// The most tasks that one sample copies; more are copied in turns. Bounds what an answer costs the executive: some
/// microseconds.
pub(crate) const MOST_COPIES: usize = 64;

/// A back-end that can be asked for a sample, by any thread.
pub(crate) trait Sampled: Send + Sync {
    /// Asks for a sample, and copies the latest one. False: there was none since the last call.
    fn sample(&self, into: &mut Sample) -> bool;
}

/// One task.
#[derive(Clone, Debug)]
pub(crate) struct TaskSample {
    pub(crate) task: TaskId,
    pub(crate) name: String,
    pub(crate) view: TaskView,
    pub(crate) messages: usize,
    pub(crate) wait_ends: Option<Moment>,
    /// The CPU time that it used since the executive is published.
    pub(crate) cpu: Nanos,
    /// How often it was given the CPU, if that is known.
    pub(crate) switches: Option<u64>,
    /// Since when it has been ready at each sample and has not run at any.
    pub(crate) starved_since: Option<Moment>,
    /// How much it used of its stack.
    pub(crate) stack: Option<StackUse>,
    /// The kernel's number of its thread.
    pub(crate) thread: Option<i32>,
}

/// All tasks.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sample {
    pub(crate) at: Moment,
    /// A run is under way.
    pub(crate) running: bool,
    /// By index; none where no task is.
    pub(crate) tasks: Vec<Option<TaskSample>>,
    /// Samples that found no task with the CPU, and all samples; on fibers.
    pub(crate) idle: u64,
    pub(crate) taken: u64,
    /// The index of the task that the next sample copies first.
    next: usize,
}

impl Sample {
    /// The indices of the tasks that this sample copies, of `tasks`: all, or the next [`MOST_COPIES`].
    pub(crate) fn turn(&mut self, tasks: usize) -> impl Iterator<Item = usize> + use<> {
        let first = if self.next < tasks { self.next } else { 0 };
        let count = tasks.min(MOST_COPIES);
        self.next = first + count;
        (first..first + count).map(move |index| index % tasks)
    }

    /// A task was deleted.
    pub(crate) fn forget(&mut self, index: usize) {
        if let Some(place) = self.tasks.get_mut(index) {
            *place = None;
        }
    }

    /// The record of a task, made if it is new. A task that took the place of a deleted one begins at zero.
    pub(crate) fn record(&mut self, task: TaskId, name: &str, view: TaskView) -> &mut TaskSample {
        let index = task.index();
        if self.tasks.len() <= index {
            self.tasks.resize_with(index + 1, || None);
        }
        let place = &mut self.tasks[index];
        let earlier = place.take().filter(|earlier| earlier.task == task);
        let record =
            earlier.map_or_else(|| TaskSample::new(task, name, view), |earlier| TaskSample { view, ..earlier });
        place.insert(record)
    }
}

impl TaskSample {
    fn new(task: TaskId, name: &str, view: TaskView) -> Self {
        Self {
            task,
            name: name.to_owned(),
            view,
            messages: 0,
            wait_ends: None,
            cpu: Nanos::ZERO,
            switches: None,
            starved_since: None,
            stack: None,
            thread: None,
        }
    }

    /// At the sample of this moment it ran, or did not.
    pub(crate) fn note(&mut self, runs: bool, at: Moment) {
        let waits_for_cpu = self.view.state == TaskState::Ready && !self.view.suspended && !runs;
        self.starved_since = if waits_for_cpu { self.starved_since.or(Some(at)) } else { None };
    }
}

/// The questions of the publisher and the latest answer of the carrier.
#[derive(Default)]
pub(crate) struct Answers {
    /// Questions since the last answer.
    asked: AtomicU32,
    /// An executive that does not run is not asked.
    running: AtomicBool,
    sample: Mutex<(Sample, bool)>,
}

impl Answers {
    /// A run begins.
    pub(crate) fn begin(&self) {
        // Relaxed: it only saves questions.
        self.running.store(true, Ordering::Relaxed);
    }

    /// A run has ended.
    pub(crate) fn end(&self) {
        // Relaxed: it only saves questions.
        self.running.store(false, Ordering::Relaxed);
        self.asked.store(0, Ordering::Relaxed);
        let mut sample = whole(&self.sample);
        sample.0.running = false;
        sample.0.tasks.iter_mut().flatten().for_each(|task| task.starved_since = None);
        sample.1 = true;
    }

    /// Counts a question. Returns how many are open before this one; none if no run is under way.
    pub(crate) fn ask(&self) -> Option<u32> {
        // Relaxed: the bit that announces the question carries the order.
        self.running.load(Ordering::Relaxed).then(|| self.asked.fetch_add(1, Ordering::Relaxed))
    }

    /// The carrier answers all open questions: `fill` gets their number. Does not wait: if the publisher is just
    /// reading, this answer is lost and the next one stands for both. Makes no system call, because the publisher never
    /// waits for the lock either.
    pub(crate) fn answer(&self, fill: impl FnOnce(&mut Sample, u32)) {
        let Ok(mut sample) = self.sample.try_lock() else { return };
        // Relaxed: as above.
        let asked = self.asked.swap(0, Ordering::Relaxed);
        fill(&mut sample.0, asked);
        sample.1 = true;
    }

    /// Copies the latest answer, if there is a new one.
    pub(crate) fn read(&self, into: &mut Sample) -> bool {
        // If the carrier is just answering, the next call reads it.
        let Ok(mut sample) = self.sample.try_lock() else { return false };
        let new = std::mem::take(&mut sample.1);
        if new {
            into.clone_from(&sample.0);
        }
        new
    }
}
