//! The live tap for programs in C: frames of a running recording. The functions of `include/hairspring_tap.h`.

#![expect(unsafe_code, reason = "names of exported functions are the linker's")]
#![expect(non_camel_case_types, reason = "names of C")]

use std::ffi::{c_char, c_int, c_void};
use std::time::Duration;

use hairspring_ring::{Container, End, Frames};
use hairspring_tap::{TapError, TapPlace, TapReader, TapState};

use crate::error::{Failure, HS_E_IO, HS_E_NEGATIVE, HS_E_NOT_FOUND, HS_E_RANGE, HS_E_STATE, door};
use crate::handle::{Alone, Kind, Shared, free, make};
use crate::pointer::{Numbers, Place, is_of_size, room, text};

/// The recorder is there.
pub const HS_TAP_RUNNING: c_int = 0;
/// The source produced everything, or its file or connection ended.
pub const HS_TAP_FINISHED: c_int = 1;
/// The recording was stopped.
pub const HS_TAP_STOPPED: c_int = 2;
/// The source stopped at its first loss.
pub const HS_TAP_OVERRUN: c_int = 3;
/// The device or connection failed.
pub const HS_TAP_FAILED: c_int = 4;
/// The recorder has died, or ended without a word.
pub const HS_TAP_GONE: c_int = 5;

/// Signed, 1 byte.
pub const HS_TAP_I8: c_int = 1;
/// Unsigned, 1 byte.
pub const HS_TAP_U8: c_int = 2;
/// Signed, 2 bytes.
pub const HS_TAP_I16: c_int = 3;
/// Unsigned, 2 bytes.
pub const HS_TAP_U16: c_int = 4;
/// Signed, 4 bytes.
pub const HS_TAP_I32: c_int = 5;
/// IEEE 754, 4 bytes.
pub const HS_TAP_F32: c_int = 6;
/// Signed 12-bit values, two in three bytes.
pub const HS_TAP_PACKED12: c_int = 7;
/// One bit for each digital line; a frame is whole bytes.
pub const HS_TAP_BITS: c_int = 8;

/// A reader of a live tap.
pub struct hs_tap(());

impl Kind for hs_tap {
    type Owned = TapReader;
    const WORD: u64 = u64::from_le_bytes(*b"live tap");
    const NAME: &'static str = "tap";
}

/// Layout and rate of a stream. They do not change while the tap is open.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct hs_tap_about {
    /// sizeof(struct hs_tap_about), set by the caller.
    pub size: usize,
    /// The number of channels, or of digital lines.
    pub channels: u32,
    /// Bits of a sample that carry information.
    pub resolution_bits: u32,
    /// How a sample is stored: HS_TAP_I16 and so on. All are little-endian.
    pub container: c_int,
    /// The process of the recorder, as the kernel states it.
    pub recorder_pid: i32,
    /// The sample rate as a fraction: frames, and the seconds that they take. 0 and 0 without a clock.
    pub rate_frames: u64,
    /// See rate_frames.
    pub rate_seconds: u64,
    /// The smallest piece that is whole frames and whole bytes: its frames, 1 or 2, and its bytes.
    pub grain_frames: u64,
    /// See grain_frames.
    pub grain_bytes: u64,
    /// Capacity of the recorder's ring. A reader that is further behind misses frames.
    pub capacity_bytes: u64,
    /// The identity of the recording.
    pub recording_id: [u8; 16],
}

// SAFETY: plain numbers.
unsafe impl Numbers for hs_tap_about {}

/// Result of a read.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct hs_tap_piece {
    /// sizeof(struct hs_tap_piece), set by the caller.
    pub size: usize,
    /// How many frames were copied; 0 if no new frame is there.
    pub frames: u64,
    /// How many bytes they have.
    pub bytes: u64,
    /// The number of the first frame, as the source counts; UINT64_MAX if it is no longer known, or if there is
    /// none.
    pub first_frame: u64,
    /// Frames that this reader was too slow for, before the first.
    pub missed_frames: u64,
}

// SAFETY: plain numbers.
unsafe impl Numbers for hs_tap_piece {}

fn failed(error: TapError) -> Failure {
    let code = match error {
        TapError::NotOffered(_) => HS_E_NOT_FOUND,
        TapError::System(..) => HS_E_IO,
        TapError::Refused(..) => HS_E_STATE,
    };
    Failure::new(code, error.to_string())
}

fn number(state: TapState) -> c_int {
    match state {
        TapState::Running => HS_TAP_RUNNING,
        TapState::Ended(End::Finished) => HS_TAP_FINISHED,
        TapState::Ended(End::Stopped) => HS_TAP_STOPPED,
        TapState::Ended(End::Overrun) => HS_TAP_OVERRUN,
        TapState::Ended(End::Failed(_)) => HS_TAP_FAILED,
        TapState::Gone => HS_TAP_GONE,
    }
}

/// Opens the tap that `hairspring record --tap NAME` offers: by its name, or by the path of its socket. Waits at most
/// five seconds for the recorder. The first read begins with the frames that come from now on. HS_E_NOT_FOUND (no
/// recorder offers it), HS_E_IO (also: this user may not look on), HS_E_STATE (what answers is no tap of this version),
/// HS_E_RANGE (no name), HS_E_TEXT.
#[unsafe(no_mangle)]
pub extern "C" fn hs_tap_open(name: *const c_char, tap: *mut *mut hs_tap) -> c_int {
    door(|| {
        let place = Place::new(tap)?;
        let name = text(name)?;
        let of = |error| Failure::new(HS_E_RANGE, format!("open the tap {name:?}: {error}"));
        let name: TapPlace = name.parse().map_err(of)?;
        place.put(make(TapReader::open(&name).map_err(failed)?));
        Ok(())
    })
}

