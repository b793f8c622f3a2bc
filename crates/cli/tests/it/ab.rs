//! `hairspring ab`: two builds in turns. The proof `agreement` checks how much it declares on a quiet machine; here it
//! must not declare much on any machine that runs the tests.

use std::os::unix::fs::PermissionsExt;

use hairspring_sheet::{Interleaved, compare_interleaved};

use crate::{code, folder, json_file, names, run, stderr};

/// This build, as the test starts it.
const BUILD: &str = env!("CARGO_BIN_EXE_hairspring");
/// Enough rounds for pairs to be judged as pairs.
const ROUNDS: &str = "5";

#[test]
fn a_build_hardly_differs_from_its_copy() {
    let folder = folder();
    let file = folder.path().join("pairs.json");
    let paths = [&*file, folder.path()].map(|path| path.to_str().expect("temporary names are text"));
    let output = run(&["ab", BUILD, BUILD, "--quick", "--rounds", ROUNDS, "--seed", "1", "--only", "clocks.read"]
        .into_iter()
        .chain(["--out", paths[0], "--sheets", paths[1]])
        .collect::<Vec<_>>());
    // Other tests on the machine disturb most pairs; the report shows that, and then nothing is declared.
    assert!([0, 9].contains(&code(&output)), "{} {}", code(&output), stderr(&output));
    let measured: Interleaved = serde_json::from_value(json_file(&file)).expect("it is a comparison");
    assert_eq!((measured.baseline.hash.as_str(), measured.rounds), (measured.other.hash.as_str(), 5));
    assert!(measured.rows.len() > 20 && measured.sentinels.len() == 4, "{} rows", measured.rows.len());
    let pairs = measured.rows.iter().map(|row| row.pairs.iter().filter(|pair| pair.other.is_some()).count()).max();
    assert!(pairs >= Some(5), "{pairs:?} pairs");
    let comparison = compare_interleaved(&measured, None);
    let verdicts = comparison.rows.iter().flat_map(|row| &row.others).filter(|other| other.verdict.differs());
    assert!(verdicts.count() <= 1, "{comparison:?}");
    assert_eq!(json_file(&folder.path().join("b.json"))["schema"], "hairspring.sheet/1");
    assert_eq!(names(folder.path()), ["a.json", "b.json", "pairs.json"]);
}

#[test]
fn what_is_no_build_or_no_row_is_refused_before_anything_is_measured() {
    let refused = |arguments: &[&str], told: &str| {
        let output = run(&[&["ab"], arguments].concat());
        assert_eq!((code(&output), stderr(&output).contains(told)), (2, true), "{}", stderr(&output));
    };
    refused(&[BUILD, "/no/such/program"], "/no/such/program cannot be read");
    refused(&[BUILD, "/bin/true"], "/bin/true is not a build that measures in rounds");
    refused(&[BUILD, BUILD, "--only", "clocks.rea"], "clocks.read");
    refused(&[BUILD, BUILD, "--rounds", "1"], "--rounds");
    refused(&[BUILD, BUILD, "--sheets", "/no/such/folder"], "/no/such/folder is not a folder");
}

#[test]
fn a_process_that_dies_in_mid_round_costs_its_pair_and_is_told() {
    let folder = folder();
    // The fifth start (the first lists the rows, the second warms up) prints its first message, and is killed.
    let (dying, count) = (folder.path().join("dying"), folder.path().join("count"));
    let script = format!(
        "#!/bin/sh\nn=$(cat {count} || echo 0)\necho $((n+1)) > {count}\n\
         if [ $n = 4 ]; then {BUILD} \"$@\" | head -n 2; kill -9 $$; fi\nexec {BUILD} \"$@\"\n",
        count = count.display()
    );
    std::fs::write(&count, "0").expect("written");
    std::fs::write(&dying, script).expect("written");
    std::fs::set_permissions(&dying, PermissionsExt::from_mode(0o755)).expect("executable");
    let out = folder.path().join("pairs.json");
    let paths = [&dying, &out].map(|path| path.to_str().expect("text"));
    let output =
        run(&["ab", BUILD, paths[0], "--quick", "--rounds", "5", "--only", "clocks.read.now", "--out", paths[1]]);
    let told = stderr(&output);
    assert!([0, 9].contains(&code(&output)), "{} {told}", code(&output));
    assert!(told.contains("round 3, b: its process ended early (signal: 9"), "{told}");
    let measured: Interleaved = serde_json::from_value(json_file(&out)).expect("it is a comparison");
    for row in &measured.rows {
        let lost: Vec<u32> = row.pairs.iter().filter(|pair| pair.other.is_none()).map(|pair| pair.round).collect();
        assert_eq!(lost, [2], "{}", row.id);
        assert!(
            row.pairs.iter().filter(|pair| pair.other.is_some() && pair.baseline.is_some()).count() >= 4,
            "{}",
            row.id
        );
    }
}

#[test]
fn several_builds_a_side_must_be_as_many_and_have_the_same_rounds() {
    let folder = folder();
    let out = folder.path().join("pairs.json");
    let two = format!("{BUILD},{BUILD}");
    let refused = |arguments: &[&str], told: &str| {
        let output = run(&[&["ab", "--builds"], arguments].concat());
        assert_eq!((code(&output), stderr(&output).contains(told)), (2, true), "{}", stderr(&output));
    };
    refused(&[&two, BUILD], "2 builds against 1: name as many on either side");
    refused(&[&two, &two, "--rounds", "5"], "5 rounds are not as many of each of 2 builds: take 4 or 6");
    let arguments = ["ab", "--builds", &two, &two, "--quick", "--rounds", "4", "--only", "clocks.read.now"];
    let output = run(&[&arguments[..], &["--out", out.to_str().expect("text")]].concat());
    assert!([0, 9].contains(&code(&output)), "{}", stderr(&output));
    let measured: Interleaved = serde_json::from_value(json_file(&out)).expect("it is a comparison");
    assert_eq!((measured.builds, measured.baseline.name.as_str()), (2, two.as_str()));
    assert_eq!(measured.limits.len(), 4, "each sentinel has its limit");
}

#[test]
fn a_build_that_spins_in_a_row_is_slower_there_by_what_it_spins() {
    let folder = folder();
    let out = folder.path().join("pairs.json");
    let ids = ["clocks.read.now.later", "reaction.call.read", "executive.fiber.waitwake.t1.hot.idle"];
    let spin: Vec<String> = ids.iter().map(|id| format!("{id}=2000")).collect();
    let output = run(&[
        "ab",
        BUILD,
        BUILD,
        "--quick",
        "--rounds",
        "4",
        "--only",
        &ids.join(","),
        "--spin",
        &spin.join(","),
        "--out",
        out.to_str().expect("text"),
    ]);
    assert!([0, 9].contains(&code(&output)), "{}", stderr(&output));
    let measured: Interleaved = serde_json::from_value(json_file(&out)).expect("it is a comparison");
    for row in &measured.rows {
        let mut added: Vec<f64> = row.pairs.iter().filter_map(|pair| Some(pair.other? - pair.baseline?)).collect();
        added.sort_by(f64::total_cmp);
        // A machine that runs other tests can disturb either side of a pair for any time.
        let median = added.get(added.len() / 2);
        assert!(median.is_some_and(|ns| (1_000.0..20_000.0).contains(ns)), "{}: {added:?}", row.id);
    }
}
