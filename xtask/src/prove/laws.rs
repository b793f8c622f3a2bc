//! The laws: never early, never silent, never naked, each in the corners where it once broke.
//!
//! Each proof is the long form of tests that every run has in a short form. What could not be tried on this machine is
//! reported as not run.

use super::Proof;

pub(super) const PROOFS: &[Proof] = &[
    Proof {
        name: "rate-steps",
        claim: "Of a million delays from 20 µs on, by each way to wait, none is early by the kernel's clock while adjtimex steps its \
                rate by ±500 ppm at random moments.",
        command: &["tests", "--times", "34", "-p hairspring-time --test rates"],
        limit_s: 900,
    },
    Proof {
        name: "blind-spots",
        claim: "Of the repeated delays that stamps around the call see more than 1.5 µs late, at most one in 20 is called clean. The \
                first one after a pause is counted apart: what fetching its code takes before its first reading, it cannot see.",
        command: &["blind-spots", "--count", "1000000"],
        limit_s: 600,
    },
    Proof {
        name: "way-out",
        claim: "As the caller sees them, delays from 1 µs to 1 s under SCHED_FIFO and SCHED_OTHER are at the median at most 10 ns \
                later than those of spin_sleep with its hint, and at most 60 ns late below 1 ms; at 1 s they use at most 0.02 % of \
                a CPU under SCHED_FIFO.",
        command: &["way-out"],
        limit_s: 900,
    },
    Proof {
        name: "rates-simulated",
        claim: "Whatever the kernel's rate does within ±100,000 ppm in virtual time, no delay of 20 µs or more, deadline or long \
                delay ends early, and its report agrees.",
        command: &["tests", "-p hairspring-time --test it rate_changes"],
        limit_s: 900,
    },
    Proof {
        name: "settings-held",
        claim: "In random programs of acquiring and dropping settings the most recent wish that is still held is in force at each \
                moment, and at the end everything is as before, on the simulated machine and on this one.",
        command: &["tests", "--times", "100", "-p hairspring-machine --test it held"],
        limit_s: 900,
    },
    Proof {
        name: "promptness",
        claim: "On 20,000 random machines in virtual time (rate of the counter, its steps, the kernel's rate ±100,000 ppm) no call of \
                a task on fibers returns while what is due for a more urgent one has not been served.",
        command: &["tests", "-p hairspring-exec --test it promptness"],
        limit_s: 1800,
    },
    Proof {
        name: "stopped-processes",
        claim: "A process that is stopped by SIGSTOP in any stage of its executive says how late everything was when it goes on.",
        command: &["tests", "-p hairspring-exec --test it stopped::"],
        limit_s: 900,
    },
    Proof {
        name: "boards",
        claim: "A board that two PID namespaces share, a file cut under its mapping and a guard that is forgotten are errors for \
                their users and end none.",
        command: &["tests", "-p hairspring-device -p hairspring-station --test it gone"],
        limit_s: 900,
    },
    Proof {
        name: "hostile-senders",
        claim: "None of 6,400 hostile senders (random sizes, numbers and bursts) ends a UDP recording, and everything they did is \
                counted.",
        command: &["tests", "--times", "100", "-p hairspring-source --lib no_hostile_datagram"],
        limit_s: 1800,
    },
    Proof {
        name: "senders",
        claim: "Of 100,000 senders that skip 1 to a million datagrams, swap, repeat, restart and stop at any moment, with numbers of 8 to 64 bits: \
                what was recorded, what is declared lost and the bounds of that contain the truth.",
        command: &["tests", "--times", "250", "-p hairspring-source --lib what_is_recorded_of_any_sender"],
        limit_s: 3600,
    },
    Proof {
        name: "languages",
        claim: "C, Tcl and Python keep the laws as installed, and the ten examples are the same in every language in their values, \
                too: planned times stay planned, elapsed times elapsed.",
        command: &["steps", "c", "optimised", "tcl", "install", "python", "wheel", "shapes"],
        limit_s: 3600,
    },
    Proof {
        name: "interleavings",
        claim: "The doorbell and the ring between interrupt sources and the executive, the gate of interrupt procedures, the \
                cursors of the recording ring with its evictions and taps, the words of a signal, and the counts of C's \
                handles miss, lose, double and tear nothing and hold nobody up; a lock in the order of coming is never had by \
                two. In any interleaving of their threads with up to three preemptions.",
        command: &["interleavings"],
        limit_s: 900,
    },
    Proof {
        name: "stream-sanitizers",
        claim: "ThreadSanitizer and AddressSanitizer (nightly) see no data race and no bad access in the tests of ring, \
                source, record and play with threads or raw memory.",
        command: &["stream-sanitizers"],
        limit_s: 1800,
    },
    Proof {
        name: "executive-sanitizers",
        claim: "ThreadSanitizer and AddressSanitizer (nightly) see no data race and no bad access in the tests of the \
                executive's thread back-end and its interrupt sources.",
        command: &["executive-sanitizers"],
        limit_s: 1800,
    },
    Proof {
        name: "c-sanitizers",
        claim: "ThreadSanitizer and AddressSanitizer (nightly) see no data race and no bad access in the programs in C of the \
                executive, the library included: the first on threads, the second on every back-end.",
        command: &["c-sanitizers"],
        limit_s: 3600,
    },
    Proof {
        name: "crashes",
        claim: "Of 20,000 recordings on the scripted disk, with faults, storms of gaps and crashes at any operation through the end, \
                the metadata of none say more than there is.",
        command: &["crashes"],
        limit_s: 5400,
    },
    Proof {
        name: "lying-disks",
        claim: "After a power cut on a disk that confirms syncs it has not made, a reader of a recording finds what is lost, whatever \
                its metadata say, and recovery keeps what checksums prove.",
        command: &["tests", "--times", "20", "-p hairspring-record --test it lying::"],
        limit_s: 1800,
    },
    Proof {
        name: "hardship",
        claim: "A recording survives what it is stopped by for a while (SIGSTOP), 64 open files at most and a memlock limit of 64 KiB, \
                or says why it does not begin.",
        command: &["tests", "-p hairspring-record --test it hardship"],
        limit_s: 900,
    },
    Proof {
        name: "two-of-everything",
        claim: "Of 10,000 pairs of acts on one recording (record, resume, recover, verify, compress, undo, join, keep, retention, export, play, \
                follow, copy, hard-link, remove, move, truncate; one, striped, in segments), the second begun at any moment of the first and the \
                first killed or not, none calls good what is not there, and none changes anything else. The same holds for recover and compress on \
                4,000 copies of any subset of a recording's files.",
        command: &["tests", "--times", "250", "-p hairspring-cli --test it record::pairs::"],
        limit_s: 4 * 3600,
    },
];
