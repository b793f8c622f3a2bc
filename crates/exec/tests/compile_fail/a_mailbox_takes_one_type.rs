//! A mailbox is made for one type of message and takes no other.

use hairspring_exec::{Backend, ExecConfig, Create, Executive, Priority, Services, Urgency};

fn main() {
    let executive = Executive::new(Backend::fiber(), &ExecConfig::default()).unwrap();
    let mailbox = executive.mail_task("task", Priority::HIGHEST, [1; 4], |_, _, _: u32| {}).unwrap();
    executive.send(mailbox, Urgency::ALL[0], 1_u64).unwrap();
}
