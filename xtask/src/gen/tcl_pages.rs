//! The pages of the book on Tcl, one per noun, from the package's sources: how to make an object, its methods, what
//! they call and return.
//!
//! The pages come from the sources as text. The opening of `hairspring.c` says how to make objects, the tables in
//! `objects.h`, `sheet.h` and `timer.h` list the methods, and the body of a method shows which function of the library
//! it calls; the page repeats that function's comment.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use super::header::{self, Item, Kind, marked};

/// One page.
pub(super) struct Noun {
    /// The page's file is `docs/tcl/NAME.md`.
    pub(super) name: &'static str,
    title: &'static str,
    /// The noun in the sources.
    noun: &'static str,
    /// The words after `hairspring` that make an object.
    makers: &'static [&'static str],
    about: &'static str,
    example: Option<&'static str>,
}

pub(super) const NOUNS: [Noun; 7] = [
    Noun {
        name: "timebase",
        title: "Time base",
        noun: "timebase",
        makers: &["calibrate"],
        about: "A calibrated clock and its delays. A delay returns its report, a dictionary.",
        example: Some("delay"),
    },
    Noun {
        name: "long-delay",
        title: "Long delay",
        noun: "long_delay",
        makers: &["long_delay"],
        about: "A delay of up to 100 days that sleeps first and polls only the end.",
        example: Some("long_delay"),
    },
    Noun {
        name: "profile",
        title: "Profile",
        noun: "profile",
        makers: &["profile"],
        about: "How long each run of a script takes.",
        example: Some("profile"),
    },
    Noun {
        name: "real-time",
        title: "Real-time settings",
        noun: "real_time",
        makers: &["real_time"],
        about: "A policy, a priority, a CPU, locked memory, the timer slack and a limit on idle states for this thread, restored by `destroy`.",
        example: Some("realtime"),
    },
    Noun {
        name: "window",
        title: "Window",
        noun: "window",
        makers: &["window"],
        about: "The 32-bit words of a file or of a card's memory.",
        example: None,
    },
    Noun {
        name: "sheet",
        title: "Sheet",
        noun: "sheet",
        makers: &["read_sheet", "take_sheet"],
        about: "A timing data sheet: taken by the command, or read from its JSON.",
        example: Some("read_sheet"),
    },
    Noun { name: "timer", title: "Timer", noun: "timer", makers: &["timer"], about: TIMER, example: Some("timer") },
];

const TIMER: &str = "\
A command that the event loop calls after a time, or each time that it has passed. As `after`, but never early by `CLOCK_MONOTONIC`, without drift, and much
less late: on an idle virtual machine calls with a period of 1 ms were 0.1 µs late in the median, and those of `after` 0.1 ms.

`COMMAND` is a command prefix, a list of words such as the name of a procedure, to which three words are appended. It is called in the global namespace
of the interpreter that made the timer.

| word | what it is |
|---|---|
| `planned_ns` | when the call was to be made, in ns of `CLOCK_MONOTONIC`: the start plus whole periods |
| `late_ns` | how much later than that the interpreter was ready to call; never negative |
| `missed` | the periods since the call before that passed without a call |

* Without `-repeat yes` there is one call. `NS` is 0 to 100 days, with `-repeat yes` at least 1. Making a timer takes some 5 ms, because it learns how late the
  kernel wakes its thread; the first period begins afterwards.
* Calls come from the event loop: `vwait`, `update`, or Tk. An interpreter that is busy calls late, and `late_ns` says so. Periods that pass meanwhile
  are not made up. While a call runs no other call of the same timer begins, also if its command enters the event loop.
* The timer waits in a thread of its own. It wakes the interpreter 0.1 to 0.5 ms before the planned time, as much as the interpreter needed recently, and the
  interpreter polls the rest. So each call takes up to 0.5 ms of the interpreter's time, and timers of one thread whose times are closer
  together than that make each other late.
* The thread takes over the scheduling policy, priority and CPU that are in force when the timer is made: apply
  [real-time settings](real-time.md) before.
