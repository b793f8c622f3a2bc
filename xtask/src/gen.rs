//! `cargo xtask gen`: the files that are generated, each from one invocation of the command itself, and the C header, from cbindgen.
//!
//! A fact lives in one place: the help, the registry of probes, the schema, the functions for C. What is printed from it is
//! committed, so that it can be read without building, and `--check` compares it, so that it cannot go stale.

use std::fs;
use std::process::{Command, Stdio};

use crate::library;
use crate::tally::Tally;
use crate::test::needs::CBINDGEN;
use crate::workspace::Workspace;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Compare instead of writing, and fail on a difference
    #[arg(long)]
    check: bool,
}

struct Generated {
    path: &'static str,
    program: Program,
    arguments: &'static [&'static str],
}

enum Program {
    /// The built command.
    Hairspring,
    /// The generator of headers, which reads the sources.
    Cbindgen,
}

const GENERATED: &[Generated] = &[
    Generated { path: "docs/probes.md", program: Program::Hairspring, arguments: &["probes", "--format", "md"] },
    Generated { path: "docs/sheet.schema.json", program: Program::Hairspring, arguments: &["schema"] },
    Generated { path: "docs/hairspring.1", program: Program::Hairspring, arguments: &["man"] },
    Generated { path: "docs/exit-codes.md", program: Program::Hairspring, arguments: &["exit-codes"] },
    Generated {
        path: "docs/completions/hairspring.bash",
        program: Program::Hairspring,
        arguments: &["completions", "bash"],
    },
    Generated {
        path: "docs/completions/_hairspring",
        program: Program::Hairspring,
        arguments: &["completions", "zsh"],
    },
    Generated {
        path: "docs/completions/hairspring.fish",
        program: Program::Hairspring,
        arguments: &["completions", "fish"],
    },
    Generated {
        path: library::HEADER,
        program: Program::Cbindgen,
        arguments: &["--quiet", "--config", "crates/c/cbindgen.toml", "crates/c/src/lib.rs"],
    },
];

/// True for a file that this task writes.
pub(crate) fn is_generated(path: &str) -> bool {
    GENERATED.iter().any(|generated| generated.path == path)
}

/// Writes or compares; `Ok(true)` when everything is current afterwards.
pub(crate) fn run(workspace: &Workspace, arguments: &Arguments) -> Result<bool, String> {
    let built = workspace.cargo(&["build", "--release", "-p", "hairspring-cli"]).status();
    if !built.is_ok_and(|status| status.success()) {
        return Err("build the command".to_owned());
    }
    if arguments.check {
        let tally = check(workspace, "gen");
        print!("{}", tally.details());
        println!("{} of {} generated files are current", tally.passed, GENERATED.len());
        return Ok(tally.succeeded());
    }
    for generated in GENERATED {
        let text = generate(workspace, generated)?;
        let file = workspace.root.join(generated.path);
        if let Some(folder) = file.parent() {
            fs::create_dir_all(folder).map_err(|error| format!("create {}: {error}", folder.display()))?;
        }
        let changed = fs::read(&file).ok().as_ref() != Some(&text);
        fs::write(&file, &text).map_err(|error| format!("write {}: {error}", file.display()))?;
        println!("{} {}", if changed { "wrote    " } else { "unchanged" }, generated.path);
    }
    Ok(true)
}

/// Compares each file with what the built command prints now; one case each.
pub(crate) fn check(workspace: &Workspace, name: &str) -> Tally {
    let mut tally = Tally::default();
    for generated in GENERATED {
        let label = format!("{name} {}", generated.path);
        if let (Program::Cbindgen, Some(missing)) = (&generated.program, CBINDGEN.missing(workspace)) {
            tally.add(Tally::skip(&label, missing.to_string(), missing.installable));
            continue;
        }
        let compared = generate(workspace, generated).and_then(|text| {
            let committed = fs::read(workspace.root.join(generated.path))
                .map_err(|error| format!("read {}: {error}; run cargo xtask gen", generated.path))?;
            difference(&String::from_utf8_lossy(&committed), &String::from_utf8_lossy(&text))
        });
        match compared {
            Ok(()) => tally.passed += 1,
            Err(why) => tally.failure(&label, why, ""),
        }
    }
    tally
}

fn generate(workspace: &Workspace, generated: &Generated) -> Result<Vec<u8>, String> {
    let program = match generated.program {
        Program::Hairspring => workspace.release_binary("hairspring"),
        Program::Cbindgen => "cbindgen".into(),
    };
    let said = format!("run {} {}", program.display(), generated.arguments.join(" "));
    let output = Command::new(program)
        .args(generated.arguments)
        .current_dir(&workspace.root)
        // The text must not depend on who runs it where.
        .env("COLUMNS", "100")
        .env("NO_COLOR", "1")
        .env("LC_ALL", "C.UTF-8")
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("{said}: {error}"))?;
    if !output.status.success() {
        return Err(format!("{said}: {}: {}", output.status, String::from_utf8_lossy(&output.stderr).trim()));
    }
    if output.stdout.is_empty() {
        return Err(format!("{said}: it printed nothing"));
    }
    Ok(output.stdout)
}

/// Names the first line that differs.
fn difference(committed: &str, current: &str) -> Result<(), String> {
    if committed == current {
        return Ok(());
    }
    let (mut old, mut new, mut number) = (committed.lines(), current.lines(), 1);
    loop {
        match (old.next(), new.next()) {
            (Some(before), Some(after)) if before == after => number += 1,
            (before, after) => {
                let show = |line: Option<&str>| line.map_or("the end".to_owned(), |line| format!("{line:?}"));
                let (before, after) = (show(before), show(after));
                return Err(format!("stale from line {number}: has {before}, would be {after}; run cargo xtask gen"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_is_told_with_its_line_and_the_remedy() {
        assert_eq!(difference("a\nb\n", "a\nb\n"), Ok(()));
        let told = difference("a\nb\n", "a\nc\n").unwrap_err();
        assert!(told.contains("line 2") && told.contains("cargo xtask gen"), "{told}");
        assert!(difference("a\n", "a\nb\n").unwrap_err().contains("the end"));
        assert!(difference("a\n", "a").is_err(), "a missing last newline is a difference");
    }

    #[test]
    fn a_file_is_generated_once() {
        for (index, generated) in GENERATED.iter().enumerate() {
            assert!(GENERATED[..index].iter().all(|before| before.path != generated.path), "{}", generated.path);
        }
        assert!(is_generated("docs/probes.md") && !is_generated("README.md"));
    }
}
