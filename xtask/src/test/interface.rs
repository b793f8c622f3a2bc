//! Compares the interface of the C library with its earlier state, so that compiled programs keep working.
//!
//! `crates/c/tests/interface/1` has the headers and the list of symbols of the first version, and a program of it.
//! Headers say everything that a compiled program relies on, so they are the record. From the old headers and from the
//! new ones this task makes a library of empty functions, with debug information in terms of C. libabigail's `abidiff`
//! compares the two. (The library itself has no debug information, and Rust's would name other types.) `clients.rs`
//! checks that the installed library has the symbols of the new headers.
//!
//! What may change: new functions and constants are added, and a structure that begins with its size gets fields at its
//! end. This task removes such fields before it compares the libraries, so everything before them must have stayed. The
//! record gets a new folder when a version with new fields is released.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::needs::Need;
use crate::r#gen::header;
use crate::library;

/// Compares two libraries by their symbols and types.
pub(super) const ABIDIFF: Need = Need::Packaged("abidiff", "abigail-tools");

/// What was written by `cargo xtask gen` in its time, and stays as it is.
pub(crate) const RECORDS: &str = "crates/c/tests/interface/";

/// The record of the first version.
pub(super) const RECORD: &str = "crates/c/tests/interface/1";

const HEADERS: [&str; 3] = ["hairspring.h", "hairspring_exec.h", "hairspring_tap.h"];

/// Headers, and the list of symbols with their versions.
#[derive(Clone)]
pub(super) struct Interface {
    headers: [String; 3],
    map: String,
}

impl Interface {
    /// That of the record.
    pub(super) fn recorded(root: &Path) -> Result<Self, String> {
        Self::read(&root.join(RECORD), &root.join(RECORD).join("hairspring.map"))
    }

    /// That of today.
    pub(super) fn present(root: &Path) -> Result<Self, String> {
        Self::read(&root.join(library::FOLDER).join("include"), &root.join(library::MAP))
    }

    fn read(folder: &Path, map: &Path) -> Result<Self, String> {
        let read = |path: &Path| fs::read_to_string(path).map_err(|error| format!("read {}: {error}", path.display()));
        let mut headers = [const { String::new() }; 3];
        for (text, name) in headers.iter_mut().zip(HEADERS) {
            *text = read(&folder.join(name))?;
        }
        Ok(Self { headers, map: read(map)? })
    }

    /// The same with one text in place of another, which must be there.
    fn changed(&self, from: &str, to: &str) -> Result<Self, String> {
        let mut other = self.clone();
        other.headers = other.headers.map(|header| header.replacen(from, to, 1));
        if other.headers == self.headers { Err(format!("find {from} in the headers")) } else { Ok(other) }
    }

    /// The same without a function.
    fn without(&self, function: &str) -> Result<Self, String> {
        let all = self.headers.iter().flat_map(|header| header::functions(header));
        let code = all.into_iter().find(|(name, _)| name == function).ok_or_else(|| format!("find {function}"))?.1;
        self.changed(&code, "")
    }

    /// The same without the fields that growing structures have got at their ends since an earlier interface.
    fn as_grown_from(&self, earlier: &Self) -> Self {
        let mut other = self.clone();
        for (new, old) in other.headers.iter_mut().zip(&earlier.headers) {
            let old = header::structures(old);
            for (name, code) in header::structures(new) {
                if let Some((_, before)) = old.iter().find(|(known, _)| *known == name)
                    && header::grows_from(before, &code)
                {
                    *new = new.replacen(&code, before, 1);
                }
            }
        }
        other
    }

