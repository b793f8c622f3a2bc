//! The commands that judge: whether the computer can do a job, and which settings would help.

mod answer;
pub(crate) mod can;
pub(crate) mod doctor;
pub(crate) mod jobs;
pub(crate) mod recording;
pub(crate) mod soak;
pub(crate) mod watch;

use crate::page::commands;

commands! { "Conclude":
    Can(can),
    Soak(soak),
    Doctor(doctor),
    Watch(watch),
}
