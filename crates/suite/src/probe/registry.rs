//! The registry: every row that a sheet can have, declared once.
//!
//! `hairspring probes`, the documentation's chapter on probes and the selection by `--only` all come from here. An id
//! is `chapter.subject.variants….quantity`; ids are stable and unique, which a test checks.

use hairspring_machine::{Host, Machine};

use super::declaration::ChapterDeclaration;
use super::list::Probes;
use crate::host::system;
use crate::{callers, clocks, delays, disturbance, sleeps};

/// Every chapter with its tables and rows, in reading order.
pub fn registry() -> Vec<ChapterDeclaration> {
    chapters::<Host>().into_iter().map(|chapter| chapter.declaration().clone()).collect()
}

/// Every chapter with its probes, in reading order.
pub(crate) fn chapters<M: Machine + Clone + Sync + 'static>() -> Vec<Probes<M>> {
    let mut chapters = vec![clocks::probes(), delays::probes(), sleeps::probes()];
    chapters.extend(system::chapters());
    chapters.extend([callers::probes(), disturbance::probes()]);
    chapters
}

/// Whether `id` begins with the segments of `prefix`.
pub fn is_under(id: &str, prefix: &str) -> bool {
    id.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// A prefix that selects nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownProbe {
    /// The prefix as written.
    pub prefix: String,
    /// The most similar ids.
    pub similar: Vec<String>,
}

impl std::fmt::Display for UnknownProbe {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "no probe is called '{}'", self.prefix)?;
        if self.similar.is_empty() {
            return f.write_str("; `hairspring probes` lists them all");
        }
        write!(f, "; did you mean {}? `hairspring probes` lists them all", self.similar.join(" or "))
    }
}

impl std::error::Error for UnknownProbe {}

/// The ids of all rows under any of the prefixes, in reading order; all rows if there are no prefixes.
///
/// # Errors
/// A prefix selects no row.
pub fn select(prefixes: &[String]) -> Result<Vec<String>, UnknownProbe> {
    let all: Vec<String> =
        registry().into_iter().flat_map(|c| c.tables).flat_map(|t| t.rows).map(|row| row.id).collect();
    among(&all, prefixes)
}

/// The ids under any of the prefixes.
pub(crate) fn among(all: &[String], prefixes: &[String]) -> Result<Vec<String>, UnknownProbe> {
    if let Some(prefix) = prefixes.iter().find(|prefix| !all.iter().any(|id| is_under(id, prefix))) {
        return Err(UnknownProbe { prefix: prefix.clone(), similar: similar_ids(prefix, all) });
    }
    let under = |id: &&String| prefixes.is_empty() || prefixes.iter().any(|prefix| is_under(id, prefix));
    Ok(all.iter().filter(under).cloned().collect())
}

/// Up to three prefixes of ids that share the longest beginning with the text.
pub fn similar_ids(written: &str, ids: &[impl AsRef<str>]) -> Vec<String> {
    let depth = written.matches('.').count() + 1;
    let shared = |candidate: &str| candidate.bytes().zip(written.bytes()).take_while(|(a, b)| a == b).count();
    let mut candidates: Vec<String> =
        ids.iter().map(|id| id.as_ref().split('.').take(depth).collect::<Vec<_>>().join(".")).collect();
    candidates.dedup();
    candidates.sort_by_key(|candidate| std::cmp::Reverse(shared(candidate)));
    candidates.retain(|candidate| shared(candidate) > 0);
    candidates.truncate(3);
    candidates
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn ids_are_unique_and_made_of_stable_segments() {
        let mut seen = HashSet::new();
        for chapter in registry() {
            for table in &chapter.tables {
                assert!(is_under(&table.id, &chapter.id), "{} in {}", table.id, chapter.id);
                for row in &table.rows {
                    assert!(is_under(&row.id, &table.id), "{} in {}", row.id, table.id);
                    assert!(seen.insert(row.id.clone()), "{} is declared twice", row.id);
                    let legal = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
                    assert!(row.id.split('.').all(|s| !s.is_empty() && s.chars().all(legal)), "{}", row.id);
                    assert!(!row.label.is_empty() && !row.measures.is_empty(), "{}", row.id);
                }
            }
        }
    }

    #[test]
    fn every_row_has_a_probe_that_fills_it() {
        for chapter in chapters::<Host>() {
            assert_eq!(chapter.without_probe(), [""; 0]);
        }
    }

    #[test]
    fn prefixes_select_whole_segments_and_unknown_ones_are_refused_with_a_hint() {
        assert!(select(&["clocks.read".to_owned()]).expect("it exists").len() > 10);
        assert_eq!(select(&["delays.minimum.fifo.1us.late".to_owned()]).expect("it exists").len(), 1);
        let refused = select(&["clocks.rea".to_owned()]).expect_err("half a segment");
        assert!(refused.to_string().contains("clocks.read"), "{refused}");
        // `--only "$IDS"` with an empty variable must not take everything.
        assert!(select(&[String::new()]).is_err());
        assert!(select(&["nonsense".to_owned()]).is_err());
    }
}
