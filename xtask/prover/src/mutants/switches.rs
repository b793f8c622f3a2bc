//! A source file in which every mutant stands at its place behind a switch, so that one build has them all.
//!
//! ```text
//! a < b                  →   (if m(7) { a <= b } else { a < b })
//! fn f() -> u8 { … }     →   fn f() -> u8 { if m(8) { return 0; } … }
//! p if g => e            →   p if !m(9) && (g) => e                        the arm is left out
//! ```
//!
//! Only one mutant is in force at a time, so the code that a mutant replaces holds the sound versions of inner mutants,
//! and mutants within mutants do not multiply.
//!
//! Not every mutant has such a place: constant functions, those that return an `impl Trait`, and chains of `let` have
//! none. Others do not compile there, because a type is inferred from one branch only, or a value lives shorter.
//! [`blamed`] finds them in the compiler's messages, and the file is written without them. A mutant that is left out
//! has no outcome yet: cargo-mutants tries it alone.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use serde_json::Value;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

/// A change at a place of a file, as cargo-mutants lists it.
#[derive(Clone, Debug)]
pub(super) struct Change {
    pub(super) number: usize,
    pub(super) genre: String,
    pub(super) at: Range<usize>,
    pub(super) replacement: String,
}

impl Change {
    /// Reads one of cargo-mutants' list, for a file with this text.
    pub(super) fn read(number: usize, listed: &Value, text: &str) -> Option<Self> {
        let place = |end: &str| {
            let place = &listed["span"][end];
            let (line, column) = (place["line"].as_u64()?.checked_sub(1)?, place["column"].as_u64()?.checked_sub(1)?);
            let mut lines = text.split_inclusive('\n');
            let before: usize = lines.by_ref().take(line as usize).map(str::len).sum();
            let within: usize =
                lines.next().unwrap_or_default().chars().take(column as usize).map(char::len_utf8).sum();
            Some(before + within)
        };
        let text_of = |name: &str| Some(listed[name].as_str()?.to_owned());
        Some(Self {
            number,
            genre: text_of("genre")?,
            at: place("start")?..place("end")?,
            replacement: text_of("replacement")?,
        })
    }
}

/// The code that a change belongs to.
#[derive(Debug, Default)]
struct Places {
    /// Operators, and the expressions that they make.
    operators: Vec<(Range<usize>, Range<usize>)>,
    /// Expressions that name a structure's fields.
    structures: Vec<Range<usize>>,
    /// Functions that are not constant and whose value has a name: their bodies with the braces.
    bodies: Vec<Range<usize>>,
    /// Arms, the ends of their patterns, and their guards.
    arms: Vec<(Range<usize>, usize, Option<Range<usize>>)>,
}

fn has_let(expression: &syn::Expr) -> bool {
    match expression {
        syn::Expr::Let(_) => true,
        syn::Expr::Binary(binary) => has_let(&binary.left) || has_let(&binary.right),
        _ => false,
    }
}

fn is_opaque(output: &syn::ReturnType) -> bool {
    struct Opaque(bool);
    impl<'ast> Visit<'ast> for Opaque {
        fn visit_type_impl_trait(&mut self, _: &'ast syn::TypeImplTrait) {
            self.0 = true;
        }
    }
    let mut found = Opaque(false);
    found.visit_return_type(output);
    found.0
}

impl<'ast> Visit<'ast> for Places {
    fn visit_expr_binary(&mut self, binary: &'ast syn::ExprBinary) {
        if !has_let(&binary.left) && !has_let(&binary.right) {
            self.operators.push((binary.op.span().byte_range(), binary.span().byte_range()));
        }
        visit::visit_expr_binary(self, binary);
    }

    fn visit_expr_unary(&mut self, unary: &'ast syn::ExprUnary) {
        self.operators.push((unary.op.span().byte_range(), unary.span().byte_range()));
        visit::visit_expr_unary(self, unary);
    }

    fn visit_expr_struct(&mut self, structure: &'ast syn::ExprStruct) {
        self.structures.push(structure.span().byte_range());
        visit::visit_expr_struct(self, structure);
    }

    fn visit_arm(&mut self, arm: &'ast syn::Arm) {
        let guard = arm.guard.as_ref().map(|(_, guard)| guard.span().byte_range());
        self.arms.push((arm.span().byte_range(), arm.pat.span().byte_range().end, guard));
        visit::visit_arm(self, arm);
    }

    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        self.body(&function.sig, &function.block);
        visit::visit_item_fn(self, function);
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        self.body(&function.sig, &function.block);
        visit::visit_impl_item_fn(self, function);
    }

    fn visit_trait_item_fn(&mut self, function: &'ast syn::TraitItemFn) {
        function.default.iter().for_each(|block| self.body(&function.sig, block));
        visit::visit_trait_item_fn(self, function);
    }
}

