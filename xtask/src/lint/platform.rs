//! Invariant 1: platform code stands only in files under a folder `host/` that ARCHITECTURE.md lists under
//! `## Platform ledger`.
//!
//! Searches every crate of the product, with its tests, for conditions on the target, the shorthands `unix` and
//! `windows` inside `cfg`, inline assembly, and intrinsics of one architecture.
//!
//! One exception: at the root of a crate, `#[cfg(target_os = "…")]` on the line above `mod name;` chooses a whole
//! module.

use super::ledger::{self, Ledger};
use super::source::{Source, has_word, is_name};
use super::{Repository, Violation};

pub(crate) fn find(repository: &Repository) -> Vec<Violation> {
    let ledger = Ledger::read(repository, ledger::PLATFORM);
    let mut violations = Vec::new();
    for source in repository.sources.iter().filter(|source| source.crate_name().is_some()) {
        if ledger.lists(&source.path) && source.path.contains("/host/") {
            continue;
        }
        for (line, code) in source.lines() {
            if let Some(what) = dependence(code).filter(|_| !chooses_a_module(source, line)) {
                let what = if ledger.lists(&source.path) {
                    format!("{what} in a listed file that is not under a folder host/; move it there")
                } else {
                    ledger.refusal(&what)
                };
                violations.push(Violation { path: source.path.clone(), line, what });
            }
        }
    }
    let still = |path: &str| repository.sources.iter().any(|source| source.path == path && depends(source));
    violations.extend(ledger.stale("platform code", still));
    violations
}

fn depends(source: &Source) -> bool {
    source.lines().any(|(line, code)| dependence(code).is_some() && !chooses_a_module(source, line))
}

/// Whether this line, counted from 1, is a condition on `target_os` alone, above a module with its own file, at a
/// crate's root.
fn chooses_a_module(source: &Source, line: usize) -> bool {
    let is_root = source.path.ends_with("/src/lib.rs") || source.path.ends_with("/src/main.rs");
    let declared = source.code.get(line).map_or("", |next| next.trim());
    let is_declared = declared.strip_suffix(';').is_some_and(|item| {
        let item = item.strip_prefix("pub(crate) ").or_else(|| item.strip_prefix("pub ")).unwrap_or(item);
        item.strip_prefix("mod ").is_some_and(|name| name.chars().all(is_name))
    });
    is_root && is_declared && is_condition_on_the_system(source.code[line - 1].trim())
}

/// Whether an attribute tests only the operating system.
fn is_condition_on_the_system(attribute: &str) -> bool {
    let condition = attribute.strip_prefix("#[cfg(").and_then(|rest| rest.strip_suffix(")]"));
    condition.is_some_and(|condition| {
        let mut words = condition.split(|c| !is_name(c)).filter(|word| !word.is_empty());
        words.all(|word| ["target_os", "not", "any", "all"].contains(&word))
    })
}

/// The platform-dependent construct in this line.
fn dependence(code: &str) -> Option<String> {
    for (at, _) in code.match_indices("target_") {
        if !code[..at].ends_with(is_name) {
            let name: String = code[at..].chars().take_while(|&c| is_name(c)).collect();
            if CONDITIONS.contains(&name.as_str()) {
                return Some(format!("a condition on {name}"));
            }
        }
    }
    if code.contains("cfg") && (has_word(code, "unix") || has_word(code, "windows")) {
        return Some("a condition on the operating system".to_owned());
    }
    if ["asm!", "global_asm!", "naked_asm!"].iter().any(|name| code.contains(name)) {
        return Some("inline assembly".to_owned());
    }
    if ["core::arch", "std::arch"].iter().any(|path| has_word(code, path)) {
        return Some("an intrinsic of one architecture".to_owned());
    }
    None
}

const CONDITIONS: &[&str] = &[
    "target_abi",
    "target_arch",
    "target_endian",
    "target_env",
    "target_family",
    "target_feature",
    "target_has_atomic",
    "target_os",
    "target_pointer_width",
    "target_vendor",
];

