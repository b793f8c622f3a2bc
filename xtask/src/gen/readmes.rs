//! `README.md` of each crate, as a registry shows it: made from the crate's manifest and the beginning of its
//! documentation.
//!
//! The beginning is all text before the first heading, picture, table or example. Links to items become plain code,
//! because a registry cannot follow them.

use std::fs;

use crate::workspace::{Package, Workspace};

/// The file in a crate's folder.
pub(super) const NAME: &str = "README.md";

/// A page and its path from the root.
pub(super) struct Readme {
    pub(super) path: String,
    pub(super) text: String,
}

/// The pages of all crates that can be published.
pub(super) fn all(workspace: &Workspace) -> Result<Vec<Readme>, String> {
    workspace.packages.iter().filter(|package| package.is_published).map(|package| readme(workspace, package)).collect()
}

fn readme(workspace: &Workspace, package: &Package) -> Result<Readme, String> {
    let folder = workspace.root.join(&package.folder);
    let root = ["src/lib.rs", "src/main.rs"].map(|file| folder.join(file)).into_iter().find(|file| file.is_file());
    let root = root.ok_or_else(|| format!("find the root of {}", package.name))?;
    let source = fs::read_to_string(&root).map_err(|error| format!("read {}: {error}", root.display()))?;
    let about = beginning(&source);
    if about.is_empty() {
        return Err(format!("find the documentation of {} in {}", package.name, root.display()));
    }
    let repository = &package.repository;
    let text = format!(
        "# {}\n\n{about}\n\nThis crate is a part of [Hairspring]({repository}). All its crates have one version; a program usually depends on \
         `hairspring`,\nwhich re-exports the libraries. The documentation of the crate is its reference.\n\nLicensed under either of Apache License, \
         Version 2.0, or MIT license, at your option.\n",
        package.name,
    );
    Ok(Readme { path: format!("{}/{NAME}", package.folder), text })
}

/// The documentation of a crate, as far as it is plain text.
fn beginning(source: &str) -> String {
    let lines =
        source.lines().map_while(|line| line.strip_prefix("//!")).map(|line| line.strip_prefix(' ').unwrap_or(line));
    let plain: Vec<&str> =
        lines.take_while(|line| !["#", "```", "|", "*"].iter().any(|start| line.starts_with(start))).collect();
    without_links(plain.join("\n").trim())
}

/// A text in which ``[`Name`](target)`` and ``[`Name`]`` became `` `Name` ``.
fn without_links(text: &str) -> String {
    let (mut rest, mut plain) = (text, String::new());
    while let Some((before, after)) = rest.split_once("[`") {
        plain.push_str(before);
        let Some((name, behind)) = after.split_once("`]") else {
            plain.push_str("[`");
            rest = after;
            continue;
        };
        plain.extend(["`", name, "`"]);
        rest = match behind.strip_prefix('(').and_then(|target| target.split_once(')')) {
            Some((_, behind)) => behind,
            None => behind,
        };
    }
    plain + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_beginning_ends_before_the_first_heading_picture_or_example() {
        let check = |rest: &str| {
            let source = format!("//! One [`Noun`](fn@noun).\n//!\n//! Two.\n//!\n//! {rest}\n//! more\nuse x;\n");
            assert_eq!(beginning(&source), "One `Noun`.\n\nTwo.", "{rest}");
        };
        ["# Heading", "```text", "| a |", "* item"].into_iter().for_each(check);
        assert_eq!(beginning("use x;\n"), "");
    }

    #[test]
    fn links_become_code() {
        assert_eq!(without_links("a [`B`], [`c::D`](d) and [e](f)"), "a `B`, `c::D` and [e](f)");
    }
}
