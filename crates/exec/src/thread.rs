//! Temporary.

use crate::config::{Config, ExecError, Profile};
use crate::engine::{Engine, IspBody, TaskBody, TimerBody};
use crate::interrupt::{Isp, Source};
use crate::message::Bytes;
use crate::report::{Finish, RunLimit};
use crate::trace::Trace;
use hairspring_exec_core::*;
use hairspring_machine::Nanos;

pub(crate) enum Threads {}

impl Threads {
    pub(crate) fn new(_: &Config, _: Profile) -> Result<Self, ExecError> {
        Err(ExecError::Config("not yet"))
    }
    pub(crate) fn trace(&self) -> Option<Trace> {
        match *self {}
    }
    pub(crate) fn message_fits<M>(&self) -> bool {
        match *self {}
    }
}

impl Engine for Threads {
    fn call(&self, _: By, _: Call) -> Reply {
        match *self {}
    }
    fn send(&self, _: By, _: Call, _: Bytes<'_>) -> Reply {
        match *self {}
    }
    #[expect(unsafe_code, reason = "x")]
    unsafe fn take(&self, _: TaskId, _: u32, _: *mut u8, _: usize) {
        match *self {}
    }
    fn started_with(&self, _: TaskId) -> u32 {
        match *self {}
    }
    fn now(&self) -> Moment {
        match *self {}
    }
    fn work(&self, _: TaskId, _: Nanos) {
        match *self {}
    }
    fn preempt_point(&self, _: TaskId) {
        match *self {}
    }
    fn create_task(&self, _: By, _: &str, _: Priority, _: [u16; 4], _: TaskBody) -> Result<TaskId, Status> {
        match *self {}
    }
    fn delete_task(&self, _: By, _: TaskId) -> Reply {
        match *self {}
    }
    fn create_timer(&self, _: By, _: &str, _: TimerBody) -> Result<TimerId, Status> {
        match *self {}
    }
    fn delete_timer(&self, _: By, _: TimerId) -> Reply {
        match *self {}
    }
    fn attach(&self, _: &str, _: Source, _: IspBody) -> Result<Isp, std::io::Error> {
        match *self {}
    }
    fn run(&self, _: RunLimit) -> Finish {
        match *self {}
    }
    fn stop(&self, _: By) {
        match *self {}
    }
}