* An error in the command goes to `interp bgerror` and ends the timer, as an error in a `fileevent` script removes the script.
* `cancel`, `destroy`, the deletion of the interpreter and the end of the process end the timer, also during a call. That call is then the last one. The
  child of a fork has no timers.
* A Tcl without threads refuses with the error code `{HAIRSPRING REFUSED}`, a system that gives no thread with `{HAIRSPRING IO}`.

Tcl itself calls a script when a channel can be read: `fileevent CHANNEL readable SCRIPT`. So there is no noun for that here, unlike in Python.";

const FOLDER: &str = "bindings/tcl";
/// In this order, as the compiler sees them.
const SOURCES: [&str; 5] = ["hairspring.c", "objects.h", "report.h", "sheet.h", "timer.h"];

/// The page of the noun with this name.
pub(super) fn page(root: &Path, names: &[&str]) -> Result<String, String> {
    let items = header::read(root)?;
    let mut sources = String::new();
    for file in SOURCES {
        let path = root.join(FOLDER).join(file);
        sources += &fs::read_to_string(&path).map_err(|error| format!("read {}: {error}", path.display()))?;
    }
    let noun = NOUNS.iter().find(|noun| names.contains(&noun.name)).ok_or("find the noun of a page of Tcl")?;
    noun.page(&items, &sources)
}

impl Noun {
    fn page(&self, items: &[Item], sources: &str) -> Result<String, String> {
        let lost = |what: &str| format!("find {what} of {} in {FOLDER}", self.noun);
        let mut page = format!("# {} in Tcl\n\n{}\n\n## Making one\n\n```text\n", self.title, self.about);
        for maker in self.makers {
            let usage = usage(sources, maker).ok_or_else(|| lost("how one is made"))?;
            let _ = writeln!(page, "hairspring {usage}");
        }
        page += "```\n\nThe result is the name of a command, the object.\n";
        if let Some(example) = self.example {
            let _ = writeln!(page, "\n## Example\n\n```tcl\n--8<-- \"{FOLDER}/examples/{example}.tcl\"\n```");
        }
        page += "\n## Methods\n";
        let methods = methods(sources, self.noun);
        if methods.is_empty() {
            return Err(lost("the methods"));
        }
        for (method, function, arguments) in methods {
            let arguments = arguments.map(|words| words.to_uppercase()).unwrap_or_default();
            let _ = writeln!(
                page,
                "\n### {method}\n\n```text\n{}\n```\n",
                format!("$object {method} {arguments}").trim_end()
            );
            if method == "destroy" {
                page += "Frees the object and deletes its command. Renaming the command to nothing does the same.\n";
                continue;
            }
            let definition = definition(sources, &function).ok_or_else(|| lost(&function))?;
            if let Some(comment) = definition.comment {
                let _ = writeln!(page, "{}\n", marked(&comment));
            }
            if let Some(item) = called(items, definition.body, &function) {
                let name = &item.name;
                let page_of =
                    super::c_pages::NOUNS.iter().find(|noun| noun.owns(item)).map_or("errors", |noun| noun.name);
                let anchor = name.to_lowercase();
                let _ = writeln!(page, "As [`{name}`](../c/{page_of}.md#{anchor}) in C: {}", marked(&item.text));
            }
            let keys = keys(definition.body);
            if !keys.is_empty() {
                let _ = writeln!(page, "\nReturns a dictionary: {}.", keys.join(", "));
            } else if function.contains("delay_") && definition.body.starts_with("DELAY") {
                let keys = self::keys(report(sources));
                let _ = writeln!(page, "\nReturns the report, a dictionary: {}.", keys.join(", "));
            }
        }
        Ok(page)
    }
}

/// How to make an object, from the list in the opening of the package: `long_delay TIMEBASE`.
fn usage<'s>(sources: &'s str, maker: &str) -> Option<&'s str> {
    let lines = sources.lines().take_while(|line| line.starts_with("//"));
    let line = lines
        .filter_map(|line| line.strip_prefix("//     hairspring "))
        .find(|line| line.split(' ').next() == Some(maker))?;
    line.split("  ").next().map(str::trim)
}

