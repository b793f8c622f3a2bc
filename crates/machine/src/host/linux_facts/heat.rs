//! How hot the machine is and how fast a CPU runs, at this moment.

use super::root::{self, Root};
use crate::Heat;

/// Temperature and frequency, as far as the kernel shows them: it shows neither in most virtual machines.
pub(crate) fn heat(root: &Root, cpu: u32) -> Heat {
    let zones = root.sys.join("class/thermal");
    let temperature = |zone: u32| root::number::<i32>(&zones.join(format!("thermal_zone{zone}/temp"))).ok();
    let hottest = root::numbered(&zones, "thermal_zone").into_iter().flatten().filter_map(temperature).max();
    let frequency = root::number::<u32>(&root.cpu(&format!("cpu{cpu}/cpufreq/scaling_cur_freq"))).ok();
    Heat {
        temperature_c: hottest.map(|thousandths| f64::from(thousandths) / 1000.0),
        frequency_hz: frequency.map(|khz| f64::from(khz) * 1000.0),
    }
}
