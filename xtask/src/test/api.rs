//! Checks whether a path of the API exists, in the documentation built by rustdoc:
//! `target/doc/CRATE/…/struct.Name.html` and its anchors.
//!
//! Rustdoc resolves re-exports, methods of traits and generic functions, which a text search cannot.

use std::fs;
use std::path::Path;

/// Prefixes of an item's page.
const KINDS: [&str; 8] = ["struct", "enum", "trait", "fn", "macro", "constant", "type", "attr"];
/// Prefixes of the anchor of a part of an item.
const PARTS: [&str; 6] = ["method", "tymethod", "variant", "structfield", "associatedconstant", "associatedtype"];

/// Whether the documentation under `doc` has this path, such as `hairspring_time::Timebase::delay`.
pub(super) fn exists(doc: &Path, path: &str) -> bool {
    let parts: Vec<&str> = path.split("::").collect();
    let Some((last, before)) = parts.split_last() else { return false };
    let folder = before.iter().fold(doc.to_owned(), |folder, part| folder.join(part));
    if folder.join(last).join("index.html").is_file() || page(&folder, last).is_some() {
        return true;
    }
    // For a part of an item, the item is the path before it.
    let Some((item, modules)) = before.split_last() else { return false };
    let folder = modules.iter().fold(doc.to_owned(), |folder, part| folder.join(part));
    page(&folder, item).is_some_and(|text| PARTS.iter().any(|part| text.contains(&format!("id=\"{part}.{last}\""))))
}

/// The page of an item: in its module's folder or, for a re-export, where the module's page links to.
fn page(folder: &Path, name: &str) -> Option<String> {
    let read = |path: &Path| fs::read_to_string(path).ok();
    let own = KINDS.iter().find_map(|kind| read(&folder.join(format!("{kind}.{name}.html"))));
    own.or_else(|| {
        let module = read(&folder.join("index.html"))?;
        let links = module.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next());
        let mut found = links.filter(|link| link.ends_with(&format!(".{name}.html")));
        found.find_map(|link| read(&folder.join(link)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_modules_and_their_parts_are_found_and_nothing_else() {
        let doc = tempfile::tempdir().unwrap();
        let module = doc.path().join("clock/inner");
        fs::create_dir_all(&module).unwrap();
        fs::write(module.join("index.html"), "").unwrap();
        fs::write(module.join("fn.read.html"), "").unwrap();
        fs::write(doc.path().join("clock/struct.Timebase.html"), r#"<section id="method.delay">"#).unwrap();
        fs::write(module.join("enum.Face.html"), r#"<section id="variant.Round">"#).unwrap();
        fs::write(doc.path().join("clock/index.html"), r#"<a href="inner/enum.Face.html">Face</a>"#).unwrap();
        assert!(exists(doc.path(), "clock::Face") && exists(doc.path(), "clock::Face::Round"));
        assert!(!exists(doc.path(), "clock::Face::Square") && !exists(doc.path(), "clock::Fac"));
        let there = ["clock", "clock::inner", "clock::inner::read", "clock::Timebase", "clock::Timebase::delay"];
        assert!(there.iter().all(|path| exists(doc.path(), path)));
        let absent = ["clock::none", "clock::Timebase::now", "clock::read", "clock::inner::Timebase", "Timebase"];
        assert!(!absent.iter().any(|path| exists(doc.path(), path)));
    }
}
