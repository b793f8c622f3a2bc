//! `cargo xtask gen`: the files that are generated: from invocations of the command itself, the C header by cbindgen,
//! and pages of the book.
//!
//! A fact lives in one place: the help, the registry of probes, the schema, the functions for C. Generated files that
//! people read in the repository are committed, and `--check` compares them, so that they cannot go stale. Manual
//! pages, completions and the book's page of commands are not committed: `install`, `deb` and `book` take them from the
//! built command.

mod c_pages;
mod commands;
mod figures;
pub(crate) mod header;
pub(crate) mod origins;
mod picture;
mod readmes;
mod schema;
mod tcl_pages;

use std::fs;
use std::path::{Path, PathBuf};
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
    /// Only files that are made from files of the repository, without building the command
    #[arg(long)]
    pages: bool,
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
    /// A page that this task makes from files of the repository.
    Page(fn(&Path, &[&str]) -> Result<String, String>),
}

const GENERATED: &[Generated] = &[
    Generated { path: "docs/probes.md", program: Program::Hairspring, arguments: &["probes", "--format", "md"] },
    Generated { path: "docs/sheet.schema.json", program: Program::Hairspring, arguments: &["schema"] },
    Generated { path: "docs/comparison.schema.json", program: Program::Hairspring, arguments: &["schema", "pairs"] },
    Generated { path: "docs/verdicts.schema.json", program: Program::Hairspring, arguments: &["schema", "verdicts"] },
    Generated { path: "docs/exit-codes.md", program: Program::Hairspring, arguments: &["exit-codes"] },
    Generated {
        path: library::HEADER,
        program: Program::Cbindgen,
        arguments: &["--quiet", "--config", "crates/c/cbindgen.toml", "crates/c/src/lib.rs"],
    },
    Generated {
        path: library::EXEC_HEADER,
        program: Program::Cbindgen,
        arguments: &["--quiet", "--config", "crates/c/cbindgen-exec.toml", "crates/c/src/exec/mod.rs"],
    },
    Generated {
        path: library::TAP_HEADER,
        program: Program::Cbindgen,
        arguments: &["--quiet", "--config", "crates/c/cbindgen-tap.toml", "crates/c/src/tap.rs"],
    },
    Generated { path: "docs/c/timebase.md", program: Program::Page(c_pages::page), arguments: &["timebase"] },
    Generated { path: "docs/c/delay.md", program: Program::Page(c_pages::page), arguments: &["delay"] },
    Generated { path: "docs/c/long-delay.md", program: Program::Page(c_pages::page), arguments: &["long-delay"] },
    Generated { path: "docs/c/profile.md", program: Program::Page(c_pages::page), arguments: &["profile"] },
    Generated { path: "docs/c/real-time.md", program: Program::Page(c_pages::page), arguments: &["real-time"] },
    Generated { path: "docs/c/window.md", program: Program::Page(c_pages::page), arguments: &["window"] },
    Generated { path: "docs/c/sheet.md", program: Program::Page(c_pages::page), arguments: &["sheet"] },
    Generated { path: "docs/c/executive.md", program: Program::Page(c_pages::page), arguments: &["executive"] },
    Generated { path: "docs/c/tap.md", program: Program::Page(c_pages::page), arguments: &["tap"] },
    Generated { path: "docs/c/errors.md", program: Program::Page(c_pages::page), arguments: &["errors"] },
    Generated { path: "docs/tcl/timebase.md", program: Program::Page(tcl_pages::page), arguments: &["timebase"] },
    Generated { path: "docs/tcl/long-delay.md", program: Program::Page(tcl_pages::page), arguments: &["long-delay"] },
    Generated { path: "docs/tcl/profile.md", program: Program::Page(tcl_pages::page), arguments: &["profile"] },
    Generated { path: "docs/tcl/real-time.md", program: Program::Page(tcl_pages::page), arguments: &["real-time"] },
    Generated { path: "docs/tcl/window.md", program: Program::Page(tcl_pages::page), arguments: &["window"] },
    Generated { path: "docs/tcl/sheet.md", program: Program::Page(tcl_pages::page), arguments: &["sheet"] },
    Generated { path: "docs/tcl/timer.md", program: Program::Page(tcl_pages::page), arguments: &["timer"] },
    Generated { path: "docs/sheet-json.md", program: Program::Page(schema::page), arguments: &["sheet"] },
    Generated {
        path: "docs/comparison-json.md",
        program: Program::Page(schema::page),
        arguments: &["comparison", "verdicts"],
    },
    Generated { path: "docs/assets/sheet.svg", program: Program::Page(picture::page), arguments: &[] },
    Generated { path: "docs/origins.md", program: Program::Page(origins::page), arguments: &[] },
];

