//! Common jobs, with the sources of their limits.

/// A job and its requirements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Job {
    /// Its name on the command line.
    pub name: &'static str,
    /// Description of the job.
    pub about: &'static str,
    /// Its requirements, each a [`JobNeed`](super::JobNeed).
    pub requirements: &'static [&'static str],
    /// Source of the limits.
    pub source: &'static str,
}

/// All ready-made jobs.
pub const JOBS: &[Job] = &[
    Job {
        name: "audio",
        about: "play and record sound with buffers of 64 frames at 48 kHz",
        requirements: &["audio 48kHz/64"],
        source: "the period of the buffer; half of it is left to the program that fills it",
    },
    Job {
        name: "audio-relaxed",
        about: "play and record sound with buffers of 256 frames at 48 kHz, as an ordinary program",
        requirements: &["audio 48kHz/256 ordinary"],
        source: "the period of the buffer; half of it is left to the program that fills it",
    },
    Job {
        name: "cnc-servo",
        about: "close the servo loop of a machine tool whose motion card generates the steps",
        requirements: &["loop 1kHz jitter 100us p99.99"],
        source: "LinuxCNC, Latency test: up to 100 us is desirable for a servo thread of 1 ms; motion cards tolerate 500 us",
    },
    Job {
        name: "cnc-steps",
        about: "generate the steps of motors in software, on a parallel port",
        requirements: &["loop 25us jitter 20us p99.99"],
        source: "LinuxCNC, Latency test: less than 15 to 20 us is good for a base thread of 25 us",
    },
    Job {
        name: "ethercat",
        about: "run the master of an EtherCAT bus with cycles of 1 ms",
        requirements: &["loop 1kHz jitter 100us p99.99"],
        source: "a rule of thumb: a tenth of the cycle",
    },
    Job {
        name: "shutter",
        about: "expose for 100 ms, accurate to 1 in 10,000",
        requirements: &["delay 100ms within 10us"],
        source: "1 in 10,000 of the exposure",
    },
    Job {
        name: "front-end",
        about: "drive devices of an accelerator 100 us after a timing event",
        requirements: &["react 100us p99.9"],
        source: "FESA's latency note of 2007: reactions of 50 to 170 us by a real-time task",
    },
    Job {
        name: "telescope",
        about: "update a telescope's mount at 20 Hz and answer its network within 1 ms",
        requirements: &["loop 20Hz jitter 1ms p99.9", "react to udp 1ms p99.9"],
        source: "a fiftieth of the period",
    },
    Job {
        name: "daq",
        about: "record four channels of 16 bit at 10 MS/s for an hour; --dir names the folder",
        requirements: &["record 80MB/s for 1h"],
        source: "the rate of the card; no sample may be lost",
    },
];

impl Job {
    /// The job with this name.
    pub fn find(name: &str) -> Option<&'static Self> {
        JOBS.iter().find(|job| job.name == name)
    }
}

#[cfg(test)]
mod tests {
    use super::super::JobNeed;
    use super::*;

    #[test]
    fn every_job_can_be_read_and_has_a_source() {
        for job in JOBS {
            for requirement in job.requirements {
                let read = requirement.parse::<JobNeed>();
                assert!(read.is_ok(), "{}: {}", job.name, read.expect_err("no requirement"));
            }
            assert!(!job.source.is_empty() && Job::find(job.name) == Some(job));
        }
    }
}
