//! [`Held`]: a temporary setting of the calling thread. Several can be released in any order.
//!
//! **Problem.** A guard that saves the old value and restores it at its end is correct only if guards end in reverse
//! order. But fields drop in the order of their declaration, and handles of other languages in any order.
//!
//! **Solution.** Each thread has one stack of wishes. For each setting the most recent wish that is still held is in
//! force. Below all wishes lies the value from before the first. Releasing the wish in force puts the next one below it
//! into force. Releasing another wish changes nothing.
//!
//! ```text
//!   policy     affinity    timer slack
//!   FIFO 60                              ← in force; released: FIFO 50 comes into force
//!   FIFO 50    CPU 1                     ← released: FIFO 60 stays
//!   ─────────────────────────────────
//!   OTHER      CPUs 0,1    50 µs         from before the first wish
//! ```
//!
//! The memory lock belongs to the process, so it has a count instead ([`Machine::lock_memory`]). A limit on idle states
//! belongs to the process as well; of all that are held, the lowest is in force ([`Machine::limit_idle`]).
//!
//! **Conditions.** A direct call of [`Machine`] or of the system changes the setting in force, but not the stack. The
//! next change of the stack, or [`renew`], overrides it. Since Linux 6.12 a real-time policy has a slack of 0, and a
//! thread that leaves it gets the default slack. So a wish for a policy restores the slack as well.
//!
//! **When the thread has ended**, its settings have ended with it. Its remaining wishes then release only the memory
//! lock and the limit on idle states.

use std::marker::PhantomData;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use crate::{CpuSet, IdleLimit, Machine, Nanos, Policy, Refused};

/// A setting that a thread can hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Setting {
    /// The scheduling policy of the thread, with its priority.
    Policy,
    /// The CPUs that the thread may run on.
    Affinity,
    /// The timer slack of the thread.
    TimerSlack,
    /// The memory lock of the process.
    MemoryLock,
    /// The limit on the exit latency of all CPUs.
    Idle,
}

impl Setting {
    /// The present value; none for the memory lock and the limit on idle states, of which each holder has its own.
    fn read<M: Machine>(self, machine: &M) -> Option<Wish> {
        match self {
            Self::Policy => Some(Wish::Policy(machine.policy())),
            Self::Affinity => Some(Wish::Affinity(machine.affinity())),
            Self::TimerSlack => Some(Wish::TimerSlack(machine.timer_slack())),
            Self::MemoryLock | Self::Idle => None,
        }
    }
}

/// A setting with its wished value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wish {
    /// As [`Machine::set_policy`].
    Policy(Policy),
    /// As [`Machine::set_affinity`].
    Affinity(CpuSet),
    /// As [`Machine::set_timer_slack`].
    TimerSlack(Nanos),
    /// As [`Machine::lock_memory`].
    MemoryLock,
    /// As [`Machine::limit_idle`].
    Idle(Nanos),
}

impl Wish {
    /// The setting of this wish.
    pub fn setting(&self) -> Setting {
        match self {
            Self::Policy(_) => Setting::Policy,
            Self::Affinity(_) => Setting::Affinity,
            Self::TimerSlack(_) => Setting::TimerSlack,
            Self::MemoryLock => Setting::MemoryLock,
            Self::Idle(_) => Setting::Idle,
        }
    }
}

/// The wishes of one thread, which [`Machine::thread_settings`] keeps for each thread.
#[derive(Clone, Debug, Default)]
pub struct ThreadSettings(Arc<Mutex<Wishes>>);

impl ThreadSettings {
    fn alone(&self) -> MutexGuard<'_, Wishes> {
        // A panic half-way leaves at worst a wish that is in force and not held.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The owning thread, for code that keeps the wishes where other threads can reach them.
    pub fn owner(&self) -> Owner {
        Owner(Arc::downgrade(&self.0))
    }
}

/// The thread that holds wishes. This value outlives the thread.
#[derive(Clone, Debug)]
pub struct Owner(Weak<Mutex<Wishes>>);

