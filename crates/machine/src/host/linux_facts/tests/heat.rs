//! Temperature and frequency at a moment.

use super::super::heat;
use super::tree::Tree;
use crate::Heat;

#[test]
fn the_hottest_zone_and_the_frequency_of_the_cpu_are_read() {
    let tree = Tree::empty()
        .file("sys/class/thermal/thermal_zone0/temp", "41000\n")
        .file("sys/class/thermal/thermal_zone1/temp", "67500\n")
        .file("sys/class/thermal/cooling_device0/cur_state", "3\n")
        .file("sys/devices/system/cpu/cpu2/cpufreq/scaling_cur_freq", "3401000\n");
    assert_eq!(heat(&tree.root(), 2), Heat { temperature_c: Some(67.5), frequency_hz: Some(3.401e9) });
    assert_eq!(heat(&tree.root(), 3).frequency_hz, None);
}

#[test]
fn a_machine_that_shows_neither_has_none_rather_than_zero() {
    let tree = Tree::empty().file("sys/class/thermal/thermal_zone0/temp", "broken\n");
    assert_eq!(heat(&tree.root(), 0), Heat::default());
}
