//! Checks of Markdown pages: the files that they name exist, links lead to files, and their code comes from examples
//! that run.

use super::{Repository, Violation};
use crate::r#gen;

const ARCHITECTURE: &str = "ARCHITECTURE.md";
const README: &str = "README.md";
/// Folders of examples that a step of the tests or a command of a page runs.
const EXAMPLES: [&str; 4] = ["crates/", "bindings/python/examples/", "bindings/tcl/examples/", "examples/"];
/// Languages of blocks that are examples. Blocks marked `sh`, `console` or `text` are not examples.
const LANGUAGES: [&str; 5] = ["rust", "c", "python", "tcl", "toml"];
/// The test `other_programs_read_recordings_and_views` takes the code from this page and runs it.
const RUN_FROM_THE_PAGE: &str = "docs/recording-format.md";
/// The mark of an included file.
const INCLUDE: &str = "--8<-- \"";

/// Every file that ARCHITECTURE.md names exists.
pub(super) fn named_files(repository: &Repository) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (number, line) in repository.architecture.lines().enumerate() {
        let words = line.split(|c: char| c.is_whitespace() || "`,;()│".contains(c));
        for name in words.map(|word| word.trim_end_matches(['.', ':'])).filter(|word| is_source(word)) {
            let in_crate = name.split_once('/').map(|(krate, file)| format!("crates/{krate}/src/{file}"));
            let there = repository.has(name) || in_crate.is_some_and(|path| repository.has(&path));
            // The end of a path is enough: `recorder/settled.rs`.
            if !there && !repository.texts.iter().any(|(path, _)| path.ends_with(&format!("/{name}"))) {
                violations.push(told(ARCHITECTURE, number + 1, &format!("names {name}, which does not exist")));
            }
        }
    }
    violations
}

fn is_source(word: &str) -> bool {
    word.contains('/') && word.ends_with(".rs") && !word.contains(['*', '<', '…'])
}

/// Every relative link of a page leads to a file or folder. MkDocs checks the anchors.
pub(super) fn links(repository: &Repository) -> Vec<Violation> {
    let mut violations = Vec::new();
    let pages = repository.texts.iter().filter(|(path, _)| path.ends_with(".md") && is_written(path));
    for (path, text) in pages {
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        for (number, line) in text.lines().enumerate() {
            for link in line.split("](").skip(1).filter_map(|rest| rest.split([')', ' ']).next()) {
                let target = link.split('#').next().unwrap_or_default();
                if target.is_empty() || target.contains("://") || target.contains('`') {
                    continue;
                }
                let target = joined(folder, target);
                let is_folder = || repository.texts.iter().any(|(path, _)| path.starts_with(&format!("{target}/")));
                if !repository.has(&target) && !is_folder() {
                    violations.push(told(path, number + 1, &format!("links to {target}, which does not exist")));
                }
            }
        }
    }
    violations
}

