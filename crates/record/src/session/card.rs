//! [`Ready`]: a card whose ring, recorder and files are made, before its threads run.

use super::*;

/// A card that is ready to start.
pub(super) struct Ready {
    pub(super) source: Box<dyn Source>,
    pub(super) description: SourceDescription,
    pub(super) producer: Producer,
    pub(super) recorder: SeriesRecorder,
    /// The index and collection of a series, and whether they are new.
    pub(super) beside: Vec<PathBuf>,
    pub(super) is_new: bool,
    pub(super) granted: Granted,
    /// How the buffer was placed.
    pub(super) placed: Vec<ThreadGrant>,
    pub(super) tap: Option<Arc<Tap>>,
    pub(super) clock_page: Option<ClockPage>,
    pub(super) external: Option<ExternalTrigger>,
    pub(super) board: Arc<Board>,
    pub(super) folders: Vec<PathBuf>,
    pub(super) notes: (SyncSender<ClockNote>, Receiver<ClockNote>),
}

impl Ready {
    /// Starts the source. Returns the watch on its clock.
    pub(super) fn start(&mut self, machine: &Host) -> ClockWatch {
        let pair = ClockPair::take(machine);
        self.clock_page.iter_mut().for_each(|page| tap_state::note(page, &ClockNote::Pair(pair)));
        self.recorder.note(ClockNote::Pair(pair));
        let watch = ClockWatch::new(&*self.source, pair);
        let beginning = Beginning::now(machine);
        self.source.start(beginning.monotonic);
        if !self.source.begins_with_data() {
            self.recorder.begins(beginning);
            let _ = self.board.started.set(beginning);
        }
        watch
    }

    /// Removes the files, before anything was recorded. Blocks.
    pub(super) fn abandon(self) {
        abandon(self.recorder, &self.beside, self.is_new);
    }
}

/// Removes the files of a recording, and those beside its segments if they are new. Blocks.
pub(super) fn abandon(recorder: SeriesRecorder, beside: &[PathBuf], is_new: bool) {
    recorder.abandon();
    if is_new {
        segments::remove(beside);
    }
}

/// Makes the rings and recorders of all cards, or of none.
pub(super) fn ready_all(inputs: Vec<Input>, config: &RecordConfig, machine: &Host) -> Result<Vec<Ready>, RecordError> {
    let mut cards = Vec::new();
    for input in inputs {
        match ready(input, config, machine) {
            Ok(card) => cards.push(card),
            Err(error) => {
                cards.into_iter().for_each(Ready::abandon);
                return Err(error);
            }
        }
    }
    Ok(cards)
}

/// Makes the ring and the recorder of a card.
fn ready(input: Input, config: &RecordConfig, machine: &Host) -> Result<Ready, RecordError> {
    let description = input.source.describe();
    if config.on_overrun == OnOverrun::Block && description.clocked {
        return Err(RecordError::CannotBlock(description.hardware));
    }
    if config.write.block.0 == 0 || !config.buffer.0.is_multiple_of(config.write.block.0) {
        return Err(RecordError::Notify(config.write.block, config.buffer));
    }
    let codes = |trigger: Trigger| layout_of_codes(description.layout, &input.channels, trigger.channel());
    let gate = config.trigger.map(|(trigger, pre, post, shots)| {
        Gate::new(trigger, codes(trigger), pre, post, shots).map_err(RecordError::Trigger)
    });
    let gate = gate.transpose()?;
    let keep_on = config.series.and_then(|series| series.keep_on);
    let keep_on = keep_on.map(|keep| KeepWatch::new(keep, codes(keep.trigger)).map_err(RecordError::Trigger));
    let keep_on = keep_on.transpose()?;
    let external = gate.as_ref().and_then(Gate::external).or(keep_on.as_ref().and_then(KeepWatch::external));
    let least = Bytes(config.write.block.0 * 2 + gate.as_ref().map_or(0, |gate| gate.must_hold().0));
    let buffer = config.threads.place_buffer();
    let memory = Memory::mirrored(config.buffer, least, config.pages).map_err(RecordError::Memory)?;
    let granted = memory.granted().clone();
    let placed = buffer.grants.clone();
    drop(buffer);
    let (mut producer, consumer): (Producer, Consumer) =
        ring(Arc::new(memory), config.write.block, config.on_overrun).map_err(RecordError::Ring)?;
    let (id, source) = (random_id(), input.source);
    let clock_page = tap_state::state(&mut producer, &description, id, &input.channels);
    let tap = consumer.tap().map(Arc::new);
    let folders = input.targets.iter().map(|base| hairspring_file::folder_of(base).to_owned()).collect();
    let board = Arc::new(Board {
        free_bytes: AtomicU64::new(NOT_SAID),
        low_bytes: AtomicU64::new(NOT_SAID),
        ..Board::default()
    });
    let notes = sync_channel(MOST_NOTES);
    let (recorder, beside, is_new) = match config.series {
        Some(series) => {
            let (targets, channels) = (&input.targets, &input.channels);
            segments::begin(targets, channels, consumer, &description, config, series, (gate, keep_on))?
        }
        None => {
            let setup = Setup {
                targets: input.targets,
                id,
                write: config.write.clone(),
                gate,
                gated: false,
                keep_on: None,
                opened: Beginning::now(machine),
                channels: input.channels,
                clock: clock_record(config),
                series: None,
                resumed: None,
                stopwatch: monotonic,
            };
            let store = best(config.write.depth + 8, config.ways);
            let recorder = Box::new(Recorder::open(store, consumer, description.clone(), setup)?);
            (SeriesRecorder::undivided(recorder, description.layout), Vec::new(), false)
        }
    };
    Ok(Ready {
        source,
        description,
        producer,
        recorder,
        beside,
        is_new,
        granted,
        placed,
        tap,
        clock_page,
        external,
        board,
        folders,
        notes,
    })
}

/// Facts about the clocks before the recording begins.
pub(super) fn clock_record(config: &RecordConfig) -> ClockRecord {
    let external = config.external.as_ref().and_then(|clock| Some(clock.lock().ok()?.facts()));
    let mut record = ClockRecord::begin(&Host, BootId::read());
    record.external = external;
    record
}

/// Makes a random id.
pub(super) fn random_id() -> RecordingId {
    use std::hash::{BuildHasher, RandomState};
    let half = || RandomState::new().hash_one(std::process::id()).to_le_bytes();
    let mut id = [0; 16];
    id[..8].copy_from_slice(&half());
    id[8..].copy_from_slice(&half());
    RecordingId(id)
}
