//! `hairspring archive`: adding, listing, trends, comparing, removing; and refused input.

use std::process::{Command, Output};

use hairspring_sheet::render::{from_json, to_json};
use hairspring_sheet::{FactValue, Figure, Method, SheetFact, Unit, Value};
use tempfile::TempDir;
use testing::skip;

use crate::{HAIRSPRING, ROW, code, folder, hairspring, is_root, json, may_unshare, names, stderr, stdout};

const ID: &str = "clocks.read.now.later";

/// A small sheet of this day, with this kernel and this median.
fn sheet(day: usize, kernel: &str, median: f64) -> String {
    let mut sheet = from_json(include_str!("../../../../sheets/historic/fermilab-2007.json")).expect("it is a sheet");
    sheet.taken.effort = "quick".to_owned();
    sheet.taken.start = format!("2025-{:02}-{:02}T04:00:00Z", 1 + day / 28, 1 + day % 28);
    let fact = |id: &str, label: &str, value: &str| {
        let value = FactValue::Value(value.to_owned());
        SheetFact { id: id.to_owned(), label: label.to_owned(), value }
    };
    sheet.conditions.facts = vec![
        fact("host.name", "Host", "bench"),
        fact("cpu.model", "Processor", "EPYC"),
        fact("kernel.release", "Kernel", kernel),
    ];
    let mut row = sheet.chapters[0].tables[0].rows[0].clone();
    sheet.chapters.truncate(1);
    sheet.chapters[0].tables.truncate(1);
    row.id = ID.to_owned();
    row.value = Value::Figure(Figure::from_samples(Unit::Ns, Method::Diff, &mut [median; 12]));
    sheet.chapters[0].tables[0].rows = vec![row];
    to_json(&sheet)
}

/// A folder with the sheets of 20 days, of which the last eight have another kernel and are slower; and an archive of
/// them.
fn kept() -> TempDir {
    let folder = folder();
    std::fs::create_dir(folder.path().join("sheets")).expect("a folder");
    for day in 0..20 {
        let (kernel, median) = if day < 12 { ("6.8", 20.0) } else { ("6.9", 26.0) };
        let text = sheet(day, kernel, median * (1.0 + 0.002 * (day % 5) as f64));
        std::fs::write(folder.path().join(format!("sheets/{day:02}.json")), text).expect("written");
    }
    let added = archive(&folder, &["add", "sheets"]);
    assert_eq!((code(&added), stderr(&added).as_str()), (0, ""));
    assert_eq!(stdout(&added).matches(" added: ").count(), 20);
    folder
}

/// Runs the command with the archive of a folder, in that folder.
fn archive(folder: &TempDir, arguments: &[&str]) -> Output {
    let mut command = hairspring(&["archive", "--archive", "kept.db"]);
    command.args(arguments).current_dir(folder.path()).output().expect("started")
}

#[track_caller]
fn says(folder: &TempDir, arguments: &[&str]) -> String {
    let output = archive(folder, arguments);
    assert_eq!((code(&output), stderr(&output).as_str()), (0, ""), "{arguments:?}");
    stdout(&output)
}

#[track_caller]
fn refuses(folder: &TempDir, arguments: &[&str], hint: &str) {
    let output = archive(folder, arguments);
    assert_eq!((code(&output), stdout(&output).as_str()), (2, ""), "{arguments:?}");
    assert!(stderr(&output).contains(hint), "{arguments:?}: {}", stderr(&output));
}

#[test]
fn the_question_of_last_weeks_kernel_is_answered() {
    let folder = kept();
    assert!(says(&folder, &["add", "sheets/00.json"]).contains("is there already"));
    let trend = says(&folder, &["trend", ID]);
    assert!(trend.contains("! Kernel: 6.8 → 6.9") && trend.contains("higher: ") && trend.contains("× 1.30"), "{trend}");
    assert!(trend.contains("the last stretch has 8 sheets") && trend.contains("after 2 more"), "{trend}");
    assert!(trend.lines().all(|line| line.chars().count() <= 100), "{trend}");
    let page = says(&folder, &["trend", "clocks", "--format", "html"]);
    assert_eq!((page.matches("<circle").count(), page.matches("class=\"change\"").count()), (20, 1));
    assert_eq!(json(&says(&folder, &["trend", ID, "--format", "json"]))[0]["cuts"][0]["sheet"], 12);
}