impl Places {
    fn body(&mut self, signature: &syn::Signature, block: &syn::Block) {
        // Two branches of one `impl Trait` would have to be of one type.
        if signature.constness.is_none() && !is_opaque(&signature.output) {
            self.bodies.push(block.span().byte_range());
        }
    }
}

/// Replacement of a piece of code.
#[derive(Debug, Default)]
struct Piece {
    /// The whole piece as a mutant has it.
    instead: Vec<(usize, String)>,
    /// Before the guard of an arm: a switch and an operator.
    guards: Vec<String>,
}

#[derive(Debug, Default)]
struct Plan {
    pieces: BTreeMap<(usize, std::cmp::Reverse<usize>), Piece>,
    inserts: BTreeMap<usize, String>,
}

const BEGIN: &str = "/*@";
const END: &str = "/*/@";

/// Marks the code of a mutant, for [`blamed`].
fn marked(number: usize, code: &str) -> String {
    format!("{BEGIN}{number}*/{code}{END}{number}*/")
}

fn switch(number: usize) -> String {
    marked(number, &format!("crate::mutant_switch::m({number})"))
}

/// The text with these changes behind switches, and the numbers of those that have no place.
///
/// # Errors
/// The text is not Rust.
pub(super) fn switched(text: &str, changes: &[Change]) -> Result<(String, Vec<usize>), String> {
    let file = text.parse().map_err(|error: proc_macro2::LexError| error.to_string())?;
    let file: syn::File = syn::parse2(file).map_err(|error| error.to_string())?;
    let mut places = Places::default();
    places.visit_file(&file);
    let (mut plan, mut without) = (Plan::default(), Vec::new());
    for change in changes {
        if !plan.takes(change, text, &places) {
            without.push(change.number);
        }
    }
    Ok((plan.render(text, 0..text.len(), true), without))
}

impl Plan {
    /// Enters a change; `false` if it has no place.
    fn takes(&mut self, change: &Change, text: &str, places: &Places) -> bool {
        let number = change.number;
        let holds = |range: &&Range<usize>| range.start <= change.at.start && change.at.end <= range.end;
        let smallest = |ranges: &mut dyn Iterator<Item = &Range<usize>>| {
            ranges.filter(holds).min_by_key(|range| range.len()).cloned()
        };
        let instead = |range: &Range<usize>| {
            let code = format!(
                "{} {} {}",
                &text[range.start..change.at.start],
                change.replacement,
                &text[change.at.end..range.end]
            );
            (number, marked(number, &code))
        };
        match change.genre.as_str() {
            "FnValue" => {
                let Some(body) = smallest(&mut places.bodies.iter()) else { return false };
                let code = format!(" if {} {{ return {}; }}", switch(number), marked(number, &change.replacement));
                self.inserts.entry(body.start + 1).or_default().push_str(&code);
            }
            "MatchArm" | "MatchArmGuard" => {
                let arms = places.arms.iter().filter(|arm| holds(&&arm.0));
                let Some((_, pattern_end, guard)) = arms.min_by_key(|arm| arm.0.len()) else { return false };
                let (is_arm, switch) = (change.genre == "MatchArm", switch(number));
                match guard {
                    None if is_arm => self.inserts.entry(*pattern_end).or_default().push_str(&format!(" if !{switch}")),
                    None => return false,
                    Some(guard) => {
                        let is_true = !is_arm && change.replacement.trim() == "true";
                        let code = if is_true { format!("{switch} || ") } else { format!("!{switch} && ") };
                        self.piece(guard).guards.push(code);
                    }
                }
            }
            "BinaryOperator" | "UnaryOperator" => {
                let Some((_, range)) = places.operators.iter().find(|(operator, _)| *operator == change.at) else {
                    return false;
                };
                let instead = instead(range);
                self.piece(range).instead.push(instead);
            }
            "StructField" => {
                let Some(range) = smallest(&mut places.structures.iter()) else { return false };
                let instead = instead(&range);
                self.piece(&range).instead.push(instead);
            }
            _ => return false,
        }
        true
    }

    fn piece(&mut self, range: &Range<usize>) -> &mut Piece {
        self.pieces.entry((range.start, std::cmp::Reverse(range.end))).or_default()
    }

