//! `bindings/vba/Hairspring.bas` against `hairspring.h` and the exports of the DLL.
//!
//! VBA does not check its declarations; a wrong `Declare` crashes the user's workbook. So each is compared with the
//! header: the function's name, its arguments' names, number and types, its result, and which results may be NULL; each
//! `Type` with the structure of the same name, member by member; each constant with its value. Everything in the header
//! must be declared, and everything declared must be exported.

use std::collections::BTreeMap;

use super::{HEADER, OBJDUMP, Place};
use crate::tally::Tally;

const MODULE: &str = "bindings/vba/Hairspring.bas";
const LIBRARY: &str = "hairspring";
/// The least 64-bit number, which VBA cannot write in decimal digits.
const LEAST: &str = "INT64_MIN";
const LEAST_IN_VBA: &str = "&H8000000000000000^";

pub(super) fn check(place: &Place, name: &str) -> Tally {
    let root = &place.context.workspace.root;
    let read = |path: &str| std::fs::read_to_string(root.join(path)).map_err(|error| format!("read {path}: {error}"));
    let (header, module) = match (read(HEADER), read(MODULE)) {
        (Ok(header), Ok(module)) => (header, module),
        (Err(why), _) | (_, Err(why)) => return Tally::fail(name, why, ""),
    };
    let mut dump = std::process::Command::new(OBJDUMP);
    dump.arg("-p").arg(place.programs.join("hairspring.dll"));
    let dumped = place.context.run("windows exports", &mut dump);
    if !dumped.succeeded() {
        return Tally::fail(name, format!("{OBJDUMP}: {}", dumped.how), dumped.tail());
    }
    let faults = faults(&Header::read(&header), &module, &exports(&dumped.output));
    if faults.is_empty() { Tally::pass() } else { Tally::fail(&format!("{name}: {MODULE}"), faults.join("; "), "") }
}

/// All differences, in words.
fn faults(header: &Header, module: &str, exports: &[String]) -> Vec<String> {
    let mut faults = Vec::new();
    if !module.is_ascii() || module.lines().count() != module.matches("\r\n").count() {
        faults.push("the VBA editor reads ASCII with lines that end in CR LF only".to_owned());
    }
    let module = Module::read(module);
    for (function, declared) in &module.functions {
        match header.functions.get(function) {
            None => faults.push(format!("the header has no {function}")),
            Some(expected) => faults.extend(expected.compare(function, declared, header)),
        }
    }
    for function in header.functions.keys() {
        if !module.functions.contains_key(function) {
            faults.push(format!("{function} is not declared"));
        }
        if !exports.contains(function) {
            faults.push(format!("the DLL does not export {function}"));
        }
    }
    for (name, members) in &module.types {
        match header.structures.get(name) {
            Some(fields) if fields.len() != members.len() => {
                faults.push(format!("{name} has {} members instead of {}", members.len(), fields.len()));
            }
            Some(fields) => {
                let wrong = fields.iter().zip(members).filter(|((field, kind), (member, declared))| {
                    !member.eq_ignore_ascii_case(field) || member_kind(kind) != *declared
                });
                faults.extend(wrong.map(|((field, _), (member, _))| format!("{name}: {member} is not {field}")));
            }
            None => faults.push(format!("the header has no structure {name}")),
        }
    }
    for name in header.structures.keys().filter(|name| !module.types.contains_key(*name)) {
        faults.push(format!("{name} is not declared"));
    }
    let values = header.constants.iter().filter(|(name, value)| module.constants.get(*name) != Some(value));
    faults.extend(values.map(|(name, value)| format!("{name} is not {value}")));
    faults
}

/// The names in the DLL's table of exports, as objdump lists them.
fn exports(dump: &str) -> Vec<String> {
    let table = dump.lines().skip_while(|line| !line.contains("[Ordinal/Name Pointer] Table")).skip(1);
    let entries = table.take_while(|line| line.trim_start().starts_with('['));
    entries.filter_map(|line| line.split_whitespace().last()).map(str::to_owned).collect()
}

/// A function of the header: its result and its parameters, with their C types.
struct Function {
    result: String,
    parameters: Vec<(String, String)>,
    /// The comment before it.
    comment: String,
}

impl Function {
    /// Whether a result may be NULL: always for `report`, for others if the comment says so.
    fn may_be_null(&self, argument: &str) -> bool {
        argument == "report" || self.comment.contains(&format!("`{argument}` may be NULL"))
    }

