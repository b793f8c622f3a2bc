//! The picture of a live tap as text: wave forms, spectrum and levels, for a terminal or a pipe.

use hairspring_ring::Container;
use hairspring_time::Nanos;
use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout as Rows, Rect};
use ratatui::style::{Color, Style};
use ratatui::symbols::Marker;
use ratatui::text::Line as TextLine;
use ratatui::widgets::canvas::{Canvas, Line};
use ratatui::widgets::{Block, Borders, Widget};

use super::watch::{Watch, full_scale};
use crate::listing::{grouped, span};
use crate::record::record::levels::decibels;

/// Channels that are drawn; the counts cover all.
const CHANNELS_MOST: usize = 8;
/// The least rows of a wave form, with its frame.
const WAVE_ROWS: u16 = 5;
/// Rows of the spectrum, with its frame.
const SPECTRUM_ROWS: u16 = 9;
/// The lowest level that a spectrum shows.
const FLOOR_DB: f64 = -140.0;
/// The lowest level that a bar shows.
const BAR_FLOOR_DB: f64 = -80.0;
/// Columns of a bar of a level.
const BAR: usize = 30;
/// The channels' colours, which differ for most people who see few colours; the order of the channels identifies them,
/// too.
const COLOURS: [Color; 6] =
    [Color::Cyan, Color::Yellow, Color::Magenta, Color::Green, Color::LightBlue, Color::LightRed];

/// Draws the data seen, in `width` columns and `height` rows.
pub(super) fn draw(watch: &mut Watch, title: &str, width: u16, height: u16, colour: bool) -> String {
    let area = Rect::new(0, 0, width, height);
    let mut buffer = Buffer::empty(area);
    let shown = watch.channels().len().min(CHANNELS_MOST);
    let has_spectrum = watch.layout().container() != Container::Bits;
    let spectrum_rows = if has_spectrum { SPECTRUM_ROWS } else { 0 };
    let level_rows = shown as u16;
    let rest = height.saturating_sub(2 + level_rows + spectrum_rows);
    // Fewer wave forms if the terminal is low.
    let waves = shown.min(usize::from(rest / WAVE_ROWS).max(1));
    let rows = [Constraint::Length(1), Constraint::Length(rest), Constraint::Length(spectrum_rows)];
    let [head, middle, spectrum, levels, foot] =
        Rows::vertical(rows.into_iter().chain([Constraint::Length(level_rows), Constraint::Length(1)])).areas(area);
    TextLine::from(title.to_owned()).render(head, &mut buffer);
    let parts = Rows::vertical(vec![Constraint::Fill(1); waves]).split(middle);
    for (channel, part) in parts.iter().enumerate() {
        wave(watch, channel, *part, &mut buffer);
    }
    if has_spectrum {
        draw_spectrum(watch, shown, spectrum, &mut buffer);
    }
    draw_levels(watch, shown, levels, &mut buffer);
    TextLine::from(counts(watch)).render(foot, &mut buffer);
    text(&buffer, colour)
}

/// Counts of frames read, missed and lost, and the state of the stream.
pub(super) fn counts(watch: &Watch) -> String {
    let lost = watch.lost().map_or_else(|| "unknown".to_owned(), |lost| grouped(lost.0));
    format!(
        "{}   read {}   missed by this reader {}   lost by the source {lost}",
        watch.state().name(),
        grouped(watch.seen().0),
        grouped(watch.reader().missed().0),
    )
}

fn colour_of(channel: usize) -> Color {
    COLOURS[channel % COLOURS.len()]
}

