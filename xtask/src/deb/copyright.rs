//! `debian/copyright` in the machine-readable form (DEP-5), with every crate of others that the binaries contain.

use std::collections::BTreeSet;
use std::fmt::Write;

use crate::components::Component;

const FORMAT: &str = "https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/";

/// Licences whose text each Debian system has.
const COMMON: [(&str, &str); 4] =
    [("Apache-2.0", "Apache-2.0"), ("CC0-1.0", "CC0-1.0"), ("LGPL-2.1-or-later", "LGPL-2.1"), ("MPL-2.0", "MPL-2.0")];

/// Other licences, and words that only their text has.
const BY_TEXT: [(&str, &str); 8] = [
    ("MIT", "Permission is hereby granted, free of charge"),
    ("BSD-3-Clause", "endorse or promote products"),
    ("BSD-2-Clause", "Redistributions of source code must retain the above copyright notice"),
    ("Zlib", "This software is provided 'as-is'"),
    ("Unlicense", "This is free and unencumbered software"),
    ("Unicode-3.0", "UNICODE LICENSE V3"),
    ("ISC", "Permission to use, copy, modify, and/or distribute this software"),
    ("BSL-1.0", "Boost Software License"),
];

/// The file's text.
pub(super) fn write(components: &[Component], repository: &str) -> Result<String, String> {
    let mut text = format!(
        "Format: {FORMAT}\nUpstream-Name: Hairspring\nSource: {repository}\n\n\
         Files: *\nCopyright: the authors of Hairspring\nLicense: MIT or Apache-2.0\n"
    );
    let mut licences: BTreeSet<String> = ["MIT", "Apache-2.0"].map(str::to_owned).into();
    for component in components.iter().filter(|component| component.is_foreign) {
        let _ = write!(
            text,
            "\nFiles: vendor/{}-{}/*\nCopyright: {}\nLicense: {}\n",
            component.name,
            component.version,
            component.holders.join("\n "),
            field(&component.licence)
        );
        licences.extend(parts(&component.licence));
    }
    for licence in licences {
        let _ = write!(text, "\nLicense: {licence}\n{}", body(&licence, components)?);
    }
    Ok(text)
}

/// An SPDX expression as the field has it.
fn field(expression: &str) -> String {
    let listed = expression.replace(['(', ')'], "").replace(" AND ", ", and ").replace(" OR ", " or ");
    listed.replace(" WITH LLVM-exception", " with LLVM exception")
}

/// The licences that an expression names.
fn parts(expression: &str) -> Vec<String> {
    let bare = expression.replace(['(', ')'], "").replace(" AND ", " OR ");
    bare.split(" OR ").map(|part| part.split(" WITH ").next().unwrap_or(part).trim().to_owned()).collect()
}

fn body(licence: &str, components: &[Component]) -> Result<String, String> {
    if let Some((_, file)) = COMMON.iter().find(|(name, _)| *name == licence) {
        return Ok(format!(" On Debian systems the text is in /usr/share/common-licenses/{file}.\n"));
    }
    let (_, words) = BY_TEXT
        .iter()
        .find(|(name, _)| *name == licence)
        .ok_or_else(|| format!("find the text of the licence {licence}; see xtask/src/deb/copyright.rs"))?;
    let named = components.iter().filter(|component| parts(&component.licence).iter().any(|part| part == licence));
    // Of the files with these words the shortest: it has no other licence in it.
    let texts = named.flat_map(|component| &component.texts).filter(|text| text.contains(words));
    let text = texts.min_by_key(|text| text.len()).ok_or_else(|| format!("find a crate with the text of {licence}"))?;
    let lines = text.lines().filter(|line| !line.starts_with("Copyright"));
    Ok(lines
        .map(|line| if line.trim().is_empty() { " .\n".to_owned() } else { format!(" {}\n", line.trim_end()) })
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_become_fields_and_parts() {
        let both = "(MIT OR Apache-2.0) AND Unicode-3.0";
        assert_eq!(field(both), "MIT or Apache-2.0, and Unicode-3.0");
        assert_eq!(parts(both), ["MIT", "Apache-2.0", "Unicode-3.0"]);
        assert_eq!(parts("Apache-2.0 WITH LLVM-exception OR MIT"), ["Apache-2.0", "MIT"]);
    }

    #[test]
    fn an_unknown_licence_is_refused() {
        assert!(body("Fancy-1.0", &[]).is_err_and(|why| why.contains("Fancy-1.0")));
        assert!(body("Apache-2.0", &[]).is_ok());
    }
}