impl Owner {
    /// Whether the calling thread may release the owner's wishes: it is the owner, or the owner has ended.
    pub fn admits<M: Machine>(&self, machine: &M) -> bool {
        self.0.strong_count() == 0 || self.is_caller(machine).is_some()
    }

    fn is_caller<M: Machine>(&self, machine: &M) -> Option<ThreadSettings> {
        machine.thread_settings().filter(|own| std::ptr::eq(Arc::as_ptr(&own.0), self.0.as_ptr()))
    }
}

/// A granted wish. It stays on the thread that made it.
///
/// Dropping it releases it and hides what could not be restored; [`release`](Held::release) returns that.
#[derive(Debug)]
#[must_use = "a wish that is dropped is released"]
pub struct Held<'m, M: Machine> {
    machine: &'m M,
    what: What,
    // The settings belong to the thread, so this value must not leave it.
    _thread: PhantomData<*const ()>,
}

#[derive(Debug)]
enum What {
    /// The wish with this number in the thread's stack.
    Wish(Owner, u64),
    Memory,
    Idle(IdleLimit),
    Released,
}

impl<'m, M: Machine> Held<'m, M> {
    /// Puts a wish into force on the calling thread. Allocates and locks; makes some system calls.
    ///
    /// # Errors
    /// The system refused, and nothing changed.
    pub fn take(machine: &'m M, wish: Wish) -> Result<Self, Refused> {
        let what = if wish == Wish::MemoryLock {
            machine.lock_memory()?;
            What::Memory
        } else if let Wish::Idle(most) = wish {
            What::Idle(machine.limit_idle(most)?)
        } else {
            let settings = machine.thread_settings().ok_or_else(|| Refused {
                attempted: format!("set {wish:?}"),
                said: "the thread is ending".to_owned(),
                remedy: "ask before the destructors of the thread's local values run".to_owned(),
            })?;
            let number = settings.alone().take(machine, wish)?;
            What::Wish(settings.owner(), number)
        };
        Ok(Self { machine, what, _thread: PhantomData })
    }

    /// Releases the wish.
    ///
    /// # Errors
    /// The refusals of the system while the next wish below was put into force. A refused wish is given up, and the one
    /// below it is tried. Releasing a wish that was given up returns its refusal again. If the system refuses the value
    /// from before the first wish, too, the thread keeps its present one.
    pub fn release(mut self) -> Result<(), Vec<Refused>> {
        let refusals = self.let_go();
        if refusals.is_empty() { Ok(()) } else { Err(refusals) }
    }

    fn let_go(&mut self) -> Vec<Refused> {
        match std::mem::replace(&mut self.what, What::Released) {
            // A binding may drop the wishes of an ended thread on another thread.
            What::Wish(owner, number) => match owner.is_caller(self.machine) {
                Some(own) => own.alone().release(self.machine, number),
                None => Vec::new(),
            },
            What::Memory => {
                self.machine.unlock_memory();
                Vec::new()
            }
            What::Idle(limit) => {
                drop(limit);
                Vec::new()
            }
            What::Released => Vec::new(),
        }
    }
}

impl<M: Machine> Drop for Held<'_, M> {
    fn drop(&mut self) {
        // A drop cannot report anything.
        drop(self.let_go());
    }
}

/// Puts the calling thread's most recent wish for a setting into force again, after other code has changed the setting.
/// Does nothing if the thread holds no wish.
///
/// # Errors
/// The system refused. The wish stays held.
pub fn renew<M: Machine>(machine: &M, setting: Setting) -> Result<(), Refused> {
    let Some(own) = machine.thread_settings() else { return Ok(()) };
    let mut wishes = own.alone();
    match wishes.latest(setting).cloned() {
        Some(wish) => wishes.apply(machine, &wish),
        None => Ok(()),
    }
}

/// The wishes of one thread.
#[derive(Debug, Default)]
struct Wishes {
    /// The value from before the first wish, for each setting with a wish. A wish for the policy also keeps the slack.
    before: Vec<Wish>,
    /// The held wishes, the most recent one last. The last one of each setting is in force.
    held: Vec<(u64, Wish)>,
    /// Wishes that were given up because the system refused to put them into force again.
    lost: Vec<(u64, Refused)>,
    last: u64,
}

