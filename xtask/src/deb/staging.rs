//! The trees of the packages while they are filled, and the steps that make packages of them.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::list::{self, Package, numbered};
use super::{copyright, version};
use crate::components::{self, Component};
use crate::reproducible;
use crate::workspace::Workspace;
use crate::{library, wheel};

/// Who answers for the packages; a registry of packages asks for an address.
const MAINTAINER: &str = "Hairspring developers <hairspring@users.noreply.github.com>";
/// Files that only the binaries' build needs.
const WITH_CODE: [&str; 3] = ["hairspring-cli", "hairspring-c", "hairspring-python"];
/// The files of the package of rights: source, destination, mode.
const REALTIME: [(&str, &str, u32); 6] = [
    ("limits.conf", "etc/security/limits.d/hairspring.conf", 0o644),
    ("60-hairspring.rules", "usr/lib/udev/rules.d/60-hairspring.rules", 0o644),
    ("tracing.conf", "usr/lib/systemd/system/sys-kernel-tracing.mount.d/hairspring.conf", 0o644),
    ("hairspring-station@.service", "usr/lib/systemd/system/hairspring-station@.service", 0o644),
    ("hairspring-perf", "usr/bin/hairspring-perf", 0o755),
    ("hairspring-perf.1", "usr/share/man/man1/hairspring-perf.1", 0o644),
];

pub(super) struct Staging<'a> {
    workspace: &'a Workspace,
    folder: &'a Path,
    architecture: String,
    /// Seconds since 1970 that all files carry.
    epoch: i64,
    copyright: String,
}

/// What a program prints, without the white space around it.
pub(super) fn asked(program: &str, arguments: &[&str]) -> Result<String, String> {
    library::run(Command::new(program).args(arguments)).map(|said| said.trim().to_owned())
}

impl<'a> Staging<'a> {
    pub(super) fn new(workspace: &'a Workspace, folder: &'a Path, architecture: String) -> Result<Self, String> {
        let target = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
        let components: Vec<Component> = components::of(workspace, &WITH_CODE, &target)?;
        let repository = workspace.packages.first().map(|package| package.repository.clone()).unwrap_or_default();
        let copyright = copyright::write(&components, &repository)?;
        Ok(Staging { workspace, folder, architecture, epoch: reproducible::epoch(workspace)?, copyright })
    }

    fn tree(&self, package: &str) -> PathBuf {
        self.folder.join("trees").join(numbered(package))
    }

    /// Whether the package has files.
    pub(super) fn has(&self, package: &Package) -> bool {
        self.tree(package.name).is_dir()
    }

    /// Moves an installed file into a package.
    pub(super) fn take(&self, file: &Path, package: &str, below: &str) -> Result<(), String> {
        let place = self.tree(package).join(below);
        make_folder(place.parent())?;
        fs::rename(file, &place).map_err(|error| format!("move {} to {}: {error}", file.display(), place.display()))
    }

    fn write(&self, package: &str, below: &str, bytes: &[u8], mode: u32) -> Result<(), String> {
        let place = self.tree(package).join(below);
        make_folder(place.parent())?;
        let written =
            fs::write(&place, bytes).and_then(|()| fs::set_permissions(&place, PermissionsExt::from_mode(mode)));
        written.map_err(|error| format!("write {}: {error}", place.display()))
    }

    /// Unpacks the wheel to where Debian's Python looks.
    pub(super) fn python(&self, wheel: &Path) -> Result<(), String> {
        let place = self.tree(list::PYTHON).join("usr/lib/python3/dist-packages");
        make_folder(Some(&place))?;
        library::run(Command::new("python3").args(["-m", "zipfile", "-e"]).arg(wheel).arg(&place))?;
        // Lists of hashes are for pip; the libraries need no right to run.
        let about = place.join(format!("hairspring-{}.dist-info", library::version()));
        for extra in ["RECORD", "licenses"] {
            let path = about.join(extra);
            let _ = if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
        }
        let modules =
            fs::read_dir(place.join("hairspring")).map_err(|error| format!("list {}: {error}", place.display()))?;
        for module in modules.flatten().filter(|entry| entry.path().extension().is_some_and(|ending| ending == "so")) {
            let failed = |error| format!("change {}: {error}", module.path().display());
            fs::set_permissions(module.path(), PermissionsExt::from_mode(0o644)).map_err(failed)?;
        }
        for (name, script) in wheel::scripts(&about)? {
            self.write(list::PYTHON, &format!("usr/bin/{name}"), script.as_bytes(), 0o755)?;
        }
        Ok(())
    }

    /// Copies the built book.
    pub(super) fn book(&self, book: &Path) -> Result<(), String> {
        let place = self.tree(list::BOOK).join("usr/share/doc/hairspring-doc/html");
        make_folder(Some(&place))?;
        let mut copy = Command::new("cp");
        library::run(copy.args(["-R", "--no-preserve=mode"]).arg(book.join(".")).arg(&place))?;
        let entry = "Document: hairspring\nTitle: Hairspring\nAuthor: the authors of Hairspring\nAbstract: Exact delays, an executive, front ends and \
                     lossless recording,\n with a timing data sheet that says how well.\nSection: Science/Data Analysis\n\nFormat: HTML\n\
                     Index: /usr/share/doc/hairspring-doc/html/index.html\nFiles: /usr/share/doc/hairspring-doc/html/*.html\n";
        self.write(list::BOOK, "usr/share/doc-base/hairspring-doc.hairspring", entry.as_bytes(), 0o644)
    }