    /// A library of this interface whose functions do nothing, and the folder of its headers.
    pub(super) fn library(&self, folder: &Path) -> Result<PathBuf, String> {
        let _ = fs::remove_dir_all(folder);
        let write = |name: &str, text: &str| {
            let path = folder.join(name);
            fs::write(&path, text).map_err(|error| format!("write {}: {error}", path.display()))
        };
        fs::create_dir_all(folder).map_err(|error| format!("create {}: {error}", folder.display()))?;
        let mut source = String::new();
        for (name, header) in HEADERS.iter().zip(&self.headers) {
            write(name, header)?;
            let _ = writeln!(source, "#include \"{name}\"");
        }
        for (_, code) in self.headers.iter().flat_map(|header| header::functions(header)) {
            let _ = writeln!(source, "{} {{ __builtin_trap(); }}", code.trim_end_matches(';'));
        }
        write("empty.c", &source)?;
        write("hairspring.map", &self.map)?;
        let file = folder.join(library::soname());
        let mut command = library::compiler();
        command.args(["-std=c11", "-g", "-O0", "-fPIC", "-shared", "-w", "-I"]).arg(folder).arg("-o").arg(&file);
        command.arg(folder.join("empty.c")).arg(format!("-Wl,-soname,{}", library::soname()));
        command.arg(format!("-Wl,--version-script={}", folder.join("hairspring.map").display()));
        library::run(&mut command)?;
        Ok(file)
    }

    /// The constants: compiled programs have their values in them. Those of the version change.
    fn constants(&self) -> impl Iterator<Item = &str> {
        let lines = self.headers.iter().flat_map(|header| header.lines());
        lines.filter(|line| line.starts_with("#define HS_") && !line.starts_with("#define HS_VERSION_"))
    }
}

/// What a compiled program of the old interface would miss in the new one.
fn missed(old: &Interface, new: &Interface, folder: &Path) -> Result<Option<String>, String> {
    if let Some(gone) = old.constants().find(|line| new.constants().all(|other| other != *line)) {
        return Ok(Some(format!("gone or changed: {gone}")));
    }
    let (before, after) = (old.library(&folder.join("old"))?, new.as_grown_from(old).library(&folder.join("new"))?);
    let mut command = Command::new("abidiff");
    command.args(["--no-added-syms", "--no-show-locs"]).arg(&before).arg(&after);
    let ended = command.output().map_err(|error| format!("run abidiff: {error}"))?;
    let said = String::from_utf8_lossy(&ended.stdout).into_owned() + &String::from_utf8_lossy(&ended.stderr);
    // A set of bits: 1 an error, 2 wrong usage, 4 a change, 8 an incompatible one.
    match ended.status.code() {
        Some(0) => Ok(None),
        Some(code) if code & 3 == 0 => Ok(Some(said)),
        _ => Err(format!("abidiff: {}\n{said}", ended.status)),
    }
}

/// Nothing that a program of the record uses has gone or changed; and each kind of break would be found.
pub(super) fn holds(root: &Path, folder: &Path) -> Result<(), String> {
    let (old, new) = (Interface::recorded(root)?, Interface::present(root)?);
    if let Some(what) = missed(&old, &new, folder)? {
        return Err(format!("programs of the first version miss something:\n{what}"));
    }
    let grown =
        new.changed("    int64_t procedure_ran_away_ns;", "    int64_t procedure_ran_away_ns;\n    int64_t more;")?;
    if let Some(what) = missed(&old, &grown, folder)? {
        return Err(format!(
            "a field at the end of a structure that begins with its size was not let through:\n{what}"
        ));
    }
    let broken = [
        (
            "a field at the end of a structure without a size",
            new.changed("    uint64_t words[4];", "    uint64_t words[4];\n    uint64_t more;")?,
            "hs_exec_message",
        ),
        ("a function that is gone", new.without("hs_exec_wake")?, "hs_exec_wake"),
        ("a field that is wider", new.changed("    int32_t strict;", "    int64_t strict;")?, "hs_exec_finish"),
        (
            "a field that is new in the middle",
            new.changed("    int32_t backend;", "    int64_t more;\n    int32_t backend;")?,
            "hs_exec_options",
        ),
        (
            "an argument that is new",
            new.changed("int hs_exec_delay_ns(int64_t span_ns);", "int hs_exec_delay_ns(int64_t span_ns, int how);")?,
            "hs_exec_delay_ns",
        ),
        (
            "a constant with another value",
            new.changed("#define HS_E_STATE -26", "#define HS_E_STATE -27")?,
            "HS_E_STATE",
        ),
    ];
    for (label, broken, name) in broken {
        match missed(&old, &broken, folder)? {
            Some(what) if what.contains(name) => {}
            other => return Err(format!("{label} was not found: {}", other.unwrap_or_default())),
        }
    }
    Ok(())
}