#[test]
fn sheets_are_listed_shown_compared_and_removed() {
    let folder = kept();
    let list = json(&says(&folder, &["list", "--format", "json"]));
    let id = |place: usize| list["sheets"][place]["id"].as_str().expect("an id").to_owned();
    assert!(says(&folder, &["list", "--machine", "bench"]).lines().count() == 21);
    let written = std::fs::read_to_string(folder.path().join("sheets/00.json")).expect("read");
    assert_eq!(says(&folder, &["show", &id(0), "--format", "json"]), written);
    assert!(says(&folder, &["show", &id(0)[..10]]).contains("EPYC"));
    let compared = says(&folder, &["compare", &id(0), &format!("new={}", id(19))]);
    assert!(compared.contains("1 differ") && compared.contains("higher by"), "{compared}");
    let same = says(&folder, &["compare", &id(0), &id(5)]);
    assert!(same.contains("1 same"), "{same}");
    let preview = says(&folder, &["prune", "--before", "2025-01-03", "--keep", "19"]);
    assert!(preview.contains("2 of these would go; add --yes"), "{preview}");
    assert_eq!(says(&folder, &["prune", "--before", "2025-01-03", &id(5), "--yes"]), "3 removed\n");
    assert_eq!(says(&folder, &["prune", "--keep", "100", "--yes"]), "no sheet would go\n");
    assert_eq!(says(&folder, &["rebuild"]), "17 sheets\n");
    assert!(says(&folder, &["export", "table"]).contains("17 rows of 17 sheets in 1 below table"));
}

#[test]
fn every_point_of_the_site_leads_to_the_page_of_its_sheet() {
    let folder = kept();
    let other = sheet(3, "6.8", 90.0).replace("\"bench\"", "\"st<and\"");
    std::fs::write(folder.path().join("other.json"), other).expect("written");
    says(&folder, &["add", "other.json"]);
    let told = says(&folder, &["html", "site"]);
    assert!(told.contains("2 machines × 1 figures with 21 sheets"), "{told}");
    let index = || std::fs::read_to_string(folder.path().join("site/index.html")).expect("written");
    let page = index();
    assert_eq!((page.matches("<circle").count(), page.matches("class=\"shown\"").count()), (21, 1));
    assert!(page.contains("20.0 ns to 90.0 ns, logarithmic") && page.contains("× 1.30"), "{page}");
    assert!(page.contains("st&lt;and") && !page.contains("st<and"));
    for link in page.split("<a ").skip(1).filter_map(|rest| rest.split("href=\"").nth(1)?.split('"').next()) {
        let (file, row) = link.split_once('#').expect("a row");
        let text = std::fs::read_to_string(folder.path().join("site").join(file)).expect("the page is there");
        assert!(row == ID && text.contains(&format!("id=\"{row}\"")), "{link}");
    }
    // Again, with fewer sheets, in the place of the first.
    says(&folder, &["html", "site", "--sheets", "5", "--only", "clocks.*"]);
    assert_eq!(index().matches("<circle").count(), 6);
    std::fs::create_dir(folder.path().join("own")).expect("a folder");
    std::fs::write(folder.path().join("own/index.html"), "mine").expect("written");
    refuses(&folder, &["html", "own"], "has files that are not of `hairspring archive html`");
    refuses(&folder, &["html", "site", "--only", "delays"], "0 rows of the archive would be drawn");
    assert_eq!(std::fs::read_to_string(folder.path().join("own/index.html")).expect("read"), "mine");
}

#[test]
fn compare_takes_an_archive_as_its_ledger() {
    let folder = kept();
    let with = |more: &[&str]| {
        let mut command = hairspring(&["compare", "sheets/00.json", "sheets/19.json"]);
        stdout(&command.args(more).current_dir(folder.path()).output().expect("started"))
    };
    assert!(with(&[]).contains("1 cannot tell"));
    assert!(with(&["--ledger", "kept.db"]).contains("1 differ"), "{}", with(&["--ledger", "kept.db"]));
}

