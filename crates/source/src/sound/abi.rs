//! The structures and the numbers of requests of `<sound/asound.h>`, as 64-bit Linux has them.
//!
//! Every structure is plain numbers without a gap, so any bits are a value. A test compiles the kernel's header and
//! compares sizes, offsets and numbers with these.

use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes};

/// `SNDRV_PCM_IOCTL_…`, which need a stream.
pub(super) const PCM_INFO: Request<PcmInfo> = Request::gives(b'A', 0x01);
pub(super) const HW_REFINE: Request<HwParams> = Request::both(b'A', 0x10);
pub(super) const HW_PARAMS: Request<HwParams> = Request::both(b'A', 0x11);
pub(super) const SW_PARAMS: Request<SwParams> = Request::both(b'A', 0x13);
pub(super) const STATUS_EXT: Request<Status> = Request::both(b'A', 0x24);
pub(super) const FORWARD: Request<u64> = Request::takes(b'A', 0x49);
pub(super) const PREPARE: libc::c_ulong = encoded(0, b'A', 0x40, 0);
pub(super) const START: libc::c_ulong = encoded(0, b'A', 0x42, 0);
pub(super) const DROP: libc::c_ulong = encoded(0, b'A', 0x43, 0);
pub(super) const DRAIN: libc::c_ulong = encoded(0, b'A', 0x44, 0);
pub(super) const RESUME: libc::c_ulong = encoded(0, b'A', 0x47, 0);
/// Their value holds an address: only the file of system calls makes these.
pub(super) const WRITE_FRAMES: libc::c_ulong = encoded(1, b'A', 0x50, 24);
pub(super) const READ_FRAMES: libc::c_ulong = encoded(2, b'A', 0x51, 24);

/// `SNDRV_CTL_IOCTL_…`, which need a card.
pub(super) const CARD_INFO: Request<CardInfo> = Request::gives(b'U', 0x01);
pub(super) const ELEM_LIST: libc::c_ulong = encoded(3, b'U', 0x10, 80);
pub(super) const ELEM_INFO: Request<ElemInfo> = Request::both(b'U', 0x11);
pub(super) const ELEM_READ: Request<ElemValue> = Request::both(b'U', 0x12);
pub(super) const PREFER_SUBDEVICE: Request<i32> = Request::takes(b'U', 0x32);

/// Indices of masks and intervals in [`HwParams`].
pub(super) const ACCESS: usize = 0;
pub(super) const FORMAT: usize = 1;
pub(super) const SUBFORMAT: usize = 2;
pub(super) const CHANNELS: usize = 2;
pub(super) const RATE: usize = 3;
pub(super) const PERIOD_SIZE: usize = 5;
pub(super) const BUFFER_SIZE: usize = 9;

/// Frames of all channels one after the other, by read and write calls.
pub(super) const ACCESS_RW_INTERLEAVED: u32 = 3;
/// No conversion of the rate.
pub(super) const NO_RESAMPLE: u32 = 1;
/// The position moves in whole periods.
pub(super) const INFO_BATCH: u32 = 0x10;
/// Time stamps on, of `CLOCK_MONOTONIC`.
pub(super) const TSTAMP_ENABLE: i32 = 1;
pub(super) const TSTAMP_MONOTONIC: u32 = 1;
/// The version of the interface from which the type of stamps is read.
pub(super) const VERSION: u32 = 2 << 16 | 15;
/// An element that belongs to the mixer.
pub(super) const IFACE_MIXER: i32 = 2;
pub(super) const ELEM_READABLE: u32 = 1;
pub(super) const ELEM_INACTIVE: u32 = 1 << 8;

/// A request that takes or gives one value.
#[derive(Debug)]
pub(super) struct Request<T> {
    pub(super) number: libc::c_ulong,
    value: std::marker::PhantomData<T>,
}

