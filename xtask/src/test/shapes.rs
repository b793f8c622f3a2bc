//! The ten examples that every language has, each run and held against its shape in `bindings/shapes.toml`.
//!
//! A shape is the keys that an example prints, in their order, with what kind of value follows each. A language is a name and the
//! command that runs an example of it; one that cannot run here is skipped with its reason.

use std::process::Command;
use std::time::Duration;

use super::{Context, examples, needs};
use crate::tally::Tally;
use crate::workspace::Workspace;

const FILE: &str = "bindings/shapes.toml";
const ONE_EXAMPLE: Duration = Duration::from_secs(60);
/// A key with this end is how much later than asked something was: never negative.
const LATENESS: &str = "late_ns";

struct Language {
    name: &'static str,
    /// Why its examples cannot run here, and whether they could.
    missing: fn(&Context) -> Option<(String, bool)>,
    /// Runs the example of this name, from the root.
    command: fn(&Workspace, &str) -> Command,
}

const LANGUAGES: &[Language] = &[
    Language { name: "rust", missing: |_| None, command: rust },
    Language { name: "python", missing: no_package, command: python },
];

fn rust(workspace: &Workspace, example: &str) -> Command {
    Command::new(workspace.target.join("debug/examples").join(example))
}

fn python(workspace: &Workspace, example: &str) -> Command {
    let mut command = Command::new(needs::python(workspace));
    command.arg(format!("bindings/python/examples/{example}.py"));
    command
}

fn no_package(context: &Context) -> Option<(String, bool)> {
    let mut import = Command::new(needs::python(context.workspace));
    let ended = context.run("shapes import", import.args(["-c", "import hairspring"]));
    let missing = "the package hairspring is not installed: the step python installs it".to_owned();
    (!ended.succeeded()).then(|| (missing, needs::in_path("python3").is_some()))
}

pub(crate) fn run(context: &Context, name: &str) -> Tally {
    let text = std::fs::read_to_string(context.workspace.root.join(FILE));
    let shapes = match text.map_err(|error| error.to_string()).and_then(|text| read(&text)) {
        Ok(shapes) => shapes,
        Err(why) => return Tally::fail(name, format!("{FILE} cannot be read: {why}"), ""),
    };
    let built = examples::build(context, name);
    if !built.succeeded() {
        return built;
    }
    let mut tally = Tally::default();
    for language in LANGUAGES {
        if let Some((why, could_run)) = (language.missing)(context) {
            tally.add(Tally::skip(&format!("{name} {}", language.name), why, could_run));
            continue;
        }
        for shape in &shapes {
            let label = format!("{name} {} {}", language.name, shape.name);
            let mut command = (language.command)(context.workspace, &shape.name);
            let ended = context.run_at_most(&label, command.current_dir(&context.workspace.root), ONE_EXAMPLE);
            let wrong = if ended.succeeded() { shape.wrong(&ended.output) } else { Some(ended.how.to_string()) };
            match wrong {
                None => tally.passed += 1,
                Some(why) => tally.failure(&label, why, ended.tail()),
            }
        }
    }
    tally
}

/// What one example prints.
struct Shape {
    name: String,
    /// Key and kind.
    lines: Vec<(String, Kind)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Int,
    Float,
    Word,
    Text,
}

impl Kind {
    fn named(name: &str) -> Option<Kind> {
        match name {
            "int" => Some(Kind::Int),
            "float" => Some(Kind::Float),
            "word" => Some(Kind::Word),
            "text" => Some(Kind::Text),
            _ => None,
        }
    }

    fn fits(self, value: &str) -> bool {
        match self {
            Kind::Int => value.parse::<i64>().is_ok(),
            Kind::Float => value.parse::<f64>().is_ok_and(f64::is_finite),
            Kind::Word => !value.is_empty() && !value.contains(char::is_whitespace),
            Kind::Text => !value.trim().is_empty(),
        }
    }
}

