//! Proof: none of a million pulses of a virtual board is shorter than requested.

use hairspring_device::{AccessTimes, Device, Lines, Protocol, Pulse, VirtualBoard};
use hairspring_machine::{Host, Nanos};
use hairspring_sheet::{Figure, Method, Unit};
use hairspring_time::Timebase;
use serde_json::{Map, json};

use crate::Verdict;

/// The requested lengths, in turn.
const WIDTHS: [Nanos; 4] = [Nanos::new(100), Nanos::from_micros(1), Nanos::from_micros(3), Nanos::from_micros(10)];

/// Makes `count` pulses, with the access times of the board in FESA's note and with zero access time.
pub(crate) fn prove(count: u64) -> Verdict {
    let mut figures = Map::new();
    let made = pulses(count, &mut figures);
    let passed = match made {
        Ok(short) => short == 0,
        Err(why) => {
            figures.insert("defect".to_owned(), json!(why));
            false
        }
    };
    Verdict { passed, figures }
}

fn pulses(count: u64, figures: &mut Map<String, serde_json::Value>) -> Result<u64, String> {
    let timebase = Timebase::calibrate_to(Host, 1.0, Nanos::from_millis(100)).map_err(|error| error.to_string())?;
    let (mut short, mut disturbed, mut all) = (0, 0, 0_u64);
    for (name, times) in [("zero", AccessTimes::ZERO), ("fesa", AccessTimes::FESA)] {
        let path =
            std::env::current_dir().map_err(|error| error.to_string())?.join(format!("target/prove-board-{name}"));
        drop(std::fs::remove_file(&path));
        let board = VirtualBoard::open(&path, times, Lines(0), Protocol::None, &timebase);
        let mut board = board.map_err(|error| error.to_string())?;
        board.init().map_err(|error| error.to_string())?;
        for width in WIDTHS {
            let pulse = Pulse { lines: Lines::one(0), width };
            let each = count / (2 * WIDTHS.len() as u64);
            let mut longer = Vec::with_capacity(each as usize);
            for _ in 0..each {
                let report = pulse.fire(&mut board, &timebase).map_err(|error| error.to_string())?;
                short += u64::from(report.at_least < width);
                disturbed += u64::from(report.is_disturbed());
                longer.push((report.at_most - width).count() as f64);
            }
            all += each;
            let figure = Figure::from_samples(Unit::Ns, Method::Stamp, &mut longer);
            let told = json!({ "median": figure.median, "p99": figure.p99, "max": figure.max });
            figures.insert(format!("{name}, {width}: greatest excess, ns"), told);
        }
        drop(std::fs::remove_file(&path));
    }
    figures.insert("pulses".to_owned(), json!(all));
    figures.insert("shorter than asked".to_owned(), json!(short));
    figures.insert("disturbed while up".to_owned(), json!(disturbed));
    Ok(short)
}
