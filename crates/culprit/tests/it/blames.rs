//! Each culprit in a script, beside cases that look like it.

use std::sync::Arc;

use hairspring_culprit::{Context, CpuHistory, KernelEvent, LeftAs, LostTime, Softirq, Terms, Vector, Wanted};
use hairspring_machine::Instant;

use crate::script::{POLLER, RCU, Script, TIMER, at_us, check, disk, us};

#[test]
fn an_interrupt_takes_its_own_time_and_that_of_its_delivery() {
    let script = Script::new().span(11.0, 14.0, TIMER);
    check(&script.blame(10.0, 14.5, Wanted::Run), &[(4.5, "timer interrupt")]);
}

#[test]
fn nested_interrupts_share_a_gap_by_net_time() {
    let script = Script::new()
        .push(10.5, KernelEvent::Enter(TIMER))
        .push(12.0, KernelEvent::Exit(TIMER))
        .push(12.0, KernelEvent::Enter(RCU))
        .push(20.0, KernelEvent::Enter(disk()))
        .push(26.0, KernelEvent::Exit(disk()))
        .push(30.0, KernelEvent::Exit(RCU));
    let blame = script.blame(10.0, 30.5, Wanted::Run);
    let expected =
        [(2.0, "timer interrupt"), (8.0, "softirq RCU"), (6.0, "interrupt 36, virtio1-req.0"), (4.5, "softirq RCU")];
    check(&blame, &expected);
    assert_eq!(
        blame.chief().map(|share| (share.time, share.culprit.to_string())),
        Some((us(12.5), "softirq RCU".to_owned()))
    );
}

#[test]
fn a_timer_at_the_end_of_a_theft_is_not_blamed_for_it() {
    let script = Script::new().span(208.6, 209.5, TIMER);
    check(&script.blame(10.0, 210.0, Wanted::Run), &[(200.0, "hypervisor")]);
}

#[test]
fn an_interrupt_that_works_for_long_after_a_theft_is_blamed_for_its_work_only() {
    let script = Script::new().span(110.0, 150.0, Context::Softirq(Softirq(3)));
    check(&script.blame(10.0, 150.5, Wanted::Run), &[(100.0, "hypervisor"), (40.5, "softirq NET_RX")]);
}

#[test]
fn a_gap_without_any_record_is_the_hypervisors_and_on_bare_metal_the_firmwares() {
    let mut script = Script::new();
    check(&script.clone().blame(10.0, 60.0, Wanted::Run), &[(50.0, "hypervisor")]);
    script.history.known_until(at_us(1e3));
    let lost = LostTime { thread: POLLER, from: at_us(10.0), to: at_us(60.0), wanted: Wanted::Run };
    check(&hairspring_culprit::blame(&lost, &script.history, &Terms::bare_metal()), &[(50.0, "firmware or hardware")]);
}

#[test]
fn tasks_that_preempt_are_named_with_policy_and_priority() {
    let script = Script::new()
        .switch(11.0, POLLER, LeftAs::Runnable, 201)
        .span(100.0, 104.0, TIMER)
        .switch(211.0, 201, LeftAs::Blocked, 200)
        .switch(261.0, 200, LeftAs::Blocked, POLLER);
    let expected = [
        (90.0, "task rival, pid 201, real time 1"),
        (4.0, "timer interrupt"),
        (107.0, "task rival, pid 201, real time 1"),
        (51.0, "task backup, pid 200, nice 0"),
    ];
    check(&script.blame(10.0, 262.0, Wanted::Run), &expected);
}

#[test]
fn a_kernel_worker_is_named_by_its_function() {
    let function = Some(Arc::from("flush_to_ldisc"));
    let script = Script::new()
        .switch(10.0, POLLER, LeftAs::Runnable, 300)
        .push(10.0, KernelEvent::WorkBegins { pid: 300, function })
        .push(40.0, KernelEvent::WorkEnds { pid: 300 })
        .switch(41.0, 300, LeftAs::Blocked, POLLER);
    let expected = [(30.0, "kernel worker kworker/1:2, flush_to_ldisc"), (1.0, "kernel worker kworker/1:2")];
    check(&script.blame(10.0, 41.0, Wanted::Run), &expected);
}

#[test]
fn a_runnable_thread_beside_an_idle_cpu_is_throttled_also_while_others_run() {
    let script = Script::new()
        .switch(10.0, POLLER, LeftAs::Runnable, 200)
        .switch(20.0, 200, LeftAs::Blocked, 0)
        .switch(90.0, 0, LeftAs::Runnable, 200)
        .switch(100.0, 200, LeftAs::Blocked, POLLER);
    check(&script.blame(10.0, 100.0, Wanted::Run), &[(90.0, "throttling")]);
}

