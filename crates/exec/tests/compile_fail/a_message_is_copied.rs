//! Messages are copied as bytes: a type that owns or borrows something cannot be a message.

use hairspring_exec::{Backend, ExecConfig, Create, Executive, Priority};

fn main() {
    let executive = Executive::new(Backend::fiber(), &ExecConfig::default()).unwrap();
    executive.mail_task("owns", Priority::HIGHEST, [1; 4], |_, _, _: String| {}).unwrap();
    let local = 5;
    let borrowing = executive.exchange::<&u32>([1; 4]).unwrap();
    hairspring_exec::Services::post(&executive, borrowing, hairspring_exec::Urgency::ALL[0], &local).unwrap();
    executive.exchange::<std::rc::Rc<u32>>([1; 4]).unwrap();
}
