//! Chapter *Executive*: how long the services of a multitasking executive take, in the form of KADAK's AMX timing guide.

mod bench;
mod ours;
pub mod port;
mod waitwake;

pub use bench::{Bench, Cache, Load};

#[cfg(test)]
mod tests {
    use hairspring_machine::{Host, Machine, Nanos};
    use hairspring_sheet::Value;
    use hairspring_time::Timebase;

    use super::*;

    #[test]
    fn wait_and_wake_yields_every_quantity_with_figure_or_reason() {
        let timebase = Timebase::calibrate(Host).expect("the host has a clock");
        let cpus = Host.affinity().0;
        let place = port::Place { cpu: cpus[cpus.len() - 1], other: None, measure_latency: false };
        let bench = Bench::new(timebase, place, Nanos::from_millis(5), 4 << 20);
        for cache in Cache::ALL {
            for (quantity, value) in waitwake::split::<ours::Ours<ours::Fiber>>(&bench, cache, true) {
                match value {
                    Value::Figure(figure) => assert!(figure.n > 0, "{quantity}"),
                    Value::Absent(absent) => assert!(!absent.reason.is_empty(), "{quantity}"),
                }
            }
        }
        assert_eq!(Load::ALL.map(Load::segment), ["idle", "loaded"]);
        assert!(waitwake::closed::<ours::Ours<ours::Fiber>>(&bench, Cache::Hot, true).is_ok());
    }
}