    /// A range with all that is planned within it, and with its own piece only if it is `whole`.
    fn render(&self, text: &str, range: Range<usize>, whole: bool) -> String {
        let (mut out, mut at) = (String::new(), range.start);
        let copy = |out: &mut String, from: usize, to: usize| {
            let mut from = from;
            for (place, code) in self.inserts.range(from..to) {
                out.push_str(&text[from..*place]);
                out.push_str(code);
                from = *place;
            }
            out.push_str(&text[from..to]);
        };
        let own = (range.start, std::cmp::Reverse(range.end));
        for ((start, std::cmp::Reverse(end)), piece) in
            self.pieces.range((range.start, std::cmp::Reverse(usize::MAX))..)
        {
            if *start >= range.end {
                break;
            }
            let is_own = (*start, std::cmp::Reverse(*end)) == own && !whole;
            if *start < at || *end > range.end || is_own {
                continue;
            }
            copy(&mut out, at, *start);
            let mut code = self.render(text, *start..*end, false);
            if !piece.instead.is_empty() {
                let branches =
                    piece.instead.iter().map(|(number, code)| format!("if {} {{ {code} }} else ", switch(*number)));
                code = format!("({}{{ {code} }})", branches.collect::<String>());
            }
            for guard in &piece.guards {
                code = format!("({guard}({code}))");
            }
            out.push_str(&code);
            at = *end;
        }
        copy(&mut out, at, range.end);
        out
    }
}

/// The module with the switches, for the root of the crate. `MUTANT` is the number that is in force; into the file
/// `MUTANTS_REACHED` go the numbers of those that were reached, four bytes each.
pub(super) const MODULE: &str = r#"
#[doc(hidden)]
#[allow(warnings)]
pub mod mutant_switch {
    // The crate may have no std of its own.
    extern crate std;
    use std::io::Write;
    use std::string::String;
    use std::sync::LazyLock;
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
    static IN_FORCE: LazyLock<usize> = LazyLock::new(|| std::env::var("MUTANT").ok().and_then(|n| n.parse().ok()).unwrap_or(usize::MAX));
    static REACHED: LazyLock<Option<String>> = LazyLock::new(|| std::env::var("MUTANTS_REACHED").ok());
    static SEEN: [AtomicBool; 8192] = [const { AtomicBool::new(false) }; 8192];
    #[inline]
    pub fn m(number: usize) -> bool {
        if !SEEN[number].load(Relaxed) { seen(number) }
        *IN_FORCE == number
    }
    #[cold]
    fn seen(number: usize) {
        if SEEN[number].swap(true, Relaxed) { return }
        let Some(path) = &*REACHED else { return };
        let file = std::fs::OpenOptions::new().append(true).create(true).open(path);
        drop(file.map(|mut file| file.write_all(&(number as u32).to_le_bytes())));
    }
}
"#;

/// The mutants to which an error of the compiler belongs: the innermost whose code it names, or else all on its lines.
/// `texts` are the files with switches, by the names that the compiler gives them.
pub(super) fn blamed(message: &Value, texts: &BTreeMap<String, String>) -> BTreeSet<usize> {
    let mut spans: Vec<&Value> = Vec::new();
    let mut messages = vec![message];
    while let Some(message) = messages.pop() {
        let mut own: Vec<&Value> = message["spans"].as_array().into_iter().flatten().collect();
        own.sort_by_key(|span| span["is_primary"] != true);
        spans.extend(own);
        messages.extend(message["children"].as_array().into_iter().flatten());
    }
    let places = spans.iter().filter_map(|span| {
        let text = texts.get(span["file_name"].as_str()?)?;
        Some((text, span["byte_start"].as_u64()? as usize..span["byte_end"].as_u64()? as usize))
    });
    let places: Vec<(&String, Range<usize>)> = places.collect();
    let inner = places.iter().find_map(|(text, at)| {
        let holding = marks(text).filter(|(_, mark)| mark.start <= at.start && at.end <= mark.end);
        holding.min_by_key(|(_, mark)| mark.len()).map(|(number, _)| number)
    });
    let on_lines = places.iter().map(|(text, at)| {
        let start = text[..at.start].rfind('\n').unwrap_or(0);
        let end = text[at.end..].find('\n').map_or(text.len(), |more| at.end + more);
        marks(text).filter(|(_, mark)| start <= mark.start && mark.start < end).map(|(number, _)| number).collect()
    });
    let mut on_lines = on_lines.filter(|numbers: &BTreeSet<usize>| !numbers.is_empty());
    inner.map_or_else(|| on_lines.next().unwrap_or_default(), |number| BTreeSet::from([number]))
}