/// The methods of a noun: name, function, and the words that it takes.
fn methods(sources: &str, noun: &str) -> Vec<(String, String, Option<String>)> {
    let table =
        sources.split(&format!("struct method {noun}_methods[] = {{")).nth(1).and_then(|rest| rest.split("};").next());
    let lines = table.unwrap_or_default().lines().filter_map(|line| line.trim().strip_prefix("{ \""));
    let rows = lines.filter_map(|line| {
        let (name, rest) = line.split_once("\", ")?;
        let (function, rest) = rest.split_once(", ")?;
        Some((name.to_owned(), function.to_owned(), rest.split('"').nth(1).map(str::to_owned)))
    });
    rows.collect()
}

struct Definition<'s> {
    /// The sources before this place.
    comment: Option<String>,
    body: &'s str,
}

/// The definition of a function: `METHOD(name) { … }`, or a macro that defines several.
fn definition<'s>(sources: &'s str, function: &str) -> Option<Definition<'s>> {
    let begins = [format!("\nMETHOD({function})"), format!("\nDELAY({function},"), format!("\nSETTING({function},")];
    let at = begins.iter().find_map(|begin| sources.find(begin.as_str()))? + 1;
    let end = if sources[at..].starts_with("METHOD") { "\n}" } else { "\n" };
    let body = &sources[at..at + sources[at..].find(end)?];
    let before = sources[..at].lines().rev().take_while(|line| line.starts_with("// ") && !line.starts_with("// ---"));
    let mut comment: Vec<&str> = before.map(|line| line[3..].trim()).collect();
    comment.reverse();
    Some(Definition { comment: (!comment.is_empty()).then(|| comment.join(" ")), body })
}

/// The function of the library that a method calls first, or that has the method's name.
fn called<'i>(items: &'i [Item], body: &str, function: &str) -> Option<&'i Item> {
    let named = |name: &str| items.iter().find(|item| item.kind == Kind::Function && item.name == name);
    let words = body.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    named(&format!("hs_{function}")).or_else(|| words.filter(|word| word.starts_with("hs_")).find_map(named))
}

/// The keys that a function's body puts into a dictionary.
fn keys(body: &str) -> Vec<String> {
    let puts = body.split("put").skip(1).filter_map(|rest| rest.split_once("(")?.1.split_once(", \""));
    let keys = puts.filter(|(target, _)| matches!(*target, "result" | "dictionary"));
    keys.filter_map(|(_, rest)| Some(format!("`{}`", rest.split('"').next()?))).collect()
}

/// The part of the sources that makes a report.
fn report(sources: &str) -> &str {
    let rest = sources.split("static void report_string(").nth(1).unwrap_or_default();
    rest.split("\n}").next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCES: &str = "// Opens.\n//     hairspring clock FILE ?-fast BOOLEAN?   a clock: show\n\n// Shows\n// it.\nMETHOD(clock_show)\n{\n    \
        hs_face face;\n    TRY(hs_clock_show(object->handle, &face));\n    put(result, \"hours\", x);\n    put_wide(result, \"late_ns\", y);\n}\n\
        DELAY(clock_wait, int64_t, get_wide, , hs_delay_ns(object->handle, request, report))\n\
        static const struct method clock_methods[] = {\n    { \"show\", clock_show, 0, NULL },\n    { \"wait\", clock_wait, 1, \"ns\" },\n};\n";

    #[test]
    fn methods_are_read_with_what_they_call_and_return() {
        assert_eq!(usage(SOURCES, "clock"), Some("clock FILE ?-fast BOOLEAN?"));
        let found = methods(SOURCES, "clock");
        assert_eq!(found.iter().map(|(name, ..)| name.as_str()).collect::<Vec<_>>(), ["show", "wait"]);
        assert_eq!(found[1].2.as_deref(), Some("ns"));
        let show = definition(SOURCES, "clock_show").unwrap();
        assert_eq!(show.comment.as_deref(), Some("Shows it."));
        assert_eq!(keys(show.body), ["`hours`", "`late_ns`"]);
        let wait = definition(SOURCES, "clock_wait").unwrap();
        assert!(
            wait.comment.is_none() && wait.body.starts_with("DELAY") && definition(SOURCES, "clock_gone").is_none()
        );
    }
}
