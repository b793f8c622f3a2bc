//! Proof: each way to install in README.md works as written, from release builds, and its examples in C, Tcl and Python
//! run with the installed files.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use serde_json::{Map, json};

use crate::Verdict;

/// A way to install, and the use of it; `$T` is an empty folder. The last line of output reports a delay.
const WAYS: &[(&str, &str)] = &[
    ("cargo install", "cargo install --quiet --path crates/cli --root $T/root && $T/root/bin/hairspring delay 10us"),
    (
        "cargo xtask install",
        "cargo xtask install --prefix $T/prefix && $T/prefix/bin/hairspring sheet --quick --only callers.c --format json \
         --out $T/sheet.json && grep -q '\"figure\"' $T/sheet.json && $T/prefix/bin/hairspring delay 10us",
    ),
    (
        "C of README.md",
        "export PKG_CONFIG_PATH=$T/prefix/lib/pkgconfig && cc -o $T/c $T/readme.c $(pkg-config --cflags --libs hairspring) && \
         LD_LIBRARY_PATH=$T/prefix/lib $T/c",
    ),
    ("Tcl of README.md", "TCLLIBPATH=$T/prefix/lib tclsh $T/readme.tcl"),
    (
        "cargo xtask deb",
        "cargo xtask deb && for package in target/debian/*.deb; do dpkg-deb --extract $package $T/deb; done && \
         $T/deb/usr/bin/hairspring delay 10us",
    ),
    (
        "pip install, and Python of README.md",
        "python3 -m venv $T/venv && $T/venv/bin/pip install --quiet --disable-pip-version-check ./bindings/python && \
         $T/venv/bin/python $T/readme.py",
    ),
];

pub(crate) fn prove() -> Verdict {
    let mut figures = Map::new();
    let passed =
        tempfile::tempdir().map_err(|error| error.to_string()).and_then(|folder| all(folder.path(), &mut figures));
    if let Err(why) = &passed {
        figures.insert("defect".to_owned(), json!(why));
    }
    Verdict { passed: passed.is_ok(), figures }
}

/// Tries each way to install; returns how many seconds each took.
fn all(folder: &Path, figures: &mut Map<String, serde_json::Value>) -> Result<(), String> {
    let readme = fs::read_to_string("README.md").map_err(|error| format!("read README.md: {error}"))?;
    let shown =
        |language: &str| block(&readme, language).ok_or_else(|| format!("README.md shows nothing in {language}"));
    let c = format!("#include <hairspring.h>\n#include <stdio.h>\nint main(void)\n{{\n{}return 0;\n}}\n", shown("c")?);
    // The Python example of README.md prints two figures; the first is the lateness.
    let python = format!("{}print(\"late by\", report.late_ns)\n", shown("python")?);
    for (name, text) in [("readme.c", c), ("readme.tcl", shown("tcl")?.to_owned()), ("readme.py", python)] {
        fs::write(folder.join(name), text).map_err(|error| format!("write {name}: {error}"))?;
    }
    for (way, words) in WAYS {
        println!("{way}: {words}");
        let begun = Instant::now();
        let output = Command::new("sh").args(["-ec", words]).env("T", folder).output();
        let output = output.map_err(|error| format!("{way}: run sh: {error}"))?;
        let said = String::from_utf8_lossy(&output.stdout);
        println!("{said}");
        if !output.status.success() || !said.contains("late") {
            return Err(format!("{way}: {}: {said}{}", output.status, String::from_utf8_lossy(&output.stderr)));
        }
        figures.insert(format!("{way}, s"), json!(begun.elapsed().as_secs()));
    }
    Ok(())
}

/// The first fenced block that is marked so.
fn block<'t>(text: &'t str, language: &str) -> Option<&'t str> {
    let (_, rest) = text.split_once(&format!("\n```{language}\n"))?;
    rest.split_once("```").map(|(block, _)| block)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_block_in_the_language_is_shown() {
        let text = "a\n```console\n$ c\n```\n```c\nint n;\n```\n```tcl\nputs\n```\n";
        assert_eq!(
            (block(text, "c"), block(text, "tcl"), block(text, "rust")),
            (Some("int n;\n"), Some("puts\n"), None)
        );
    }
}