/// The marks of a text, and the ranges between each pair.
fn marks(text: &str) -> impl Iterator<Item = (usize, Range<usize>)> {
    text.match_indices(BEGIN).filter_map(|(start, _)| {
        let number = text[start + BEGIN.len()..].split_once("*/")?.0;
        let end = text[start..].find(&format!("{END}{number}*/"))? + start;
        Some((number.parse().ok()?, start..end + END.len()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The changes of a text: each genre with the code that it replaces, which stands there once, and the replacement.
    #[track_caller]
    fn of(text: &str, changes: &[(&str, &str, &str)]) -> (String, Vec<usize>) {
        let change = |(number, (genre, code, replacement)): (usize, &(&str, &str, &str))| {
            let start = text.find(code).unwrap();
            let at = start..start + code.len();
            Change { number, genre: (*genre).to_owned(), at, replacement: (*replacement).to_owned() }
        };
        let changes: Vec<Change> = changes.iter().enumerate().map(change).collect();
        let (switched, without) = switched(text, &changes).unwrap();
        syn::parse_file(&switched).unwrap_or_else(|error| panic!("{error}: {switched}"));
        let mut plain = switched;
        for number in 0..changes.len() {
            plain = plain.replace(&format!("{BEGIN}{number}*/"), "").replace(&format!("{END}{number}*/"), "");
        }
        (plain.replace("crate::mutant_switch::", ""), without)
    }

    #[test]
    fn what_a_mutant_replaces_is_written_with_the_sound_code_in_it() {
        let changes = [
            ("BinaryOperator", "&&", "||"),
            ("BinaryOperator", "<", "<="),
            ("UnaryOperator", "!", ""),
            ("FnValue", "a < b && !c", "true"),
        ];
        let (text, without) = of("fn f() -> bool { a < b && !c }", &changes);
        let and =
            "if m(0) { a < b  ||  !c } else { (if m(1) { a  <=  b } else { a < b }) && (if m(2) {   c } else { !c }) }";
        assert_eq!(text, format!("fn f() -> bool {{ if m(3) {{ return true; }} ({and}) }}"));
        assert_eq!(without, [0; 0]);
    }

    #[test]
    fn arms_are_left_out_by_their_guards() {
        let text = "fn f() { match x { 1 if g == h => a(), 2 => b(), _ => c() } }";
        let changes = [
            ("MatchArm", "1 if g == h => a(),", ""),
            ("MatchArmGuard", "g == h", "true"),
            ("MatchArm", "2 => b(),", ""),
            ("BinaryOperator", "==", "!="),
        ];
        let guard = "(m(1) || ((!m(0) && ((if m(3) { g  !=  h } else { g == h })))))";
        assert_eq!(
            of(text, &changes).0,
            format!("fn f() {{ match x {{ 1 if {guard} => a(), 2 if !m(2) => b(), _ => c() }} }}")
        );
    }

    #[test]
    fn what_has_no_place_is_named() {
        let text = "const fn f() -> u8 { 1 + 2 } fn h() -> Option<impl I> { i() } fn g() { if let Some(x) = y && z {} S { a: 1, ..s } }";
        let changes = [
            ("FnValue", "1 + 2", "0"),
            ("BinaryOperator", "&&", "||"),
            ("StructField", "a: 1,", ""),
            ("FnValue", "i()", "None"),
        ];
        let (text, without) = of(text, &changes);
        assert_eq!(without, [0, 1, 3]);
        assert!(text.ends_with("(if m(2) { S {    ..s } } else { S { a: 1, ..s } }) }"), "{text}");
    }

    #[test]
    fn an_error_belongs_to_the_innermost_mutant_or_to_all_of_its_lines() {
        let text = format!("a\n{} {}\nb", marked(4, &format!("x{}y", marked(5, "mid"))), marked(6, "z"));
        let texts = BTreeMap::from([("f.rs".to_owned(), text.clone())]);
        let at = |code: &str| {
            let start = text.find(code).unwrap();
            serde_json::json!({"spans": [{"file_name": "f.rs", "byte_start": start, "byte_end": start + code.len(), "is_primary": true}]})
        };
        assert_eq!(blamed(&at("mid"), &texts), BTreeSet::from([5]));
        assert_eq!(blamed(&at("z"), &texts), BTreeSet::from([6]));
        assert_eq!(blamed(&at(text.lines().nth(1).unwrap()), &texts), BTreeSet::from([4, 5, 6]));
        assert_eq!(blamed(&at("b"), &texts), BTreeSet::new());
    }
}
