//! Invariant 4: libraries do not print, exit, or start threads that the caller did not ask for.
//!
//! Checks every crate except the command, without tests, examples and benchmarks. Only files that ARCHITECTURE.md lists
//! under `## Threads` may start threads.

use super::ledger::{self, Ledger};
use super::source::{Source, has_word, words};
use super::{Repository, Violation};

/// The crate that may print and exit.
const COMMAND: &str = "cli";
const PRINTING: &[&str] = &["print", "println", "eprint", "eprintln", "dbg"];
const ENDING: &[&str] = &["process::exit", "process::abort"];
/// The one file of a library that may end the process, as the header of C's executive states: a killed task that does
/// not return from its function holds up the run for ever, and nothing can unwind through C.
const MAY_END: &str = "crates/c/src/exec/context.rs";
const STARTING: &[&str] = &["thread::spawn", "thread::scope", "thread::Builder"];

pub(crate) fn find(repository: &Repository) -> Vec<Violation> {
    let threads = Ledger::read(repository, ledger::THREADS);
    let mut violations = Vec::new();
    let libraries = repository.sources.iter().filter(|source| source.crate_name().is_some_and(|name| name != COMMAND));
    for source in libraries.filter(|source| !source.is_outside_the_product()) {
        for (line, code) in source.product_lines() {
            let may_end = source.path == MAY_END && ENDING.iter().any(|path| has_word(code, path));
            if let Some(what) = effect(code).filter(|_| !may_end) {
                let what = format!("a library {what}; return it as data and let the command do it");
                violations.push(Violation { path: source.path.clone(), line, what });
            }
            if starts_thread(code) && !threads.lists(&source.path) {
                violations.push(Violation { path: source.path.clone(), line, what: threads.refusal("a thread") });
            }
        }
    }
    let still = |path: &str| {
        let source = repository.sources.iter().find(|source| source.path == path);
        source.is_some_and(|source: &Source| source.product_lines().any(|(_, code)| starts_thread(code)))
    };
    violations.extend(threads.stale("thread", still));
    violations
}

fn effect(code: &str) -> Option<String> {
    let macros = PRINTING.iter().find(|name| words(code, name).any(|at| code[at + name.len()..].starts_with('!')));
    if let Some(name) = macros {
        return Some(format!("calls {name}!"));
    }
    ENDING.iter().find(|path| has_word(code, path)).map(|path| format!("calls {path}"))
}

fn starts_thread(code: &str) -> bool {
    STARTING.iter().any(|path| has_word(code, path))
}

#[cfg(test)]
mod tests {
    use super::super::expect;
    use super::*;

    const FILE: &str = "crates/suite/src/probe.rs";

    #[test]
    fn effects_of_a_library_are_caught() {
        let bad = "fn f() {\n  println!(\"x\");\n  std::process::exit(1);\n  dbg!(1);\n  std::thread::spawn(g);\n}\n";
        expect(find, &[(FILE, bad)], &[(FILE, 2), (FILE, 3), (FILE, 4), (FILE, 5)]);
        let ends = "fn f() {\n  std::process::abort();\n  print!(\"x\");\n}\n";
        expect(find, &[(MAY_END, ends), (FILE, ends)], &[(MAY_END, 3), (FILE, 2), (FILE, 3)]);
    }

    #[test]
    fn the_command_tests_and_prose_are_left_alone() {
        let print = "fn f() { println!(\"x\"); std::thread::spawn(g); }\n";
        let clean = "/// ```\n/// println!(\"x\");\n/// ```\nfn f() { writeln!(out, \"println!\"); }\n\
                     #[cfg(test)]\nmod tests {\n  fn g() { println!(\"x\"); }\n}\n";
        let files = [
            ("crates/cli/src/main.rs", print),
            ("crates/time/tests/it.rs", print),
            ("crates/time/examples/a.rs", print),
            ("xtask/src/main.rs", print),
            (FILE, clean),
        ];
        expect(find, &files, &[]);
    }

    #[test]
    fn threads_are_allowed_where_they_are_listed_and_only_there() {
        let ledger = ("ARCHITECTURE.md", "## Threads\n- `crates/suite/src/probe.rs`: the load\n");
        expect(find, &[ledger, (FILE, "fn f() { std::thread::scope(|s| g(s)); }\n")], &[]);
        expect(find, &[ledger, (FILE, "fn f() {}\n")], &[("ARCHITECTURE.md", 2)]);
    }
}
