"""Keeps a Dask worker quiet while its host is measured: its profilers, which wake it every 10 ms, its ticks of 20 ms and its monitors.

Workers that are started without their profiler (``DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED=False``) have less to stop. Heartbeats stay, about
one a second: without them the scheduler would take the worker for dead.
"""

from __future__ import annotations

import contextlib
import sys
import threading
from typing import Any, Iterator

#: The worker's regular calls that are stopped.
_STOPPED = ("profile", "profile-cycle", "tick", "ticks", "monitor", "memory_monitor")
#: The worker's loop answers at once, unless it is blocked.
_ANSWER_S = 10.0


@contextlib.contextmanager
def quiet() -> Iterator[list[str]]:
    """Stops what a worker does for itself, and yields the names of what was stopped. Outside a worker there is nothing to stop."""
    worker = _worker()
    if worker is None:
        yield []
        return
    from distributed import profile

    calls = {name: call for name, call in worker.periodic_callbacks.items() if name in _STOPPED and call.is_running()}
    done = threading.Event()

    def stop() -> None:
        for call in calls.values():
            call.stop()
        done.set()

    # Only the thread of the worker's loop may touch its calls.
    worker.loop.add_callback(stop)
    stopped = sorted(calls) if done.wait(_ANSWER_S) else []
    try:
        # The thread that samples the loop waits for this lock from its next cycle on, within a second.
        with profile.lock:
            yield stopped
    finally:
        worker.loop.add_callback(lambda: [call.start() for call in calls.values()])


def _worker() -> Any:
    """The worker that runs this thread's task, if there is one."""
    if "distributed" not in sys.modules:
        return None
    from distributed import get_worker

    try:
        return get_worker()
    except ValueError:
        return None
