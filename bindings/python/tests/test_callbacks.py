"""Callbacks of timers and of files that can be read."""

import doctest
import os
import socket
import subprocess
import sys
import textwrap
import threading
import time

import pytest

import hairspring
from hairspring import Readable, Timer, callbacks

#: How many seconds a test waits at most.
PATIENCE = 60


def run(script: str) -> subprocess.CompletedProcess:
    """Runs a Python program in a process of its own."""
    command = [sys.executable, "-c", textwrap.dedent(script)]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)


def calls_of(seconds, count, between=lambda: None, **options):
    """The calls of a timer that its function stops after so many, and the clock at each."""
    made = []

    def function(call):
        made.append((call, time.monotonic_ns()))
        between()
        if len(made) == count:
            timer.stop()

    timer = Timer(seconds, function, **options)
    begun_ns = time.monotonic_ns()
    timer.start()
    assert timer.wait(PATIENCE) and timer.calls == len(made)
    return timer, begun_ns, made


@pytest.mark.parametrize("seconds", [0.0005, 0.003, 0.03])
def test_no_call_is_early_by_the_kernels_clock(seconds):
    timer, begun_ns, made = calls_of(seconds, 20, repeat=True)
    assert made[0][0].planned_ns >= begun_ns + timer.period_ns
    for call, clock_ns in made:
        assert 0 <= call.late_ns <= clock_ns - call.planned_ns


def test_planned_times_are_whole_periods_apart_and_missed_ones_are_counted():
    # The function takes longer than two periods.
    timer, _, made = calls_of(0.002, 10, lambda: time.sleep(0.005), repeat=True)
    for (before, begun_ns), (call, _) in zip(made, made[1:]):
        assert call.planned_ns == before.planned_ns + (call.missed + 1) * timer.period_ns
        assert call.missed >= 2
        # Not made up: the next one was planned for after the end of the function.
        assert call.planned_ns >= begun_ns + 5_000_000
    assert timer.missed == sum(call.missed for call, _ in made) and made[0][0].missed == 0


def test_without_repeat_there_is_one_call():
    timer, _, made = calls_of(0.002, 2)
    assert len(made) == 1 and not timer.running and timer.error is None


def test_the_time_base_may_be_given_and_a_delay_may_be_zero():
    timebase = hairspring.Timebase.calibrate()
    assert len(calls_of(0, 2, timebase=timebase)[2]) == 1


@pytest.mark.parametrize(
    "seconds, options, error",
    [
        (-1, {}, ValueError),
        (float("nan"), {}, ValueError),
        (float("inf"), {}, OverflowError),
        (0, {"repeat": True}, ValueError),
        (1e9, {}, ValueError),
        ("soon", {}, ValueError),
        (None, {}, TypeError),
    ],
)
def test_times_that_mean_nothing_are_refused(seconds, options, error):
    with pytest.raises(error):
        Timer(seconds, print, **options)


def test_what_cannot_be_called_is_refused():
    with pytest.raises(TypeError):
        Timer(1, None)
    with pytest.raises(TypeError):
        Readable(0, None)
    with pytest.raises(AttributeError):
        Readable("file", print)


def fails(_):
    raise LookupError("no such part")


def test_an_exception_ends_the_timer_and_stop_raises_it_once():
    timer = Timer(0.001, fails, repeat=True)
    timer.start()
    with pytest.raises(LookupError, match="no such part"):
        timer.wait(PATIENCE)
    timer.stop()
    assert timer.calls == 1 and isinstance(timer.error, LookupError)
    with pytest.raises(RuntimeError, match="make another one"):
        timer.start()


def test_the_end_of_the_block_raises_the_exception_of_the_function():
    failed = threading.Event()

    def function(call):
        failed.set()
        fails(call)

    with pytest.raises(LookupError):
        with Timer(0.001, function):
            assert failed.wait(PATIENCE)
    # One of the block comes first.
    failed.clear()
    with pytest.raises(ZeroDivisionError):
        with Timer(0.001, function) as timer:
            assert failed.wait(PATIENCE)
            raise ZeroDivisionError
    assert isinstance(timer.error, LookupError)
    with pytest.raises(LookupError):
        timer.stop()