    fn compare(&self, name: &str, declared: &Declared, header: &Header) -> Vec<String> {
        let mut faults = Vec::new();
        if result(&self.result) != Some(declared.result.as_str()) {
            faults.push(format!("{name} yields {}, not {}", self.result, declared.result));
        }
        if self.parameters.len() != declared.parameters.len() {
            let (there, here) = (self.parameters.len(), declared.parameters.len());
            faults.push(format!("{name} has {there} arguments, not {here}"));
        }
        for ((argument, kind), (own, passed)) in self.parameters.iter().zip(&declared.parameters) {
            if !argument.eq_ignore_ascii_case(own) {
                faults.push(format!("{name}: {own} is called {argument}"));
            }
            if !header.passed(kind).iter().any(|allowed| allowed == passed) {
                faults.push(format!("{name}: {argument} is {kind}, not {passed}"));
            } else if (passed == "ByRef Any") != self.may_be_null(argument) {
                let not = if passed == "ByRef Any" { "must not" } else { "may" };
                faults.push(format!("{name}: {argument} {not} be NULL, and is {passed}"));
            }
        }
        faults
    }
}

#[derive(Default)]
struct Header {
    functions: BTreeMap<String, Function>,
    structures: BTreeMap<String, Vec<(String, String)>>,
    constants: BTreeMap<String, String>,
}

impl Header {
    fn read(text: &str) -> Header {
        let mut header = Header::default();
        let bare: Vec<&str> = text.lines().map(|line| line.split("//").next().unwrap_or(line)).collect();
        for line in &bare {
            let mut words = line.split_whitespace();
            if let (Some("#define"), Some(name), Some(value)) = (words.next(), words.next(), words.next())
                && (value.parse::<i64>().is_ok() || value == LEAST)
            {
                header.constants.insert(name.to_owned(), value.to_owned());
            }
        }
        let code: String = bare.iter().filter(|line| !line.starts_with('#')).flat_map(|line| [*line, "\n"]).collect();
        let (before, after) = code.split_once("extern \"C\" {").unwrap_or((&code, ""));
        for definition in before.split("typedef struct ").skip(1) {
            let Some((name, rest)) = definition.split_once('{') else { continue };
            let Some((fields, _)) = rest.split_once('}') else { continue };
            let fields = fields.split(';').filter_map(typed).collect();
            header.structures.insert(name.trim().to_owned(), fields);
        }
        for declaration in after.split(';') {
            let Some((head, arguments)) = declaration.trim().trim_end_matches(')').split_once('(') else { continue };
            let Some((name, result)) = typed(head) else { continue };
            let comment = comment_of(text, &name);
            let parameters = arguments.split(',').filter_map(typed).collect();
            header.functions.insert(name, Function { result, parameters, comment });
        }
        header
    }

    /// The ways in which VBA may pass a C type.
    fn passed(&self, kind: &str) -> Vec<String> {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        match kind {
            // VBA converts a String to the machine's code page, which cannot represent most file names.
            "char*" => words(&["ByVal LongPtr"]),
            kind if kind.ends_with("**") => words(&["ByRef LongPtr"]),
            kind => match (kind.strip_suffix('*'), scalar(kind)) {
                (None, Some(scalar)) => vec![format!("ByVal {scalar}")],
                (Some(name), _) if self.structures.contains_key(name) => {
                    vec![format!("ByRef {name}"), "ByRef Any".to_owned()]
                }
                (Some(target), _) => match scalar(target) {
                    Some(scalar) => vec![format!("ByRef {scalar}"), "ByRef Any".to_owned()],
                    // An opaque structure.
                    None => words(&["ByVal LongPtr"]),
                },
                (None, None) => Vec::new(),
            },
        }
    }
}

/// The comment before a function's declaration, as one line.
fn comment_of(text: &str, function: &str) -> String {
    let begins = format!("{function}(");
    let lines: Vec<&str> = text.lines().collect();
    let declared =
        lines.iter().position(|line| line.split("//").next().is_some_and(|code| code.contains(&begins))).unwrap_or(0);
    let comment = lines[..declared].iter().rev().map_while(|line| line.strip_prefix("// "));
    comment.fold(String::new(), |after, line| format!("{line} {after}"))
}

