//! [`summarize`]: the first page of a sheet, from its figures and facts.
//!
//! A characteristic is a row that an engineer needs first. A finding is a rule over rows and facts: it names the limit
//! of the machine, its rows, and the gain of the remedy, or that it was not tried. Findings are ranked by the factor
//! that they cost.

use hairspring_sheet::render::quantity;
use hairspring_sheet::{Characteristic, Figure, Finding, NotMeasured, Sheet, SheetSummary, Unit, Value};

/// The characteristics on the first page: label, rows (the first with a figure counts), whether it is lateness,
/// conditions.
struct Line {
    label: &'static str,
    rows: &'static [&'static str],
    lateness: bool,
    conditions: &'static str,
}

const fn line(label: &'static str, rows: &'static [&'static str], conditions: &'static str) -> Line {
    Line { label, rows, lateness: false, conditions }
}

const fn late(label: &'static str, rows: &'static [&'static str], conditions: &'static str) -> Line {
    Line { label, rows, lateness: true, conditions }
}

const LINES: &[Line] = &[
    line("read the time", &["clocks.read.now.later"], "warm"),
    late("wait 10 µs, polled", &["delays.minimum.fifo.10us.seen", "delays.minimum.fifo.10us.late"], "FIFO, pinned"),
    late(
        "wait 10 ms, asleep then polled",
        &["delays.long.fifo.10ms.seen", "delays.long.fifo.10ms.late"],
        "FIFO, pinned",
    ),
    late(
        "the same, ordinary program",
        &["delays.long.other.10ms.seen", "delays.long.other.10ms.late"],
        "ordinary, pinned",
    ),
    late("the system's own sleep of 10 ms", &["sleeps.nanosleep.10ms.late"], "ordinary"),
    late("loop of 1 kHz", &["disturbance.wakeup.late"], "FIFO, slack 1 ns"),
    late("the same, ordinary program", &["disturbance.wakeup_other.late"], "ordinary, slack 1 ns"),
    line("event → action, asleep", &[REACT_ASLEEP], "FIFO, eventfd"),
    line("event → action, polled", &[REACT_POLLED], "ordinary, own CPU"),
    line("task wake + wait, fibers", &["executive.fiber.waitwake.roundtrip.hot.idle"], "warm"),
    line("task wake + wait, threads of one CPU", &["executive.thread_up.waitwake.roundtrip.hot.idle"], "FIFO"),
    line("task wake + wait, threads of all CPUs", &["executive.thread_smp.waitwake.roundtrip.hot.idle"], "FIFO"),
    line(
        "message to a task, fibers",
        &["executive.fiber.mailbox.t2.hot.idle", "executive.fiber.mailbox.t1.hot.idle"],
        "warm",
    ),
    line("copy memory, 64 KiB", &["transfer.memory.copy.64kib.small.rate"], "4 KiB pages"),
    line("copy memory beyond the caches", &[COPY_SMALL], "4 KiB pages"),
    line("ring, hand-over of 1 MiB", &["transfer.ring.1mib.small.rate"], "two threads"),
    line("time lost to gaps", &[LOST], "ordinary, polling"),
];

const REACT_ASLEEP: &str = "reaction.eventfd.total";
const REACT_POLLED: &str = "reaction.polled.total";
const COPY_SMALL: &str = "transfer.memory.copy.beyond_caches.small.rate";
const COPY_HUGE: &str = "transfer.memory.copy.beyond_caches.thp.rate";
const LOST: &str = "disturbance.gaps.lost";
const GAPS: &str = "disturbance.gaps.";
const CULPRITS: &str = "disturbance.culprits.";
const WAKE_ORDINARY: &str = "disturbance.wakeup_other.late";
const SLEEP: &str = "sleeps.nanosleep.1ms.late";
/// The gain from switching idle states off, measured in turns.
const IDLE_REACT: &str = "remedies.idle_off.react.ratio";
const IDLE_LOOP: &str = "remedies.idle_off.loop.ratio";

/// A finding that costs less than this factor is left out.
const FACTOR_LEAST: f64 = 1.08;
/// The most reasons for absences on the first page; the last line counts the rest.
const REASONS_MOST: usize = 5;
/// The reason of rows that do not apply to their back-end; such rows are not missing.
const NOT_APPLICABLE: &str = "n/a";

/// The first page of a sheet. Pure; does not block.
pub fn summarize(sheet: &Sheet) -> SheetSummary {
    let mut characteristics: Vec<Characteristic> =
        LINES.iter().filter_map(|line| characteristic(line, sheet)).collect();
    characteristics.extend(greatest_gap(sheet));
    let mut findings: Vec<(f64, Finding)> =
        [idle(sheet), stolen(sheet), slack(sheet), huge_pages(sheet)].into_iter().flatten().collect();
    findings.retain(|(factor, _)| *factor >= FACTOR_LEAST);
    findings.sort_by(|(one, _), (other, _)| other.total_cmp(one));
    SheetSummary {
        characteristics,
        findings: findings.into_iter().map(|(_, finding)| finding).collect(),
        not_measured: not_measured(sheet),
    }
}

/// The figure of a row, if it has one with a median.
fn figure<'s>(sheet: &'s Sheet, id: &str) -> Option<&'s Figure> {
    sheet.row(id)?.figure().filter(|figure| figure.median.is_some())
}

