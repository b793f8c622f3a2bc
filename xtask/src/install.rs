//! `cargo xtask install`: command, library, header, files for pkg-config and CMake, manual pages, completions, Tcl
//! package, under one prefix.
//!
//! The task first builds everything in release mode. It replaces existing files atomically, so that a running program
//! keeps the old one. `DESTDIR` in the environment precedes every path that is written to, but no path inside a file;
//! packagers need that. Parts whose tools this machine lacks are left out and named.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::r#gen;
use crate::library;
use crate::workspace::Workspace;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Where to install; the parts go to bin, include, lib, libexec and share below it
    #[arg(long, value_name = "DIR", default_value = "/usr/local")]
    prefix: PathBuf,
}

/// Sources and destination of an installation.
pub(crate) struct Parts {
    /// The built command; none to install only the libraries.
    pub(crate) command: Option<PathBuf>,
    /// The built static library.
    pub(crate) archive: PathBuf,
    /// The prefix that programs use at run time.
    pub(crate) prefix: PathBuf,
    /// The folder before the prefix while installing.
    pub(crate) destination: Option<PathBuf>,
    pub(crate) layout: Layout,
}

/// Folders below the prefix, and how programs find the library.
pub(crate) struct Layout {
    /// Libraries, pkg-config and CMake files.
    pub(crate) libraries: String,
    /// The folder that holds the folder of the Tcl package.
    pub(crate) tcl: String,
    /// Whether programs search the library beside themselves; not if the loader knows its folder.
    pub(crate) searches_beside: bool,
}

impl Default for Layout {
    fn default() -> Self {
        Layout { libraries: "lib".to_owned(), tcl: "lib".to_owned(), searches_beside: true }
    }
}

/// The installed files, and the parts that were left out.
#[derive(Default)]
pub(crate) struct Installed {
    pub(crate) files: Vec<PathBuf>,
    pub(crate) left_out: Vec<String>,
}

/// Builds and installs, and lists the files.
pub(crate) fn run(workspace: &Workspace, arguments: &Arguments) -> Result<bool, String> {
    let prefix = std::path::absolute(&arguments.prefix).map_err(|error| format!("find the prefix: {error}"))?;
    let (command, archive) = build(workspace)?;
    let parts = Parts {
        command: Some(command),
        archive,
        prefix,
        destination: std::env::var_os("DESTDIR").filter(|folder| !folder.is_empty()).map(PathBuf::from),
        layout: Layout::default(),
    };
    let installed = lay_out(workspace, &parts)?;
    for file in &installed.files {
        println!("installed  {}", file.display());
    }
    for part in &installed.left_out {
        println!("left out   {part}");
    }
    println!(
        "{} files under {}; {} parts left out",
        installed.files.len(),
        parts.prefix.display(),
        installed.left_out.len()
    );
    Ok(true)
}

/// Builds the command and the static library in release mode.
pub(crate) fn build(workspace: &Workspace) -> Result<(PathBuf, PathBuf), String> {
    for build in [
        &["build", "--release", "-p", "hairspring-cli"][..],
        // Without the dynamic library of `cargo build`, which would be optimised a second time.
        &["rustc", "--release", "-p", "hairspring-c", "--crate-type", "staticlib"],
    ] {
        let status = workspace.cargo(build).status();
        if !status.is_ok_and(|status| status.success()) {
            return Err(format!("build: cargo {}", build.join(" ")));
        }
    }
    Ok((workspace.release_binary("hairspring"), workspace.release_binary("libhairspring.a")))
}

/// Installs all parts.
pub(crate) fn lay_out(workspace: &Workspace, parts: &Parts) -> Result<Installed, String> {
    let mut site = Site { workspace, parts, installed: Installed::default() };
    if let Some(command) = &parts.command {
        site.copy(command, "bin/hairspring", 0o755)?;
        for paper in r#gen::papers(workspace, command)? {
            site.write(&paper.text, &paper.below, 0o644)?;
        }
    }
    let libraries = parts.layout.libraries.as_str();
    site.copy(&parts.archive, &format!("{libraries}/libhairspring.a"), 0o644)?;
    let folder = site.folder(libraries)?;
    let linked = library::link_shared(workspace, &parts.archive, &folder)?;
    site.installed.files.extend(linked);
    site.copy(&workspace.root.join(library::HEADER), "include/hairspring.h", 0o644)?;
    site.copy(&workspace.root.join(library::EXEC_HEADER), "include/hairspring_exec.h", 0o644)?;
    site.copy(&workspace.root.join(library::TAP_HEADER), "include/hairspring_tap.h", 0o644)?;
    let description = site.filled_in("crates/c/hairspring.pc.in")?;
    site.write(description.as_bytes(), &format!("{libraries}/pkgconfig/hairspring.pc"), 0o644)?;
    for name in ["hairspringConfig.cmake", "hairspringConfigVersion.cmake"] {
        let text = site.filled_in(&format!("crates/c/cmake/{name}.in"))?;
        site.write(text.as_bytes(), &format!("{libraries}/cmake/hairspring/{name}"), 0o644)?;
    }
    site.callers()?;
    site.tcl()?;
    Ok(site.installed)
}

/// The destination.
struct Site<'a> {
    workspace: &'a Workspace,
    parts: &'a Parts,
    installed: Installed,
}

