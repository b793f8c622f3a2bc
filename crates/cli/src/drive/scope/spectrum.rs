//! [`Spectrum`]: how much of each frequency is in the newest frames of a channel.
//!
//! A Hann window over a power of two of frames, and the real transform. Levels are in dB below a sine of full scale,
//! whatever the number of frames. A line that falls between two bins shows up to 1.4 dB too low; the noise of one bin
//! covers 1.5 bins.

use std::f64::consts::TAU;
use std::sync::Arc;

use realfft::num_complex::Complex;
use realfft::{RealFftPlanner, RealToComplex};

/// Most frames of a spectrum: 2,048 lines, more than a screen has.
pub(super) const FRAMES_MOST: usize = 4096;
/// Fewer frames make no spectrum.
const FRAMES_LEAST: usize = 64;
/// The level of a line without any power.
const FLOOR_DB: f64 = -200.0;

/// Makes spectra; keeps the tables of the transform of the last length.
#[derive(Default)]
pub(super) struct Spectrum {
    planner: RealFftPlanner<f64>,
    plan: Option<(Arc<dyn RealToComplex<f64>>, Vec<f64>)>,
    input: Vec<f64>,
    output: Vec<Complex<f64>>,
}

impl Spectrum {
    /// The level of each line in dB: line *n* of a rate *r* and *N* frames is at *n r / N*; lines 0 to N/2. The newest
    /// power of two of the values is used; none if there are too few. The mean does not count. `full_scale` is the
    /// amplitude of the largest sine.
    pub(super) fn of(&mut self, values: &[f64], full_scale: f64) -> Option<Vec<f64>> {
        let frames = if values.len() >= FRAMES_MOST { FRAMES_MOST } else { (values.len() / 2 + 1).next_power_of_two() };
        let values = values.get(values.len().checked_sub(frames)?..)?;
        if frames < FRAMES_LEAST {
            return None;
        }
        let known = self.plan.take().filter(|(plan, _)| plan.len() == frames);
        let (plan, window) = known.unwrap_or_else(|| {
            let window = (0..frames).map(|at| 0.5 - 0.5 * (TAU * at as f64 / frames as f64).cos()).collect();
            (self.planner.plan_fft_forward(frames), window)
        });
        let mean = values.iter().sum::<f64>() / frames as f64;
        self.input.clear();
        self.input.extend(values.iter().zip(&window).map(|(value, weight)| (value - mean) * weight));
        self.output.resize(frames / 2 + 1, Complex::default());
        let done = plan.process(&mut self.input, &mut self.output);
        self.plan = Some((plan, window));
        done.ok()?;
        // A sine of full scale gives full_scale × frames / 4: half of it is at the negative frequency, and half the
        // window.
        let whole = full_scale * frames as f64 / 4.0;
        let level = |line: &Complex<f64>| (20.0 * (line.norm() / whole).log10()).max(FLOOR_DB);
        Some(self.output.iter().map(level).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sine_of_full_scale_is_a_line_of_zero_decibels_at_its_place() {
        let mut spectrum = Spectrum::default();
        for (frames, line, amplitude, level) in
            [(4096, 512, 1000.0, 0.0), (4096, 100, 10.0, -40.0), (256, 7, 1000.0, 0.0)]
        {
            let values: Vec<f64> = (0..frames)
                .map(|at| 5000.0 + amplitude * (TAU * f64::from(line * at) / f64::from(frames)).sin())
                .collect();
            let levels = spectrum.of(&values, 1000.0).expect("enough frames");
            assert_eq!(levels.len() as i32, frames / 2 + 1);
            let highest = (0..levels.len()).max_by(|a, b| levels[*a].total_cmp(&levels[*b])).expect("lines");
            assert_eq!(highest as i32, line);
            assert!((levels[highest] - level).abs() < 1e-6, "{}", levels[highest]);
            // Beside the line and its neighbours nothing is there.
            assert!(levels.iter().enumerate().all(|(at, level)| (at as i32 - line).abs() < 2 || *level < -150.0));
        }
    }

    #[test]
    fn the_newest_power_of_two_counts_and_too_few_make_none() {
        let mut spectrum = Spectrum::default();
        assert_eq!(spectrum.of(&[0.0; 63], 1.0), None);
        assert_eq!(spectrum.of(&[0.0; 64], 1.0).map(|lines| lines.len()), Some(33));
        assert_eq!(spectrum.of(&[0.0; 127], 1.0).map(|lines| lines.len()), Some(33));
        assert_eq!(spectrum.of(&[7.0; 9999], 1.0).map(|lines| (lines.len(), lines[0])), Some((2049, FLOOR_DB)));
    }
}
