//! `cargo xtask deb`: Debian packages of what `cargo xtask install` installs, split as Debian's policy asks.
//!
//! | package | what it holds |
//! |---|---|
//! | `hairspring` | the command, its manual, completions, the programs that measure calls |
//! | `libhairspringN` | the shared library; N is the number in its SONAME |
//! | `libhairspring-dev` | headers, static library, files for pkg-config and CMake |
//! | `python3-hairspring` | the Python package |
//! | `tcl-hairspring` | the Tcl package |
//! | `hairspring-doc` | the book |
//! | `hairspring-realtime` | rights for a group, and the service of a station |
//!
//! It needs dpkg-dev, and for the Python package and the book what `cargo xtask test --setup --only debian` installs. A
//! package whose tools are missing is left out and named. Dependencies come from the symbols that the programs use, not
//! from this machine's versions. The same sources make the same packages, byte for byte: all files carry the time of
//! the last commit, or `SOURCE_DATE_EPOCH`.

mod copyright;
mod list;
mod staging;

use std::fs;
use std::path::{Path, PathBuf};

use crate::install::{self, Layout, Parts};
use crate::test::needs::Need;
use crate::workspace::Workspace;
use crate::{book, library, wheel};
use list::PACKAGES;
pub(crate) use list::names;
use staging::Staging;

/// Where it is installed to.
pub(crate) const PREFIX: &str = "/usr";
/// The revision of the packaging.
const REVISION: u32 = 1;

/// What the packages are made from.
pub(crate) struct Ingredients {
    /// The built command.
    pub(crate) command: PathBuf,
    /// The built static library.
    pub(crate) archive: PathBuf,
    /// The built wheel, or why there is none.
    pub(crate) wheel: Result<PathBuf, String>,
    /// The folder of the built book, or why there is none.
    pub(crate) book: Result<PathBuf, String>,
}

/// The packages that were made, and those that were left out, with the reason.
pub(crate) struct Packed {
    pub(crate) files: Vec<PathBuf>,
    pub(crate) left_out: Vec<String>,
}

/// Builds and packs, and prints the paths of the packages.
pub(crate) fn run(workspace: &Workspace) -> Result<bool, String> {
    let (command, archive) = install::build(workspace)?;
    let wheel = wheel::build_native(workspace, &workspace.scratch("wheel-debian"));
    let book = match Need::Book.missing(workspace) {
        Some(missing) => Err(missing.to_string()),
        None => book::build(workspace, &command)
            .and_then(|mut build| library::run(&mut build))
            .map(|_| book::folder(workspace)),
    };
    let ingredients = Ingredients { command, archive, wheel, book };
    let packed = pack(workspace, &ingredients, &workspace.target.join("debian"))?;
    for package in &packed.files {
        println!("made       {}", package.display());
    }
    for package in &packed.left_out {
        println!("left out   {package}");
    }
    println!("`apt-get install ./FILE.deb …` installs them");
    Ok(true)
}

/// Version and revision.
pub(crate) fn version() -> String {
    format!("{}-{REVISION}", library::version())
}

/// Packs everything into this folder, which is made anew.
pub(crate) fn pack(workspace: &Workspace, ingredients: &Ingredients, folder: &Path) -> Result<Packed, String> {
    let _ = fs::remove_dir_all(folder);
    let architecture = staging::asked("dpkg-architecture", &["-qDEB_HOST_ARCH"])?;
    let triplet = staging::asked("dpkg-architecture", &["-qDEB_HOST_MULTIARCH"])?;
    let root = folder.join("root");
    let parts = Parts {
        command: Some(ingredients.command.clone()),
        archive: ingredients.archive.clone(),
        prefix: PREFIX.into(),
        destination: Some(root.clone()),
        layout: Layout {
            libraries: format!("lib/{triplet}"),
            tcl: format!("lib/tcltk/{triplet}"),
            searches_beside: false,
        },
    };
    let installed = install::lay_out(workspace, &parts)?;
    let staging = Staging::new(workspace, folder, architecture)?;
    let inside = root.join(PREFIX.trim_start_matches('/'));
    for file in &installed.files {
        let below = file.strip_prefix(&inside).map_err(|error| format!("find {}: {error}", file.display()))?;
        let below = below.to_string_lossy();
        staging.take(file, list::owner(&below)?, &format!("usr/{below}"))?;
    }
    let mut left_out = installed.left_out;
    match &ingredients.wheel {
        Ok(wheel) => staging.python(wheel)?,
        Err(why) => left_out.push(format!("python3-hairspring: {why}")),
    }
    match &ingredients.book {
        Ok(book) => staging.book(book)?,
        Err(why) => left_out.push(format!("hairspring-doc: {why}")),
    }
    staging.realtime()?;
    staging.strip()?;
    let mut files = Vec::new();
    for package in PACKAGES.iter().filter(|package| staging.has(package)) {
        files.push(staging.close(package)?);
    }
    Ok(Packed { files, left_out })
}