fn median(sheet: &Sheet, id: &str) -> Option<f64> {
    figure(sheet, id)?.median
}

fn characteristic(line: &Line, sheet: &Sheet) -> Option<Characteristic> {
    let (id, figure) = line.rows.iter().find_map(|id| Some((*id, figure(sheet, id)?)))?;
    let rate = matches!(figure.unit, Unit::BytesPerS | Unit::PerSecond);
    let spread = figure.n > 1;
    Some(Characteristic {
        label: line.label.to_owned(),
        row: id.to_owned(),
        unit: figure.unit,
        lateness: line.lateness,
        typical: figure.median,
        p99: if rate { figure.p1 } else { figure.p99 },
        worst: if rate { figure.min } else { figure.max }.filter(|_| spread),
        watched: figure.n,
        conditions: line.conditions.to_owned(),
    })
}

/// The greatest gap of a polling loop, of any cause.
fn greatest_gap(sheet: &Sheet) -> Option<Characteristic> {
    let (id, figure) = gaps(sheet)
        .max_by(|(_, one), (_, other)| one.max.partial_cmp(&other.max).unwrap_or(std::cmp::Ordering::Equal))?;
    let watched = gaps(sheet).map(|(_, figure)| figure.n).sum();
    Some(Characteristic {
        label: "the greatest gap".to_owned(),
        row: id.to_owned(),
        unit: figure.unit,
        lateness: false,
        typical: None,
        p99: None,
        worst: figure.max,
        watched,
        conditions: "ordinary, polling".to_owned(),
    })
}

/// The lengths of gaps by cause.
fn gaps(sheet: &Sheet) -> impl Iterator<Item = (&str, &Figure)> {
    sheet.rows().filter_map(|row| {
        let is_length = row.id.starts_with(GAPS) && row.id.ends_with(".length");
        Some((row.id.as_str(), row.figure().filter(|_| is_length)?))
    })
}

fn ns(value: f64) -> String {
    quantity(value, Unit::Ns).to_string()
}

/// The least factor at which sleeping counts as a finding.
const ASLEEP_LEAST: f64 = 1.2;

/// A sleeping thread reacts much later than a polling one.
fn idle(sheet: &Sheet) -> Option<(f64, Finding)> {
    let (asleep, polled) = (median(sheet, REACT_ASLEEP)?, median(sheet, REACT_POLLED)?);
    let factor = asleep / polled.max(1.0);
    if factor < ASLEEP_LEAST {
        return None;
    }
    let held = sheet.conditions.value("limits.cpu_dma_latency").unwrap_or("unknown");
    let tried: Vec<String> = [(IDLE_REACT, "event → action"), (IDLE_LOOP, "lateness of a loop of 1 kHz")]
        .into_iter()
        .filter_map(|(id, what)| Some(format!("{what} × {:.2}", median(sheet, id)?)))
        .collect();
    let effect = if tried.is_empty() {
        format!("not tried (/dev/cpu_dma_latency: {held})")
    } else {
        format!("{}, measured here in turns", tried.join(", "))
    };
    let brought = median(sheet, IDLE_REACT).map(|ratio| 1.0 / ratio.max(1e-6));
    let finding = Finding {
        text: format!(
            "A sleeping thread reacts after {}, a polling one after {}: {:.0} % of that is the wake-up.",
            ns(asleep),
            ns(polled),
            (1.0 - polled / asleep) * 100.0
        ),
        rows: vec![REACT_ASLEEP.to_owned(), REACT_POLLED.to_owned()],
        remedy: "hairspring run --set idle=off -- CMD (costs power)".to_owned(),
        effect,
    };
    Some((brought.unwrap_or(factor), finding))
}

