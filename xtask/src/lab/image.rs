//! The initial file system of the machine (initramfs): an archive in cpio's `newc` format, which the kernel unpacks
//! into memory.
//!
//! It holds BusyBox, the script that runs as init, the tests, the command, and the kernel's modules with their
//! dependencies, in loading order. Each module lists its own dependencies.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use super::kind::Kind;
use super::supplies::Supplies;

/// File types and permissions of cpio.
const FOLDER: u32 = 0o040_755;
const PROGRAM: u32 = 0o100_755;
const FILE: u32 = 0o100_644;

/// The archive.
pub(super) fn image(
    kind: Kind,
    supplies: &Supplies,
    programs: &[PathBuf],
    libraries: &BTreeSet<PathBuf>,
    init: &Path,
) -> Result<Vec<u8>, String> {
    let mut archive = Archive::default();
    for folder in ["bin", "lib", "lib64", "modules", "proc", "sys", "dev", "tmp", "mnt"] {
        archive.add(folder, FOLDER, &[]);
    }
    archive.add("bin/busybox", PROGRAM, &read(&supplies.busybox)?);
    for program in programs {
        let name = program.file_name().unwrap_or_default().to_string_lossy();
        archive.add(&name, PROGRAM, &read(program)?);
    }
    for library in libraries {
        // Programs name the path of the loader; the loader finds all other libraries here, in spite of their original
        // folders.
        let name = library.file_name().unwrap_or_default().to_string_lossy();
        let folder = if name.starts_with("ld-linux") { "lib64" } else { "lib" };
        archive.add(&format!("{folder}/{name}"), PROGRAM, &read(library)?);
    }
    for (place, file) in &supplies.others {
        archive.add(place, PROGRAM, &read(file)?);
    }
    archive.add("init", PROGRAM, &read(init)?);
    let files = module_files(&supplies.modules);
    let (mut list, mut added) = (String::new(), BTreeSet::new());
    for (name, parameters) in kind.modules() {
        add_module(name, parameters, &files, &mut archive, &mut list, &mut added)?;
    }
    archive.add("modules/list", FILE, list.as_bytes());
    // Their dependencies are built into the kernel or are listed too.
    for name in kind.modules_by_tests() {
        add_module(name, "", &files, &mut archive, &mut String::new(), &mut added)?;
    }
    Ok(archive.finish())
}

/// Adds a module after its dependencies.
fn add_module(
    name: &str,
    parameters: &str,
    files: &BTreeMap<String, PathBuf>,
    archive: &mut Archive,
    list: &mut String,
    added: &mut BTreeSet<String>,
) -> Result<(), String> {
    let name = name.replace('-', "_");
    if !added.insert(name.clone()) {
        return Ok(());
    }
    let file = files.get(&name).ok_or_else(|| format!("the kernel has no module {name}"))?;
    let module = read(file)?;
    for dependency in dependencies(&module) {
        add_module(&dependency, "", files, archive, list, added)?;
    }
    archive.add(&format!("modules/{name}.ko"), FILE, &module);
    list.push_str(format!("{name} {parameters}").trim_end());
    list.push('\n');
    Ok(())
}

/// All modules below a folder, by their names with underscores.
fn module_files(folder: &Path) -> BTreeMap<String, PathBuf> {
    let mut files = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                folders.push(path);
            } else if let Some(name) = path.file_name().and_then(|name| name.to_str()?.strip_suffix(".ko")) {
                files.insert(name.replace('-', "_"), path);
            }
        }
    }
    files
}

/// The dependencies of a module, from its section of `name=value` texts that end with a zero byte.
fn dependencies(module: &[u8]) -> Vec<String> {
    const KEY: &[u8] = b"\0depends=";
    let found = module.windows(KEY.len()).position(|window| window == KEY);
    let text = found.map_or(&[][..], |at| &module[at + KEY.len()..]);
    let text = text.split(|byte| *byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(text).split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    fs::read(path).map_err(|error| format!("read {}: {error}", path.display()))
}

/// An archive that is being written.
#[derive(Default)]
struct Archive {
    bytes: Vec<u8>,
    entries: u32,
}

impl Archive {
    /// Adds a file or folder. Each has its own inode number, or the kernel would treat them as hard links.
    fn add(&mut self, path: &str, mode: u32, contents: &[u8]) {
        self.entries += 1;
        let links = if mode & FOLDER == FOLDER { 2 } else { 1 };
        self.header(path, [self.entries, mode, 0, 0, links, 0, contents.len() as u32]);
        self.bytes.extend_from_slice(contents);
        self.pad();
    }

    /// Number, mode, owner, group, links, time, length; then the device's numbers, the length of the name, no checksum.
    fn header(&mut self, path: &str, fields: [u32; 7]) {
        self.bytes.extend_from_slice(b"070701");
        for field in fields.into_iter().chain([0, 0, 0, 0, path.len() as u32 + 1, 0]) {
            self.bytes.extend_from_slice(format!("{field:08x}").as_bytes());
        }
        self.bytes.extend_from_slice(path.as_bytes());
        self.bytes.push(0);
        self.pad();
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }

    fn finish(mut self) -> Vec<u8> {
        self.header("TRAILER!!!", [0, 0, 0, 0, 1, 0, 0]);
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_is_as_the_format_says() {
        let mut archive = Archive::default();
        archive.add("a", FILE, b"hello");
        let bytes = archive.finish();
        let text = String::from_utf8_lossy(&bytes);
        let header = "0707010000000100\
                      0081a40000000000\
                      0000000000000100\
                      0000000000000500\
                      0000000000000000\
                      0000000000000000\
                      00000200000000a\0";
        assert!(text.starts_with(header), "{text:?}");
        assert_eq!(&bytes[112..120], b"hello\0\0\0");
        assert!(text[120..].starts_with("070701") && text.contains("TRAILER!!!") && bytes.len().is_multiple_of(4));
    }

    #[test]
    fn modules_come_behind_what_they_depend_on_and_only_once() {
        let folder = tempfile::tempdir().unwrap();
        let deep = folder.path().join("kernel/drivers");
        fs::create_dir_all(&deep).unwrap();
        for (name, depends) in [("top-one", "middle,base"), ("middle", "base"), ("base", "")] {
            let text = format!("ELF\0license=GPL\0depends={depends}\0name={name}\0");
            fs::write(deep.join(format!("{name}.ko")), text).unwrap();
        }
        let files = module_files(folder.path());
        let (mut archive, mut list, mut added) = (Archive::default(), String::new(), BTreeSet::new());
        add_module("top_one", "size=3", &files, &mut archive, &mut list, &mut added).unwrap();
        assert_eq!(list, "base\nmiddle\ntop_one size=3\n");
        let missing = add_module("none", "", &files, &mut archive, &mut list, &mut added);
        assert!(missing.is_err_and(|why| why.contains("no module none")));
    }
}
