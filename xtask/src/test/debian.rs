//! The Debian packages: lintian, and their life in a clean system: install, use, purge.
//!
//! The clean system is a minimal Debian that setup builds once with mmdebstrap. Each run unpacks it, and works in it with mounts of its own
//! that vanish with the last process. After the purge the list of files, users and groups is what it was before.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::Context;
use super::needs;
use crate::deb::{self, Ingredients, Packed};
use crate::tally::Tally;
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
    let mut case = |label: &str, outcome: Result<(), String>| match outcome {
        Ok(()) => tally.passed += 1,
        Err(why) => tally.failure(&format!("{name} {label}"), why, ""),
    };
    case("all packages", is_complete(&packed));
    case("lintian", lintian(context, name, &packed.files));
    case("sandbox of the service", sandbox(context, name));
    case("clean system", clean_system(context, name, &packed.files));
    tally
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
    if needs::in_path("systemd-analyze").is_none() {
        // The file is in the package nevertheless; the clean system checks that.
        return Ok(());
    }
    let unit = context.workspace.root.join("packaging/realtime/hairspring-station@.service");
    let mut command = Command::new("systemd-analyze");
    // On systemd's scale from 0, closed, to 10: below 3.
    command.args(["security", "--offline=yes", "--no-pager", "--threshold=30"]).arg(unit);
    let ended = context.run(&format!("{name} systemd-analyze"), &mut command);
    if ended.succeeded() { Ok(()) } else { Err(format!("{}\n{}", ended.how, ended.tail())) }
}

/// Installs all packages in the clean system, uses and purges them.
fn clean_system(context: &Context, name: &str, files: &[PathBuf]) -> Result<(), String> {
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
    fs::write(folder.join("life.sh"), LIFE).map_err(|error| format!("write life.sh: {error}"))?;
    let ended = context.run_at_most(&format!("{name} life"), &mut inside(&folder, "/life.sh"), INSIDE);
    let _ = fs::remove_dir_all(&folder);
    let whole = ended.output.lines().any(|line| line == "life: whole");
    if ended.succeeded() && whole { Ok(()) } else { Err(format!("{}\n{}", ended.how, ended.tail())) }
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

/// What happens to the packages. Each line that can fail ends the script.
const LIFE: &str = r##"
# Without what adduser keeps beside the accounts.
files() { find / -xdev \( -path /proc -o -path /dev -o -path /packages -o -path /tmp -o -path /var/lib/dpkg -o -path /var/log -o -path /var/cache -o -path /run/adduser -o -path '/etc/*-' \) -prune -o -print | LC_ALL=C sort; }
accounts() { cat /etc/group /etc/passwd; }
files > /tmp/files.before; accounts > /tmp/accounts.before

dpkg --install /packages/*.deb
dpkg --audit
if dpkg --list '*hairspring*' | grep -E '^i[^i ]'; then exit 1; fi

# The command and its manual.
hairspring --version
hairspring delay 10us --count 3
test -s /usr/share/man/man1/hairspring.1.gz -a -s /usr/share/bash-completion/completions/hairspring
# A program that the linker bound to the library.
head -c 8192 /dev/zero > /tmp/word
/usr/libexec/hairspring/callers-c /tmp/word 20
# Python: alone, and nothing else is imported.
python3 -c '
import sys
import hairspring
extras = {"numpy", "pandas", "dask", "xarray", "p4p", "distributed"} & set(sys.modules)
assert not extras, extras
report = hairspring.delay(50e-6)
assert report.late_ns >= 0
print("python late", report.late_ns)
'
echo 'package require hairspring; set timebase [hairspring calibrate]; puts "tcl [package provide hairspring]"' > /tmp/use.tcl
tclsh /tmp/use.tcl
# What a C program needs to be compiled.
test -f /usr/include/hairspring.h -a -e /usr/lib/*/libhairspring.so -a -f /usr/lib/*/libhairspring.a
test -f /usr/lib/*/pkgconfig/hairspring.pc -a -f /usr/lib/*/cmake/hairspring/hairspringConfig.cmake
# The rights: a group without members, and what it may do.
getent group hairspring | grep -q ':$'
test "$(stat -c '%a %G' /usr/lib/hairspring/perf/hairspring)" = '750 hairspring'
getcap /usr/lib/hairspring/perf/hairspring | grep -q cap_perfmon
hairspring-perf --version
test -f '/usr/lib/systemd/system/hairspring-station@.service' -a -f /usr/lib/udev/rules.d/60-hairspring.rules
grep -q '^@hairspring.*rtprio' /etc/security/limits.d/hairspring.conf
# Another user has no perf events.
if setpriv --reuid=nobody --regid=nogroup --clear-groups hairspring-perf --version; then exit 1; fi

# A second installation of the same version changes nothing.
dpkg --install /packages/hairspring-realtime_*.deb
dpkg --purge hairspring-realtime hairspring-doc tcl-hairspring python3-hairspring libhairspring-dev hairspring $(cd /packages && ls libhairspring[0-9]*.deb | cut -d_ -f1) 2> /tmp/purge.err || { cat /tmp/purge.err; exit 1; }
files > /tmp/files.after; accounts > /tmp/accounts.after
diff /tmp/files.before /tmp/files.after
diff /tmp/accounts.before /tmp/accounts.after
echo 'life: whole'
"##;
