//! The C headers as data: their constants, structures, handles and functions, each with the comment before it.
//!
//! It reads only the subset of C that cbindgen writes: one declaration after the other, each after its `//` lines.

use std::fs;
use std::path::Path;

use crate::library;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Constant,
    Handle,
    Structure,
    Function,
}

/// One declaration.
#[derive(Debug)]
pub(super) struct Item {
    pub(super) kind: Kind,
    pub(super) name: String,
    /// Its comment, as one paragraph.
    pub(super) text: String,
    /// The declaration itself.
    pub(super) code: String,
    /// The fields of a structure as declared, with their comments.
    pub(super) fields: Vec<(String, String)>,
}

/// All declarations of the headers, in order.
pub(super) fn read(root: &Path) -> Result<Vec<Item>, String> {
    let mut all = Vec::new();
    for header in [library::HEADER, library::EXEC_HEADER, library::TAP_HEADER] {
        let text = fs::read_to_string(root.join(header)).map_err(|error| format!("read {header}: {error}"))?;
        let items = parse(&text);
        if items.is_empty() {
            return Err(format!("find a declaration in {header}"));
        }
        all.extend(items);
    }
    Ok(all)
}

/// The functions that a header declares, by name, with their declarations.
pub(crate) fn functions(header: &str) -> Vec<(String, String)> {
    let functions = parse(header).into_iter().filter(|item| item.kind == Kind::Function);
    functions.map(|item| (item.name, item.code)).collect()
}

/// The structures that a header declares, by name, with their declarations.
pub(crate) fn structures(header: &str) -> Vec<(String, String)> {
    let structures = parse(header).into_iter().filter(|item| item.kind == Kind::Structure);
    structures.map(|item| (item.name, item.code)).collect()
}

/// Whether a structure begins with its size and has the fields of an earlier one, and more at its end.
pub(crate) fn grows_from(before: &str, now: &str) -> bool {
    let names = |code: &str| fields(code).into_iter().map(|(field, _)| field).collect::<Vec<_>>();
    let (before, now) = (names(before), names(now));
    before.first().is_some_and(|first| first == "size_t size") && now.len() > before.len() && now.starts_with(&before)
}

fn parse(header: &str) -> Vec<Item> {
    let mut items = Vec::new();
    let (mut comment, mut lines) = (String::new(), header.lines());
    while let Some(line) = lines.next() {
        if let Some(text) = line.strip_prefix("//") {
            join(&mut comment, text);
            continue;
        }
        let text = std::mem::take(&mut comment);
        if text.is_empty() {
            continue;
        }
        let mut code = line.to_owned();
        let opened = line.starts_with("typedef struct") && line.ends_with('{');
        let is_whole =
            |code: &str| if opened { code.contains("\n}") } else { code.starts_with("#define") || code.ends_with(';') };
        while !line.is_empty() && !is_whole(&code) {
            let Some(next) = lines.next() else { break };
            code = code + "\n" + next;
        }
        let (kind, name) = if let Some(rest) = line.strip_prefix("#define ") {
            (Kind::Constant, rest.split(' ').next().unwrap_or_default())
        } else if let Some(rest) = line.strip_prefix("typedef struct ") {
            let kind = if opened { Kind::Structure } else { Kind::Handle };
            (kind, rest.split(' ').next().unwrap_or_default())
        } else if let Some((before, _)) = line.split_once('(') {
            (Kind::Function, before.rsplit([' ', '*']).next().unwrap_or_default())
        } else {
            continue;
        };
        let fields = if opened { fields(&code) } else { Vec::new() };
        items.push(Item { kind, name: name.to_owned(), text, code: code.trim_end().to_owned(), fields });
    }
    items
}

fn fields(code: &str) -> Vec<(String, String)> {
    let (mut found, mut comment) = (Vec::new(), String::new());
    for line in code.lines().skip(1).map(str::trim) {
        if let Some(text) = line.strip_prefix("//") {
            join(&mut comment, text);
        } else if let Some(field) = line.strip_suffix(';').filter(|_| !line.starts_with('}')) {
            found.push((field.to_owned(), std::mem::take(&mut comment)));
        }
    }
    found
}

fn join(comment: &mut String, line: &str) {
    if !comment.is_empty() {
        comment.push(' ');
    }
    comment.push_str(line.trim());
}

/// A comment as Markdown: names of the library become code, so that no underscore is taken for emphasis.
pub(super) fn marked(text: &str) -> String {
    let words = text.split(' ').map(|word| {
        let bare = word.trim_matches(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
        let is_name = bare.starts_with("hs_") || bare.starts_with("HS_") || bare.contains('_');
        // Names in code, or in a pattern such as hs_long_delay_begin_*(), stay unchanged.
        let Some(at) = word.find(bare).filter(|_| is_name && !word.contains(['`', '*', '"'])) else {
            return word.replace('*', "\\*");
        };
        let call = if word[at + bare.len()..].starts_with("()") { "()" } else { "" };
        format!("{}`{bare}{call}`{}", &word[..at], &word[at + bare.len() + call.len()..])
    });
    words.collect::<Vec<_>>().join(" ").replace('|', "\\|").replace('<', "&lt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_structure_grows_at_its_end_only_and_only_if_it_begins_with_its_size() {
        let of = |fields: &str| format!("typedef struct hs_a {{\n{fields}}} hs_a;");
        let old = of("    // Old words.\n    size_t size;\n    int a;\n");
        assert!(grows_from(&old, &of("    size_t size;\n    // New words.\n    int a;\n    int b;\n")));
        for other in
            ["    size_t size;\n    int a;\n", "    size_t size;\n    int b;\n    int a;\n", "    size_t size;\n"]
        {
            assert!(!grows_from(&old, &of(other)), "{other}");
        }
        assert!(!grows_from(&of("    int a;\n"), &of("    int a;\n    int b;\n")));
    }

    const HEADER: &str = "// The header.\n\n#ifndef X\n// It went well.\n#define HS_OK 0\n\n// A clock.\ntypedef struct hs_clock hs_clock;\n\n\
        // What it\n// shows.\ntypedef struct hs_face {\n    // Hours.\n    int hours;\n    // The name.\n\
        \x20   const char *name;\n} hs_face;\n\n\
        // Reads `clock`. HS_E_NULL, or see hs_clock_free().\nint hs_clock_read(const struct hs_clock *clock,\n\
        \x20                 int *value);\n#endif\n";

    #[test]
    fn declarations_come_with_their_comments_and_fields() {
        let items = parse(HEADER);
        let found: Vec<_> = items.iter().map(|item| (item.kind, item.name.as_str())).collect();
        let expected = [Kind::Constant, Kind::Handle, Kind::Structure, Kind::Function];
        let names = ["HS_OK", "hs_clock", "hs_face", "hs_clock_read"];
        assert_eq!(found, expected.into_iter().zip(names).collect::<Vec<_>>());
        assert_eq!((items[2].text.as_str(), items[2].fields.len()), ("What it shows.", 2));
        assert_eq!(items[2].fields[1], ("const char *name".to_owned(), "The name.".to_owned()));
        assert!(items[3].code.ends_with("int *value);"));
    }

    #[test]
    fn names_become_code_and_stars_do_not_become_emphasis() {
        assert_eq!(
            marked("See hs_free(). HS_E_NULL, `a_b` and late_ns."),
            "See `hs_free()`. `HS_E_NULL`, `a_b` and `late_ns`."
        );
        assert_eq!(marked("With hs_begin_*() a < b | c"), "With hs_begin_\\*() a &lt; b \\| c");
    }
}
