//! Invariant 2: unsafe code stands only in files on the ledger, and each block has a reason why it is sound.
//!
//! Every `unsafe { … }`, `unsafe impl` and `unsafe extern { … }` follows a comment `// SAFETY: …`. A few similar blocks
//! may share a sentence; a sentence that many blocks share is too general. An entry without unsafe code is stale.

use std::collections::BTreeMap;

use super::ledger::{self, Ledger};
use super::source::{Source, has_word, words};
use super::{Repository, Violation};

/// Limit of word-for-word repeats of one SAFETY sentence in the repository.
const SAME_SENTENCE: usize = 3;

pub(crate) fn find(repository: &Repository) -> Vec<Violation> {
    let ledger = Ledger::read(repository, ledger::UNSAFE);
    let mut violations = Vec::new();
    let mut sentences: BTreeMap<String, Vec<(String, usize)>> = BTreeMap::new();
    for source in &repository.sources {
        for (line, code) in source.lines() {
            if !ledger.lists(&source.path) && is_unsafe(code) {
                violations.push(violation(source, line, ledger.refusal("unsafe code")));
            }
            if needs_reason(source, line) {
                match reason(source, line) {
                    Some(sentence) => sentences.entry(sentence).or_default().push((source.path.clone(), line)),
                    None => {
                        let what = "no `// SAFETY:` comment before it; name the invariant and who upholds it";
                        violations.push(violation(source, line, what.to_owned()));
                    }
                }
            }
        }
    }
    for (sentence, places) in sentences {
        for (path, line) in places.iter().skip(SAME_SENTENCE) {
            let what = format!(
                "the SAFETY sentence {sentence:?} stands {} times; a sentence that fits any block is wrong for each",
                places.len()
            );
            violations.push(Violation { path: path.clone(), line: *line, what });
        }
    }
    let still = |path: &str| {
        let source = repository.sources.iter().find(|source| source.path == path);
        source.is_some_and(|source| source.lines().any(|(_, code)| is_unsafe(code)))
    };
    violations.extend(ledger.stale("unsafe code", still));
    violations
}

fn violation(source: &Source, line: usize, what: String) -> Violation {
    Violation { path: source.path.clone(), line, what }
}

/// The keyword, or an attribute that permits it.
fn is_unsafe(code: &str) -> bool {
    let lets_in = |attribute| words(code, attribute).any(|at| code[at..].contains("unsafe_code"));
    has_word(code, "unsafe") || (has_word(code, "unsafe_code") && (lets_in("allow") || lets_in("expect")))
}

/// True for a block, an implementation and a block of foreign items; functions and traits state their contract in their
/// documentation, and the compiler demands a block inside.
fn needs_reason(source: &Source, line: usize) -> bool {
    let code = &source.code[line - 1];
    words(code, "unsafe").any(|at| {
        let same = code[at + "unsafe".len()..].trim();
        let rest = if same.is_empty() { source.code.get(line).map_or("", |next| next.trim()) } else { same };
        let is_foreign = rest.starts_with("extern") && rest.ends_with('{') && !has_word(rest, "fn");
        rest.starts_with('{')
            || is_foreign
            || rest.strip_prefix("impl").is_some_and(|after| after.starts_with([' ', '<']))
    })
}

/// The comment before an unsafe block: directly above its statement (attributes and the beginning of the statement may
/// stand between), or earlier on the same line.
fn reason(source: &Source, line: usize) -> Option<String> {
    let mut index = line - 1;
    while index > 0 {
        index -= 1;
        let (raw, code) = (source.raw[index].trim(), source.code[index].trim());
        if raw.starts_with("//") {
            return comment(source, index);
        }
        let continues = !code.is_empty() && !code.ends_with([';', '{', '}']);
        if !(raw.starts_with("#[") || continues) {
            return None;
        }
    }
    None
}

