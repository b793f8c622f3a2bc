//! The absent rows of a chapter, by reason: listed once, at the end of the chapter, and not in every table.

use crate::{Absent, Chapter, Row, Table, Value};

/// The rows of a chapter that are absent for one reason.
pub(super) struct Absence<'c> {
    pub(super) absent: &'c Absent,
    /// By table, in reading order.
    pub(super) groups: Vec<Group<'c>>,
}

/// Rows of one table.
pub(super) struct Group<'c> {
    table: &'c Table,
    pub(super) rows: Vec<&'c Row>,
}

/// All absences of a chapter, each reason with its remedy once, in the order of their first rows.
pub(super) fn absences(chapter: &Chapter) -> Vec<Absence<'_>> {
    let mut all: Vec<Absence<'_>> = Vec::new();
    for table in &chapter.tables {
        for row in &table.rows {
            let Value::Absent(absent) = &row.value else { continue };
            let index = all.iter().position(|of| of.absent == absent).unwrap_or_else(|| {
                all.push(Absence { absent, groups: Vec::new() });
                all.len() - 1
            });
            let groups = &mut all[index].groups;
            match groups.last_mut().filter(|group| std::ptr::eq(group.table, table)) {
                Some(group) => group.rows.push(row),
                None => groups.push(Group { table, rows: vec![row] }),
            }
        }
    }
    all
}

impl Absence<'_> {
    /// The number of rows: `3 rows`.
    pub(super) fn count(&self) -> String {
        match self.groups.iter().map(|group| group.rows.len()).sum::<usize>() {
            1 => "1 row".to_owned(),
            count => format!("{count} rows"),
        }
    }
}

impl Group<'_> {
    /// The table with the labels of the rows, or alone if all of its rows are absent for this reason.
    pub(super) fn named(&self) -> String {
        if self.rows.len() == self.table.rows.len() {
            return self.table.title.clone();
        }
        let labels: Vec<&str> = self.rows.iter().map(|row| row.label.as_str()).collect();
        format!("{}: {}", self.table.title, labels.join(", "))
    }
}

/// Whether a table has a figure to show.
pub(super) fn has_figures(table: &Table) -> bool {
    table.rows.iter().any(|row| row.figure().is_some())
}