impl<T> Request<T> {
    const fn of(direction: u32, group: u8, index: u8) -> Self {
        Self { number: encoded(direction, group, index, size_of::<T>()), value: std::marker::PhantomData }
    }
    const fn takes(group: u8, index: u8) -> Self {
        Self::of(1, group, index)
    }
    const fn gives(group: u8, index: u8) -> Self {
        Self::of(2, group, index)
    }
    const fn both(group: u8, index: u8) -> Self {
        Self::of(3, group, index)
    }
}

/// The number of a request, as in `asm-generic/ioctl.h`.
const fn encoded(direction: u32, group: u8, index: u8, bytes: usize) -> libc::c_ulong {
    (direction << 30 | (bytes as u32) << 16 | (group as u32) << 8 | index as u32) as libc::c_ulong
}

/// A set of small numbers.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable)]
pub(super) struct Mask {
    pub(super) bits: [u32; 8],
}

impl Mask {
    pub(super) const ALL: Self = Self { bits: [u32::MAX; 8] };

    pub(super) fn only(number: u32) -> Self {
        let mut mask = Self { bits: [0; 8] };
        mask.bits[number as usize / 32] = 1 << (number % 32);
        mask
    }

    pub(super) fn has(&self, number: u32) -> bool {
        self.bits.get(number as usize / 32).is_some_and(|bits| bits >> (number % 32) & 1 == 1)
    }
}

/// A range of numbers.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable)]
pub(super) struct Interval {
    pub(super) min: u32,
    pub(super) max: u32,
    /// Bit 0: without `min` itself; 1: without `max`; 2: whole numbers only; 3: empty.
    pub(super) flags: u32,
}

impl Interval {
    pub(super) const ALL: Self = Self { min: 0, max: u32::MAX, flags: 0 };

    pub(super) fn only(number: u32) -> Self {
        Self { min: number, max: number, flags: 1 << 2 }
    }

    /// The least and the greatest whole number in it.
    pub(super) fn ends(&self) -> (u32, u32) {
        let (open_min, open_max) = (self.flags & 1, self.flags >> 1 & 1);
        (self.min.saturating_add(open_min), self.max.saturating_sub(open_max))
    }
}

/// `struct snd_pcm_hw_params`.
#[repr(C)]
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable)]
pub(super) struct HwParams {
    pub(super) flags: u32,
    pub(super) masks: [Mask; 3],
    masks_reserved: [Mask; 5],
    pub(super) intervals: [Interval; 12],
    intervals_reserved: [Interval; 9],
    pub(super) requested: u32,
    pub(super) changed: u32,
    pub(super) info: u32,
    pub(super) msbits: u32,
    pub(super) rate_num: u32,
    pub(super) rate_den: u32,
    pub(super) fifo_size: u64,
    reserved: [u8; 64],
}

impl HwParams {
    /// Everything that the kernel can express.
    pub(super) fn any() -> Self {
        Self {
            masks: [Mask::ALL; 3],
            intervals: [Interval::ALL; 12],
            requested: u32::MAX,
            info: u32::MAX,
            ..Self::new_zeroed()
        }
    }
}

/// `struct snd_pcm_sw_params`.
#[repr(C)]
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable)]
pub(super) struct SwParams {
    pub(super) tstamp_mode: i32,
    pub(super) period_step: u32,
    sleep_min: u32,
    gap: u32,
    pub(super) avail_min: u64,
    pub(super) xfer_align: u64,
    pub(super) start_threshold: u64,
    pub(super) stop_threshold: u64,
    pub(super) silence_threshold: u64,
    pub(super) silence_size: u64,
    pub(super) boundary: u64,
    pub(super) proto: u32,
    pub(super) tstamp_type: u32,
    reserved: [u8; 56],
}

/// `struct timespec`.
#[repr(C)]
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable)]
pub(super) struct TimeSpec {
    pub(super) seconds: i64,
    pub(super) nanos: i64,
}