/// The text after `SAFETY:` in the run of comment lines that ends at `last`.
fn comment(source: &Source, last: usize) -> Option<String> {
    let above = source.raw[..=last].iter().rev();
    let mut lines: Vec<&str> = above.map(|line| line.trim()).take_while(|line| line.starts_with("//")).collect();
    lines.reverse();
    let begin = lines.iter().position(|line| line.contains("SAFETY:"))?;
    let joined: Vec<&str> = lines[begin..].iter().map(|line| line.trim_start_matches('/').trim()).collect();
    let text = joined.join(" ");
    let sentence = text.split_once("SAFETY:")?.1.trim();
    (!sentence.is_empty()).then(|| sentence.to_owned())
}

#[cfg(test)]
mod tests {
    use super::super::expect;
    use super::*;

    const FILE: &str = "crates/machine/src/host/clock.rs";
    const LEDGER: (&str, &str) = ("ARCHITECTURE.md", "## Unsafe ledger\n- `crates/machine/src/host/clock.rs`\n");
    const SOUND: &str = "fn f() {\n    // SAFETY: `t` outlives the call, as the caller holds\n    // it on its stack.\n\
                         \x20   let x =\n        unsafe { g(&t) };\n}\n\
                         // SAFETY: the pointer is never shared.\n#[expect(x)]\nunsafe impl Send for T {}\n";

    #[test]
    fn sound_code_in_a_listed_file_passes() {
        expect(find, &[LEDGER, (FILE, SOUND)], &[]);
    }

    #[test]
    fn unsafe_code_off_the_ledger_is_caught() {
        let allow = "#![expect(unsafe_code, reason = \"x\")]\n";
        expect(find, &[(FILE, SOUND)], &[(FILE, 5), (FILE, 9)]);
        expect(find, &[("xtask/src/a.rs", allow)], &[("xtask/src/a.rs", 1)]);
        expect(find, &[("crates/x/src/a.rs", "unsafe fn f() {}\n")], &[("crates/x/src/a.rs", 1)]);
    }

    #[test]
    fn talking_about_it_and_forbidding_it_is_allowed() {
        expect(find, &[("crates/x/src/a.rs", "#![forbid(unsafe_code)]\n// unsafe\nlet s = \"unsafe {\";\n")], &[]);
    }

    #[test]
    fn a_block_without_its_reason_is_caught() {
        let bad =
            "// SAFETY: of another statement.\nlet a = 1;\nlet b = unsafe { g() };\n// SAFETY:\nunsafe { h() };\n";
        expect(find, &[LEDGER, (FILE, bad)], &[(FILE, 3), (FILE, 5)]);
    }

    /// Regression: functions of the C library were declared without a word why the declarations are right.
    #[test]
    fn foreign_items_without_a_reason_are_caught() {
        let good = "// SAFETY: declared as POSIX has it.\nunsafe extern \"C\" {\n    fn f();\n}\n";
        expect(find, &[LEDGER, (FILE, good)], &[]);
        let bad = "const X: u8 = 1;\n\nunsafe extern \"C\" {\n    fn f();\n}\ntype F = unsafe extern \"C\" fn();\n";
        expect(find, &[LEDGER, (FILE, bad)], &[(FILE, 3)]);
        expect(find, &[LEDGER, (FILE, "unsafe extern \"C\" fn f() {\n}\n")], &[]);
    }

    #[test]
    fn a_sentence_that_serves_every_block_is_caught() {
        let block = "// SAFETY: it is fine.\nunsafe { g() };\n";
        expect(find, &[LEDGER, (FILE, &block.repeat(3))], &[]);
        expect(find, &[LEDGER, (FILE, &block.repeat(4))], &[(FILE, 8)]);
    }

    #[test]
    fn an_entry_without_unsafe_code_is_stale() {
        expect(find, &[LEDGER, (FILE, "fn f() {}\n")], &[("ARCHITECTURE.md", 2)]);
        expect(find, &[LEDGER], &[("ARCHITECTURE.md", 2)]);
    }
}
