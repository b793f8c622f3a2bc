//! [`PcmSetup`]: the settings of a stream, and their negotiation with the card.
//!
//! A card describes its capabilities as sets and ranges that depend on each other. The kernel narrows them down after
//! each choice. Values that determine the data (form, channels, rate) must be met exactly, without any conversion; the
//! sizes of buffer and period may be the nearest.

use std::io;

use hairspring_ring::layout::Container;
use hairspring_ring::units::{Frames, SampleRate};

use super::abi::{self, HwParams, Interval, Mask};

/// The forms of samples that sound cards have. Samples of 24 bits are stored in 32, with their sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PcmForm {
    I8,
    U8,
    I16,
    I24,
    I32,
    F32,
}

impl PcmForm {
    const ALL: [Self; 6] = [Self::I8, Self::U8, Self::I16, Self::I24, Self::I32, Self::F32];

    /// The container of a sample, and its resolution in bits.
    pub(super) fn stored(self) -> (Container, u32) {
        match self {
            Self::I8 => (Container::I8, 8),
            Self::U8 => (Container::U8, 8),
            Self::I16 => (Container::I16, 16),
            Self::I24 => (Container::I32, 24),
            Self::I32 => (Container::I32, 32),
            Self::F32 => (Container::F32, 24),
        }
    }

    /// A sample's form, as users write it.
    pub(super) fn written(self) -> &'static str {
        match self {
            Self::I8 => "8bit",
            Self::U8 => "8bit,u",
            Self::I16 => "16bit",
            Self::I24 => "24bit",
            Self::I32 => "32bit",
            Self::F32 => "float",
        }
    }

    /// The kernel's numbers of the ways in which drivers pass it, the best first: S24_LE has four bytes and needs no
    /// unpacking, S24_3LE three.
    fn numbers(self) -> &'static [(u32, PcmWire)] {
        match self {
            Self::I8 => &[(0, PcmWire::AsStored)],
            Self::U8 => &[(1, PcmWire::AsStored)],
            Self::I16 => &[(2, PcmWire::AsStored)],
            Self::I24 => &[(6, PcmWire::LowThree), (32, PcmWire::Three)],
            Self::I32 => &[(10, PcmWire::AsStored)],
            Self::F32 => &[(14, PcmWire::AsStored)],
        }
    }

    /// The way in which a card passes it, if it does.
    fn offered(self, formats: &Mask) -> Option<(u32, PcmWire)> {
        self.numbers().iter().copied().find(|(number, _)| formats.has(*number))
    }
}

/// How a driver passes a sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PcmWire {
    /// As it is stored.
    #[default]
    AsStored,
    /// 24 bits in the lower three of four bytes (`S24_LE`). The fourth byte is ignored.
    LowThree,
    /// 24 bits in three bytes (`S24_3LE`).
    Three,
}

/// The requested form of the samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PcmWish {
    pub(super) form: PcmForm,
    pub(super) channels: u32,
    pub(super) rate_hz: u32,
    /// Frames between two interrupts; a hundredth of a second if not stated.
    pub(super) period: Option<u32>,
    /// Frames of the card's buffer; the card's maximum if `None`.
    pub(super) buffer: Option<u32>,
}

/// Settings that the kernel accepted for a stream of a sound card.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PcmSetup {
    /// How a sample is stored.
    pub container: Container,
    /// How the driver passes it.
    pub wire: PcmWire,
    /// Channels.
    pub channels: u32,
    /// Frames per second, nominally, as the driver states them.
    pub rate: SampleRate,
    /// Bits of a sample that carry information; they are the upper ones.
    pub significant_bits: u32,
    /// Frames of the card's buffer.
    pub buffer: Frames,
    /// Frames between two interrupts.
    pub period: Frames,
    /// Position at which the card's pointers wrap to 0.
    pub boundary: Frames,
    /// Frames that the card may hold beyond its pointer.
    pub fifo: Frames,
    /// Whether the pointer moves in whole periods.
    pub moves_by_periods: bool,
}

impl PcmSetup {
    /// Bytes of a frame as it is stored.
    pub fn frame_bytes(&self) -> u64 {
        u64::from(self.channels) * u64::from(self.container.bits()) / 8
    }

    /// Bytes of a frame as the driver passes it.
    pub(super) fn wire_bytes(&self) -> u64 {
        match self.wire {
            PcmWire::Three => u64::from(self.channels) * 3,
            PcmWire::AsStored | PcmWire::LowThree => self.frame_bytes(),
        }
    }
}

