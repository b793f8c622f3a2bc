//! Bad requests: exit code 2 and the expected syntax, before anything is measured.

use std::time::{Duration, Instant};

use crate::{code, folder, names, run, stderr, stdout};

/// Far less than the sheet of any of these requests would take, far more than a busy machine needs to refuse them.
const AT_ONCE: Duration = Duration::from_secs(5);

/// Checks that the request is refused with this hint, with nothing on the standard output, and at once.
#[track_caller]
fn check(arguments: &str, hint: &str) {
    let arguments: Vec<&str> = arguments.split_whitespace().collect();
    let start = Instant::now();
    let output = run(&arguments);
    let took = start.elapsed();
    assert_eq!(code(&output), 2, "{arguments:?}: {}", stderr(&output));
    assert!(stderr(&output).contains(hint), "{arguments:?} said {:?}, without {hint:?}", stderr(&output));
    assert_eq!(stdout(&output), "", "{arguments:?}");
    assert!(took < AT_ONCE, "{arguments:?} took {took:?}");
}

#[test]
fn a_bad_duration_is_refused_with_what_to_write_instead() {
    check("delay -5ms", "cannot be negative: write one like 250us");
    check("delay --thorough", "--help");
    check("delay 10", "write 10ns, 10us, 10ms or 10s");
    check("delay nan", "write a number and a unit");
    check("delay NaNms", "write a number and a unit");
    check("delay inf", "write a finite duration");
    check("delay -inf", "write a finite duration");
    check("delay 1e30s", "write a finite duration");
    check("delay 10parsec", "use ns, us, ms, s, min, h or d");
    check("delay ms", "write a number and a unit");
    check("delay 101ms", "add --long");
    check("delay 1s", "add --long");
    check("delay 200d --long", "more than 100 days");
    check("delay -1s --long", "cannot be negative");
    check("clock --age 10", "write 10ns, 10us, 10ms or 10s");
    check("clock --age nan", "write a number and a unit");
    check("clock --age 2h", "write a shorter time");
    check("clock --age -5ms", "write a duration like 250us");
}

#[test]
fn a_reference_that_is_not_there_is_refused_before_a_file_is_made() {
    let folder = folder();
    let to = folder.path().join("x").display().to_string();
    let record = |reference: &str, hint: &str| {
        check(&format!("record --card virtual:1ch,16bit,1MS/s --for 1s --to {to} --reference {reference}"), hint);
        assert_eq!(names(folder.path()), Vec::<String>::new());
    };
    record("ptp:/dev/ptp/none", "load the driver of a card or hypervisor");
    record("pps:/dev/null", "load the driver that stamps the pulses");
    record("ntp:/dev/ptp0", "there is no such reference clock");
    record("pps:/dev/pps0,late=1s", "up to 100ms");
}

#[test]
fn a_count_that_makes_no_sense_is_refused() {
    check("delay 1ms --count 0", "write a whole number from 1 to 1000000");
    check("delay 1ms --count -1", "write a whole number from 1 to 1000000");
    check("delay 1ms --count 1000001", "write a whole number from 1 to 1000000");
    check("delay 1ms --count many", "--count");
}

#[test]
fn a_cpu_or_a_priority_that_does_not_exist_is_refused() {
    check("delay 1ms --cpu 4000000", "choose from");
    check("delay 1ms --priority 0", "write a whole number from 1 to 99");
    check("delay 1ms --priority 100", "write a whole number from 1 to 99");
    check("sheet --cpu 4000000", "choose from");
    check("sheet --cpu one", "--cpu");
    check("sheet --cpu -1", "--cpu");
    check("sheet --priority 0", "write a whole number from 1 to 99");
    check("sheet --priority -1", "write a whole number from 1 to 99");
    check("sheet --priority 100", "write a whole number from 1 to 99");
}

#[test]
fn an_unknown_probe_is_refused_with_those_that_look_like_it() {
    check("sheet --only clocks.rea", "clocks.read");
    check("sheet --only clocks,nonsense", "no probe is called 'nonsense'; `hairspring probes` lists them all");
    check("sheet --only clocks,", "`hairspring probes` lists them all");
    check("sheet --only=", "`hairspring probes` lists them all");
    check("sheet --only clocks.read.now.later.more", "did you mean clocks.read.now.later");
}

#[test]
fn an_output_that_cannot_be_written_is_refused() {
    check("sheet --out /nowhere/at/all/sheet.json", "choose another file for --out");
    check("sheet --out /proc/sheet.json", "choose another file for --out");
    check("sheet --out /", "it is a directory; choose another file for --out");
    check("sheet --out sheet.pdf", "name the file .txt, .md, .json or .html, or add --format");
    check("sheet --format pdf", "possible values: text, md, json, html");
}

#[test]
fn a_refused_output_leaves_nothing_behind() {
    let folder = folder();
    let file = folder.path().join("sheet.json");
    check(&format!("sheet --cpu 4000000 --out {}", file.display()), "choose from");
    assert_eq!(names(folder.path()), [""; 0]);
}

#[test]
fn sheets_that_cannot_be_read_are_refused() {
    check("sheet --beside nobody", "the historic sheets are fermilab-2007");
    check("sheet --beside fermilab-2007 --format json", "hairspring compare");
    check("sheet --beside /dev/null", "/dev/null is not a sheet: it is empty");
    check("compare /nowhere/a.json /nowhere/b.json", "there is no file /nowhere/a.json");
    check("compare a.json", "there is no file a.json");
    check("compare /dev/null /dev/null", "/dev/null is not a sheet: it is empty");
    check("compare fermilab-2007", "one sheet");
    check("compare /dev/null /dev/null --fail-if clocks>20%", "write clocks>1.2");
    check("compare /dev/null /dev/null --fail-if clocks", "write clocks>1.2");
}

#[test]
fn what_is_no_command_is_refused() {
    check("frobnicate", "unrecognized subcommand");
    check("", "Usage: hairspring");
    check("sheet --quick --thorough", "cannot be used with");
    check("completions tcsh", "possible values: bash");
}