def test_stop_waits_for_the_call_that_runs_and_none_follows():
    began, ended = threading.Event(), []

    def function(_):
        began.set()
        time.sleep(0.05)
        ended.append(True)

    timer = Timer(0.001, function, repeat=True)
    timer.start()
    assert began.wait(PATIENCE)
    timer.stop()
    calls = len(ended)
    assert calls == timer.calls >= 1 and not timer.running
    time.sleep(0.02)
    assert len(ended) == calls


def test_stop_does_not_wait_for_the_planned_time():
    timer = Timer(PATIENCE * 10, print)
    timer.start()
    before = time.monotonic()
    timer.stop()
    assert time.monotonic() - before < PATIENCE and timer.calls == 0
    # What never ran can be stopped, too.
    Timer(1, print).stop()


def test_a_counter_calls_with_the_time_of_waking():
    counter, seen, both = os.eventfd(0), [], threading.Semaphore(0)

    def function(call):
        seen.append((os.eventfd_read(counter), call))
        both.release()

    with Readable(counter, function) as watch:
        for number in (3, 4):
            before_ns = time.monotonic_ns()
            os.eventfd_write(counter, number)
            assert both.acquire(timeout=PATIENCE)
            assert before_ns <= seen[-1][1].woke_ns <= time.monotonic_ns()
    os.close(counter)
    assert [count for count, _ in seen] == [3, 4] and watch.calls == 2


def test_a_socket_is_read_and_its_function_may_stop():
    near, far = socket.socketpair()
    got = []

    def function(_):
        got.append(near.recv(100))
        if not got[-1]:
            watch.stop()

    watch = Readable(near, function)
    watch.start()
    far.sendall(b"message")
    far.close()
    assert watch.wait(PATIENCE)
    near.close()
    assert got == [b"message", b""]


def test_a_pipe_that_is_closed_ends_with_a_last_call():
    source, sink = os.pipe()
    got = []

    def function(call):
        got.append((call.ended, os.read(source, 3)))

    watch = Readable(source, function)
    watch.start()
    os.write(sink, b"12345")
    os.close(sink)
    assert watch.wait(PATIENCE)
    os.close(source)
    assert got == [(False, b"123"), (False, b"45"), (True, b"")]


def test_a_file_that_is_not_open_is_refused():
    # The number of a closed file is soon that of another one, so a thread would not notice.
    source, sink = os.pipe()
    os.close(sink)
    os.close(source)
    with pytest.raises(OSError):
        Readable(source, print)


def test_stop_ends_a_watch_on_which_nothing_happens():
    source, sink = os.pipe()
    with Readable(source, print) as watch:
        assert watch.running and "running" in repr(watch)
    assert watch.calls == 0 and "ended" in repr(watch)
    os.close(source)
    os.close(sink)


def test_no_descriptor_is_left():
    def count():
        return len(os.listdir("/proc/self/fd"))

    calls_of(0.001, 1)
    before = count()
    for _ in range(5):
        calls_of(0.001, 1)
    assert count() == before


@pytest.mark.parametrize(
    "made",
    [
        "hairspring.Timer(0.001, lambda call: None, repeat=True)",
        "hairspring.Timer(1e6, print)",
        "hairspring.Timer(0, lambda call: time.sleep(1e6))",
        "hairspring.Readable(os.pipe()[0], print)",
    ],
    ids=["running", "waiting", "in a call", "file"],
)
def test_the_program_ends_while_they_run(made):
    ended = run(f"""
        import os, time, hairspring
        for _ in range(3):
            {made}.start()
        time.sleep(0.1)
    """)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_an_exception_that_nobody_has_asked_for_is_shown_at_the_end():
    ended = run("""
        import time, hairspring
        timer = hairspring.Timer(0, lambda call: 1 / 0)
        timer.start()
        while timer.running:
            time.sleep(0.001)
    """)
    assert "ZeroDivisionError" in ended.stderr


def test_a_forked_process_has_no_timer_and_leaves_that_of_its_parent():
    made = threading.Semaphore(0)
    with Timer(0.002, lambda _: made.release(), repeat=True) as timer:
        child = os.fork()
        if child == 0:
            timer.stop()
            os._exit(1 if timer.running else 0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        # It has not written to the notifier of its parent, whose thread would then never wait again.
        with pytest.raises(BlockingIOError):
            os.eventfd_read(timer._notifier)
        while made.acquire(blocking=False):
            pass
        for _ in range(3):
            assert made.acquire(timeout=PATIENCE)


def test_the_examples_in_the_text_run():
    failed, run = doctest.testmod(callbacks)
    assert run > 3 and failed == 0
