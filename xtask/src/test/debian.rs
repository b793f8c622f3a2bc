//! The Debian packages: lintian, and their life in a clean system: install, use, purge.
//!
//! The clean system is a minimal Debian that setup builds once with mmdebstrap. Each run unpacks it, and works in it
//! with mounts of its own that vanish with the last process. After the purge the list of files, users and groups is
//! what it was before.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::Context;
use super::needs;
use crate::deb::{self, Ingredients, Packed};
use crate::tally::{Skip, Tally};
use crate::workspace::Workspace;
use crate::{library, wheel};

/// What the packages need beside a minimal Debian, so that they are installed without a network.
const BESIDE: &str = "adduser,libcap2-bin,libpam-modules,python3,tcl";
/// Time limit of the steps in the clean system.
const INSIDE: Duration = Duration::from_secs(240);

/// The archive of the clean system.
pub(crate) fn base(workspace: &Workspace) -> PathBuf {
    workspace.scratch("debian-base").join("base.tar")
}

/// The command that makes the clean system, of the release that this machine runs.
pub(crate) fn make_base(workspace: &Workspace) -> Result<Command, String> {
    let file = base(workspace);
    let folder = file.parent().ok_or("find the folder of the clean system")?;
    fs::create_dir_all(folder).map_err(|error| format!("create {}: {error}", folder.display()))?;
    let release = fs::read_to_string("/etc/os-release").map_err(|error| format!("read /etc/os-release: {error}"))?;
    let name = release.lines().find_map(|line| line.strip_prefix("VERSION_CODENAME=")).unwrap_or("stable");
    let mut command = Command::new("mmdebstrap");
    command.args(["--quiet", "--variant=minbase", &format!("--include={BESIDE}"), name]).arg(&file);
    Ok(command)
}

pub(crate) fn check(context: &Context, name: &str) -> Tally {
    let packed = match pack(context, name) {
        Ok(packed) => packed,
        Err(why) => return Tally::fail(name, why, ""),
    };
    let mut tally = Tally::default();
    case(&mut tally, &format!("{name} all packages"), is_complete(&packed).map(|()| Vec::new()));
    case(&mut tally, &format!("{name} lintian"), lintian(context, name, &packed.files).map(|()| Vec::new()));
    let label = format!("{name} sandbox of the service");
    match needs::SYSTEMD_ANALYZE.missing(context.workspace) {
        Some(missing) => {
            let (reason, could_run) = (missing.to_string(), missing.installable);
            tally.skips.push(Skip { name: label, reason, could_run });
        }
        None => case(&mut tally, &label, sandbox(context, name).map(|()| Vec::new())),
    }
    case(&mut tally, &format!("{name} clean system"), clean_system(context, name, &packed.files));
    tally
}

/// Counts a check, and what it could not try here.
fn case(tally: &mut Tally, label: &str, outcome: Result<Vec<String>, String>) {
    match outcome {
        Ok(untried) => {
            tally.passed += 1;
            let skip = |reason| Skip { name: label.to_owned(), reason, could_run: false };
            tally.skips.extend(untried.into_iter().map(skip));
        }
        Err(why) => tally.failure(label, why, ""),
    }
}

/// Packs what the other steps have built, or builds it.
fn pack(context: &Context, name: &str) -> Result<Packed, String> {
    let workspace = context.workspace;
    let mut build =
        workspace.cargo(&["rustc", "--quiet", "--release", "-p", "hairspring-c", "--crate-type", "staticlib"]);
    let built = context.run(&format!("{name} build"), &mut build);
    if !built.succeeded() {
        return Err(format!("build the library: {}\n{}", built.how, built.tail()));
    }
    let wheel = match super::python::built_wheel(workspace) {
        Some(wheel) => Ok(wheel),
        None => wheel::build_native(workspace, &workspace.scratch("wheel-debian")),
    };
    let book = crate::book::folder(workspace);
    let book =
        if book.join("index.html").is_file() { Ok(book) } else { Err("the step `book` has not built it".to_owned()) };
    let ingredients = Ingredients {
        command: workspace.release_binary("hairspring"),
        archive: workspace.release_binary("libhairspring.a"),
        wheel,
        book,
    };
    deb::pack(workspace, &ingredients, &workspace.scratch("debian"))
}

