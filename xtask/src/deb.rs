//! `cargo xtask deb`: a Debian package of what `cargo xtask install` installs, under `/usr`.
//!
//! Only dpkg-deb is needed to make it. The layout is that of the installation, and it depends on the C library of at least this
//! machine's version.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::install::{self, Parts};
use crate::library;
use crate::workspace::Workspace;

/// Where it is installed to.
pub(crate) const PREFIX: &str = "/usr";

/// Builds and packs, and prints the path of the package.
pub(crate) fn run(workspace: &Workspace) -> Result<bool, String> {
    let (command, archive) = install::build(workspace)?;
    let package = pack(workspace, command, archive, &workspace.target.join("debian"))?;
    println!("made       {}; `apt-get install {}` installs it", package.display(), package.display());
    Ok(true)
}

/// Packs the built files into a package in this folder, which is recreated.
pub(crate) fn pack(
    workspace: &Workspace,
    command: PathBuf,
    archive: PathBuf,
    folder: &Path,
) -> Result<PathBuf, String> {
    let _ = fs::remove_dir_all(folder);
    let root = folder.join("root");
    let parts = Parts { command: Some(command), archive, prefix: PREFIX.into(), destination: Some(root.clone()) };
    let installed = install::lay_out(workspace, &parts)?;
    let asked = |program: &str, arguments: &[&str]| {
        library::run(Command::new(program).args(arguments)).map(|said| said.trim().to_owned())
    };
    let architecture = asked("dpkg", &["--print-architecture"])?;
    let libc = asked("dpkg-query", &["-W", "-f", "${Version}", "libc6"])?;
    let libc = libc.split('-').next().unwrap_or(&libc);
    let mut bytes = 0;
    for file in &installed.files {
        bytes += fs::metadata(file).map_err(|error| format!("look at {}: {error}", file.display()))?.len();
    }
    let control = format!(
        "Package: hairspring\nVersion: {}\nArchitecture: {architecture}\nMaintainer: the authors of Hairspring <none@invalid>\n\
         Section: science\nPriority: optional\nInstalled-Size: {}\nDepends: libc6 (>= {libc}), libgcc-s1\nSuggests: tcl, python3\n\
         Description: exact delays, a calibrated time base, and timing data sheets\n \
         The command hairspring, libhairspring with its header, and the package for Tcl.\n",
        library::version(),
        bytes.div_ceil(1024),
    );
    let about = root.join("DEBIAN");
    fs::create_dir_all(&about).map_err(|error| format!("create {}: {error}", about.display()))?;
    // Makes the loader find the new library at once.
    for (name, text) in [("control", control.as_str()), ("triggers", "activate-noawait ldconfig\n")] {
        fs::write(about.join(name), text).map_err(|error| format!("write {name}: {error}"))?;
    }
    let package = folder.join(format!("hairspring_{}_{architecture}.deb", library::version()));
    library::run(Command::new("dpkg-deb").args(["--root-owner-group", "--build"]).arg(&root).arg(&package))?;
    Ok(package)
}