/// The smallest and the largest value of each piece of time, as a line from one to the other.
fn wave(watch: &Watch, channel: usize, area: Rect, buffer: &mut Buffer) {
    let described = &watch.channels()[channel];
    let trace = watch.trace();
    let last = trace.points().last().map_or(0, |point| point.number);
    let lines: Vec<(f64, f64, f64)> = trace
        .points()
        .filter_map(|point| {
            let (low, high) = *point.extremes.get(channel)?;
            let (low, high) = (described.value(low), described.value(high));
            let x = super::watch::POINTS as f64 - 1.0 - (last - point.number) as f64;
            Some((x, low.min(high), low.max(high)))
        })
        .filter(|(x, ..)| *x >= 0.0)
        .collect();
    let low = lines.iter().map(|line| line.1).fold(f64::INFINITY, f64::min);
    let high = lines.iter().map(|line| line.2).fold(f64::NEG_INFINITY, f64::max);
    let range = if low <= high {
        format!("{} to {} {}", short(low), short(high), described.unit())
    } else {
        "no frames yet".to_owned()
    };
    let name = described.name.as_ref().map_or_else(String::new, |name| format!(" {name}"));
    let covers = watch.reader().rate().map_or_else(String::new, |rate| {
        let frames = hairspring_ring::Frames(trace.frames_per_point().0 * super::watch::POINTS as u64);
        format!(", {} across", span(rate.time_of(frames).max(Nanos::new(1))))
    });
    let block =
        Block::new().borders(Borders::TOP).title(format!(" channel {channel}{name}: {}{covers} ", range.trim_end()));
    // A constant is in the middle.
    let margin = if high > low { (high - low) * 0.03 } else { 1.0 };
    let canvas = Canvas::default()
        .block(block)
        .marker(Marker::Braille)
        .x_bounds([0.0, super::watch::POINTS as f64])
        .y_bounds([low - margin, high + margin])
        .paint(|context| {
            let mut before: Option<(f64, f64, f64)> = None;
            for (x, low, high) in &lines {
                context.draw(&Line { x1: *x, y1: *low, x2: *x, y2: *high, color: colour_of(channel) });
                // Joins neighbours, so that a steep edge is a line; never over a hole.
                if let Some((before_x, before_low, before_high)) = before
                    && x - before_x < 1.5
                {
                    let from = before_low.max(*low).min(before_high);
                    let to = from.clamp(*low, *high);
                    context.draw(&Line { x1: before_x, y1: from, x2: *x, y2: to, color: colour_of(channel) });
                }
                before = Some((*x, *low, *high));
            }
        });
    if lines.is_empty() {
        Block::new()
            .borders(Borders::TOP)
            .title(format!(" channel {channel}{name}: no frames yet "))
            .render(area, buffer);
    } else {
        canvas.render(area, buffer);
    }
}

/// The highest line of each column, so that no line is lost.
fn draw_spectrum(watch: &mut Watch, shown: usize, area: Rect, buffer: &mut Buffer) {
    let spectra: Vec<Option<Vec<f64>>> = (0..shown).map(|channel| watch.spectrum(channel)).collect();
    let dots = usize::from(area.width) * 2;
    let upper = watch.reader().rate().map_or_else(String::new, |rate| format!(" to {}", hertz(rate.as_hz() / 2.0)));
    let title = match spectra.iter().flatten().next() {
        Some(_) => format!(" spectrum: 0 Hz{upper}, 0 to {FLOOR_DB:.0} dB of full scale "),
        None => " spectrum: too few frames yet ".to_owned(),
    };
    let canvas = Canvas::default()
        .block(Block::new().borders(Borders::TOP).title(title))
        .marker(Marker::Braille)
        .x_bounds([0.0, dots as f64])
        .y_bounds([FLOOR_DB, 0.0])
        .paint(|context| {
            for (channel, levels) in spectra.iter().enumerate() {
                let Some(levels) = levels else { continue };
                for dot in 0..dots {
                    let part = |dot: usize| dot * levels.len() / dots;
                    let lines = &levels[part(dot)..part(dot + 1).max(part(dot) + 1).min(levels.len())];
                    let highest = lines.iter().copied().fold(FLOOR_DB, f64::max).min(0.0);
                    let x = dot as f64;
                    context.draw(&Line { x1: x, y1: FLOOR_DB, x2: x, y2: highest, color: colour_of(channel) });
                }
            }
        });
    canvas.render(area, buffer);
}