impl Shape {
    /// What does not fit, if anything.
    fn wrong(&self, output: &str) -> Option<String> {
        let mut lines = output.lines();
        for (key, kind) in &self.lines {
            let Some(line) = lines.next() else { return Some(format!("{key} is missing")) };
            let Some(value) = line.strip_prefix(key.as_str()).and_then(|rest| rest.strip_prefix(' ')) else {
                return Some(format!("{key} is to stand where it says {line:?}"));
            };
            if !kind.fits(value) {
                return Some(format!("{key} is to be of the kind {kind:?}, not {value:?}"));
            }
            if key.ends_with(LATENESS) && value.starts_with('-') {
                return Some(format!("{key} is {value}: too early"));
            }
        }
        lines.next().map(|line| format!("{line:?} is too much"))
    }
}

/// Reads the part of TOML that the file uses, in its order: tables of texts.
fn read(text: &str) -> Result<Vec<Shape>, String> {
    let mut shapes: Vec<Shape> = Vec::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            shapes.push(Shape { name: name.to_owned(), lines: Vec::new() });
            continue;
        }
        let pair = line.split_once(" = ").and_then(|(key, kind)| Some((key, Kind::named(kind.trim_matches('"'))?)));
        match (pair, shapes.last_mut()) {
            (Some((key, kind)), Some(shape)) => shape.lines.push((key.to_owned(), kind)),
            _ => return Err(format!("{line:?} is no `key = \"kind\"` of a table")),
        }
    }
    if shapes.is_empty() { Err("it has no table".to_owned()) } else { Ok(shapes) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# A comment.\n[delay]\nasked_ns = \"int\"\nlate_ns = \"int\"\nratio = \"float\"\nverdict = \"word\"\nhost = \"text\"\n";

    #[track_caller]
    fn check(output: &str, wrong: Option<&str>) {
        let shapes = read(TEXT).expect("it is right");
        let found = shapes[0].wrong(output);
        assert_eq!(found.is_none(), wrong.is_none(), "{found:?}");
        assert!(found.unwrap_or_default().contains(wrong.unwrap_or_default()));
    }

    #[test]
    fn what_fits_a_shape_passes_and_everything_else_is_told() {
        check("asked_ns 5\nlate_ns 0\nratio 1e-3\nverdict clean\nhost a b\n", None);
        check("asked_ns 5\nlate_ns 0\nratio 1e-3\nverdict clean\n", Some("host is missing"));
        check("late_ns 5\nasked_ns 0\nratio 1e-3\nverdict clean\nhost a\n", Some("asked_ns is to stand"));
        check("asked_ns 5.0\nlate_ns 0\nratio 1\nverdict clean\nhost a\n", Some("Int"));
        check("asked_ns -5\nlate_ns -1\nratio 1\nverdict clean\nhost a\n", Some("too early"));
        check("asked_ns 5\nlate_ns 1\nratio nan\nverdict clean\nhost a\n", Some("Float"));
        check("asked_ns 5\nlate_ns 1\nratio 1\nverdict not clean\nhost a\n", Some("Word"));
        check("asked_ns 5\nlate_ns 1\nratio 1\nverdict clean\nhost \n", Some("Text"));
        check("asked_ns 5\nlate_ns 1\nratio 1\nverdict clean\nhost a\nmore 1\n", Some("too much"));
    }

    #[test]
    fn a_file_of_something_else_is_refused() {
        for text in ["", "a = \"int\"\n", "[a]\nb = \"number\"\n", "[a]\nb\n"] {
            assert!(read(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn each_shape_has_its_example_in_rust() {
        let workspace = Workspace::discover().expect("the workspace");
        let text = std::fs::read_to_string(workspace.root.join(FILE)).expect("the shapes");
        for shape in read(&text).expect("shapes") {
            assert!(workspace.packages.iter().any(|package| package.examples.contains(&shape.name)), "{}", shape.name);
        }
    }
}
