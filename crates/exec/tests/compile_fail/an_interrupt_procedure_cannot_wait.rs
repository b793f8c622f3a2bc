//! An interrupt service procedure has no call that can wait.

use hairspring_exec::{Backend, Bits, ExecConfig, Create, Executive, Limit, Priority, ResourceProtocol, InterruptSource, Urgency};
use hairspring_machine::Nanos;

fn main() {
    let mut executive = Executive::new(Backend::fiber(), &ExecConfig::default()).unwrap();
    let resource = executive.resource(ResourceProtocol::Inherit).unwrap();
    let semaphore = executive.semaphore(0, 1).unwrap();
    let events = executive.events(0).unwrap();
    let exchange = executive.exchange::<u32>([1; 4]).unwrap();
    let mailbox = executive.mail_task("task", Priority::HIGHEST, [1; 4], |_, _, _: u32| {}).unwrap();
    let procedure = move |ctx: &hairspring_exec::IspCtx<'_>, _| {
        ctx.wait(Limit::Forever);
        ctx.delay(Nanos::ZERO);
        ctx.reserve(resource, Limit::Forever);
        ctx.receive(mailbox, None, Limit::NoWait);
        ctx.send_wait(mailbox, Urgency::ALL[0], 1, Limit::Forever);
        ctx.fetch(exchange, Limit::NoWait);
        ctx.wait_semaphore(semaphore, Limit::NoWait);
        ctx.wait_events(events, Bits::Any(1), true, Limit::NoWait);
        ctx.wait_signals(Bits::Any(1), Limit::NoWait);
        ctx.suspend(mailbox.id());
        ctx.kill(mailbox.id());
        ctx.end();
        ctx.yield_now();
        ctx.work(Nanos::ZERO);
        ctx.task("another", Priority::HIGHEST, |_| {});
    };
    executive.attach("isp", InterruptSource::Software, procedure).unwrap();
}
