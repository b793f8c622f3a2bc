//! Limits of the scheduler, moves between CPUs, and culprits with names on an otherwise idle machine.

use std::path::{Path, PathBuf};

use hairspring_machine::{Cpu, Host, Machine, Nanos, Policy};
use rustix::thread::Pid;
use testing::skip;

use super::{
    Right, Stretch, Watched, cpu, explained, judge, judge_gaps, lost, other, pin, poll, provoke, say, terms, times,
};
use crate::host::own_thread;
use crate::host::tests::now;
use crate::{Culprit, CulpritKind, Occupant, blame};

#[test]
fn a_limit_of_the_group_is_blamed_as_throttling() {
    const TEST: &str = "a_limit_of_the_group_is_blamed_as_throttling";
    let cpu = cpu();
    let Some(mut watched) = Watched::open(TEST, cpu, Policy::Other) else { return };
    let group = match Group::limited() {
        Ok(group) => group,
        Err(why) => return skip(TEST, why),
    };
    let end = now() + Group::PERIOD * times(20) as i64;
    let gaps = poll(|at| at >= end);
    let (count, throttled) = group.throttled();
    drop(group);
    let history = watched.history();
    // No other cause takes half of the time that the limit takes in each period.
    let long = |gap: &Stretch| gap.to - gap.from >= (Group::PERIOD - Group::QUOTA) / 2;
    // If another task takes the CPU at once, that task is blamed: the records do not show that this thread could not
    // have run.
    let idle = |gap: &Stretch| {
        let occupants = history.occupants(gap.from, gap.to);
        occupants.iter().any(|(_, _, one)| matches!(one, Occupant::Task(task) if task.is_idle()))
    };
    let unoccupied = gaps.iter().copied().filter(|gap| long(gap) && idle(gap)).collect();
    let provoked: Vec<Stretch> = explained(&history, unoccupied);
    let found: Nanos = provoked.iter().map(|gap| gap.to - gap.from).sum();
    let told = format!("{throttled} in {count} periods by the kernel's account, {found} in {} gaps", provoked.len());
    if (found - throttled).abs() > throttled / 10 || provoked.is_empty() {
        return skip(TEST, format!("the machine was too busy: {told}"));
    }
    say(&format!("{TEST}, throttled"), told);
    let right = |culprit: &Culprit| *culprit == Culprit::Throttling;
    // Each lasts longer than two ticks of the timer, and a guest's timer involves its host: both truly took a part.
    let all =
        |culprit: &Culprit| right(culprit) || culprit.kind() == CulpritKind::Timer || *culprit == Culprit::Hypervisor;
    judge(TEST, &history, &terms(&gaps, &history), &provoked, count, &Right { all, named: right });
}

/// A group of this thread alone, limited to half of the CPU time; dropping it moves the thread back.
struct Group {
    before: PathBuf,
    folder: PathBuf,
}

impl Group {
    const PERIOD: Nanos = Nanos::from_millis(20);
    const QUOTA: Nanos = Nanos::from_millis(10);

    fn limited() -> Result<Self, String> {
        let groups = std::fs::read_to_string("/proc/thread-self/cgroup").map_err(|error| error.to_string())?;
        let mounts = std::fs::read_to_string("/proc/self/mounts").map_err(|error| error.to_string())?;
        let has_cpu = |options: &str| options.split(',').any(|option| option == "cpu");
        let mounted = mounts.lines().find_map(|line| match line.split(' ').collect::<Vec<_>>()[..] {
            [_, place, "cgroup", options, ..] if has_cpu(options) => Some(place),
            _ => None,
        });
        let own = groups.lines().find_map(|line| match line.split(':').collect::<Vec<_>>()[..] {
            [_, controllers, place] if has_cpu(controllers) => Some(place),
            _ => None,
        });
        let (Some(mounted), Some(own)) = (mounted, own) else {
            return Err(
                "no CPU controller of the first kind (cgroup), which can limit a thread alone, is mounted".to_owned()
            );
        };
        let before = Path::new(mounted).join(own.trim_start_matches('/'));
        let folder = before.join(format!("hairspring-provoked-{}", std::process::id()));
        std::fs::create_dir(&folder).map_err(|error| format!("failed to make {}: {error}", folder.display()))?;
        let group = Self { before, folder };
        let micros = |time: Nanos| (time.count() / 1_000).to_string();
        let steps = [
            ("cpu.cfs_period_us", micros(Self::PERIOD)),
            ("cpu.cfs_quota_us", micros(Self::QUOTA)),
            ("tasks", own_thread().to_string()),
        ];
        for (file, value) in steps {
            std::fs::write(group.folder.join(file), value)
                .map_err(|error| format!("failed to write {file}: {error}"))?;
        }
        Ok(group)
    }