/// The machine interrupts polling threads.
fn stolen(sheet: &Sheet) -> Option<(f64, Finding)> {
    let lost = median(sheet, LOST)?;
    let (id, worst) = gaps(sheet)
        .max_by(|(_, one), (_, other)| one.max.partial_cmp(&other.max).unwrap_or(std::cmp::Ordering::Equal))?;
    let cause = id.trim_start_matches(GAPS).trim_end_matches(".length").replace('_', " ");
    let culprit = culprit(sheet);
    let who = culprit.as_ref().map_or(cause.as_str(), |(_, who, _)| who.as_str());
    let guest = sheet.conditions.value("kernel.hypervisor").is_some_and(|what| !what.starts_with("none"));
    let (remedy, effect) = match who {
        "preempted" | "task" | "worker" => {
            ("hairspring run --set policy=fifo:80 -- CMD (starves other threads of that CPU)", "not tried")
        }
        "throttling" => ("raise the CPU limit of its group (cpu.max)", "not tried"),
        "timer" | "interrupt" | "softirq" | "function call" | "reschedule" => {
            ("boot with isolcpus=, nohz_full= and irqaffinity=", "not tried, it needs a reboot")
        }
        _ if guest => ("on the host: pin each virtual CPU to its own CPU", "not tried, it is outside this system"),
        _ => ("boot with isolcpus=, nohz_full= and irqaffinity=", "not tried, it needs a reboot"),
    };
    let greatest = worst.max?;
    let mut rows = vec![LOST.to_owned(), id.to_owned()];
    let named = match &culprit {
        Some((id, who, share)) => {
            rows.push((*id).to_owned());
            let people = sheet.row(id).map_or(who.as_str(), |row| row.label.trim_end_matches(", share"));
            format!("; {people} took {:.0} % of it", share * 100.0)
        }
        None => format!(" ({cause})"),
    };
    let finding = Finding {
        text: format!(
            "A CPU that polls loses {} of its time to gaps, at worst {} at once{named}.",
            quantity(lost, Unit::Ratio),
            ns(greatest)
        ),
        rows,
        remedy: remedy.to_owned(),
        effect: effect.to_owned(),
    };
    // The rank is the factor by which the gap lengthens a delay of 10 µs; a shorter gap is left out.
    Some(((greatest / 10_000.0).max(1.0).sqrt(), finding))
}

/// The kind of culprit that took the most time from a polling loop: its row, name and share. None without the kernel's
/// records.
fn culprit(sheet: &Sheet) -> Option<(&str, String, f64)> {
    let shares = sheet.rows().filter_map(|row| {
        let kind = row.id.strip_prefix(CULPRITS)?.strip_suffix(".share")?;
        Some((row.id.as_str(), kind.replace('_', " "), row.figure()?.median?))
    });
    shares.max_by(|one, other| one.2.total_cmp(&other.2)).filter(|(_, _, share)| *share > 0.0)
}

/// The timer slack delays ordinary sleeps.
fn slack(sheet: &Sheet) -> Option<(f64, Finding)> {
    let (with, without) = (median(sheet, SLEEP)?, median(sheet, WAKE_ORDINARY)?);
    let finding = Finding {
        text: format!(
            "Timer slack: an ordinary sleep ends {} late, with a slack of 1 ns {} late.",
            ns(with),
            ns(without)
        ),
        rows: vec![SLEEP.to_owned(), WAKE_ORDINARY.to_owned()],
        remedy: "hairspring run --set slack=1us -- CMD (needs no permission)".to_owned(),
        effect: format!("× {:.2} in this sheet", without / with.max(1.0)),
    };
    Some((with / without.max(1.0), finding))
}