/// All packages are made; only the book may be absent, because this step may run alone.
fn is_complete(packed: &Packed) -> Result<(), String> {
    let lost: Vec<&String> = packed.left_out.iter().filter(|why| !why.starts_with("hairspring-doc")).collect();
    if lost.is_empty() && packed.files.len() >= deb::names().len() - 1 {
        Ok(())
    } else {
        Err(format!("left out: {lost:?}"))
    }
}

fn lintian(context: &Context, name: &str, files: &[PathBuf]) -> Result<(), String> {
    let mut command = Command::new("lintian");
    command.args(["--no-cfg", "--fail-on", "error", "--tag-display-limit", "0"]).args(files);
    let ended = context.run(&format!("{name} lintian"), &mut command);
    if ended.succeeded() { Ok(()) } else { Err(format!("{}\n{}", ended.how, ended.tail())) }
}

/// systemd reads the unit, and counts little that it leaves open.
fn sandbox(context: &Context, name: &str) -> Result<(), String> {
    let unit = context.workspace.root.join("packaging/realtime/hairspring-station@.service");
    let mut command = Command::new("systemd-analyze");
    // On systemd's scale from 0, closed, to 10: below 3.
    command.args(["security", "--offline=yes", "--no-pager", "--threshold=30"]).arg(unit);
    let ended = context.run(&format!("{name} systemd-analyze"), &mut command);
    if ended.succeeded() { Ok(()) } else { Err(format!("{}\n{}", ended.how, ended.tail())) }
}

/// Installs all packages in the clean system, uses and purges them. Returns what could not be tried.
fn clean_system(context: &Context, name: &str, files: &[PathBuf]) -> Result<Vec<String>, String> {
    let folder = context.workspace.scratch("debian-clean");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).map_err(|error| format!("create {}: {error}", folder.display()))?;
    library::run(
        Command::new("tar").args(["-x", "--numeric-owner", "-f"]).arg(base(context.workspace)).arg("-C").arg(&folder),
    )?;
    let packages = folder.join("packages");
    fs::create_dir_all(&packages).map_err(|error| format!("create {}: {error}", packages.display()))?;
    for file in files {
        let to = packages.join(file.file_name().unwrap_or_default());
        fs::copy(file, &to).map_err(|error| format!("copy {}: {error}", file.display()))?;
    }
    for (file, text) in [("life.sh", LIFE), ("rights.py", RIGHTS)] {
        fs::write(folder.join(file), text).map_err(|error| format!("write {file}: {error}"))?;
    }
    let mut asked = library::compiler();
    asked.args(["-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o"]).arg(folder.join("asked.so"));
    library::run(asked.arg(context.workspace.root.join("xtask/src/test/debian/asked.c")))?;
    let ended = context.run_at_most(&format!("{name} life"), &mut inside(&folder, "/life.sh"), INSIDE);
    let _ = fs::remove_dir_all(&folder);
    let whole = ended.output.lines().any(|line| line == "life: whole");
    if ended.succeeded() && whole {
        Ok(untried(&ended.output).into_iter().map(str::to_owned).collect())
    } else {
        Err(format!("{}\n{}", ended.how, ended.tail()))
    }
}

/// The reasons behind lines `skip: WHY`.
fn untried(said: &str) -> Vec<&str> {
    said.lines().filter_map(|line| line.strip_prefix("skip: ")).collect()
}

/// A script in the clean system, with /proc and /dev mounted for it alone.
fn inside(folder: &Path, script: &str) -> Command {
    let mut command = Command::new("unshare");
    command.args(["--mount", "--pid", "--fork", "sh", "-ec"]);
    command.arg(format!(
        "mount -t proc proc '{0}/proc'; mount --rbind /dev '{0}/dev'; exec chroot '{0}' /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin \
         LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive HOME=/ sh -eu {script}",
        folder.display()
    ));
    command
}

/// What happens to the packages.
const LIFE: &str = include_str!("debian/life.sh");
/// What a member of the group may do, and a stranger may not.
const RIGHTS: &str = include_str!("debian/rights.py");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_script_could_not_try_is_counted() {
        assert_eq!(untried("life: whole\n"), Vec::<&str>::new());
        assert_eq!(untried("a\nskip: no device\nlife: whole\nskip: no priority\n"), ["no device", "no priority"]);
    }
}
