"""Profiles."""

import time

import pytest

import hairspring
from hairspring import Profile, Timebase


def test_each_block_is_a_span_and_the_first_is_kept_apart():
    profile = Profile()
    assert profile.summary().count == 0 and profile.summary().median_ns is None
    for _ in range(50):
        with profile:
            hairspring.delay_ns(20_000)
    summary = profile.summary()
    assert summary.count == 50
    assert summary.first_ns >= 20_000
    # The histogram keeps three digits.
    assert 19_900 <= summary.min_ns <= summary.median_ns <= summary.max_ns
    assert summary.min_ns <= summary.mean_ns <= summary.max_ns
    assert "50 spans" in repr(profile) and "50 spans" in repr(summary)


def test_the_cost_of_a_block_is_stated_and_contains_the_stamps():
    profile = Profile()
    assert profile.block_cost_ns >= profile.summary().stamp_cost_ns > 0


def test_blocks_may_be_nested_and_raise():
    profile = Profile(ordered=False)
    with pytest.raises(ZeroDivisionError):
        with profile:
            with profile:
                1 / 0
    assert profile.summary().count == 2


def test_a_function_is_profiled_call_by_call():
    profile = Profile(Timebase.calibrate())

    @profile
    def sleep(seconds, *, rounds=1):
        """Sleeps."""
        for _ in range(rounds):
            time.sleep(seconds)
        return seconds

    assert sleep(0.001) == 0.001 and sleep(0.001, rounds=2) == 0.001
    assert sleep.__doc__ == "Sleeps." and profile.summary().count == 2


def test_a_profile_converts_its_spans_by_the_time_base_that_it_adopted():
    # The first span is kept in ticks.
    timebase = Timebase.calibrate()
    profile = Profile(timebase)
    with profile:
        time.sleep(0.2)
    before, refined = profile.summary().first_ns, timebase.refine()
    profile.adopt(refined.timebase)
    expected = before * (timebase.frequency_hz / refined.timebase.frequency_hz)
    assert abs(profile.summary().first_ns - expected) <= 2 and profile.summary().count == 1


def test_an_end_without_a_beginning_is_told():
    with pytest.raises(RuntimeError, match="with profile"):
        Profile().__exit__(None, None, None)


def test_a_profile_needs_a_time_base():
    with pytest.raises(TypeError):
        Profile(3.0)
