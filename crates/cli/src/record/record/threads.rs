//! `--priority`, `--cpu`, `--node` and `--lock-memory`: the threads that move data.

use clap::Args;
use hairspring_machine::{Cpu, Host, Machine, Policy};
use hairspring_record::session::{RecordingThreads, ThreadGrant, node_cpus};
use serde_json::{Value, json};

use crate::arguments::number;
use crate::exit::Failure;
use crate::listing::Listing;

#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Threads")]
pub(crate) struct ThreadArguments {
    /// Serve the card under SCHED_FIFO with this priority, 2 to 99; the thread that writes gets one less
    #[arg(long, value_name = "P", allow_negative_numbers = true, value_parser = number::<u8>(2, 99))]
    priority: Option<u8>,
    /// CPU of the thread that serves the card, and after a comma that of the thread that writes
    #[arg(long, value_name = "N[,M]", value_delimiter = ',', num_args = 1)]
    cpu: Vec<u32>,
    /// NUMA node of the buffer and of both threads
    #[arg(long, value_name = "N", conflicts_with = "cpu")]
    node: Option<u32>,
    /// Lock the memory of the program, so that no page of it is ever missing
    #[arg(long)]
    lock_memory: bool,
}

impl ThreadArguments {
    pub(crate) fn threads(&self) -> Result<RecordingThreads, Failure> {
        let allowed = Host.affinity().0;
        if self.cpu.len() > 2 {
            return Err(Failure::bad_request("--cpu: name one CPU, or two with a comma between them"));
        }
        if let Some(cpu) = self.cpu.iter().find(|cpu| !allowed.contains(&Cpu(**cpu))) {
            let known: Vec<String> = allowed.iter().map(|cpu| cpu.0.to_string()).collect();
            return Err(Failure::bad_request(format!("--cpu {cpu}: this program may use {}", known.join(", "))));
        }
        let node = self.node.map(|node| (node, node_cpus(node)));
        if let Some((node, _)) = node.as_ref().filter(|(_, cpus)| cpus.0.is_empty()) {
            return Err(Failure::bad_request(format!(
                "--node {node}: there is no such node with CPUs for this program"
            )));
        }
        Ok(RecordingThreads {
            policy: self.priority.map(Policy::Fifo),
            source_cpu: self.cpu.first().copied().map(Cpu),
            recorder_cpu: self.cpu.last().copied().map(Cpu),
            node_cpus: node.map(|(_, cpus)| cpus),
            lock_memory: self.lock_memory,
        })
    }
}

/// Lists the grants and refusals of thread settings.
pub(super) fn text(listing: &mut Listing, grants: &[ThreadGrant]) {
    let one = |grant: &ThreadGrant| {
        let (thread, setting) = (grant.thread, grant.setting.replace('_', " "));
        match &grant.refused {
            None => format!("{thread}: {setting} granted"),
            Some(refused) => format!("{thread}: {setting} refused: failed to {refused}"),
        }
    };
    listing.facts("threads", grants.iter().map(one));
}

/// The same as JSON.
pub(super) fn json(grants: &[ThreadGrant]) -> Vec<Value> {
    let one = |grant: &ThreadGrant| {
        let refused = grant.refused.as_ref().map(ToString::to_string);
        json!({ "thread": grant.thread, "setting": grant.setting, "refused": refused })
    };
    grants.iter().map(one).collect()
}
