//! Delays and their time base: never early, as late as stated, and no silent disturbance.

pub(crate) mod blind_spots;
pub(crate) mod calibration;
pub(crate) mod long_delays;
pub(crate) mod never_early;
pub(crate) mod sentinel;
pub(crate) mod way_out;