/// Converts a relative path to one from the root.
fn joined(folder: &str, relative: &str) -> String {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in relative.split('/') {
        match part {
            ".." => drop(parts.pop()),
            "." | "" => {}
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// Code in the book is included from an example, and code in the README is a part of one.
pub(super) fn examples(repository: &Repository) -> Vec<Violation> {
    let mut violations = Vec::new();
    let pages = repository
        .texts
        .iter()
        .filter(|(path, _)| path == README || (path.starts_with("docs/") && path.ends_with(".md")));
    for (path, text) in pages.filter(|(path, _)| path != RUN_FROM_THE_PAGE && !r#gen::is_generated(path)) {
        for (line, code) in blocks(text) {
            let wrong = if path == README {
                let is_part = repository.texts.iter().any(|(path, text)| is_example(path) && text.contains(&code));
                (!is_part)
                    .then(|| "this code is not part of an example; take it from one that the tests run".to_owned())
            } else {
                match included(&code) {
                    None => Some(format!("include the code from an example: {INCLUDE}crates/…\"")),
                    Some(file) if !is_example(file) => Some(format!("{file} is not an example that the tests run")),
                    Some(file) if !repository.has(file) => Some(format!("{file} does not exist")),
                    Some(_) => None,
                }
            };
            violations.extend(wrong.map(|what| told(path, line, &what)));
        }
    }
    violations
}

/// The file that a block includes.
fn included(code: &str) -> Option<&str> {
    let name = code.trim().strip_prefix(INCLUDE)?.strip_suffix('"')?;
    (!name.contains('\n')).then(|| name.split(':').next().unwrap_or(name))
}

fn is_example(path: &str) -> bool {
    let in_folder = EXAMPLES.iter().any(|folder| path.starts_with(folder));
    in_folder && (path.starts_with("examples/") || path.contains("/examples/"))
}

/// A block of code during reading.
struct Block {
    indent: usize,
    is_example: bool,
    code: String,
}

/// The blocks of code in a page that are examples: the line where each ends, and its text without the indentation of a
/// tab.
fn blocks(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut open: Option<Block> = None;
    for (number, line) in text.lines().enumerate() {
        let bare = line.trim_start();
        match (open.take(), bare.strip_prefix("```")) {
            (None, Some(language)) => {
                let is_example = LANGUAGES.contains(&language.trim());
                open = Some(Block { indent: line.len() - bare.len(), is_example, code: String::new() });
            }
            (Some(block), Some(_)) if block.is_example => found.push((number + 1, block.code)),
            (Some(mut block), None) => {
                block.code.push_str(line.get(block.indent..).unwrap_or_default());
                block.code.push('\n');
                open = Some(block);
            }
            _ => {}
        }
    }
    found
}

/// Whether people write this page: not a proof, a sheet, or a generated page.
fn is_written(path: &str) -> bool {
    !(path.starts_with("proofs/") || path.starts_with("sheets/") || r#gen::is_generated(path))
}

fn told(path: &str, line: usize, what: &str) -> Violation {
    Violation { path: path.to_owned(), line, what: what.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::super::expect;
    use super::*;

    const EXAMPLE: (&str, &str) = ("crates/time/examples/delay.rs", "//! Waits.\nfn main() {\n    wait();\n}\n");

    #[test]
    fn files_that_the_architecture_names_must_exist() {
        let file = ("crates/time/src/poll.rs", "//! x\n");
        let good = "a ──► time/poll.rs, `crates/time/src/poll.rs` and poll.rs; crates/*/examples/x.rs\n";
        expect(named_files, &[(ARCHITECTURE, good), file], &[]);
        expect(named_files, &[(ARCHITECTURE, "x\n└─► time/goal.rs ◄── y\n"), file], &[(ARCHITECTURE, 2)]);
    }

    #[test]
    fn links_must_lead_to_files_or_folders() {
        let pages = [
            ("docs/a.md", "[b](../lab/b.md#x) [c](c.md)\n[d](#here) [e](https://x.org/y) [f](../lab)\n"),
            ("lab/b.md", "[g](/g)\n"),
        ];
        expect(links, &pages, &[("docs/a.md", 1), ("lab/b.md", 1)]);
        expect(links, &[("proofs/x.md", "[a](b.md)\n")], &[]);
    }

    #[test]
    fn code_in_the_book_is_an_example_that_runs() {
        let page = |code: &str| format!("=== \"Rust\"\n\n    ```rust\n    {code}\n    ```\n");
        let [typed, lost, other] =
            ["let a = 1;", "--8<-- \"crates/time/examples/no.rs\"", "--8<-- \"crates/time/src/lib.rs\""].map(page);
        let good = page("--8<-- \"crates/time/examples/delay.rs\"");
        expect(examples, &[EXAMPLE, ("docs/a.md", &good)], &[]);
        for bad in [typed, lost, other] {
            expect(examples, &[EXAMPLE, ("docs/a.md", &bad)], &[("docs/a.md", 5)]);
        }
        expect(examples, &[EXAMPLE, ("docs/a.md", "```sh\ncargo xtask book\n```\n")], &[]);
    }

    #[test]
    fn code_in_the_readme_is_a_part_of_an_example() {
        expect(examples, &[EXAMPLE, (README, "```rust\nfn main() {\n    wait();\n}\n```\n")], &[]);
        expect(examples, &[EXAMPLE, (README, "```rust\nfn main() {\n    sleep();\n}\n```\n")], &[(README, 5)]);
    }
}