impl PcmWire {
    /// Converts samples from a driver to signed samples of 32 bits.
    pub(super) fn unpack(self, passed: &[u8], into: &mut [u8]) {
        let each = if self == Self::Three { 3 } else { 4 };
        for (sample, into) in passed.chunks_exact(each).zip(into.as_chunks_mut::<4>().0) {
            let low = u32::from_le_bytes([sample[0], sample[1], sample[2], 0]);
            *into = (((low << 8) as i32) >> 8).to_le_bytes();
        }
    }

    /// The reverse.
    pub(super) fn pack(self, samples: &[u8], into: &mut Vec<u8>) {
        into.clear();
        let each = if self == Self::Three { 3 } else { 4 };
        into.extend(samples.as_chunks::<4>().0.iter().flat_map(|sample| &sample[..each]));
    }
}

type Refine<'a> = &'a mut dyn FnMut(&mut HwParams) -> io::Result<()>;

/// Narrows the capabilities of a card down to a wish.
///
/// # Errors
/// `InvalidInput` with a sentence that states what the card offers instead.
pub(super) fn negotiate(wish: &PcmWish, refine: Refine<'_>) -> io::Result<HwParams> {
    let refused = |why: String| io::Error::new(io::ErrorKind::InvalidInput, why);
    let mut params = HwParams::any();
    params.flags = abi::NO_RESAMPLE;
    params.masks[abi::ACCESS] = Mask::only(abi::ACCESS_RW_INTERLEAVED);
    params.masks[abi::SUBFORMAT] = Mask::only(0);
    refine(&mut params).map_err(|error| match error.raw_os_error() {
        Some(libc::EINVAL) => refused("the card does not give the frames of all channels together".to_owned()),
        _ => error,
    })?;
    let offered = wish.form.offered(&params.masks[abi::FORMAT]);
    let Some((number, _)) = offered else {
        let has: Vec<_> =
            PcmForm::ALL.iter().filter(|form| form.offered(&params.masks[abi::FORMAT]).is_some()).collect();
        let has: Vec<_> = has.iter().map(|form| form.written()).collect();
        let has = if has.is_empty() { "none that can be recorded".to_owned() } else { has.join(" or ") };
        return Err(refused(format!("the card has no samples of {}: it has {has}", wish.form.written())));
    };
    params.masks[abi::FORMAT] = Mask::only(number);
    exactly(&mut params, abi::CHANNELS, wish.channels, "channels", refine)?;
    exactly(&mut params, abi::RATE, wish.rate_hz, "frames per second", refine)?;
    if let Some(period) = wish.period {
        nearest(&mut params, abi::PERIOD_SIZE, period, refine)?;
        nearest(&mut params, abi::BUFFER_SIZE, wish.buffer.unwrap_or(u32::MAX), refine)?;
    } else {
        nearest(&mut params, abi::BUFFER_SIZE, wish.buffer.unwrap_or(u32::MAX), refine)?;
        let buffer = params.intervals[abi::BUFFER_SIZE].ends().1;
        // At least four periods, so that a count of rounds is never in doubt.
        nearest(&mut params, abi::PERIOD_SIZE, (wish.rate_hz / 100).min(buffer / 4).max(1), refine)?;
    }
    Ok(params)
}

/// Sets a value that must be met.
fn exactly(params: &mut HwParams, index: usize, value: u32, unit: &str, refine: Refine<'_>) -> io::Result<()> {
    let (least, most) = params.intervals[index].ends();
    let mut tried = *params;
    tried.intervals[index] = Interval::only(value);
    tried.requested = u32::MAX;
    match refine(&mut tried) {
        Ok(()) => *params = tried,
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
            let has = if least == most { least.to_string() } else { format!("{least} to {most}, not each of them") };
            let why = format!("the card has no {value} {unit}: it has {has}");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        Err(error) => return Err(error),
    }
    Ok(())
}