#[test]
fn a_sheet_is_added_as_soon_as_it_is_taken() {
    let folder = folder();
    let mut command = hairspring(&["sheet", "--quick", "--only", ROW, "--out", "sheet.json", "--archive"]);
    let output = command.env("XDG_DATA_HOME", folder.path()).current_dir(folder.path()).output().expect("started");
    assert_eq!((code(&output), stderr(&output).as_str()), (0, ""));
    let mut list = hairspring(&["archive", "list", "--format", "json"]);
    let list = json(&stdout(&list.env("XDG_DATA_HOME", folder.path()).output().expect("started")));
    let id = list["sheets"][0]["id"].as_str().expect("an id");
    let mut show = hairspring(&["archive", "show", id, "--format", "json"]);
    let shown = show.env("XDG_DATA_HOME", folder.path()).output().expect("started");
    assert_eq!(stdout(&shown), std::fs::read_to_string(folder.path().join("sheet.json")).expect("written"));
    assert_eq!(names(&folder.path().join("hairspring")), ["sheets.db"]);
}

#[test]
fn bad_requests_are_refused_and_change_nothing() {
    let folder = kept();
    let before = std::fs::read(folder.path().join("kept.db")).expect("read");
    refuses(&folder, &["add", "nowhere.json"], "there is no file nowhere.json");
    std::fs::write(folder.path().join("rubbish"), "rubbish").expect("written");
    refuses(&folder, &["add", "sheets/01.json", "rubbish"], "rubbish: failed to read a sheet");
    let large = std::fs::File::create(folder.path().join("large.json")).expect("made");
    large.set_len(100 << 20).expect("grown");
    refuses(&folder, &["add", "large.json"], "no sheet is that large");
    refuses(&folder, &["show", "zzz"], "`hairspring archive list` shows the ids");
    refuses(&folder, &["trend", "clocks.read.now.latex"], "did you mean clocks.read.now.later?");
    refuses(&folder, &["trend", ID, "--machine", "nowhere"], "the archive has bench");
    refuses(&folder, &["trend", ID, "--format", "md"], "choose text, html or json");
    refuses(&folder, &["prune", "--before", "yesterday"], "write a day such as");
    for (file, hint) in
        [("none.db", "`hairspring archive add SHEET` begins one"), ("rubbish", "it is not an archive of sheets")]
    {
        let mut list = hairspring(&["archive", "list", "--archive", file]);
        let output = list.current_dir(folder.path()).output().expect("started");
        assert_eq!((code(&output), stdout(&output).as_str()), (2, ""), "{file}");
        assert!(stderr(&output).contains(hint), "{}", stderr(&output));
    }
    assert_eq!(std::fs::read(folder.path().join("kept.db")).expect("read"), before);
    assert!(!folder.path().join("none.db").exists());
}

#[test]
fn on_a_full_disk_the_archive_stays_as_it_was() {
    let test = "on_a_full_disk_the_archive_stays_as_it_was";
    if !is_root() || !may_unshare() {
        skip(test, "a small disk needs root and new name spaces");
        return;
    }
    let folder = kept();
    let script = format!(
        "mkdir small && mount -t tmpfs -o size=600k none small && cp kept.db small && dd if=/dev/zero of=small/fill bs=4k 2>/dev/null; \
         cp small/kept.db before.db; '{HAIRSPRING}' archive --archive small/kept.db add new.json; code=$?; \
         cmp small/kept.db before.db && exit $code"
    );
    std::fs::write(folder.path().join("new.json"), sheet(40, "6.9", 26.0)).expect("written");
    let mut command = Command::new("unshare");
    let output = command.args(["--mount", "sh", "-c", &script]).current_dir(folder.path()).output().expect("started");
    assert_eq!(code(&output), 1, "{}{}", stdout(&output), stderr(&output));
    assert!(stderr(&output).contains("the disk is full"), "{}", stderr(&output));
}