/// `struct snd_pcm_status`.
#[repr(C)]
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable)]
pub(super) struct Status {
    pub(super) state: i32,
    gap: u32,
    pub(super) trigger: TimeSpec,
    pub(super) stamp: TimeSpec,
    pub(super) appl_ptr: u64,
    pub(super) hw_ptr: u64,
    delay: i64,
    avail: u64,
    avail_max: u64,
    overrange: u64,
    suspended_state: i32,
    audio_stamp_data: u32,
    audio_stamp: TimeSpec,
    driver_stamp: TimeSpec,
    audio_stamp_accuracy: u32,
    reserved: [u8; 20],
}

/// `struct snd_pcm_info`.
#[repr(C)]
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable)]
pub(super) struct PcmInfo {
    pub(super) device: u32,
    pub(super) subdevice: u32,
    pub(super) stream: i32,
    pub(super) card: i32,
    id: [u8; 64],
    pub(super) name: [u8; 80],
    subname: [u8; 32],
    class: [i32; 2],
    pub(super) subdevices: u32,
    subdevices_free: u32,
    sync: [u8; 16],
    reserved: [u8; 64],
}

/// `struct snd_ctl_card_info`.
#[repr(C)]
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable)]
pub(super) struct CardInfo {
    pub(super) card: i32,
    gap: i32,
    pub(super) id: [u8; 16],
    pub(super) driver: [u8; 16],
    pub(super) name: [u8; 32],
    pub(super) long_name: [u8; 80],
    reserved: [u8; 16],
    mixer_name: [u8; 80],
    components: [u8; 128],
}

/// `struct snd_ctl_elem_id`.
#[repr(C)]
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable)]
pub(super) struct ElemId {
    pub(super) number: u32,
    pub(super) interface: i32,
    device: u32,
    subdevice: u32,
    pub(super) name: [u8; 44],
    pub(super) index: u32,
}

/// `struct snd_ctl_elem_info`. The words hold minimum and maximum of an integer, or the number of items, an item and
/// its name.
#[repr(C)]
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable)]
pub(super) struct ElemInfo {
    pub(super) id: ElemId,
    pub(super) kind: i32,
    pub(super) access: u32,
    pub(super) count: u32,
    owner: i32,
    pub(super) value: [u8; 128],
    reserved: [u8; 64],
}

/// `struct snd_ctl_elem_value`.
#[repr(C)]
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable)]
pub(super) struct ElemValue {
    pub(super) id: ElemId,
    indirect: u32,
    gap: u32,
    pub(super) value: [u8; 1024],
    reserved: [u8; 128],
}

/// The text before the first zero byte.
pub(super) fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).trim().to_owned()
}

#[cfg(test)]
mod tests {
    use std::mem::offset_of;
    use std::process::Command;

    use super::*;