/// Returns layout and rate of the stream. HS_E_RANGE (the size is not set), HS_E_BUSY.
#[unsafe(no_mangle)]
pub extern "C" fn hs_tap_describe(tap: *const hs_tap, about: *mut hs_tap_about) -> c_int {
    door(|| {
        let place = Place::new(about)?;
        is_of_size::<hs_tap_about>("struct hs_tap_about", place.holds().size)?;
        let reader = Shared::of(tap)?;
        let (layout, grain) = (reader.layout(), reader.layout().grain());
        let container = match layout.container() {
            Container::I8 => HS_TAP_I8,
            Container::U8 => HS_TAP_U8,
            Container::I16 => HS_TAP_I16,
            Container::U16 => HS_TAP_U16,
            Container::I32 => HS_TAP_I32,
            Container::F32 => HS_TAP_F32,
            // Only recordings of other programs have them, and a tap's page cannot name them.
            Container::U32 | Container::F64 => unreachable!("no source makes such samples"),
            Container::Packed12 => HS_TAP_PACKED12,
            Container::Bits => HS_TAP_BITS,
        };
        let (rate_frames, rate_seconds) = reader.rate().map_or((0, 0), hairspring_ring::SampleRate::as_fraction);
        place.put(hs_tap_about {
            size: size_of::<hs_tap_about>(),
            channels: layout.channels(),
            resolution_bits: layout.resolution_bits(),
            container,
            recorder_pid: reader.recorder().1,
            rate_frames,
            rate_seconds,
            grain_frames: grain.frames,
            grain_bytes: grain.bytes,
            capacity_bytes: reader.capacity().0,
            recording_id: reader.id(),
        });
        Ok(())
    })
}

/// Waits until `frames` frames can be read (at most those of half the ring), the stream has ended, or the time is over;
/// 0 does not wait, less is HS_E_NEGATIVE. Writes what has become of the stream to `state`: HS_TAP_RUNNING and so on.
/// The recorder does not wake readers; the call looks every 1 to 20 ms. HS_E_BUSY.
#[unsafe(no_mangle)]
pub extern "C" fn hs_tap_wait(tap: *mut hs_tap, frames: u64, at_most_ns: i64, state: *mut c_int) -> c_int {
    door(|| {
        let place = Place::new(state)?;
        let at_most = u64::try_from(at_most_ns)
            .map_err(|_| Failure::new(HS_E_NEGATIVE, format!("wait for {at_most_ns} ns: it is negative")))?;
        let reader = Alone::of(tap)?;
        place.put(number(reader.wait(Frames(frames), Duration::from_nanos(at_most))));
        Ok(())
    })
}

/// Copies the frames that come next to `bytes`, at most as many as fit. Stops before a gap of the source, so that the
/// frames of a piece follow each other. Copies nothing if no new frame is there. Never waits. Real-time safe.
/// HS_E_RANGE (the size is not set), HS_E_BUSY.
#[unsafe(no_mangle)]
pub extern "C" fn hs_tap_read(
    tap: *mut hs_tap,
    bytes: *mut c_void,
    room_bytes: usize,
    piece: *mut hs_tap_piece,
) -> c_int {
    door(|| {
        let place = Place::new(piece)?;
        is_of_size::<hs_tap_piece>("struct hs_tap_piece", place.holds().size)?;
        let mut reader = Alone::of(tap)?;
        let copied = reader.read(room(bytes, room_bytes)?);
        let known = copied.first_frame.filter(|_| copied.frames.0 > 0);
        place.put(hs_tap_piece {
            size: size_of::<hs_tap_piece>(),
            frames: copied.frames.0,
            bytes: reader.layout().bytes_of(copied.frames).0,
            first_frame: known.map_or(u64::MAX, |frame| frame.0),
            missed_frames: copied.missed.0,
        });
        Ok(())
    })
}

/// Goes on with the newest frames: `frames` of them, at most those of half the ring. Those that are passed over do not
/// count as missed. Real-time safe. HS_E_BUSY.
#[unsafe(no_mangle)]
pub extern "C" fn hs_tap_skip_to_newest(tap: *mut hs_tap, frames: u64) -> c_int {
    door(|| {
        Alone::of(tap)?.skip_to_newest(Frames(frames));
        Ok(())
    })
}

/// What has become of the stream (HS_TAP_RUNNING and so on), the frames that this reader was too slow for, and those
/// that the source lost: UINT64_MAX if the recorder died while it wrote that. Each place may be NULL. HS_E_BUSY.
#[unsafe(no_mangle)]
pub extern "C" fn hs_tap_state(
    tap: *const hs_tap,
    state: *mut c_int,
    missed_frames: *mut u64,
    lost_frames: *mut u64,
) -> c_int {
    door(|| {
        let (state, missed, lost) = (Place::wanted(state)?, Place::wanted(missed_frames)?, Place::wanted(lost_frames)?);
        let reader = Shared::of(tap)?;
        state.inspect(|place| place.put(number(reader.state())));
        missed.inspect(|place| place.put(reader.missed().0));
        lost.inspect(|place| place.put(reader.gaps().map_or(u64::MAX, |gaps| gaps.lost.0)));
        Ok(())
    })
}

/// Closes a tap. NULL is allowed. HS_E_FREED, HS_E_BUSY.
#[unsafe(no_mangle)]
pub extern "C" fn hs_tap_free(tap: *mut hs_tap) -> c_int {
    door(|| free(tap))
}
