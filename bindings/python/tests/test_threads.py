"""Waits with threads, signals and forks, and at the end of the interpreter."""

import os
import signal
import subprocess
import sys
import sysconfig
import textwrap
import threading
import time

import pytest

import hairspring
from hairspring import LongDelay, Profile, Timebase


def run(script: str) -> subprocess.CompletedProcess:
    """Runs a Python program in a process of its own."""
    command = [sys.executable, "-c", textwrap.dedent(script)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def in_threads(count, work):
    """Runs a function in so many threads; raises what any of them raised."""
    raised = []

    def guarded(number):
        try:
            work(number)
        except BaseException as error:
            raised.append(error)

    threads = [threading.Thread(target=guarded, args=[number]) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if raised:
        raise raised[0]


def test_threads_share_a_time_base_and_none_is_early():
    timebase = Timebase.calibrate()

    def work(number):
        long = LongDelay(timebase)
        for round in range(20):
            ns = 1_000 * (number + 1) * (round + 1)
            before = time.monotonic_ns()
            timebase.delay_ns(ns)
            long.delay_ns(ns)
            timebase.refine()
            assert time.monotonic_ns() - before >= 2 * ns

    in_threads(8, work)


def test_threads_meet_at_the_first_use_of_the_default_time_base():
    ended = run("""
        import threading, hairspring
        barrier, seen = threading.Barrier(8), []
        def work():
            barrier.wait()
            hairspring.now_ns()
            seen.append(hairspring.timebase().frequency_hz)
        threads = [threading.Thread(target=work) for _ in range(8)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        assert len(seen) == 8 and len(set(seen)) == 1, seen
    """)
    assert ended.returncode == 0, ended.stderr


def test_a_wait_lets_other_threads_run():
    counted, stop = [0], threading.Event()

    def count():
        while not stop.is_set():
            counted[0] += 1

    thread = threading.Thread(target=count)
    thread.start()
    try:
        for wait in (LongDelay().delay, hairspring.delay):
            before = counted[0]
            wait(0.1)
            # With the GIL held, the other thread would not have run once.
            assert counted[0] - before > 100
    finally:
        stop.set()
        thread.join()


def test_a_long_delay_that_another_thread_waits_with_says_so():
    long, began = LongDelay(), threading.Event()

    def wait():
        began.set()
        long.delay(0.5)

    thread = threading.Thread(target=wait)
    thread.start()
    began.wait()
    refused = 0
    while thread.is_alive():
        try:
            long.delay_ns(1)
        except RuntimeError as error:
            assert "one for each thread" in str(error)
            assert "LongDelay" in repr(long)
            refused += 1
            break
    thread.join()
    assert refused == 1
    assert long.delay_ns(1).late_ns >= 0


def test_threads_share_a_profile():
    profile = Profile()

    def work(_):
        for _ in range(200):
            with profile:
                pass

    in_threads(4, work)
    assert profile.summary().count == 800


@pytest.fixture
def interrupt_soon():
    """Ctrl-C in a fifth of a second, in the middle of a wait."""
    # A program in the background may inherit that the signal is ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    yield
    timer.join()
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize(
    "wait",
    [
        lambda: LongDelay().delay(30),
        lambda: LongDelay().delay_until(hairspring.now() + 30),
        lambda: Timebase.calibrate_to(1e-9, 30),
    ],
    ids=["delay", "delay_until", "calibrate_to"],
)
def test_ctrl_c_ends_what_takes_long(interrupt_soon, wait):
    before = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        wait()
    assert time.monotonic() - before < 15


def test_ctrl_c_ends_the_taking_of_a_sheet(interrupt_soon):
    before = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        hairspring.take_sheet(["delays", "sleeps", "disturbance"], effort="normal")
    assert time.monotonic() - before < 15


def test_a_signal_whose_handler_returns_does_not_shorten_a_delay():
    handled = []
    before = signal.signal(signal.SIGALRM, lambda *_: handled.append(time.monotonic_ns()))
    signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)
    try:
        start = time.monotonic_ns()
        report = LongDelay().delay(0.5)
        end = time.monotonic_ns()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert report.late_ns >= 0 and end - start >= 500_000_000
    # Handled while it waited, not after it.
    assert sum(start < at < end for at in handled) >= 2


def test_a_time_base_is_good_in_a_forked_process():
    timebase, long = hairspring.timebase(), LongDelay()
    before = timebase.now_ns()
    child = os.fork()
    if child == 0:
        try:
            good = timebase.now_ns() >= before
            good &= timebase.delay(1e-4).late_ns >= 0
            good &= long.delay(0.01).late_ns >= 0
            good &= abs(timebase.now_ns() - time.monotonic_ns()) < 100_000_000
            os._exit(0 if good else 1)
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert long.delay(0.01).late_ns >= 0


@pytest.mark.parametrize("wait", ["LongDelay().delay(20)", "delay(0.1)", "Timebase.calibrate()", "delay_ns(1)"])
def test_the_interpreter_ends_in_peace_while_a_daemon_waits(wait):
    ended = run(f"""
        import sys, threading, time, hairspring
        sys.setswitchinterval(1e-4)
        def work():
            while True:
                hairspring.{wait}
        for _ in range(4):
            threading.Thread(target=work, daemon=True).start()
        time.sleep(0.3)
    """)
    assert (ended.returncode, ended.stderr) == (0, "")


INTERPRETERS = """
    try:
        import _interpreters as interpreters
    except ImportError:
        import _xxsubinterpreters as interpreters
    REFUSED = '''if True:
        try:
            import hairspring
        except ImportError as error:
            assert "interpreter" in str(error), error
        else:
            raise SystemExit("it was imported")
    '''
    def refuses():
        other = interpreters.create()
        try:
            problem = interpreters.run_string(other, REFUSED)
        finally:
            interpreters.destroy(other)
        assert problem is None, problem
"""


def test_a_second_interpreter_gets_an_import_error():
    ended = run(f"""
    {INTERPRETERS}
    import hairspring
    refuses()
    hairspring.delay(1e-5)
    """)
    assert ended.returncode == 0, ended.stderr


def test_an_interpreter_that_comes_first_and_dies_does_not_keep_the_main_one_out():
    # The guard compared addresses of the module sys. The first interpreter kept the module for good; after its end another
    # interpreter with its sys at the same address would have got its objects.
    ended = run(f"""
    {INTERPRETERS}
    for _ in range(20):
        refuses()
    import hairspring
    hairspring.delay(1e-5)
    refuses()
    """)
    assert ended.returncode == 0, ended.stderr


# Of the usual Python there is nothing to check: its lock cannot be turned off.
if sysconfig.get_config_var("Py_GIL_DISABLED"):

    def test_a_python_without_a_lock_turns_it_on():
        assert sys._is_gil_enabled()


def test_the_import_does_not_calibrate():
    ended = run("""
        import hairspring, time
        def took():
            before = time.perf_counter_ns()
            hairspring.now_ns()
            return time.perf_counter_ns() - before
        first, later = took(), sorted(took() for _ in range(101))[50]
        assert first > 100 * later, (first, later)
    """)
    assert ended.returncode == 0, ended.stderr


def test_the_import_brings_neither_numpy_nor_pandas():
    ended = run("import sys, hairspring; assert not {'numpy', 'pandas'} & set(sys.modules)")
    assert ended.returncode == 0, ended.stderr
