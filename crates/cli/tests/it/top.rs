//! `hairspring top`: the tasks of an executive that runs in this process.

use hairspring_exec::status::PublishedStatus;
use hairspring_exec::{Backend, Create, ExecConfig, Executive, Nanos, Priority, RunLimit, Services};

use crate::{code, run, stderr, succeed};

#[test]
fn the_tasks_of_a_running_executive_are_shown_with_what_they_do() {
    let name = format!("cli-{}", std::process::id());
    let mut executive = Executive::new(Backend::fiber(), &ExecConfig::default()).expect("it can be made");
    let line = executive.semaphore(0, 1).expect("few objects");
    let urgent = Priority::new(3).expect("0 to 63");
    let waits = executive.task("waits", urgent, move |ctx| {
        let _ = ctx.wait_semaphore(line, hairspring_exec::Limit::Forever);
    });
    let spins = executive.task("spins", Priority::LOWEST, |ctx| {
        loop {
            ctx.work(Nanos::from_micros(50));
        }
    });
    for task in [waits, spins] {
        executive.trigger(task.expect("few objects")).expect("it is idle");
    }
    executive.publish(&name).expect("the name fits");
    let stopper = executive.stopper();
    let asked = name.clone();
    let watcher = std::thread::spawn(move || {
        // Else the first picture could be of a time before the run.
        let found = PublishedStatus::find(&asked).expect("it is published");
        let begun = std::time::Instant::now();
        while !found.read().is_ok_and(|status| status.running && status.tasks.len() == 2) {
            assert!(begun.elapsed().as_secs() < 60, "after a minute it is {:?}", found.read());
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        let listed = succeed(&["top"]);
        let shown = succeed(&["top", &asked, "--once", "--every", "2s"]);
        stopper.stop();
        (listed, shown)
    });
    executive.run(RunLimit::For(Nanos::from_secs(100)));
    let (listed, shown) = watcher.join().expect("the command succeeds");
    assert!(listed.contains(&name), "{listed}");
    assert!(shown.contains(&format!("{name} (process {})", std::process::id())) && shown.contains("fiber"), "{shown}");
    let row = |task: &str| shown.lines().find(|line| line.trim_start().starts_with(task)).expect("it has a row");
    assert!(row("waits").contains("waiting") && row("waits").contains("semaphore 0"), "{shown}");
    assert!(row("spins").contains("ready") && row("spins").contains(" %"), "{shown}");
    drop(executive);
    let gone = run(&["top", &name, "--once"]);
    assert_ne!(code(&gone), 0);
    assert!(stderr(&gone).contains("Executive::publish"), "{}", stderr(&gone));
}

#[test]
fn pictures_that_come_faster_than_states_are_refused() {
    let refused = run(&["top", "anything", "--every", "10ms"]);
    assert_eq!(code(&refused), 2);
    assert!(stderr(&refused).contains("200ms"), "{}", stderr(&refused));
}
