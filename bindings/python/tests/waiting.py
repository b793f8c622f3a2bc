"""Waiting for a station of another process, for the tests."""

import time

from hairspring.station import Station

#: How many seconds a test waits at most.
PATIENCE = 30


def eventually(look):
    """What `look` returns, as soon as that is true."""
    begun = time.monotonic()
    while True:
        found = look()
        if found:
            return found
        assert time.monotonic() - begun < PATIENCE, found
        time.sleep(0.02)


def is_published(folder, process):
    """Whether this process has published a state there."""
    assert process.poll() is None, "the station has ended"
    try:
        return Station(folder).state()["process"] == process.pid
    except OSError:
        return False