#[cfg(test)]
mod tests {
    use super::super::expect;
    use super::*;

    const LEDGER: (&str, &str) =
        ("ARCHITECTURE.md", "## Platform ledger\n- `crates/machine/src/host/mod.rs`\n- `crates/time/src/a.rs`\n");
    const LEDGER_OF_HOST: (&str, &str) =
        ("ARCHITECTURE.md", "## Platform ledger\n- `crates/machine/src/host/mod.rs`\n");
    const HOST: (&str, &str) = ("crates/machine/src/host/mod.rs", "#[cfg(target_os = \"linux\")]\nmod linux;\n");

    #[test]
    fn platform_code_elsewhere_is_caught() {
        let bad = "#[cfg(any(test, target_arch = \"x\"))]\nfn f() { core::arch::asm!(\"nop\") }\n#[cfg(windows)]\nx\n\
                   use std::arch::x86_64::_rdtsc;\n";
        let file = "crates/machine/src/ticks.rs";
        expect(find, &[LEDGER_OF_HOST, HOST, (file, bad)], &[(file, 1), (file, 2), (file, 3), (file, 5)]);
    }

    #[test]
    fn a_listed_file_must_still_be_under_host() {
        expect(
            find,
            &[LEDGER, HOST, ("crates/time/src/a.rs", "#[cfg(target_os = \"linux\")]\n")],
            &[("crates/time/src/a.rs", 1)],
        );
    }

    #[test]
    fn an_entry_without_platform_code_is_stale() {
        expect(find, &[LEDGER, HOST, ("crates/time/src/a.rs", "fn f() {}\n")], &[("ARCHITECTURE.md", 3)]);
        expect(find, &[HOST], &[(HOST.0, 1)]);
    }

    #[test]
    fn the_root_of_a_crate_may_choose_whole_modules_by_the_system_and_nothing_else() {
        let allowed =
            "#[cfg(target_os = \"linux\")]\nmod record;\n#[cfg(not(target_os = \"linux\"))]\npub(crate) mod none;\n";
        expect(find, &[LEDGER_OF_HOST, HOST, ("crates/cli/src/main.rs", allowed)], &[]);
        expect(find, &[LEDGER_OF_HOST, HOST, ("crates/cli/src/lib.rs", allowed)], &[]);
        let elsewhere = "crates/cli/src/record/mod.rs";
        expect(find, &[LEDGER_OF_HOST, HOST, (elsewhere, allowed)], &[(elsewhere, 1), (elsewhere, 3)]);
        let root = "crates/cli/src/main.rs";
        for other in [
            "#[cfg(target_os = \"linux\")]\nuse record::run;\n",
            "#[cfg(target_os = \"linux\")]\nmod record { fn f() {} }\n",
            "#[cfg(target_os = \"linux\")]\nfn modest();\n",
            "#[cfg(target_os = \"linux\")]\n#[path = \"../x.rs\"]\nmod record;\n",
            "#[cfg(target_arch = \"x86_64\")]\nmod record;\n",
            "#[cfg(all(test, target_os = \"linux\"))]\nmod record;\n",
            "#[cfg(windows)]\nmod record;\n",
            "#[cfg_attr(target_os = \"linux\", path = \"x.rs\")]\nmod record;\n",
        ] {
            expect(find, &[LEDGER_OF_HOST, HOST, (root, other)], &[(root, 1)]);
        }
    }

    #[test]
    fn talking_about_it_is_allowed() {
        let clean = "//! cfg(target_os) and asm! are elsewhere\nlet target_time = \"asm!\"; // core::arch\n\
                     #[cfg(test)]\nfn unix() {}\n";
        expect(find, &[("crates/time/src/b.rs", clean), ("xtask/src/c.rs", "#[cfg(target_os = \"x\")]")], &[]);
    }
}
