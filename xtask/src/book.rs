//! `cargo xtask book`: builds the book of `docs/` into `target/book`, as a folder that a browser opens without a web
//! server.
//!
//! MkDocs builds it in strict mode: a page that the navigation lacks, a broken link or anchor, and a missing example
//! file are errors. The task also checks the links of the built pages, so that those of the theme, of included files
//! and in raw HTML count. It does not follow links to other sites. `cargo xtask test --setup --only book` installs
//! MkDocs, in the versions that `docs/requirements.txt` pins.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::process::Command;

use crate::r#gen;
use crate::test::needs::{self, Need};
use crate::workspace::Workspace;

/// The folder of the built book.
pub(crate) fn folder(workspace: &Workspace) -> PathBuf {
    workspace.target.join("book")
}

/// The program that builds it. The page of commands is written first, from this built command.
pub(crate) fn build(workspace: &Workspace, built: &Path) -> Result<Command, String> {
    r#gen::write_commands(workspace, built)?;
    let mut command = Command::new(needs::python(workspace));
    command.args(["-m", "mkdocs", "build", "--strict", "--clean", "--site-dir"]).arg(folder(workspace));
    // Silences the theme's announcement about its own future, which is not an error of a page.
    command.current_dir(&workspace.root).env("NO_MKDOCS_2_WARNING", "1").env("PYTHONDONTWRITEBYTECODE", "1");
    Ok(command)
}

/// Builds the book and prints its path.
pub(crate) fn run(workspace: &Workspace) -> Result<bool, String> {
    if let Some(missing) = Need::Book.missing(workspace) {
        return Err(format!("build the book: {missing}"));
    }
    let built = r#gen::build_command(workspace)?;
    let built = build(workspace, &built)?.status().map_err(|error| format!("run mkdocs: {error}"))?;
    if !built.success() {
        return Ok(false);
    }
    let lost = lost_links(&folder(workspace))?;
    lost.iter().for_each(|link| println!("leads nowhere  {link}"));
    println!("{}", folder(workspace).join("index.html").display());
    Ok(lost.is_empty())
}

/// The broken links, as `page: link`.
pub(crate) fn lost_links(site: &Path) -> Result<Vec<String>, String> {
    let mut pages = BTreeMap::new();
    let mut files = BTreeSet::new();
    collect(site, site, &mut pages, &mut files).map_err(|error| format!("read the built book: {error}"))?;
    let anchors: BTreeMap<&PathBuf, BTreeSet<&str>> = pages.iter().map(|(page, text)| (page, ids(text))).collect();
    let mut lost = Vec::new();
    let mut followed = 0_usize;
    for (page, text) in &pages {
        for link in links(text) {
            let (address, anchor) = link.split_once('#').unwrap_or((link, ""));
            let address = address.split('?').next().unwrap_or_default();
            let target = if address.is_empty() { page.clone() } else { resolve(page, address) };
            followed += 1;
            let target = if files.contains(&target) { target } else { target.join("index.html") };
            // The anchors of a page that was not built from Markdown are unknown.
            let there = anchors.get(&target).is_none_or(|known| anchor.is_empty() || known.contains(anchor));
            if !files.contains(&target) || !there {
                lost.push(format!("{}: {link}", page.display()));
            }
        }
    }
    if followed == 0 { Err("the built book has no links".to_owned()) } else { Ok(lost) }
}

/// All files below a folder, and the text of the pages among them, by their paths from the site's root.
fn collect(
    site: &Path,
    folder: &Path,
    pages: &mut BTreeMap<PathBuf, String>,
    files: &mut BTreeSet<PathBuf>,
) -> std::io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(site, &path, pages, files)?;
            continue;
        }
        let below = path.strip_prefix(site).unwrap_or(&path).to_owned();
        // The page for error 404 has links from the root of a web server.
        if path.extension().is_some_and(|ending| ending == "html") && below != Path::new("404.html") {
            pages.insert(below.clone(), fs::read_to_string(&path)?);
        }
        files.insert(below);
    }
    Ok(())
}

/// The links of a page within the site.
fn links(text: &str) -> impl Iterator<Item = &str> {
    let values = ["href=\"", "src=\""].into_iter().flat_map(|name| text.split(name).skip(1));
    let values = values.filter_map(|rest| rest.split('"').next());
    values.filter(|link| {
        let elsewhere = ["http:", "https:", "mailto:", "data:", "javascript:"];
        !link.is_empty() && !elsewhere.iter().any(|scheme| link.starts_with(scheme))
    })
}

/// The anchors of a page.
fn ids(text: &str) -> BTreeSet<&str> {
    let values = [" id=\"", " name=\""].into_iter().flat_map(|name| text.split(name).skip(1));
    values.filter_map(|rest| rest.split('"').next()).collect()
}

/// Resolves a relative address on a page.
fn resolve(page: &Path, address: &str) -> PathBuf {
    let mut path = page.parent().unwrap_or(Path::new("")).to_owned();
    for part in Path::new(address).components() {
        match part {
            Component::ParentDir => {
                path.pop();
            }
            Component::Normal(name) => path.push(name),
            _ => {}
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pages: &[(&str, &str)], lost: &[&str]) {
        let site = tempfile::tempdir().unwrap();
        for (page, text) in pages {
            let file = site.path().join(page);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
        assert_eq!(lost_links(site.path()).unwrap(), lost);
    }

    #[test]
    fn links_that_lead_nowhere_are_found() {
        let index = r##"<h1 id="top">x</h1><a href="#top">a</a><a href="c/delay.html#late">b</a><a href="c/">c</a>
            <a href="https://example.org/x">d</a><img src="a.svg">"##;
        let delay = r#"<p id="late"></p><a href="../index.html?x=1#top">up</a>"#;
        let sound = [("index.html", index), ("c/delay.html", delay), ("c/index.html", ""), ("a.svg", "")];
        check(&sound, &[]);
        check(&sound[..3], &["index.html: a.svg"]);
        check(&[sound[0], ("c/delay.html", ""), sound[2], sound[3]], &["index.html: c/delay.html#late"]);
        check(&[sound[0], sound[1], sound[3]], &["index.html: c/"]);
        check(&[("index.html", r##"<a href="#nowhere">a</a>"##)], &["index.html: #nowhere"]);
    }

    #[test]
    fn a_book_without_links_was_not_checked() {
        let site = tempfile::tempdir().unwrap();
        fs::write(site.path().join("index.html"), "<p>nothing</p>").unwrap();
        assert!(lost_links(site.path()).is_err_and(|why| why.contains("no links")));
    }
}
