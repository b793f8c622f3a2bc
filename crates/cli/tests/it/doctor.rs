//! `hairspring doctor`: its candidates, its leftovers, and that two do not work at once.

use std::io::Read;
use std::process::Stdio;
use std::time::Duration;

use crate::{code, hairspring, items, json, run, stderr, stdout};

#[test]
fn a_doctor_tries_settings_beside_nothing_and_a_second_one_refuses() {
    let arguments = ["doctor", "--for", "loop 1kHz jitter 50us ordinary", "--turn", "30ms", "--format", "json"];
    // The one that comes second refuses; on a busy machine that may be the one that was started first.
    let state = tempfile::tempdir().expect("a folder");
    let best = |arguments: &[&str]| {
        hairspring(&[&["run", "--best"], arguments].concat())
            .env("XDG_STATE_HOME", state.path())
            .output()
            .expect("started")
    };
    let none = best(&["--", "echo", "ran"]);
    assert_eq!((code(&none), stdout(&none).as_str()), (2, ""));
    assert!(stderr(&none).contains("run `hairspring doctor` first"), "{}", stderr(&none));
    let both = (0..5).find_map(|_| {
        let mut first = hairspring(&arguments)
            .env("XDG_STATE_HOME", state.path())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the binary can be started");
        std::thread::sleep(Duration::from_millis(500));
        let second =
            hairspring(&["doctor", "--turn", "20ms"]).env("XDG_STATE_HOME", state.path()).output().expect("started");
        if code(&second) == 1 {
            return Some((first, second));
        }
        first.wait().expect("a child");
        None
    });
    let (mut first, refused) = both.expect("one of two doctors refuses");
    assert_eq!(code(&refused), 1, "{}", stdout(&refused));
    assert!(stderr(&refused).contains("another `hairspring doctor` is running"), "{}", stderr(&refused));
    let mut text = String::new();
    first.stdout.take().expect("piped").read_to_string(&mut text).expect("text");
    let ended = first.wait().expect("it ends").code();
    assert!(matches!(ended, Some(0 | 11)), "{ended:?}: {text}");
    let said = json(&text);
    let tried: Vec<&str> = items(&said, "tried").filter_map(|one| one["settings"].as_str()).collect();
    for id in ["idle=off", "policy=fifo:80", "slack=1us", "nice=-20"] {
        assert!(tried.contains(&id), "{tried:?}");
    }
    assert!(said["null"]["ratio"].as_f64().is_some_and(|ratio| ratio > 0.0), "{said}");
    for one in items(&said, "tried") {
        // A figure, or the reason why there is none.
        assert!(one["ratio"].is_number() != one["why_not"].is_string(), "{one}");
    }
    // The result is kept if the run concluded anything, even that nothing helps.
    let kept = state.path().join("hairspring/best.json");
    assert_eq!(kept.exists(), said["conclusive"] == true);
    let Ok(text) = std::fs::read_to_string(&kept) else { return };
    let ran = best(&["--", "echo", "ran"]);
    assert_eq!((code(&ran), stdout(&ran).as_str()), (0, "ran\n"), "{}", stderr(&ran));
    assert!(stderr(&ran).contains("the doctor of 0 min ago"), "{}", stderr(&ran));
    // Another kernel than it was found under.
    let release = json(&text)["conditions"]["kernel.release"].as_str().expect("a release").to_owned();
    std::fs::write(&kept, text.replace(&release, "0.1")).expect("written");
    let stale = best(&["--", "echo", "ran"]);
    assert_eq!((code(&stale), stdout(&stale).as_str()), (2, ""));
    assert!(stderr(&stale).contains("kernel.release was `0.1` and is `"), "{}", stderr(&stale));
}

#[test]
fn a_doctor_refuses_what_it_cannot_try() {
    for (arguments, exit, says) in
        [(&["doctor", "--for", "loop 1kHz"][..], 2, "write `jitter`"), (&["doctor", "--turn", "1ms"], 2, "too short")]
    {
        let output = run(arguments);
        assert_eq!(code(&output), exit, "{}", stdout(&output));
        assert!(stderr(&output).contains(says), "{}", stderr(&output));
    }
}
