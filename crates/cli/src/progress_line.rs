//! [`ProgressLine`]: the progress of a long command on the standard error. On a terminal it is one line that is
//! redrawn; in a log it is a line every ten seconds. The standard output is never touched.

use std::io::{IsTerminal, Write};

use hairspring_time::Nanos;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Time between two drawings on a terminal.
const TERMINAL_EVERY: Nanos = Nanos::from_millis(200);
/// Time between two lines in a log.
const LOG_EVERY: Nanos = Nanos::from_secs(10);

/// The line.
pub(crate) struct ProgressLine {
    form: Form,
    next: Nanos,
}

enum Form {
    Silent,
    Terminal(ProgressBar),
    Log,
}

impl ProgressLine {
    /// A progress line; if `quiet`, it never shows anything.
    pub(crate) fn new(quiet: bool) -> Self {
        Self::with_template(quiet, "{wide_msg}")
    }

    /// The same for progress of several lines.
    pub(crate) fn block(quiet: bool) -> Self {
        Self::with_template(quiet, "{msg}")
    }

    fn with_template(quiet: bool, template: &str) -> Self {
        if quiet {
            return Self { form: Form::Silent, next: Nanos::MAX };
        }
        if !std::io::stderr().is_terminal() {
            return Self { form: Form::Log, next: LOG_EVERY };
        }
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        Self { form: Form::Terminal(bar), next: Nanos::ZERO }
    }

    /// Shows the text if the next line is due; `elapsed` counts from the start.
    pub(crate) fn show(&mut self, elapsed: Nanos, text: impl FnOnce() -> String) {
        if elapsed < self.next {
            return;
        }
        match &self.form {
            Form::Silent => {}
            Form::Terminal(bar) => {
                self.next = elapsed + TERMINAL_EVERY;
                bar.set_message(text());
                bar.force_draw();
            }
            Form::Log => {
                self.next = elapsed + LOG_EVERY;
                // A log that is full or gone must not end the command.
                let _ = writeln!(std::io::stderr().lock(), "{}", text());
            }
        }
    }

    /// Prints an important message above the line, also if nothing else is shown.
    pub(crate) fn say(&self, text: &str) {
        match &self.form {
            Form::Terminal(bar) => bar.println(format!("hairspring: {text}")),
            // A log that is full or gone must not end the command.
            Form::Silent | Form::Log => drop(writeln!(std::io::stderr().lock(), "hairspring: {text}")),
        }
    }

    /// Removes the line from the terminal.
    pub(crate) fn end(self) {
        if let Form::Terminal(bar) = self.form {
            bar.finish_and_clear();
        }
    }
}