/// Sets a value, or the nearest that the card has: first from above, then from below.
fn nearest(params: &mut HwParams, index: usize, value: u32, refine: Refine<'_>) -> io::Result<()> {
    let (least, most) = params.intervals[index].ends();
    if least > most {
        return Err(contradiction(&format!("a value from {least} to {most}")));
    }
    let value = value.clamp(least, most);
    let mut last = io::Error::from_raw_os_error(libc::EINVAL);
    for (from, to) in [(value, most), (least, value)] {
        let mut tried = *params;
        tried.intervals[index] = Interval { min: from, max: to, flags: 1 << 2 };
        tried.requested = u32::MAX;
        let narrowed = refine(&mut tried).and_then(|()| {
            let (least, most) = tried.intervals[index].ends();
            tried.intervals[index] = Interval::only(if from == value { least } else { most });
            tried.requested = u32::MAX;
            refine(&mut tried)
        });
        match narrowed {
            Ok(()) => {
                *params = tried;
                return Ok(());
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn contradiction(what: &str) -> io::Error {
    io::Error::other(format!("the driver's set-up contradicts the card: {what}"))
}

/// The setup that the kernel made of a wish, if the wish allows it.
///
/// # Errors
/// The set-up contradicts the wish, or itself.
pub(super) fn checked(wish: &PcmWish, params: &HwParams, boundary: u64) -> io::Result<PcmSetup> {
    let single = |index: usize| {
        let (least, most) = params.intervals[index].ends();
        (least == most).then_some(least)
    };
    let of = |index, what: &str| single(index).ok_or_else(|| contradiction(&format!("{what} has no value")));
    let (channels, buffer) = (of(abi::CHANNELS, "channels")?, of(abi::BUFFER_SIZE, "buffer")?);
    let period = of(abi::PERIOD_SIZE, "period")?;
    if channels != wish.channels {
        return Err(contradiction(&format!("{channels} channels instead of {}", wish.channels)));
    }
    let rate = SampleRate::new(params.rate_num.into(), params.rate_den.into());
    let rate = rate.ok_or_else(|| contradiction("a rate of 0"))?;
    if (rate.as_hz() - f64::from(wish.rate_hz)).abs() > 1.0 {
        return Err(contradiction(&format!("{rate} instead of {} S/s", wish.rate_hz)));
    }
    if period == 0 || buffer / 2 < period {
        return Err(contradiction(&format!("a buffer of {buffer} frames for periods of {period}")));
    }
    let rounds = boundary / u64::from(buffer);
    if rounds * u64::from(buffer) != boundary || !rounds.is_power_of_two() {
        return Err(contradiction(&format!("pointers that wrap at {boundary} in a buffer of {buffer}")));
    }
    let (container, bits) = wish.form.stored();
    let (_, wire) =
        wish.form.offered(&params.masks[abi::FORMAT]).ok_or_else(|| contradiction("another form of samples"))?;
    Ok(PcmSetup {
        container,
        wire,
        channels,
        rate,
        significant_bits: match params.msbits {
            0 => container.bits().min(bits.max(8)),
            known => known.min(container.bits()),
        },
        buffer: Frames(buffer.into()),
        period: Frames(period.into()),
        boundary: Frames(boundary),
        // A driver that reports a FIFO larger than the buffer does not know it.
        fifo: Frames(params.fifo_size.min(u64::from(buffer / 8))),
        moves_by_periods: params.info & abi::INFO_BATCH != 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const WISH: PcmWish = PcmWish { form: PcmForm::I16, channels: 2, rate_hz: 48_000, period: None, buffer: None };

    /// A card with 16-bit samples, 1 or 2 channels, 8 to 96 kHz, buffers of up to 8192 frames in periods that divide
    /// them in powers of two.
    fn card(params: &mut HwParams) -> io::Result<()> {
        let refused = || io::Error::from_raw_os_error(libc::EINVAL);
        let narrow = |interval: &mut Interval, least: u32, most: u32| {
            let (from, to) = interval.ends();
            *interval = Interval { min: from.max(least), max: to.min(most), flags: 1 << 2 };
            if interval.min > interval.max { Err(refused()) } else { Ok(()) }
        };
        params.masks[abi::FORMAT].bits[0] &= 1 << 2;
        if params.masks[abi::FORMAT].bits[0] == 0 {
            return Err(refused());
        }
        narrow(&mut params.intervals[abi::CHANNELS], 1, 2)?;
        narrow(&mut params.intervals[abi::RATE], 8000, 96_000)?;
        narrow(&mut params.intervals[abi::BUFFER_SIZE], 64, 8192)?;
        let (least, most) = params.intervals[abi::PERIOD_SIZE].ends();
        let sizes = (5..12).map(|power| 1 << power).filter(|size| (least..=most).contains(size));
        let sizes: Vec<u32> = sizes.collect();
        let (Some(least), Some(most)) = (sizes.first(), sizes.last()) else { return Err(refused()) };
        params.intervals[abi::PERIOD_SIZE] = Interval { min: *least, max: *most, flags: 1 << 2 };
        (params.rate_num, params.rate_den) = (params.intervals[abi::RATE].ends().0, 1);
        Ok(())
    }

    #[track_caller]
    fn refuses(wish: PcmWish, why: &str) {
        let error = negotiate(&wish, &mut card).expect_err(why).to_string();
        assert!(error.contains(why), "{error}");
    }

    #[test]
    fn sizes_are_the_nearest_and_the_data_are_exact() {
        let params = negotiate(&WISH, &mut card).expect("can");
        let setup = checked(&WISH, &params, 8192 << 20).expect("fits");
        assert_eq!((setup.buffer, setup.period, setup.frame_bytes()), (Frames(8192), Frames(512), 4));
        let small = PcmWish { period: Some(64), buffer: Some(128), ..WISH };
        let params = negotiate(&small, &mut card).expect("can");
        let setup = checked(&small, &params, 128 << 20).expect("fits");
        assert_eq!((setup.buffer, setup.period), (Frames(128), Frames(64)));
    }

    #[test]
    fn what_the_card_has_instead_is_said() {
        refuses(PcmWish { form: PcmForm::F32, ..WISH }, "no samples of float: it has 16bit");
        refuses(PcmWish { channels: 8, ..WISH }, "no 8 channels: it has 1 to 2");
        refuses(PcmWish { rate_hz: 192_000, ..WISH }, "no 192000 frames per second: it has 8000 to 96000");
    }

    #[test]
    fn samples_of_24_bits_are_asked_for_in_the_form_that_the_card_has() {
        for (words, wire, frame) in [([1 << 6, 1], PcmWire::LowThree, 8), ([0, 1], PcmWire::Three, 6)] {
            let mut with_24 = |params: &mut HwParams| {
                let formats = params.masks[abi::FORMAT].bits;
                let has = [formats[0] & words[0], formats[1] & words[1]];
                params.masks[abi::FORMAT].bits[0] |= 1 << 2;
                card(params)?;
                (params.masks[abi::FORMAT].bits[0], params.masks[abi::FORMAT].bits[1]) = (has[0], has[1]);
                Ok(())
            };
            let wish = PcmWish { form: PcmForm::I24, ..WISH };
            let params = negotiate(&wish, &mut with_24).expect("can");
            let setup = checked(&wish, &params, 8192 << 20).expect("fits");
            assert_eq!((setup.wire, setup.container, setup.significant_bits), (wire, Container::I32, 24));
            assert_eq!((setup.frame_bytes(), setup.wire_bytes()), (8, frame));
            let refused = negotiate(&WISH, &mut with_24).expect_err("16 bits").to_string();
            assert!(refused.contains("no samples of 16bit: it has 24bit"), "{refused}");
        }
    }

    #[test]
    fn samples_of_24_bits_keep_their_sign_and_the_fourth_byte_says_nothing() {
        let samples = [0, 1, -1, 0x7F_FFFF, -0x80_0000, 0x12_3456].map(i32::to_le_bytes).concat();
        for (wire, each) in [(PcmWire::LowThree, 4), (PcmWire::Three, 3)] {
            let (mut passed, mut back) = (Vec::new(), vec![0; samples.len()]);
            wire.pack(&samples, &mut passed);
            assert_eq!(passed.len(), 6 * each);
            // Garbage as a driver may leave it in the padding byte.
            passed.iter_mut().skip(3).step_by(4).filter(|_| each == 4).for_each(|byte| *byte = 0x5A);
            wire.unpack(&passed, &mut back);
            assert_eq!(back, samples);
        }
    }

    #[test]
    fn a_set_up_that_contradicts_the_card_is_refused() {
        let good = negotiate(&WISH, &mut card).expect("can");
        let says = |params: &HwParams, boundary: u64| checked(&WISH, params, boundary).expect_err("no").to_string();
        assert!(says(&good, 8192 * 3).contains("pointers that wrap at 24576"));
        let mut other = good;
        other.intervals[abi::CHANNELS] = Interval::only(1);
        assert!(says(&other, 8192 << 20).contains("1 channels instead of 2"));
        let mut other = good;
        (other.rate_num, other.rate_den) = (44_100, 1);
        assert!(says(&other, 8192 << 20).contains("instead of 48000 S/s"));
        let mut other = good;
        other.intervals[abi::PERIOD_SIZE] = Interval::only(8000);
        assert!(says(&other, 8192 << 20).contains("periods of 8000"));
        other.intervals[abi::PERIOD_SIZE] = Interval::only(1 << 31);
        assert!(says(&other, 8192 << 20).contains("periods of 2147483648"));
        let mut other = good;
        other.intervals[abi::BUFFER_SIZE] = Interval { min: 1, max: 9, flags: 0 };
        assert!(says(&other, 8192 << 20).contains("buffer has no value"));
        let mut backwards = |params: &mut HwParams| {
            card(params)?;
            if params.intervals[abi::RATE].ends() == (48_000, 48_000) {
                params.intervals[abi::BUFFER_SIZE] = Interval { min: 9, max: 1, flags: 0 };
            }
            Ok(())
        };
        let error = negotiate(&WISH, &mut backwards).expect_err("no").to_string();
        assert!(error.contains("a value from 9 to 1"), "{error}");
    }
}