/// The page of the book with all commands. Git ignores it.
const COMMANDS: &str = "docs/commands.md";

/// Whether this task writes the file.
pub(crate) fn is_generated(path: &str) -> bool {
    let is_readme = path.starts_with("crates/") && path.ends_with(readmes::NAME);
    GENERATED.iter().any(|generated| generated.path == path) || path == COMMANDS || is_readme
}

/// Builds the command without optimisation, which does not change what it prints.
pub(crate) fn build_command(workspace: &Workspace) -> Result<PathBuf, String> {
    let built = workspace.cargo(&["build", "-p", "hairspring-cli"]).status();
    match built.is_ok_and(|status| status.success()) {
        true => Ok(workspace.target.join("debug/hairspring")),
        false => Err("build the command".to_owned()),
    }
}

/// Writes or compares; `Ok(true)` when all files are current afterwards.
pub(crate) fn run(workspace: &Workspace, arguments: &Arguments) -> Result<bool, String> {
    let command = if arguments.pages { PathBuf::new() } else { build_command(workspace)? };
    if arguments.check {
        let tally = check(workspace, "gen", &command);
        print!("{}", tally.details());
        println!("{} of {} generated files and groups are current", tally.passed, GENERATED.len() + 2);
        return Ok(tally.succeeded());
    }
    for readme in readmes::all(workspace)? {
        write(workspace, &readme.path, readme.text.as_bytes())?;
    }
    for generated in GENERATED {
        if !arguments.pages || matches!(generated.program, Program::Page(_)) {
            write(workspace, generated.path, &generate(workspace, generated, &command)?)?;
        }
    }
    Ok(true)
}

fn write(workspace: &Workspace, path: &str, text: &[u8]) -> Result<(), String> {
    let file = workspace.root.join(path);
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder).map_err(|error| format!("create {}: {error}", folder.display()))?;
    }
    let changed = fs::read(&file).ok().as_deref() != Some(text);
    fs::write(&file, text).map_err(|error| format!("write {}: {error}", file.display()))?;
    println!("{} {path}", if changed { "wrote    " } else { "unchanged" });
    Ok(())
}

/// A file that an installation takes from the command, and its path below the prefix.
pub(crate) struct Paper {
    pub(crate) below: String,
    pub(crate) text: Vec<u8>,
}

/// The manual pages and the completions, as the built command prints them.
pub(crate) fn papers(workspace: &Workspace, command: &Path) -> Result<Vec<Paper>, String> {
    let pages = manuals(workspace, command)?.into_iter().map(|page| {
        let dash = if page.name.is_empty() { "" } else { "-" };
        Paper { below: format!("share/man/man1/hairspring{dash}{}.1", page.name), text: page.roff.into_bytes() }
    });
    let mut papers: Vec<Paper> = pages.collect();
    for (shell, below) in [
        ("bash", "share/bash-completion/completions/hairspring"),
        ("zsh", "share/zsh/site-functions/_hairspring"),
        ("fish", "share/fish/vendor_completions.d/hairspring.fish"),
    ] {
        papers.push(Paper { below: below.to_owned(), text: printed(workspace, command, &["completions", shell])? });
    }
    Ok(papers)
}