    /// Times and total duration for which the kernel has throttled the group.
    fn throttled(&self) -> (usize, Nanos) {
        let text = std::fs::read_to_string(self.folder.join("cpu.stat")).unwrap_or_default();
        let of =
            |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<i64>().ok()).unwrap_or(0);
        (usize::try_from(of("nr_throttled ")).unwrap_or(0), Nanos::new(of("throttled_time ")))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // An empty group that stays is harmless.
        let _ = std::fs::write(self.before.join("tasks"), own_thread().to_string());
        let _ = std::fs::remove_dir(&self.folder);
    }
}

#[test]
fn a_move_to_another_cpu_is_blamed_as_a_migration() {
    const TEST: &str = "a_move_to_another_cpu_is_blamed_as_a_migration";
    let home = cpu();
    let Some(away) = other(TEST, home) else { return };
    let Some(mut watched) = Watched::open(TEST, home, Policy::Fifo(1)) else { return };
    let polling = Pid::from_raw(own_thread().cast_signed());
    let to = |cpu: Cpu| {
        let mut set = rustix::thread::CpuSet::new();
        set.set(cpu.0 as usize);
        rustix::thread::sched_setaffinity(polling, &set).expect("a thread of this process may be moved");
    };
    let mut is_home = true;
    let (gaps, provocations) = provoke(away, || {
        to(if is_home { away } else { home });
        is_home = !is_home;
    });
    pin(home);
    // On its way back the thread comes from a CPU whose records are not read.
    let provocations: Vec<Stretch> = provocations.into_iter().step_by(2).collect();
    let of = |kind| move |culprit: &Culprit| culprit.kind() == kind;
    // The message of the CPU that moves it.
    let messages = [of(CulpritKind::Reschedule), of(CulpritKind::FunctionCall)];
    let named = of(CulpritKind::Migration);
    let right = Right { all: |culprit: &Culprit| named(culprit) || messages.iter().any(|is| is(culprit)), named };
    judge_gaps(TEST, &watched.history(), &gaps, &provocations, &right);
}

#[test]
fn gaps_of_a_polling_loop_have_names() {
    const TEST: &str = "gaps_of_a_polling_loop_have_names";
    /// The least share of gaps with a name.
    const NAMED_LEAST: f64 = 0.95;
    for cpu in Host.affinity().0 {
        let Some(mut watched) = Watched::open(TEST, cpu, Policy::Other) else { return };
        let end = now() + Nanos::from_millis(500) * times(1) as i64;
        let gaps = poll(|at| at >= end);
        let history = watched.history();
        let terms = terms(&gaps, &history);
        let named =
            |gap: &&Stretch| blame(&lost(gap), &history, &terms).parts.iter().all(|part| part.culprit.is_named());
        let count = gaps.iter().filter(named).count();
        let part = count as f64 / gaps.len().max(1) as f64;
        say(&format!("{TEST}, CPU {}", cpu.0), format!("{count} of {}", gaps.len()));
        assert!(part >= NAMED_LEAST || gaps.is_empty(), "CPU {}: {count} of {} have a name", cpu.0, gaps.len());
    }
}