/// A bar for each channel: its level, in dB below full scale; for a digital line the share of time at 1.
fn draw_levels(watch: &Watch, shown: usize, area: Rect, buffer: &mut Buffer) {
    let picture = watch.levels();
    for (number, row) in (0..shown).zip(area.rows()) {
        let Some(channel) = picture.channels.get(number).filter(|_| picture.frames.0 > 0) else { continue };
        let layout = watch.layout();
        let described = &watch.channels()[number];
        let (part, level) = match decibels(layout, channel.mean, channel.rms) {
            Some(level) => ((level - BAR_FLOOR_DB) / -BAR_FLOOR_DB, format!("{level:6.1} dB")),
            None if layout.container() == Container::Bits => (channel.mean, format!("{:6.2} at 1", channel.mean)),
            None => (0.0, "    -∞ dB".to_owned()),
        };
        let full = (part.clamp(0.0, 1.0) * BAR as f64).round() as usize;
        let bar = format!("{}{}", "█".repeat(full), "░".repeat(BAR - full));
        let values = format!(
            "mean {} min {} max {} {}",
            short(described.value(channel.mean)),
            short(described.value(channel.min)),
            short(described.value(channel.max)),
            described.unit()
        );
        let clipped = layout.container() != Container::Bits
            && channel.max.abs().max(channel.min.abs()) >= full_scale(layout) - 1.0;
        let mark = if clipped { "  FULL SCALE" } else { "" };
        let line = format!("{number:2} {bar} {level}  {}{mark}", values.trim_end());
        TextLine::styled(line, Style::new().fg(colour_of(number))).render(row, buffer);
    }
}

/// A value with at least four digits, and no more than fit into a row.
fn short(value: f64) -> String {
    let size = value.abs();
    if size >= 1000.0 || size == 0.0 || value.fract() == 0.0 {
        format!("{value:.0}")
    } else {
        let decimals = (3.0 - size.log10().floor()).clamp(0.0, 9.0) as usize;
        format!("{value:.decimals$}")
    }
}

fn hertz(hz: f64) -> String {
    let (scale, unit) =
        [(1e9, "GHz"), (1e6, "MHz"), (1e3, "kHz")].into_iter().find(|(scale, _)| hz >= *scale).unwrap_or((1.0, "Hz"));
    format!("{} {unit}", short(hz / scale))
}

/// The rows of a buffer, with or without colours.
fn text(buffer: &Buffer, colour: bool) -> String {
    let mut text = String::new();
    let area = buffer.area;
    for y in area.rows().map(|row| row.y) {
        let mut row = String::new();
        let mut ink = Color::Reset;
        for x in 0..area.width {
            let Some(cell) = buffer.cell((x, y)) else { continue };
            if colour && cell.fg != ink {
                ink = cell.fg;
                row.push_str(escape(ink));
            }
            row.push_str(cell.symbol());
        }
        let row = row.trim_end();
        text.push_str(row);
        if ink != Color::Reset {
            text.push_str(escape(Color::Reset));
        }
        text.push('\n');
    }
    text
}

/// The terminal's code for a colour of [`COLOURS`].
fn escape(colour: Color) -> &'static str {
    match colour {
        Color::Cyan => "\x1b[36m",
        Color::Yellow => "\x1b[33m",
        Color::Magenta => "\x1b[35m",
        Color::Green => "\x1b[32m",
        Color::LightBlue => "\x1b[94m",
        Color::LightRed => "\x1b[91m",
        _ => "\x1b[39m",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_four_digits() {
        for (value, text) in [
            (0.0, "0"),
            (-3.0, "-3"),
            (1.23456, "1.235"),
            (0.0123456, "0.01235"),
            (123_456.7, "123457"),
            (99.5, "99.50"),
        ] {
            assert_eq!(short(value), text);
        }
        assert_eq!(
            (hertz(500_000.0), hertz(22_050.0), hertz(12.5)),
            ("500 kHz".to_owned(), "22.05 kHz".to_owned(), "12.50 Hz".to_owned())
        );
    }

    #[test]
    fn rows_keep_their_colours_and_lose_their_tails() {
        let mut buffer = Buffer::empty(Rect::new(0, 0, 6, 2));
        buffer.set_string(0, 0, "ab", Style::new().fg(Color::Cyan));
        buffer.set_string(0, 1, "c", Style::new());
        assert_eq!(text(&buffer, false), "ab\nc\n");
        assert_eq!(text(&buffer, true), "\x1b[36mab\x1b[39m\nc\n");
    }
}