    /// Writes the package of rights.
    pub(super) fn realtime(&self) -> Result<(), String> {
        let from = self.workspace.root.join("packaging/realtime");
        let read =
            |name: &str| fs::read(from.join(name)).map_err(|error| format!("read packaging/realtime/{name}: {error}"));
        for (name, below, mode) in REALTIME {
            self.write(list::REALTIME, below, &read(name)?, mode)?;
        }
        self.write(list::REALTIME, "usr/share/doc/hairspring-realtime/README.Debian", &read("README.Debian")?, 0o644)?;
        let security = fs::read(self.workspace.root.join("SECURITY.md"));
        let security = security.map_err(|error| format!("read SECURITY.md: {error}"))?;
        self.write(list::COMMAND, "usr/share/doc/hairspring/SECURITY.md", &security, 0o644)
    }

    /// Takes out of all binaries what only debuggers need.
    pub(super) fn strip(&self) -> Result<(), String> {
        for file in self.files("-type f")? {
            let name = file.to_string_lossy();
            if name.ends_with(".a") {
                library::run(
                    Command::new("strip").args(["--strip-debug", "--enable-deterministic-archives"]).arg(&file),
                )?;
            } else if fs::read(&file).is_ok_and(|bytes| bytes.starts_with(b"\x7fELF")) {
                let sections = ["--strip-unneeded", "--remove-section=.comment", "--remove-section=.note"];
                library::run(Command::new("strip").args(sections).arg(&file))?;
                // The loader needs no right to run a library.
                if name.contains(".so") {
                    let changed = fs::set_permissions(&file, PermissionsExt::from_mode(0o644));
                    changed.map_err(|error| format!("change {}: {error}", file.display()))?;
                }
            }
        }
        Ok(())
    }

    fn files(&self, which: &str) -> Result<Vec<PathBuf>, String> {
        let mut find = Command::new("find");
        let said = library::run(find.arg(self.folder.join("trees")).args(which.split(' ')))?;
        let mut files: Vec<PathBuf> = said.lines().map(PathBuf::from).collect();
        files.sort();
        Ok(files)
    }

    /// Completes one tree and makes the package.
    pub(super) fn close(&self, package: &Package) -> Result<PathBuf, String> {
        let (name, tree) = (package.name(), self.tree(package.name));
        let about = format!("usr/share/doc/{name}");
        self.write(package.name, &format!("{about}/copyright"), self.copyright.as_bytes(), 0o644)?;
        let date = reproducible::rfc_2822(self.epoch)?;
        let changes = format!(
            "hairspring ({}) unstable; urgency=medium\n\n  * Version {}; CHANGELOG.md in the sources names the changes.\n\n -- {MAINTAINER}  {date}\n",
            version(),
            library::version()
        );
        self.write(package.name, &format!("{about}/changelog.Debian"), changes.as_bytes(), 0o644)?;
        let mut compressed = vec![tree.join(&about).join("changelog.Debian")];
        let manual = tree.join("usr/share/man/man1");
        compressed.extend(fs::read_dir(manual).into_iter().flatten().flatten().map(|page| page.path()));
        library::run(Command::new("gzip").args(["-9", "-n"]).args(&compressed))?;
        make_folder(Some(&tree.join("DEBIAN")))?;
        for (file, text) in package.control {
            let mode = if matches!(*file, "postinst" | "prerm" | "postrm") { 0o755 } else { 0o644 };
            self.write(package.name, &format!("DEBIAN/{file}"), text.as_bytes(), mode)?;
        }
        if package.name == list::SHARED {
            self.write(package.name, "DEBIAN/shlibs", shlibs().as_bytes(), 0o644)?;
            self.symbols(&name, &tree)?;
        }
        let depends = if package.is_for_all { String::new() } else { self.dependencies(&tree)? };
        let in_tree = |words: &str| {
            let mut shell = Command::new("sh");
            library::run(shell.args(["-ec", words]).current_dir(&tree))
        };
        in_tree(
            "find . -type f ! -path './DEBIAN/*' -printf '%P\\0' | LC_ALL=C sort -z | xargs -0 md5sum > DEBIAN/md5sums",
        )?;
        in_tree("find . -type d -exec chmod 0755 {} +")?;
        // As dpkg-gencontrol counts: the size of a folder depends on the file system, so each counts as 1 KiB.
        let size = in_tree(
            "find . -path ./DEBIAN -prune -o -type f -printf '%s\\n' -o -printf '1\\n' | awk '{n += int(($1 + 1023) / 1024)} END {print n}'",
        )?;
        let size = size.trim();
        let architecture = if package.is_for_all { "all" } else { &self.architecture };
        let control = format!(
            "Package: {name}\nSource: hairspring\nVersion: {}\nArchitecture: {architecture}\nMaintainer: {MAINTAINER}\nInstalled-Size: {size}\n\
             Section: {}\nPriority: optional\nHomepage: {}\n{}Description: {}\n{}",
            version(),
            package.section,
            self.workspace.packages[0].repository,
            self.fields(package, &depends),
            package.synopsis,
            paragraphs(package.description),
        );
        self.write(package.name, "DEBIAN/control", control.as_bytes(), 0o644)?;
        let file = self.folder.join(format!("{name}_{}_{architecture}.deb", version()));
        let mut build = Command::new("dpkg-deb");
        // One thread: with more, the compressed bytes depend on the number of CPUs and on the memory.
        build.env("SOURCE_DATE_EPOCH", self.epoch.to_string());
        build.args(["--root-owner-group", "--threads-max=1", "-Zxz", "--build"]);
        library::run(build.arg(&tree).arg(&file))?;
        Ok(file)
    }

