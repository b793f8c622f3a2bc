//! A sheet keeps to its time, whatever its number of rounds: the work of a probe beside its share is done once in each
//! of them.

use hairspring_machine::{Nanos, Sim};
use hairspring_suite::{Effort, SheetRequest, registry};

use super::{Script, request, take_watched};

/// Chapters that a simulated machine has.
const CHAPTERS: [&str; 4] = ["clocks", "delays", "sleeps", "disturbance"];

#[test]
fn chapters_in_rounds_take_no_longer_than_their_budget() {
    assert!(CHAPTERS.iter().all(|chapter| registry().iter().any(|known| known.id == *chapter)));
    let effort = Effort::Quick;
    let request = SheetRequest { rounds: effort.rounds(), ..request(&CHAPTERS, effort) };
    let sheet = take_watched(&Sim::new(Script::default()), &request, |_, _| {});
    let took = Nanos::try_from_secs_f64(sheet.taken.duration_s).expect("less than a century");
    let budget = effort.chapter_budget() * CHAPTERS.len() as i64;
    assert!(took <= budget, "{CHAPTERS:?} take {took} in {} rounds, and have {budget}", request.rounds);
}