#[test]
fn a_thread_that_does_not_come_back_was_moved_and_not_throttled() {
    // The CPU is idle after it, which does not concern the thread: it runs on another one.
    let script = Script::new()
        .switch(10.0, POLLER, LeftAs::Runnable, 400)
        .switch(14.0, 400, LeftAs::Blocked, 0)
        .switch(90.0, 0, LeftAs::Runnable, 200);
    check(&script.blame(10.0, 30.0, Wanted::Run), &[(20.0, "migration to another CPU")]);
    // Nor do other tasks on the CPU that it has left.
    let script = Script::new()
        .switch(10.0, POLLER, LeftAs::Runnable, 400)
        .switch(14.0, 400, LeftAs::Blocked, 200)
        .span(20.0, 25.0, TIMER);
    check(&script.blame(10.0, 30.0, Wanted::Run), &[(20.0, "migration to another CPU")]);
    // A rival that keeps the CPU until then is to blame, whatever the CPU does later.
    let script = Script::new().switch(10.0, POLLER, LeftAs::Runnable, 201).switch(50.0, 201, LeftAs::Blocked, 0);
    check(&script.blame(10.0, 50.0, Wanted::Run), &[(40.0, "task rival, pid 201, real time 1")]);
}

#[test]
fn a_wake_up_on_a_cpu_from_which_the_thread_was_moved_is_not_throttling() {
    let script = Script::new()
        .switch(10.0, POLLER, LeftAs::Runnable, 400)
        .switch(14.0, 400, LeftAs::Blocked, 0)
        .switch(90.0, 0, LeftAs::Runnable, POLLER);
    check(&script.blame(50.0, 90.0, Wanted::Wake), &[(40.0, "exit from an idle state")]);
}

#[test]
fn a_thread_that_waits_by_its_own_will_is_its_own_culprit() {
    let script = Script::new().switch(10.0, POLLER, LeftAs::Blocked, 0).switch(90.0, 0, LeftAs::Runnable, POLLER);
    check(&script.blame(10.0, 90.0, Wanted::Run), &[(80.0, "the thread's own system call")]);
}

#[test]
fn a_page_fault_takes_what_follows_it() {
    let script = Script::new().push(10.4, KernelEvent::Fault { pid: POLLER }).span(20.0, 23.0, TIMER);
    let expected = [(10.0, "page fault"), (3.0, "timer interrupt"), (7.0, "page fault")];
    check(&script.blame(10.0, 30.0, Wanted::Run), &expected);
}

#[test]
fn a_page_fault_that_waits_for_a_disk_is_a_major_one() {
    let script = Script::new()
        .push(10.0, KernelEvent::Fault { pid: POLLER })
        .switch(15.0, POLLER, LeftAs::Blocked, 0)
        .switch(90.0, 0, LeftAs::Runnable, POLLER);
    check(&script.blame(10.0, 91.0, Wanted::Run), &[(81.0, "page fault that waited for a disk")]);
}

#[test]
fn a_page_fault_of_another_thread_is_not_ours() {
    let script = Script::new().push(10.4, KernelEvent::Fault { pid: 200 });
    check(&script.blame(10.0, 30.0, Wanted::Run), &[(20.0, "hypervisor")]);
}

#[test]
fn a_late_wake_up_is_divided_into_idle_exit_interrupt_and_whoever_ran_first() {
    let script = Script::new()
        .switch(5.0, POLLER, LeftAs::Blocked, 0)
        .span(40.0, 43.0, TIMER)
        .switch(50.0, 0, LeftAs::Runnable, 201)
        .switch(80.0, 201, LeftAs::Blocked, POLLER);
    let expected = [
        (30.0, "exit from an idle state"),
        (3.0, "timer interrupt"),
        (7.0, "exit from an idle state"),
        (30.0, "task rival, pid 201, real time 1"),
        (2.0, "the thread's own system call"),
    ];
    check(&script.blame(10.0, 82.0, Wanted::Wake), &expected);
}

#[test]
fn a_theft_after_the_wake_up_is_not_the_threads_own_call() {
    let script = Script::new().switch(5.0, POLLER, LeftAs::Blocked, 0).switch(50.0, 0, LeftAs::Runnable, POLLER);
    let expected = [(40.0, "exit from an idle state"), (100.0, "hypervisor")];
    check(&script.blame(10.0, 150.0, Wanted::Wake), &expected);
}

#[test]
fn time_in_which_records_were_lost_has_no_culprit() {
    let script = Script::new().span(11.0, 14.0, TIMER).push(20.0, KernelEvent::Lost);
    check(&script.clone().blame(10.0, 16.0, Wanted::Run), &[(6.0, "unexplained: records were lost")]);
    check(&script.clone().blame(30.0, 60.0, Wanted::Run), &[(30.0, "unexplained: records were lost")]);
    // The unknown time ends with the next task switch.
    let script = script.switch(100.0, POLLER, LeftAs::Runnable, 200).switch(110.0, 200, LeftAs::Blocked, POLLER);
    check(&script.blame(101.0, 110.0, Wanted::Run), &[(9.0, "task backup, pid 200, nice 0")]);
}