    fn fields(&self, package: &Package, depends: &str) -> String {
        let filled = numbered(package.fields).replace("@V@", &version()).replace("@D@", depends);
        filled.lines().filter(|line| !line.ends_with(": ")).map(|line| line.replace(": , ", ": ") + "\n").collect()
    }

    /// The file by which other packages find out which version of the library has the symbols that they use.
    fn symbols(&self, name: &str, tree: &Path) -> Result<(), String> {
        let work = self.work_folder()?;
        let output = format!("-O{}", tree.join("DEBIAN/symbols").display());
        let mut command = Command::new("dpkg-gensymbols");
        command.arg(format!("-p{name}")).arg(format!("-P{}", tree.display())).arg(format!("-v{}", library::version()));
        library::run(command.arg(output).current_dir(work)).map(drop)
    }

    /// A folder with the little that dpkg-dev wants to know of a source package.
    fn work_folder(&self) -> Result<PathBuf, String> {
        let work = self.folder.join("work");
        make_folder(Some(&work.join("debian")))?;
        let stanzas: String =
            list::names().iter().map(|name| format!("\nPackage: {name}\nArchitecture: any\n")).collect();
        let control = format!("Source: hairspring\nMaintainer: {MAINTAINER}\n{stanzas}");
        for (name, text) in [("control", control), ("shlibs.local", shlibs())] {
            fs::write(work.join("debian").join(name), text).map_err(|error| format!("write debian/{name}: {error}"))?;
        }
        Ok(work)
    }

    /// The libraries that the binaries of a tree need, as a field of the control file.
    fn dependencies(&self, tree: &Path) -> Result<String, String> {
        let mut find = Command::new("find");
        let listed = library::run(find.arg(tree).args(["-type", "f"]))?;
        let is_binary =
            |file: &&str| !file.ends_with(".a") && fs::read(file).is_ok_and(|bytes| bytes.starts_with(b"\x7fELF"));
        let binaries: Vec<&str> = listed.lines().filter(is_binary).collect();
        if binaries.is_empty() {
            return Ok(String::new());
        }
        let mut command = Command::new("dpkg-shlibdeps");
        command.arg("-O").arg("--ignore-missing-info").args(binaries.iter().map(|file| format!("-e{file}")));
        // Where the library itself is.
        let libraries = self.tree(list::SHARED).join("usr/lib");
        for folder in fs::read_dir(&libraries).into_iter().flatten().flatten() {
            command.arg(format!("-l{}", folder.path().display()));
        }
        let said = library::run(command.current_dir(self.work_folder()?))?;
        let found = said.lines().find_map(|line| line.strip_prefix("shlibs:Depends=")).unwrap_or_default();
        if found.is_empty() { Err(format!("find what {} depends on", tree.display())) } else { Ok(found.to_owned()) }
    }
}

/// Which package a program needs that is linked to the library.
fn shlibs() -> String {
    let (number, package) = (library::INTERFACE, numbered(list::SHARED));
    format!("libhairspring {number} {package} (>= {})\n", library::version())
}

fn make_folder(folder: Option<&Path>) -> Result<(), String> {
    let Some(folder) = folder else { return Ok(()) };
    fs::create_dir_all(folder).map_err(|error| format!("create {}: {error}", folder.display()))
}

/// Paragraphs as the long description has them, in lines of at most 78 characters.
fn paragraphs(texts: &[&str]) -> String {
    let mut lines = Vec::new();
    for text in texts {
        if !lines.is_empty() {
            lines.push(" .".to_owned());
        }
        let mut line = String::new();
        for word in text.split_whitespace() {
            if line.len() + word.len() > 76 {
                lines.push(std::mem::take(&mut line));
            }
            line += " ";
            line += word;
        }
        lines.push(line);
    }
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptions_are_broken_into_lines() {
        let text = paragraphs(&["one two", &"word ".repeat(40)]);
        assert!(text.starts_with(" one two\n .\n word") && text.lines().all(|line| line.len() <= 78), "{text}");
    }
}