/// Writes the book's page of commands.
pub(crate) fn write_commands(workspace: &Workspace, command: &Path) -> Result<(), String> {
    let page = commands::page(&manuals(workspace, command)?)?;
    fs::write(workspace.root.join(COMMANDS), page).map_err(|error| format!("write {COMMANDS}: {error}"))
}

/// Compares each file with the current output of this command; one case each.
pub(crate) fn check(workspace: &Workspace, name: &str, command: &Path) -> Tally {
    let mut tally = Tally::default();
    for generated in GENERATED {
        let label = format!("{name} {}", generated.path);
        if let (Program::Cbindgen, Some(missing)) = (&generated.program, CBINDGEN.missing(workspace)) {
            tally.add(Tally::skip(&label, missing.to_string(), missing.installable));
            continue;
        }
        let compared = generate(workspace, generated, command).and_then(|text| {
            let committed = fs::read(workspace.root.join(generated.path))
                .map_err(|error| format!("read {}: {error}; run cargo xtask gen", generated.path))?;
            difference(&String::from_utf8_lossy(&committed), &String::from_utf8_lossy(&text))
        });
        match compared {
            Ok(()) => tally.passed += 1,
            Err(why) => tally.failure(&label, why, ""),
        }
    }
    match papers(workspace, command).and_then(|_| write_commands(workspace, command)) {
        Ok(()) => tally.passed += 1,
        Err(why) => tally.failure(&format!("{name} manual pages, completions, {COMMANDS}"), why, ""),
    }
    match readmes::all(workspace).and_then(|readmes| compare_readmes(workspace, &readmes)) {
        Ok(()) => tally.passed += 1,
        Err(why) => tally.failure(&format!("{name} {} of the crates", readmes::NAME), why, ""),
    }
    tally
}

/// Fails if the committed page of a crate is not this one.
fn compare_readmes(workspace: &Workspace, readmes: &[readmes::Readme]) -> Result<(), String> {
    for readmes::Readme { path, text } in readmes {
        let committed = fs::read_to_string(workspace.root.join(path));
        let committed = committed.map_err(|error| format!("read {path}: {error}; run cargo xtask gen"))?;
        difference(&committed, text).map_err(|why| format!("{path}: {why}"))?;
    }
    if readmes.is_empty() { Err("find a crate that can be published".to_owned()) } else { Ok(()) }
}

fn generate(workspace: &Workspace, generated: &Generated, command: &Path) -> Result<Vec<u8>, String> {
    let program = match generated.program {
        Program::Hairspring => command,
        Program::Cbindgen => Path::new("cbindgen"),
        Program::Page(make) => return make(&workspace.root, generated.arguments).map(String::into_bytes),
    };
    printed(workspace, program, generated.arguments)
}

/// The manual of the command as a whole, and those of the commands that it lists.
fn manuals(workspace: &Workspace, command: &Path) -> Result<Vec<commands::Manual>, String> {
    let manual = |name: &str| {
        let arguments = if name.is_empty() { vec!["man"] } else { vec!["man", name] };
        let roff = String::from_utf8_lossy(&printed(workspace, command, &arguments)?).into_owned();
        Ok(commands::Manual { name: name.to_owned(), roff })
    };
    let whole: commands::Manual = manual("")?;
    let names = commands::names(&whole.roff);
    if names.is_empty() {
        return Err("find a command in the manual".to_owned());
    }
    std::iter::once(Ok(whole)).chain(names.iter().map(|name| manual(name))).collect()
}

/// The output of a program, independent of user and folder.
fn printed(workspace: &Workspace, program: &Path, arguments: &[&str]) -> Result<Vec<u8>, String> {
    let said = format!("run {} {}", program.display(), arguments.join(" "));
    let output = Command::new(program)
        .args(arguments)
        .current_dir(&workspace.root)
        // The text must not depend on the user, the folder or the terminal.
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
        assert!(is_generated("docs/probes.md") && is_generated("docs/commands.md") && !is_generated("README.md"));
        assert!(is_generated("crates/time/README.md") && !is_generated("bindings/python/README.md"));
    }
}