/// Larger pages copy faster.
fn huge_pages(sheet: &Sheet) -> Option<(f64, Finding)> {
    let (small, huge) = (median(sheet, COPY_SMALL)?, median(sheet, COPY_HUGE)?);
    let finding = Finding {
        text: format!(
            "Copies beyond the caches: {} with 4 KiB pages, {} with transparent huge pages.",
            quantity(small, Unit::BytesPerS),
            quantity(huge, Unit::BytesPerS)
        ),
        rows: vec![COPY_SMALL.to_owned(), COPY_HUGE.to_owned()],
        remedy: "madvise(MADV_HUGEPAGE) on large buffers".to_owned(),
        effect: format!("× {:.2} in this sheet", huge / small.max(1.0)),
    };
    Some((huge / small.max(1.0), finding))
}

/// The absences, grouped by remedy or else by reason; those with the most rows first.
fn not_measured(sheet: &Sheet) -> Vec<NotMeasured> {
    let mut reasons: Vec<(NotMeasured, Vec<&str>)> = Vec::new();
    for chapter in &sheet.chapters {
        for table in &chapter.tables {
            for row in &table.rows {
                let Value::Absent(absent) = &row.value else { continue };
                if absent.reason.starts_with(NOT_APPLICABLE) {
                    continue;
                }
                let same = |one: &&mut (NotMeasured, Vec<&str>)| {
                    // Rows with the same remedy share a line.
                    one.0.remedy == absent.remedy && (absent.remedy.is_some() || one.0.reason == absent.reason)
                };
                match reasons.iter_mut().find(same) {
                    Some((reason, titles)) => {
                        reason.rows += 1;
                        if !titles.contains(&table.title.as_str()) {
                            titles.push(&table.title);
                        }
                    }
                    None => reasons.push((
                        NotMeasured {
                            what: String::new(),
                            rows: 1,
                            reason: absent.reason.clone(),
                            remedy: absent.remedy.clone(),
                        },
                        vec![&table.title],
                    )),
                }
            }
        }
    }
    reasons.sort_by_key(|(reason, _)| std::cmp::Reverse(reason.rows));
    let more = reasons.split_off(reasons.len().min(REASONS_MOST));
    let mut not_measured: Vec<NotMeasured> =
        reasons.into_iter().map(|(reason, titles)| NotMeasured { what: named(&titles), ..reason }).collect();
    if !more.is_empty() {
        not_measured.push(NotMeasured {
            what: format!("{} other reasons", more.len()),
            rows: more.iter().map(|(reason, _)| reason.rows).sum(),
            reason: "the chapters name them".to_owned(),
            remedy: Some("hairspring sheet --full".to_owned()),
        });
    }
    not_measured
}

/// The first title, and the number of the others.
fn named(titles: &[&str]) -> String {
    match titles {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [first, rest @ ..] => format!("{first} and {} more", rest.len()),
    }
}

#[cfg(test)]
mod tests {
    use hairspring_sheet::TextStyle;
    use hairspring_sheet::render::{first_page, from_json};

    use super::*;

    fn real() -> Sheet {
        let mut sheet = from_json(&testing::sheets::real("2026-11-22-kvm-guest")).expect("a sheet");
        sheet.summary = Some(summarize(&sheet));
        sheet
    }

    #[test]
    fn a_real_sheet_has_every_line_and_its_numbers() {
        let sheet = real();
        let summary = sheet.summary.as_ref().expect("just made");
        assert_eq!(summary.characteristics.len(), LINES.len() + 1, "{:#?}", summary.characteristics);
        for line in &summary.characteristics {
            let figure = sheet.row(&line.row).and_then(|row| row.figure()).expect("the row that it names");
            assert!(line.typical.is_none() || line.typical == figure.median, "{line:?}");
            assert!(line.worst.is_none() || line.worst == figure.max || line.worst == figure.min, "{line:?}");
        }
        let missing = |row: &&hairspring_sheet::Row| matches!(&row.value, Value::Absent(absent) if !absent.reason.starts_with(NOT_APPLICABLE));
        let absent = sheet.rows().filter(missing).count() as u64;
        assert_eq!(summary.not_measured.iter().map(|reason| reason.rows).sum::<u64>(), absent);
    }

