//! Asks for a real-time policy and locked memory, and prints what was granted; leaving gives it all back.
#![expect(clippy::print_stdout, reason = "an example shows what came of it")]

use hairspring_time::{Grant, Host, Machine, Policy, RealTime};

fn main() {
    let wishes = RealTime { policy: Some(Policy::Fifo(50)), lock_memory: true, ..RealTime::default() };
    let guard = wishes.apply(&Host);
    let (policy, priority) = match Host.policy() {
        Policy::Fifo(priority) => ("fifo", priority),
        Policy::RoundRobin(priority) => ("rr", priority),
        Policy::Other => ("other", 0),
        Policy::Unknown(_) => ("unknown", 0),
    };
    let granted = |setting| guard.grants().contains(&Grant::Granted(setting));
    let (in_time, locked) = (granted("policy"), granted("lock_memory"));
    println!("policy {policy}");
    println!("priority {priority}");
    println!("memory_locked {}", if locked { "yes" } else { "no" });
    println!("granted {}", ["none", "some", "all"][usize::from(in_time) + usize::from(locked)]);
}