impl Site<'_> {
    /// The path to write to for a path below the prefix.
    fn path(&self, below: &str) -> PathBuf {
        let path = self.parts.prefix.join(below);
        match &self.parts.destination {
            Some(destination) => destination.join(path.strip_prefix("/").unwrap_or(&path)),
            None => path,
        }
    }

    fn folder(&self, below: &str) -> Result<PathBuf, String> {
        let folder = self.path(below);
        fs::create_dir_all(&folder).map_err(|error| format!("create {}: {error}", folder.display()))?;
        Ok(folder)
    }

    /// Writes a temporary file and renames it, so that no program sees half a file or a change of the file that it
    /// uses.
    fn write(&mut self, bytes: &[u8], below: &str, mode: u32) -> Result<(), String> {
        let (folder, _) = below.rsplit_once('/').unwrap_or(("", below));
        self.folder(folder)?;
        let file = self.path(below);
        let beside = file.with_extension("new");
        let failed = |error| format!("write {}: {error}", file.display());
        fs::write(&beside, bytes).map_err(failed)?;
        fs::set_permissions(&beside, fs::Permissions::from_mode(mode)).map_err(failed)?;
        fs::rename(&beside, &file).map_err(failed)?;
        self.installed.files.push(file);
        Ok(())
    }

    fn copy(&mut self, from: &Path, below: &str, mode: u32) -> Result<(), String> {
        let bytes = fs::read(from).map_err(|error| format!("read {}: {error}", from.display()))?;
        self.write(&bytes, below, mode)
    }

    /// A file with its prefix and version filled in.
    fn filled_in(&self, from: &str) -> Result<String, String> {
        let text =
            fs::read_to_string(self.workspace.root.join(from)).map_err(|error| format!("read {from}: {error}"))?;
        let (prefix, libraries) = (self.parts.prefix.to_string_lossy(), self.parts.layout.libraries.as_str());
        // From the folder of the CMake files, which lies two below the libraries, up to the prefix.
        let up = vec![".."; libraries.split('/').count() + 2].join("/");
        let filled = [
            ("@PREFIX@", &*prefix),
            ("@VERSION@", library::version()),
            ("@LIBRARIES@", libraries),
            ("@UP@", &up),
            ("@SONAME@", &library::soname()),
        ];
        Ok(filled.into_iter().fold(text, |text, (name, value)| text.replace(name, value)))
    }

    /// A C compiler that finds the header and library here and makes programs that find the library under the prefix.
    fn compiler(&self, from_there: &str) -> Command {
        let mut compiler = library::compiler();
        compiler.args(["-std=c11", "-O2", "-Wall", "-Wextra", "-Werror"]);
        let layout = &self.parts.layout;
        compiler.arg(format!("-I{}", self.path("include").display()));
        compiler.arg(format!("-L{}", self.path(&layout.libraries).display()));
        // No path of this build in the file.
        compiler.arg(format!("-ffile-prefix-map={}=.", self.workspace.root.display()));
        if layout.searches_beside {
            compiler.arg(format!("-Wl,-rpath,$ORIGIN/{from_there}"));
        }
        compiler
    }

    /// The programs that measure what calls cost.
    fn callers(&mut self) -> Result<(), String> {
        let program = self.folder("libexec/hairspring")?.join("callers-c");
        let source = self.workspace.root.join("crates/suite/callers/callers.c");
        library::run(self.compiler("../../lib").arg("-o").arg(&program).arg(source).arg("-lhairspring"))?;
        self.installed.files.push(program);
        self.copy(
            &self.workspace.root.join("crates/suite/callers/callers.tcl"),
            "libexec/hairspring/callers.tcl",
            0o644,
        )
    }

    /// The Tcl package, if the tools to compile an extension are installed.
    fn tcl(&mut self) -> Result<(), String> {
        let ask = |what: &[&str]| library::run(Command::new("pkg-config").args(what).arg("tcl"));
        let (Ok(flags), Ok(version)) = (ask(&["--cflags", "--libs"]), ask(&["--modversion"])) else {
            let remedy = "install tcl-dev and pkg-config (Debian: apt-get install tcl-dev pkg-config)";
            self.installed.left_out.push(format!("the Tcl package: pkg-config knows no tcl; {remedy}"));
            return Ok(());
        };
        let below = format!("{}/hairspring{}", self.parts.layout.tcl, library::version());
        let package = self.folder(&below)?.join("libtclhairspring.so");
        let mut compiler = self.compiler("..");
        compiler.args(["-shared", "-fPIC", "-o"]).arg(&package);
        compiler.arg(self.workspace.root.join("bindings/tcl/hairspring.c")).arg("-lhairspring");
        // Of Tcl only the stubs are needed, so that the package suits every 8.x from 8.6 on, or every 9.x: these two
        // have different ones.
        compiler.args(["-pthread", "-Wl,-z,defs", "-Wl,--as-needed"]).args(flags.split_whitespace());
        library::run(&mut compiler)?;
        self.installed.files.push(package);
        let index = self.filled_in("bindings/tcl/pkgIndex.tcl.in")?.replace("@TCL@", oldest_tcl(&version));
        self.write(index.as_bytes(), &format!("{below}/pkgIndex.tcl"), 0o644)
    }
}

/// The oldest Tcl that can load a package built with this version; newer ones of the same major version can, too.
fn oldest_tcl(version: &str) -> &str {
    match version.trim().split('.').next().unwrap_or_default() {
        "8" => "8.6",
        major => major,
    }
}