    #[test]
    fn the_costliest_finding_is_first_and_names_its_rows() {
        let sheet = real();
        let summary = sheet.summary.as_ref().expect("just made");
        // That machine: asleep 31 µs, polled 0.5 µs.
        assert!(summary.findings[0].text.contains("98 % of that is the wake-up"), "{:#?}", summary.findings);
        for finding in &summary.findings {
            assert!(finding.rows.iter().all(|row| figure(&sheet, row).is_some()), "{finding:?}");
        }
    }

    #[test]
    fn a_polling_thread_that_reacts_no_sooner_is_no_finding() {
        let mut sheet = real();
        let asleep = median(&sheet, REACT_ASLEEP).expect("a figure");
        for row in sheet.chapters.iter_mut().flat_map(|chapter| &mut chapter.tables).flat_map(|table| &mut table.rows) {
            if let (REACT_POLLED, Value::Figure(figure)) = (row.id.as_str(), &mut row.value) {
                figure.median = Some(asleep * 1.5);
            }
        }
        let findings = summarize(&sheet).findings;
        assert!(findings.iter().all(|finding| !finding.text.contains("waking up")), "{findings:#?}");
    }

    #[test]
    fn a_remedy_that_was_tried_says_what_it_brought() {
        let mut sheet = real();
        let row = |id: &str, ratio: f64| hairspring_sheet::Row {
            id: id.to_owned(),
            label: String::new(),
            value: Value::Figure(Figure::single(Unit::Ratio, hairspring_sheet::Method::Derived, ratio)),
        };
        sheet.chapters[0].tables[0].rows.extend([row(IDLE_REACT, 0.1), row(IDLE_LOOP, 0.5)]);
        let effect = summarize(&sheet).findings[0].effect.clone();
        assert_eq!(effect, "event → action × 0.10, lateness of a loop of 1 kHz × 0.50, measured here in turns");
    }

    #[test]
    fn the_finding_on_lost_time_names_the_culprit_that_took_the_most_and_its_remedy() {
        let mut sheet = real();
        let row = |kind: &str, share: f64| hairspring_sheet::Row {
            id: format!("{CULPRITS}{kind}.share"),
            label: format!("another {kind}, share"),
            value: Value::Figure(Figure::single(Unit::Ratio, hairspring_sheet::Method::Derived, share)),
        };
        sheet.chapters[0].tables[0].rows.extend([row("timer", 0.2), row("task", 0.7), row("hypervisor", 0.1)]);
        let findings = summarize(&sheet).findings;
        let finding = findings.iter().find(|finding| finding.text.contains("to gaps")).expect("time was lost");
        assert!(finding.text.ends_with("; another task took 70 % of it."), "{finding:#?}");
        assert!(finding.remedy.contains("policy=fifo"), "{finding:#?}");
        assert_eq!(finding.rows[2], "disturbance.culprits.task.share");
    }

    #[test]
    fn a_sheet_without_figures_has_no_findings() {
        let mut sheet = real();
        sheet.chapters.clear();
        assert_eq!(summarize(&sheet), SheetSummary::default());
    }

    #[test]
    fn the_first_page_fits_on_a_screen() {
        let sheet = real();
        let page = first_page(&sheet, &TextStyle { width: 100, ..TextStyle::default() });
        assert!(page.lines().count() <= 45, "{page}");
        assert!(page.lines().all(|line| line.chars().count() <= 100), "{page}");
        for part in ["typical", "What limits it", "Not measured", "--dir"] {
            assert!(page.contains(part), "{part}: {page}");
        }
        let narrow = first_page(&sheet, &TextStyle { width: 60, ..TextStyle::default() });
        assert!(narrow.lines().all(|line| line.chars().count() <= 60), "{narrow}");
    }
}
