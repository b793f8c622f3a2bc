//! A timer procedure has no call that can wait.

use hairspring_exec::{Backend, ExecConfig, Create, Executive, Limit, ResourceProtocol};
use hairspring_machine::Nanos;

fn main() {
    let executive = Executive::new(Backend::fiber(), &ExecConfig::default()).unwrap();
    let resource = executive.resource(ResourceProtocol::Inherit).unwrap();
    let semaphore = executive.semaphore(0, 1).unwrap();
    let procedure = move |ctx: &hairspring_exec::TimerCtx<'_>, _| {
        ctx.wait(Limit::Forever);
        ctx.delay(Nanos::ZERO);
        ctx.reserve(resource, Limit::Forever);
        ctx.wait_semaphore(semaphore, Limit::NoWait);
        ctx.suspend(hairspring_exec::TaskId::from_number(0));
        ctx.timer("another", |_, _| {});
    };
    executive.timer("timer", procedure).unwrap();
}