#[test]
fn an_exit_without_its_entry_counts_as_lost_records() {
    let script = Script::new().push(20.0, KernelEvent::Exit(TIMER));
    check(&script.blame(10.0, 60.0, Wanted::Run), &[(50.0, "unexplained: records were lost")]);
    let script = Script::new().push(20.0, KernelEvent::Enter(TIMER)).switch(30.0, POLLER, LeftAs::Runnable, 200);
    check(&script.blame(10.0, 25.0, Wanted::Run), &[(15.0, "unexplained: records were lost")]);
}

#[test]
fn a_softirq_that_is_preempted_goes_on_where_its_task_does() {
    // PREEMPT_RT.
    let script = Script::new()
        .push(10.0, KernelEvent::Enter(RCU))
        .switch(20.0, POLLER, LeftAs::Runnable, 201)
        .switch(30.0, 201, LeftAs::Blocked, POLLER)
        .push(35.0, KernelEvent::Exit(RCU));
    let expected = [(10.0, "softirq RCU"), (10.0, "task rival, pid 201, real time 1"), (5.0, "softirq RCU")];
    check(&script.blame(10.0, 35.0, Wanted::Run), &expected);
}

#[test]
fn stamps_of_another_clock_explain_nothing_rather_than_the_wrong_thing() {
    // The records are a second ahead of the gap's own stamps.
    let script = Script::new().span(1_000_011.0, 1_000_014.0, TIMER);
    check(&script.clone().blame(-990.0, -980.0, Wanted::Run), &[(10.0, "unexplained: outside of the records")]);
    let mut history = script.history.clone();
    history.known_until(at_us(1_000_100.0));
    let late = LostTime { thread: POLLER, from: at_us(2e6), to: at_us(2e6 + 5.0), wanted: Wanted::Run };
    check(
        &hairspring_culprit::blame(&late, &history, &Terms::guest()),
        &[(5.0, "unexplained: outside of the records")],
    );
}

#[test]
fn a_theft_inside_an_interrupt_shows_by_ten_times_its_usual_time() {
    let mut script = Script::new();
    for turn in 0..30 {
        let at = 1_000.0 * f64::from(turn) + 10.0;
        script = script.span(at, at + 2.0, TIMER);
    }
    let script = script.span(50_000.0, 50_202.0, TIMER);
    check(&script.blame(50_000.0, 50_202.0, Wanted::Run), &[(2.0, "timer interrupt"), (200.0, "hypervisor")]);
}

#[test]
fn a_non_maskable_interrupt_is_known_by_its_end() {
    let script = Script::new().push(30.0, KernelEvent::Nmi(us(8.0)));
    check(&script.blame(21.0, 31.0, Wanted::Run), &[(10.0, "non-maskable interrupt")]);
}

#[test]
fn a_machine_that_delivers_slowly_is_learned_and_its_thefts_are_still_seen() {
    let mut script = Script::new();
    let mut lost = Vec::new();
    for turn in 0..20 {
        let at = 1_000.0 * f64::from(turn) + 10.0;
        script = script.span(at + 9.0, at + 19.0, TIMER);
        lost.push(LostTime { thread: POLLER, from: at_us(at), to: at_us(at + 20.0), wanted: Wanted::Run });
    }
    let mut script = script.span(50_100.0, 50_110.0, TIMER);
    script.history.known_until(at_us(60_000.0));
    let terms = Terms::guest().learned(&lost, &script.history);
    assert_eq!((terms.delivery, terms.way_back), (us(18.0), us(2.0)));
    check(&hairspring_culprit::blame(&lost[3], &script.history, &terms), &[(20.0, "timer interrupt")]);
    let theft = LostTime { thread: POLLER, from: at_us(50_000.0), to: at_us(50_111.0), wanted: Wanted::Run };
    check(&hairspring_culprit::blame(&theft, &script.history, &terms), &[(111.0, "hypervisor")]);
    assert_eq!(Terms::guest().learned(&lost[..5], &script.history), Terms::guest(), "too few");
}

#[test]
fn what_was_forgotten_is_unexplained() {
    let mut script = Script::new().span(11.0, 14.0, TIMER).span(111.0, 114.0, TIMER);
    script.history.forget_before(at_us(100.0));
    check(&script.clone().blame(10.0, 14.5, Wanted::Run), &[(4.5, "unexplained: outside of the records")]);
    check(&script.blame(110.0, 114.5, Wanted::Run), &[(4.5, "timer interrupt")]);
}

#[test]
fn a_history_that_knows_nothing_names_nobody() {
    let lost = LostTime { thread: POLLER, from: Instant::BOOT, to: at_us(5.0), wanted: Wanted::Run };
    let blame = hairspring_culprit::blame(&lost, &CpuHistory::new(), &Terms::guest());
    check(&blame, &[(5.0, "unexplained: outside of the records")]);
}

#[test]
fn other_vectors_have_their_names() {
    let script = Script::new().span(11.0, 14.0, Context::Vector(Vector::CallFunctionSingle));
    check(&script.blame(10.0, 14.5, Wanted::Run), &[(4.5, "function call of another CPU")]);
}