    /// Facts about the C header: an expression of C, and its value here.
    fn claims() -> Vec<(String, usize)> {
        let mut all = Vec::new();
        let mut size = |name: &str, size: usize| all.push((format!("sizeof({name})"), size));
        size("struct snd_mask", size_of::<Mask>());
        size("struct snd_interval", size_of::<Interval>());
        size("struct snd_pcm_hw_params", size_of::<HwParams>());
        size("struct snd_pcm_sw_params", size_of::<SwParams>());
        size("struct snd_pcm_status", size_of::<Status>());
        size("struct snd_pcm_info", size_of::<PcmInfo>());
        size("struct snd_ctl_card_info", size_of::<CardInfo>());
        size("struct snd_ctl_elem_id", size_of::<ElemId>());
        size("struct snd_ctl_elem_info", size_of::<ElemInfo>());
        size("struct snd_ctl_elem_value", size_of::<ElemValue>());
        let offsets = [
            ("snd_pcm_hw_params, masks", offset_of!(HwParams, masks)),
            ("snd_pcm_hw_params, intervals", offset_of!(HwParams, intervals)),
            ("snd_pcm_hw_params, rmask", offset_of!(HwParams, requested)),
            ("snd_pcm_hw_params, cmask", offset_of!(HwParams, changed)),
            ("snd_pcm_hw_params, info", offset_of!(HwParams, info)),
            ("snd_pcm_hw_params, msbits", offset_of!(HwParams, msbits)),
            ("snd_pcm_hw_params, rate_num", offset_of!(HwParams, rate_num)),
            ("snd_pcm_hw_params, rate_den", offset_of!(HwParams, rate_den)),
            ("snd_pcm_hw_params, fifo_size", offset_of!(HwParams, fifo_size)),
            ("snd_pcm_sw_params, period_step", offset_of!(SwParams, period_step)),
            ("snd_pcm_sw_params, avail_min", offset_of!(SwParams, avail_min)),
            ("snd_pcm_sw_params, xfer_align", offset_of!(SwParams, xfer_align)),
            ("snd_pcm_sw_params, start_threshold", offset_of!(SwParams, start_threshold)),
            ("snd_pcm_sw_params, stop_threshold", offset_of!(SwParams, stop_threshold)),
            ("snd_pcm_sw_params, silence_threshold", offset_of!(SwParams, silence_threshold)),
            ("snd_pcm_sw_params, silence_size", offset_of!(SwParams, silence_size)),
            ("snd_pcm_sw_params, boundary", offset_of!(SwParams, boundary)),
            ("snd_pcm_sw_params, proto", offset_of!(SwParams, proto)),
            ("snd_pcm_sw_params, tstamp_type", offset_of!(SwParams, tstamp_type)),
            ("snd_pcm_status, trigger_tstamp", offset_of!(Status, trigger)),
            ("snd_pcm_status, tstamp", offset_of!(Status, stamp)),
            ("snd_pcm_status, appl_ptr", offset_of!(Status, appl_ptr)),
            ("snd_pcm_status, hw_ptr", offset_of!(Status, hw_ptr)),
            ("snd_pcm_status, audio_tstamp_data", offset_of!(Status, audio_stamp_data)),
            ("snd_pcm_info, subdevice", offset_of!(PcmInfo, subdevice)),
            ("snd_pcm_info, name", offset_of!(PcmInfo, name)),
            ("snd_pcm_info, subdevices_count", offset_of!(PcmInfo, subdevices)),
            ("snd_ctl_card_info, id", offset_of!(CardInfo, id)),
            ("snd_ctl_card_info, driver", offset_of!(CardInfo, driver)),
            ("snd_ctl_card_info, longname", offset_of!(CardInfo, long_name)),
            ("snd_ctl_elem_id, iface", offset_of!(ElemId, interface)),
            ("snd_ctl_elem_id, name", offset_of!(ElemId, name)),
            ("snd_ctl_elem_id, index", offset_of!(ElemId, index)),
            ("snd_ctl_elem_info, type", offset_of!(ElemInfo, kind)),
            ("snd_ctl_elem_info, access", offset_of!(ElemInfo, access)),
            ("snd_ctl_elem_info, count", offset_of!(ElemInfo, count)),
            ("snd_ctl_elem_info, value", offset_of!(ElemInfo, value)),
            ("snd_ctl_elem_info, value.enumerated.name", offset_of!(ElemInfo, value) + 8),
            ("snd_ctl_elem_value, value", offset_of!(ElemValue, value)),
        ];
        all.extend(offsets.map(|(field, at)| (format!("offsetof(struct {field})"), at)));
        let requests = [
            ("SNDRV_PCM_IOCTL_INFO", PCM_INFO.number),
            ("SNDRV_PCM_IOCTL_HW_REFINE", HW_REFINE.number),
            ("SNDRV_PCM_IOCTL_HW_PARAMS", HW_PARAMS.number),
            ("SNDRV_PCM_IOCTL_SW_PARAMS", SW_PARAMS.number),
            ("SNDRV_PCM_IOCTL_STATUS_EXT", STATUS_EXT.number),
            ("SNDRV_PCM_IOCTL_FORWARD", FORWARD.number),
            ("SNDRV_PCM_IOCTL_PREPARE", PREPARE),
            ("SNDRV_PCM_IOCTL_START", START),
            ("SNDRV_PCM_IOCTL_DROP", DROP),
            ("SNDRV_PCM_IOCTL_DRAIN", DRAIN),
            ("SNDRV_PCM_IOCTL_RESUME", RESUME),
            ("SNDRV_PCM_IOCTL_WRITEI_FRAMES", WRITE_FRAMES),
            ("SNDRV_PCM_IOCTL_READI_FRAMES", READ_FRAMES),
            ("SNDRV_CTL_IOCTL_CARD_INFO", CARD_INFO.number),
            ("SNDRV_CTL_IOCTL_ELEM_LIST", ELEM_LIST),
            ("SNDRV_CTL_IOCTL_ELEM_INFO", ELEM_INFO.number),
            ("SNDRV_CTL_IOCTL_ELEM_READ", ELEM_READ.number),
            ("SNDRV_CTL_IOCTL_PCM_PREFER_SUBDEVICE", PREFER_SUBDEVICE.number),
        ];
        all.extend(requests.map(|(name, number)| (format!("({name}) + 0u"), number as usize)));
        let numbers = [
            ("SNDRV_PCM_ACCESS_RW_INTERLEAVED", ACCESS_RW_INTERLEAVED),
            ("SNDRV_PCM_HW_PARAMS_NORESAMPLE", NO_RESAMPLE),
            ("SNDRV_PCM_INFO_BATCH", INFO_BATCH),
            ("SNDRV_PCM_TSTAMP_TYPE_MONOTONIC", TSTAMP_MONOTONIC),
            ("SNDRV_PCM_HW_PARAM_CHANNELS - SNDRV_PCM_HW_PARAM_FIRST_INTERVAL", CHANNELS as u32),
            ("SNDRV_PCM_HW_PARAM_RATE - SNDRV_PCM_HW_PARAM_FIRST_INTERVAL", RATE as u32),
            ("SNDRV_PCM_HW_PARAM_PERIOD_SIZE - SNDRV_PCM_HW_PARAM_FIRST_INTERVAL", PERIOD_SIZE as u32),
            ("SNDRV_PCM_HW_PARAM_BUFFER_SIZE - SNDRV_PCM_HW_PARAM_FIRST_INTERVAL", BUFFER_SIZE as u32),
            ("SNDRV_CTL_ELEM_IFACE_MIXER", IFACE_MIXER as u32),
            ("SNDRV_CTL_ELEM_ACCESS_INACTIVE", ELEM_INACTIVE),
        ];
        all.extend(numbers.map(|(name, number)| (format!("({name}) + 0u"), number as usize)));
        all
    }

    #[test]
    fn structures_and_numbers_are_those_of_the_kernels_header() {
        let mut program =
            "#include <stddef.h>\n#include <time.h>\n#include <sys/ioctl.h>\n#include <sound/asound.h>\n".to_owned();
        for (number, (claim, here)) in claims().iter().enumerate() {
            program +=
                &format!("_Static_assert((unsigned)({claim}) == {here}u, \"{number}: {claim} is not {here}\");\n");
        }
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("header.c");
        std::fs::write(&file, program).expect("written");
        let compiled = Command::new("cc").arg("-fsyntax-only").arg(&file).output().expect("the C compiler");
        assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    }

    #[test]
    fn intervals_that_are_open_leave_out_their_ends() {
        assert_eq!(Interval { min: 1, max: 9, flags: 0b11 }.ends(), (2, 8));
        assert_eq!(Interval::only(7).ends(), (7, 7));
        assert!(Mask::only(33).has(33) && !Mask::only(33).has(1) && !Mask::only(33).has(300));
    }
}