/// A declaration of C split into its name and its type without `const` and `struct`; `name[N]` keeps its brackets in
/// the type.
fn typed(declaration: &str) -> Option<(String, String)> {
    let packed = declaration.replace('*', " * ");
    let mut words: Vec<&str> =
        packed.split_whitespace().filter(|word| !matches!(*word, "const" | "struct" | "void")).collect();
    let name = words.pop()?;
    let (name, array) = name.split_once('[').map_or((name, String::new()), |(name, size)| (name, format!("[{size}")));
    Some((name.to_owned(), words.concat() + &array))
}

/// The VBA type of a C number.
fn scalar(kind: &str) -> Option<&'static str> {
    Some(match kind {
        "int" | "int32_t" | "uint32_t" => "Long",
        "int64_t" | "uint64_t" => "LongLong",
        "size_t" => "LongPtr",
        "double" => "Double",
        _ => return None,
    })
}

fn result(kind: &str) -> Option<&'static str> {
    if kind == "char*" { Some("LongPtr") } else { scalar(kind) }
}

/// The VBA declaration of a structure's member.
fn member_kind(kind: &str) -> String {
    match kind {
        "bool" => "Byte".to_owned(),
        "char*" => "LongPtr".to_owned(),
        kind => match kind.split_once('[') {
            Some((of, size)) => format!("(0 To {} - 1) {of}", size.trim_end_matches(']')),
            None => scalar(kind).unwrap_or(kind).to_owned(),
        },
    }
}

/// A `Declare`: its result and its arguments, with how each is passed.
struct Declared {
    result: String,
    parameters: Vec<(String, String)>,
}

#[derive(Default)]
struct Module {
    /// By their names in the DLL.
    functions: BTreeMap<String, Declared>,
    types: BTreeMap<String, Vec<(String, String)>>,
    constants: BTreeMap<String, String>,
}

impl Module {
    fn read(text: &str) -> Module {
        let mut module = Module::default();
        let joined = text.replace("\r\n", "\n").replace(" _\n", " ");
        let mut lines = joined.lines().map(str::trim).filter(|line| !line.starts_with('\''));
        while let Some(line) = lines.next() {
            if let Some(name) = line.strip_prefix("Public Type ") {
                let members = lines.by_ref().take_while(|line| *line != "End Type").filter_map(member).collect();
                module.types.insert(name.to_owned(), members);
            } else if let Some(constant) = line.strip_prefix("Public Const ") {
                if let Some((name, value)) = constant.split_once(" As Long = ") {
                    module.constants.insert(name.to_owned(), value.to_owned());
                } else if let Some((name, LEAST_IN_VBA)) = constant.split_once(" As LongLong = ") {
                    module.constants.insert(name.to_owned(), LEAST.to_owned());
                }
            } else if line.contains(&format!("Lib \"{LIBRARY}\""))
                && let Some((name, declared)) = declared(line)
            {
                module.functions.insert(name, declared);
            }
        }
        module
    }
}

/// `name As Kind`, or `name(0 To N) As Kind`.
fn member(line: &str) -> Option<(String, String)> {
    let (name, kind) = line.split_once(" As ")?;
    Some(match name.split_once('(') {
        Some((name, range)) => (name.to_owned(), format!("({range} {kind}")),
        None => (name.to_owned(), kind.to_owned()),
    })
}

