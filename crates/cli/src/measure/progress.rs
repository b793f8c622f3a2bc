//! The progress line of `hairspring sheet`: the present measurement, and the time left. It is drawn only on a terminal
//! and only between measurements.

use std::io::IsTerminal;

use hairspring_suite::SheetProgress;
use hairspring_time::Nanos;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// The line.
pub(crate) struct ProgressLine(Option<ProgressBar>);

impl ProgressLine {
    pub(crate) fn new() -> Self {
        if !std::io::stderr().is_terminal() {
            return Self(None);
        }
        let bar = ProgressBar::with_draw_target(Some(1), ProgressDrawTarget::stderr());
        if let Ok(style) = ProgressStyle::with_template("{bar:24} {percent:>3}%  {prefix} left  {wide_msg}") {
            bar.set_style(style);
        }
        Self(Some(bar))
    }

    pub(crate) fn show(&self, progress: SheetProgress<'_>) {
        let Some(bar) = &self.0 else { return };
        let millis = |span: Nanos| u64::try_from(span.count() / 1_000_000).unwrap_or(0);
        let left = (progress.total - progress.done).max(Nanos::ZERO);
        bar.set_length(millis(progress.total));
        bar.set_prefix(format!("{:>3} s", left.count() / 1_000_000_000));
        bar.set_message(progress.measuring.to_owned());
        bar.set_position(millis(progress.done));
        bar.force_draw();
    }

    pub(crate) fn end(self) {
        if let Some(bar) = self.0 {
            bar.finish_and_clear();
        }
    }
}
