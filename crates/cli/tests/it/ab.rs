//! `hairspring ab`: two builds in turns. How much it declares on a quiet machine is for the proof `agreement`; here it must not declare much
//! on whatever machine runs the tests.

use hairspring_sheet::{Interleaved, compare_interleaved};

use crate::{code, folder, json_file, names, run, stderr};

/// This build, as the test starts it.
const BUILD: &str = env!("CARGO_BIN_EXE_hairspring");
/// Enough rounds for pairs to be judged as pairs.
const ROUNDS: &str = "5";

#[test]
fn a_build_hardly_differs_from_its_copy() {
    let folder = folder();
    let mut declared = 0;
    for seed in ["1", "2"] {
        let file = folder.path().join(format!("{seed}.json"));
        let out = file.to_str().expect("temporary names are text");
        let arguments = ["ab", BUILD, BUILD, "--quick", "--rounds", ROUNDS, "--seed", seed, "--only", "clocks.read"];
        let output =
            run(&[&arguments[..], &["--out", out, "--sheets", folder.path().to_str().expect("text")]].concat());
        // A machine that runs other tests disturbs most pairs, which is told, and then nothing is declared.
        assert!([0, 9].contains(&code(&output)), "{} {}", code(&output), stderr(&output));
        let measured: Interleaved = serde_json::from_value(json_file(&file)).expect("it is a comparison");
        assert_eq!((measured.baseline.hash.as_str(), measured.rounds), (measured.other.hash.as_str(), 5));
        assert!(measured.rows.len() > 20 && measured.sentinels.len() == 4, "{} rows", measured.rows.len());
        let pairs = measured.rows.iter().map(|row| row.pairs.iter().filter(|pair| pair.other.is_some()).count()).max();
        assert!(pairs >= Some(5), "{pairs:?} pairs");
        let comparison = compare_interleaved(&measured, None);
        declared += comparison.rows.iter().flat_map(|row| &row.others).filter(|other| other.verdict.differs()).count();
        assert_eq!(json_file(&folder.path().join("b.json"))["schema"], "hairspring.sheet/1");
    }
    assert!(declared <= 1, "{declared} rows are declared");
    assert_eq!(names(folder.path()), ["1.json", "2.json", "a.json", "b.json"]);
}

#[test]
fn what_is_no_build_or_no_row_is_refused_before_anything_is_measured() {
    let refused = |arguments: &[&str], told: &str| {
        let output = run(&[&["ab"], arguments].concat());
        assert_eq!((code(&output), stderr(&output).contains(told)), (2, true), "{}", stderr(&output));
    };
    refused(&[BUILD, "/no/such/program"], "/no/such/program cannot be read");
    refused(&[BUILD, "/bin/true"], "/bin/true is no build that measures in rounds");
    refused(&[BUILD, BUILD, "--only", "clocks.rea"], "clocks.read");
    refused(&[BUILD, BUILD, "--rounds", "1"], "--rounds");
    refused(&[BUILD, BUILD, "--sheets", "/no/such/folder"], "/no/such/folder is not a folder");
}