impl Wishes {
    fn take<M: Machine>(&mut self, machine: &M, wish: Wish) -> Result<u64, Refused> {
        self.remember(machine, wish.setting());
        let wish = match wish {
            // 0 stands for the slack of a policy that has none.
            Wish::TimerSlack(slack) => Wish::TimerSlack(slack.max(Nanos::new(1))),
            wish => wish,
        };
        let applied = self.apply(machine, &wish);
        if applied.is_ok() {
            self.last += 1;
            self.held.push((self.last, wish));
        }
        self.forget();
        applied.map(|()| self.last)
    }

    fn release<M: Machine>(&mut self, machine: &M, number: u64) -> Vec<Refused> {
        if let Some(lost) = self.lost.iter().position(|(other, _)| *other == number) {
            return vec![self.lost.swap_remove(lost).1];
        }
        let Some(place) = self.held.iter().position(|(other, _)| *other == number) else { return Vec::new() };
        let setting = self.held.remove(place).1.setting();
        let was_in_force = !self.held[place..].iter().any(|(_, later)| later.setting() == setting);
        let mut refusals = Vec::new();
        while was_in_force && let Some(next) = self.latest(setting).cloned() {
            let Err(refused) = self.apply(machine, &next) else { break };
            refusals.push(refused.clone());
            let Some(given_up) = self.held.iter().rposition(|(_, wish)| wish.setting() == setting) else { break };
            self.lost.push((self.held.remove(given_up).0, refused));
        }
        self.forget();
        refusals
    }

    /// The value that must be in force.
    fn latest(&self, setting: Setting) -> Option<&Wish> {
        let held = self.held.iter().rev().map(|(_, wish)| wish);
        held.chain(&self.before).find(|wish| wish.setting() == setting)
    }

    /// Reads the value from before the first wish.
    fn remember<M: Machine>(&mut self, machine: &M, setting: Setting) {
        // A change of the policy can change the slack.
        let settings: &[Setting] =
            if setting == Setting::Policy { &[Setting::Policy, Setting::TimerSlack] } else { &[setting] };
        for &setting in settings {
            if !self.before.iter().any(|wish| wish.setting() == setting) {
                self.before.extend(setting.read(machine));
            }
        }
    }

    /// Forgets the former values of settings without a wish.
    fn forget(&mut self) {
        let held = &self.held;
        let is_held = |setting| held.iter().any(|(_, wish)| wish.setting() == setting);
        self.before.retain(|before| match before.setting() {
            Setting::TimerSlack => is_held(Setting::TimerSlack) || is_held(Setting::Policy),
            setting => is_held(setting),
        });
    }

    fn apply<M: Machine>(&mut self, machine: &M, wish: &Wish) -> Result<(), Refused> {
        match wish {
            Wish::Policy(policy) => {
                machine.set_policy(*policy)?;
                self.put_slack_back(machine);
                Ok(())
            }
            Wish::Affinity(cpus) => machine.set_affinity(cpus),
            Wish::TimerSlack(Nanos::ZERO) | Wish::MemoryLock | Wish::Idle(_) => Ok(()),
            Wish::TimerSlack(slack) => {
                machine.set_timer_slack(*slack);
                Ok(())
            }
        }
    }

    /// The policy may have changed the slack.
    fn put_slack_back<M: Machine>(&mut self, machine: &M) {
        // The policy had no slack at the first wish. If the present policy has one, that is the thread's slack without
        // a wish.
        if let Some(none) = self.before.iter_mut().find(|before| **before == Wish::TimerSlack(Nanos::ZERO)) {
            *none = Wish::TimerSlack(machine.timer_slack());
        }
        if let Some(&Wish::TimerSlack(slack)) = self.latest(Setting::TimerSlack)
            && slack != machine.timer_slack()
        {
            machine.set_timer_slack(slack);
        }
    }
}
