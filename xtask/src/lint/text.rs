//! Checks of whole files: their opening, their length, and unfinished or disabled code.

use super::source::has_word;
use super::{Repository, Violation};
use crate::r#gen;

/// The greatest length of a file, in lines.
const LINES: usize = 600;
/// The greatest width of a line of a comment, in characters; that of code is rustfmt's affair.
const COLUMNS: usize = 120;

/// Invariant of style: every source file opens with `//!`.
pub(crate) fn openings(repository: &Repository) -> Vec<Violation> {
    let product = repository.sources.iter().filter(|source| source.path.contains("/src/"));
    let silent = product.filter(|source| !source.raw.first().is_some_and(|line| line.starts_with("//!")));
    silent
        .map(|source| told(&source.path, 1, "open with `//!`: the purpose of the file and what it promises"))
        .collect()
}

/// No test is switched off and no code is missing.
pub(crate) fn unfinished(repository: &Repository) -> Vec<Violation> {
    let mut violations = Vec::new();
    for source in &repository.sources {
        for (line, code) in source.lines() {
            let packed: String = code.split_whitespace().collect();
            if packed.contains("#[ignore]") || packed.contains("#[ignore=") {
                let what = "a disabled test; let the test check whether it can run, and report a skip";
                violations.push(told(&source.path, line, what));
            }
            for name in ["todo", "unimplemented"] {
                if has_word(code, name) && packed.contains(&format!("{name}!")) {
                    violations.push(told(&source.path, line, &format!("{name}! is left; finish it or take it out")));
                }
            }
        }
    }
    violations
}

/// No text names a folder of one particular machine.
pub(crate) fn places(repository: &Repository) -> Vec<Violation> {
    // Assembled here, so that this file does not contain them.
    let folders = ["work", "root", "home"].map(|name| format!("/{name}/"));
    let mut violations = Vec::new();
    for (path, text) in &repository.texts {
        for (index, line) in text.lines().enumerate() {
            let named =
                folders.iter().find(|folder| line.match_indices(folder.as_str()).any(|(at, _)| is_path(line, at)));
            if let Some(folder) = named {
                let what = format!("a path under {folder} of one particular machine; make it relative");
                violations.push(told(path, index + 1, &what));
            }
        }
    }
    violations
}

/// True unless the slash at `at` is inside a longer path or address.
fn is_path(line: &str, at: usize) -> bool {
    !line[..at].ends_with(|c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | '~' | '}' | '*'))
}

/// No file is too long to read.
pub(crate) fn lengths(repository: &Repository) -> Vec<Violation> {
    let long = repository.texts.iter().filter(|(path, _)| is_written_by_hand(path)).filter_map(|(path, text)| {
        let lines = text.lines().count();
        (lines > LINES).then(|| told(path, 0, &format!("{lines} lines, more than {LINES}; split it by its nouns")))
    });
    long.collect()
}

/// Comments are as wide as code. Drawings, tables and code in fences may be wider.
pub(crate) fn widths(repository: &Repository) -> Vec<Violation> {
    let mut violations = Vec::new();
    for source in &repository.sources {
        let mut is_fenced = false;
        for (index, line) in source.raw.iter().enumerate() {
            let Some(comment) = line.trim_start().strip_prefix("//") else {
                is_fenced = false;
                continue;
            };
            let comment = comment.trim_start_matches(['/', '!']).trim_start();
            is_fenced ^= comment.starts_with("```");
            if !is_fenced && !comment.starts_with('|') && line.chars().count() > COLUMNS {
                let what = format!("a comment wider than {COLUMNS} columns; break the line");
                violations.push(told(&source.path, index + 1, &what));
            }
        }
    }
    violations
}

fn is_written_by_hand(path: &str) -> bool {
    let folders = ["sheets/", "proofs/", crate::test::interface::RECORDS];
    let made = path == "Cargo.lock" || path == "CHANGELOG.md" || folders.iter().any(|folder| path.starts_with(folder));
    let recorded = [".snap", ".json", ".jsonl", ".csv", ".svg", ".html"].iter().any(|ending| path.ends_with(ending));
    !(made || recorded || r#gen::is_generated(path) || path.starts_with("LICENSE"))
}

fn told(path: &str, line: usize, what: &str) -> Violation {
    Violation { path: path.to_owned(), line, what: what.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::super::expect;
    use super::*;

    const FILE: &str = "crates/time/src/delay.rs";

    #[test]
    fn a_file_without_an_opening_is_caught() {
        expect(openings, &[(FILE, "\n//! Late.\n")], &[(FILE, 1)]);
        expect(openings, &[(FILE, "")], &[(FILE, 1)]);
        expect(openings, &[(FILE, "//! What it is for.\n"), ("crates/time/tests/it.rs", "fn f() {}\n")], &[]);
    }

    #[test]
    fn what_is_switched_off_or_missing_is_caught() {
        let bad = "#[test]\n#[ignore = \"flaky\"]\nfn f() { todo!() }\nfn g() { unimplemented!(\"x\") }\n#[ignore]\n";
        expect(unfinished, &[(FILE, bad)], &[(FILE, 2), (FILE, 3), (FILE, 4), (FILE, 5)]);
        expect(unfinished, &[(FILE, "// todo!() and #[ignore]\nlet todo = \"unimplemented!\";\n")], &[]);
    }

    #[test]
    fn folders_of_one_machine_are_caught_in_any_text() {
        let bad = format!("see `/{}/x` for it\n", "root");
        expect(places, &[("README.md", &bad)], &[("README.md", 1)]);
        expect(places, &[(FILE, &format!("let a = \"/{}/shared\";\n", "work"))], &[(FILE, 1)]);
        expect(places, &[("README.md", "https://example.org/work/x, target/root/usr, /rooted/, /proc/self\n")], &[]);
    }

    #[test]
    fn long_files_are_caught_unless_they_are_made() {
        let long = "//! x\n".repeat(LINES + 1);
        expect(lengths, &[(FILE, &long), ("Cargo.lock", &long), ("docs/probes.md", &long)], &[(FILE, 0)]);
        expect(lengths, &[(FILE, &"//! x\n".repeat(LINES))], &[]);
    }

    #[test]
    fn wide_comments_are_caught_unless_they_are_drawings_or_tables() {
        let wide = "x".repeat(COLUMNS);
        let bad = format!("//! {wide}\n/// | {wide} |\nfn f() {{}} // {wide}\n    // {wide}\n");
        expect(widths, &[(FILE, &bad)], &[(FILE, 1), (FILE, 4)]);
        let drawn = format!("//! ```text\n//! {wide}\n//! ```\nlet a = \"{wide}\";\n// short\n");
        expect(widths, &[(FILE, &drawn)], &[]);
    }
}
