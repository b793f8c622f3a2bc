//! Files of the kernel that hold one setting each: finds them, reads and writes their values.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The most files that one pattern may name: CPUs, policies and disks of the largest machines.
const FILES_MAX: usize = 65_536;

/// The files that match a pattern, sorted. A component of the path may contain one `*`, which matches any text.
pub(crate) fn expand(root: &Path, pattern: &str) -> Vec<PathBuf> {
    let mut paths = vec![root.to_owned()];
    for part in pattern.split('/').filter(|part| !part.is_empty()) {
        paths = match part.split_once('*') {
            None => paths.into_iter().map(|path| path.join(part)).collect(),
            Some((before, after)) => paths
                .iter()
                .filter_map(|path| fs::read_dir(path).ok())
                .flatten()
                .take(FILES_MAX)
                .filter_map(|entry| {
                    let entry = entry.ok()?;
                    let middle = entry.file_name().to_str()?.strip_prefix(before)?.strip_suffix(after)?.len();
                    (middle > 0).then(|| entry.path())
                })
                .collect(),
        };
    }
    paths.retain(|path| path.is_file());
    paths.sort();
    paths
}

/// The value in a file. If the kernel lists all values with brackets around the one in force, returns that one.
pub(crate) fn read(path: &Path) -> io::Result<String> {
    let text = fs::read_to_string(path)?;
    let text = text.trim_end_matches('\n');
    // The preemption model has round brackets.
    let within = |[open, close]: [char; 2]| text.split_once(open)?.1.split_once(close).map(|(chosen, _)| chosen);
    Ok(within(['[', ']']).or_else(|| within(['(', ')'])).unwrap_or(text).to_owned())
}

/// Writes a value in one call to an existing file, as the kernel requires.
pub(crate) fn write(path: &Path, value: &str) -> io::Result<()> {
    use std::io::Write;
    // `truncate` has no effect on the kernel's files; in a test it makes an ordinary file hold only this value.
    let mut file = fs::OpenOptions::new().write(true).truncate(true).open(path)?;
    file.write_all(value.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_read_without_line_end_and_from_between_brackets() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("f");
        for (text, value) in [
            ("950000\n", "950000"),
            ("always [madvise] never\n", "madvise"),
            ("", ""),
            ("a b\n", "a b"),
            ("none voluntary (full)\n", "full"),
        ] {
            fs::write(&file, text).expect("written");
            assert_eq!(read(&file).expect("readable"), value);
        }
    }

    #[test]
    fn a_pattern_names_each_file_that_there_is() {
        let root = tempfile::tempdir().expect("a folder");
        for name in ["policy0", "policy12", "policy", "other"] {
            fs::create_dir_all(root.path().join("cpufreq").join(name)).expect("made");
        }
        for name in ["policy0", "policy12", "policy"] {
            fs::write(root.path().join("cpufreq").join(name).join("governor"), "x").expect("written");
        }
        let names = |pattern: &str| -> Vec<String> {
            let paths = expand(root.path(), pattern).into_iter();
            paths.map(|path| path.strip_prefix(root.path()).expect("under it").display().to_string()).collect()
        };
        assert_eq!(names("/cpufreq/policy*/governor"), ["cpufreq/policy0/governor", "cpufreq/policy12/governor"]);
        assert_eq!(names("/cpufreq/policy12/governor"), ["cpufreq/policy12/governor"]);
        assert_eq!(names("/cpu*/policy*2/governor"), ["cpufreq/policy12/governor"], "two parts with a star");
        assert!(names("/nothing/*/x").is_empty());
        assert!(names("/cpufreq/policy0").is_empty(), "a folder holds no value");
    }
}
