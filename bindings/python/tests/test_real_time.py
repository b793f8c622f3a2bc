"""Real-time settings during a block."""

import itertools
import os
import sys
import threading

import pytest

from hairspring import RealTime


def test_what_is_granted_is_given_back():
    before, cpus = RealTime.now_in_force(), os.sched_getaffinity(0)
    cpu = max(cpus)
    with RealTime("fifo", 7, cpu=cpu, slack_ns=1_000) as real_time:
        assert [grant.setting for grant in real_time.grants] == ["cpu", "slack", "policy"]
        for grant in real_time.grants:
            assert bool(grant) is grant.granted is (grant.reason is None) is (grant.remedy is None)
        assert os.sched_getaffinity(0) == {cpu}
        assert RealTime.now_in_force() == (("fifo", 7) if real_time.granted else before)
        assert "in force" in repr(real_time)
    assert RealTime.now_in_force() == before and os.sched_getaffinity(0) == cpus


def test_a_refusal_is_told_and_not_raised():
    with RealTime(cpu=4_000) as real_time:
        (grant,) = real_time.grants
        assert not grant.granted and not real_time.granted
        assert "CPU" in grant.reason and grant.remedy and "refused" in repr(grant)


def idle_limit_us():
    """The limit on idle states, read from the kernel."""
    with open("/dev/cpu_dma_latency", "rb") as device:
        return int.from_bytes(device.read(4), sys.byteorder, signed=True)


def test_idle_states_are_off_within_the_block():
    with RealTime(idle=0) as real_time:
        (grant,) = real_time.grants
        assert grant.setting == "idle"
        if grant.granted:
            assert idle_limit_us() == 0
        else:
            assert "cpu_dma_latency" in grant.reason and "udev" in grant.remedy
    with RealTime(idle_ns=20_000) as real_time:
        assert not real_time.granted or idle_limit_us() <= 20


def test_it_is_given_back_when_the_block_raises():
    before = RealTime.now_in_force()
    with pytest.raises(KeyError):
        with RealTime("fifo", 1):
            raise KeyError
    assert RealTime.now_in_force() == before


def test_blocks_nest_each_with_its_own():
    before = RealTime.now_in_force()
    with RealTime("rr", 3):
        outer = RealTime.now_in_force()
        with RealTime("fifo", 4):
            pass
        assert RealTime.now_in_force() == outer
    assert RealTime.now_in_force() == before


def test_blocks_end_in_any_order():
    # The block that ended first removed the policy from those that still held it, and the last left the policy in force.
    before, cpus = RealTime.now_in_force(), os.sched_getaffinity(0)
    for order in itertools.permutations(range(3)):
        blocks = [RealTime("fifo", 20 + n, cpu=max(cpus) if n == 1 else None) for n in range(3)]
        for block in blocks:
            block.__enter__()
        for n, ended in enumerate(order):
            blocks[ended].__exit__(None, None, None)
            latest = max(order[n + 1 :], default=None)
            if latest is None or blocks[latest].granted:
                assert RealTime.now_in_force() == (before if latest is None else ("fifo", 20 + latest))
            assert os.sched_getaffinity(0) == ({max(cpus)} if 1 in order[n + 1 :] else cpus)


def test_a_block_of_a_thread_that_has_ended_can_be_left():
    # Its settings ended with the thread, but the block counted as in force for ever.
    block = RealTime("fifo", 2, lock_memory=True)
    before = locked()
    thread = threading.Thread(target=block.__enter__)
    thread.start()
    thread.join()
    assert "in force" in repr(block) and len(block.grants) == 2
    # The system destroys thread-local storage a moment after Python has joined the thread.
    for _ in range(100_000):
        try:
            block.__exit__(None, None, None)
            break
        except RuntimeError:
            os.sched_yield()
    assert "asks for" in repr(block)
    for _ in range(100_000):
        if locked() == before:
            break
        os.sched_yield()
    with block:
        assert "in force" in repr(block)
    assert locked() == before


def locked():
    """The memory of this process that the kernel has locked."""
    with open("/proc/self/status", encoding="ascii") as status:
        return next(line for line in status if line.startswith("VmLck:"))


def test_it_belongs_to_the_thread_that_entered():
    real_time, raised = RealTime("fifo", 2), []

    def leave():
        try:
            real_time.__exit__(None, None, None)
        except RuntimeError as error:
            raised.append(str(error))

    with real_time:
        thread = threading.Thread(target=leave)
        thread.start()
        thread.join()
        with pytest.raises(RuntimeError, match="in force already"):
            real_time.__enter__()
    assert len(raised) == 1 and "not in force on this thread" in raised[0]


@pytest.mark.parametrize(
    ("wishes", "error"),
    [
        ({"policy": "idle"}, ValueError),
        ({"policy": 1}, TypeError),
        ({"policy": "fifo", "priority": 0}, ValueError),
        ({"policy": "fifo", "priority": 100}, ValueError),
        ({"policy": "fifo", "priority": 1.5}, TypeError),
        ({"cpu": -1}, OverflowError),
        ({"cpu": True}, TypeError),
        ({"cpu": "0"}, TypeError),
        ({"slack": float("nan")}, ValueError),
        ({"slack": -1.0}, ValueError),
        ({"slack": 1e-6, "slack_ns": 1000}, TypeError),
        ({"idle": -1e-6}, ValueError),
        ({"idle": 0, "idle_ns": 0}, TypeError),
        ({"lock_memory": "yes"}, TypeError),
    ],
    ids=repr,
)
def test_bad_wishes_are_refused(wishes, error):
    with pytest.raises(error):
        RealTime(**wishes)
