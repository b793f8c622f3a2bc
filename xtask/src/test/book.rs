//! Checks the book: it builds without warnings, links and anchors lead somewhere, the names on it exist, and its
//! commands run.
//!
//! The commands are the lines that begin with `$ ` in blocks marked `console`, as in README.md. The commands of one
//! page run in order in a temporary folder, which holds `examples` and `sheets`, with the built command first in PATH.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use super::{Context, api, readme};
use crate::book;
use crate::r#gen::{self, origins};
use crate::tally::Tally;

const ONE_COMMAND: Duration = Duration::from_secs(60);
/// The same command as that of the step `doc`.
const DOCUMENTATION: [&str; 5] = ["doc", "--workspace", "--exclude", "peers", "--no-deps"];
/// Folders that the commands of a page may use.
const SHOWN: [&str; 2] = ["examples", "sheets"];

pub(crate) fn run(context: &Context, name: &str) -> Tally {
    let workspace = context.workspace;
    let mut build = match book::build(workspace, &workspace.release_binary("hairspring")) {
        Ok(build) => build,
        Err(why) => return Tally::fail(name, why, ""),
    };
    let built = context.run(&format!("{name} build"), &mut build);
    if !built.succeeded() {
        return Tally::fail(name, format!("mkdocs build: {}", built.how), built.tail());
    }
    let mut tally = Tally::pass();
    match book::lost_links(&book::folder(workspace)) {
        Ok(lost) if lost.is_empty() => tally.passed += 1,
        Ok(lost) => tally.failure(&format!("{name} links"), format!("{} lead nowhere", lost.len()), lost.join("\n")),
        Err(why) => tally.failure(&format!("{name} links"), why, ""),
    }
    tally.add(check_names(context, &format!("{name} origins")));
    tally.add(run_commands(context, name));
    tally
}

/// Checks that the commands, rows and API paths on the page about the origins exist.
fn check_names(context: &Context, name: &str) -> Tally {
    let workspace = context.workspace;
    // Does nothing if the step `doc` has already run.
    let built = context.run(&format!("{name} documentation"), &mut workspace.cargo(&DOCUMENTATION));
    if !built.succeeded() {
        return Tally::fail(name, format!("cargo doc: {}", built.how), built.tail());
    }
    let command = workspace.release_binary("hairspring");
    let has_command = |line: &str| {
        let mut words = line.split(' ');
        let mut help = Command::new(&command);
        help.args(words.by_ref().skip(1)).arg("--help");
        context.run(&format!("{name} {line}"), &mut help).succeeded()
    };
    let doc = workspace.target.join("doc");
    match origins::faults(&workspace.root, &has_command, &|path| api::exists(&doc, path)) {
        Ok(faults) if faults.is_empty() => Tally::pass(),
        Ok(faults) => Tally::fail(name, format!("{} names of nothing", faults.len()), faults.join("\n")),
        Err(why) => Tally::fail(name, why, ""),
    }
}

/// Runs the commands of the pages.
fn run_commands(context: &Context, name: &str) -> Tally {
    let workspace = context.workspace;
    let mut tally = Tally::default();
    let files = match workspace.files() {
        Ok(files) => files,
        Err(why) => return Tally::fail(name, why, ""),
    };
    let release = workspace.target.join("release");
    let before = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths([release].into_iter().chain(std::env::split_paths(&before))).unwrap_or(before);
    for page in files.iter().filter(|file| file.starts_with("docs/") && file.ends_with(".md")) {
        let commands = match fs::read_to_string(workspace.root.join(page)) {
            Ok(_) if r#gen::is_generated(page) => continue,
            Ok(text) => readme::commands(&text),
            Err(error) => return Tally::fail(name, format!("read {page}: {error}"), ""),
        };
        if commands.is_empty() {
            continue;
        }
        let folder = workspace.scratch("book").join(page.replace('/', "-"));
        if let Err(error) = lay_out(&workspace.root, &folder) {
            return Tally::fail(name, format!("prepare {}: {error}", folder.display()), "");
        }
        for command in commands {
            println!("       {page} $ {command}");
            let mut shell = Command::new("sh");
            shell.args(["-c", &command]).current_dir(&folder).env("PATH", &path);
            let ended = context.run_at_most(&format!("{name} {page} {command}"), &mut shell, ONE_COMMAND);
            if ended.succeeded() {
                tally.passed += 1;
            } else {
                tally.failure(&format!("{name} {page}: {command}"), ended.how.to_string(), ended.tail());
            }
        }
    }
    if tally.passed == 0 && tally.succeeded() {
        return Tally::fail(name, "no page has a command to run in a ```console block", "");
    }
    tally
}

/// A fresh folder with the files that the commands use.
fn lay_out(root: &Path, folder: &Path) -> std::io::Result<()> {
    let _ = fs::remove_dir_all(folder);
    fs::create_dir_all(folder)?;
    SHOWN.iter().try_for_each(|name| std::os::unix::fs::symlink(root.join(name), folder.join(name)))
}