/// A line `Public Declare PtrSafe Function NAME Lib "hairspring" [Alias "NAME"] (ARGUMENTS) As RESULT`. A line in any
/// other form counts as a function that the header lacks.
fn declared(line: &str) -> Option<(String, Declared)> {
    let (head, rest) = line.split_once(" (")?;
    let head = head.strip_prefix("Public Declare PtrSafe Function ").unwrap_or("not declared as a PtrSafe Function");
    let name = match head.split_once(" Alias ") {
        Some((_, alias)) => alias.trim().trim_matches('"'),
        None => head.split_once(' ').map_or(head, |(name, _)| name),
    };
    let (arguments, result) = rest.rsplit_once(") As ")?;
    let argument = |text: &str| {
        let (name, kind) = text.trim().split_once(" As ")?;
        let (how, name) = name.split_once(' ')?;
        Some((name.to_owned(), format!("{how} {kind}")))
    };
    let parameters = arguments.split(',').filter(|text| !text.trim().is_empty());
    let parameters = parameters.map(|text| argument(text).unwrap_or_else(|| (text.to_owned(), String::new())));
    Some((name.to_owned(), Declared { result: result.to_owned(), parameters: parameters.collect() }))
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXPORTED: [&str; 3] = ["hs_look", "hs_wait", "hs_word"];

    const C: &str = "#define HS_OK 0\n#define HS_E_NAN -6\n#define HS_ABSENT_NS INT64_MIN\ntypedef struct hs_base hs_base;\n\
                     typedef struct hs_report {\n    // Late.\n    int64_t late_ns;\n    // See hs_look().\n    bool gone;\n} hs_report;\n\
                     extern \"C\" {\n// Waits.\nint hs_wait(const struct hs_base *base,\n    double span_us, struct hs_report *report);\n\
                     // Looks. `lead_ns` may\n// be NULL.\nint hs_look(struct hs_report *seen, int64_t *lead_ns);\n\
                     const char *hs_word(const char *path);\n}\n";

    const BAS: &str = "Public Const HS_OK As Long = 0\r\nPublic Const HS_E_NAN As Long = -6\r\nPublic Const HS_ABSENT_NS As LongLong = &H8000000000000000^\r\nPublic Type hs_report\r\n    \
                       late_ns As LongLong\r\n    gone As Byte\r\nEnd Type\r\n\
                       Public Declare PtrSafe Function hs_wait_of Lib \"hairspring\" Alias \"hs_wait\" ( _\r\n    \
                       ByVal base As LongPtr, ByVal span_us As Double, ByRef report As Any) As Long\r\n\
                       Public Declare PtrSafe Function hs_look Lib \"hairspring\" ( _\r\n    \
                       ByRef seen As hs_report, ByRef lead_ns As Any) As Long\r\n\
                       Public Declare PtrSafe Function hs_word Lib \"hairspring\" ( _\r\n                       ByVal path As LongPtr) As LongPtr\r\n";

    #[track_caller]
    fn check(from: &str, to: &str, fault: &str) {
        assert!(BAS.contains(from), "{from}");
        let exported = EXPORTED.map(str::to_owned);
        let found = faults(&Header::read(C), &BAS.replacen(from, to, 1), &exported);
        assert!(found.iter().any(|found| found.contains(fault)), "{found:?}");
    }

    #[test]
    fn a_module_that_agrees_has_no_faults() {
        let exported = EXPORTED.map(str::to_owned);
        assert_eq!(faults(&Header::read(C), BAS, &exported), Vec::<String>::new());
    }

    #[test]
    fn every_kind_of_disagreement_is_told() {
        check("ByVal span_us As Double", "ByVal span_us As Long", "span_us is double");
        check("ByVal span_us As Double, ", "", "has 3 arguments, not 2");
        check("ByVal span_us", "ByVal delay_us", "delay_us is called span_us");
        check("ByVal base", "ByRef base", "base is hs_base*");
        check(") As Long\r\n", ") As Double\r\n", "hs_wait yields int");
        check("Alias \"hs_wait\"", "Alias \"hs_want\"", "the header has no hs_want");
        check("PtrSafe Function hs_word", "Function hs_word", "hs_word is not declared");
        check("gone As Byte", "gone As Boolean", "gone is not gone");
        check("late_ns As LongLong\r\n    gone As Byte", "gone As Byte", "1 members instead of 2");
        check("ByRef seen As hs_report", "ByRef seen As Any", "seen must not be NULL");
        check("ByRef lead_ns As Any", "ByRef lead_ns As LongLong", "lead_ns may be NULL");
        check("= -6", "= -7", "HS_E_NAN is not -6");
        check("&H8000000000000000^", "&H7FFFFFFFFFFFFFFF^", "HS_ABSENT_NS is not INT64_MIN");
        check("ByVal path As LongPtr", "ByVal path As String", "path is char*");
        check("End Type\r\n", "End Type\n", "CR LF");
        let gone = faults(&Header::read(C), BAS, &["hs_look", "hs_wait"].map(str::to_owned));
        assert_eq!(gone, ["the DLL does not export hs_word"]);
    }

    #[test]
    fn exports_are_read_from_the_table_of_names() {
        let dump = "[Ordinal/Name Pointer] Table -- Ordinal Base 1\n\t[   0] +base[   1]  0000 hs_wait\n\n[   1] no";
        assert_eq!(exports(dump), ["hs_wait"]);
    }
}
