"""Where the tasks of a fleet run: on the workers of a Dask cluster, or without one on a thread of this process."""

from __future__ import annotations

import concurrent.futures
import socket
import time
from typing import Any, Callable, Optional, Protocol

#: How often pending tasks are looked at.
LOOK_S = 0.25
#: How often the scheduler is asked for its workers.
WORKERS_S = 1.0
#: A sheet has 5 MB.
_RESULT_S = 60.0


class Cluster(Protocol):
    """What the fleet needs of a cluster."""

    def workers(self) -> dict[str, str]:
        """The workers that are there: address and name."""

    def start(self, worker: str, act: Callable[[str], Any], text: str) -> Any:
        """Starts a task on this worker and on no other, and never a second time."""

    def state(self, task: Any) -> Optional[tuple[bool, Any]]:
        """None while it is pending; then whether it succeeded, with its text or its error."""

    def drop(self, task: Any) -> None:
        """Forgets a task."""


class Dask:
    """The workers of a cluster of Dask distributed."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def workers(self) -> dict[str, str]:
        workers = self._client.scheduler_info(n_workers=-1)["workers"]
        return {address: str(worker.get("name") or address) for address, worker in workers.items()}

    def start(self, worker: str, act: Callable[[str], Any], text: str) -> Any:
        return self._client.submit(
            act, text, workers=[worker], allow_other_workers=False, pure=False, retries=0
        )

    def state(self, task: Any) -> Optional[tuple[bool, Any]]:
        status = task.status
        if status == "pending":
            return None
        if status not in ("finished", "error"):
            return False, RuntimeError(f"its task was {status}")
        try:
            return True, task.result(timeout=_RESULT_S)
        # Whatever the task raised, and what Dask raises when the worker went with the result.
        except Exception as error:
            return False, error

    def drop(self, task: Any) -> None:
        task.cancel()


class Embedded:
    """This host alone, on a thread of this process."""

    def __init__(self) -> None:
        self._threads = concurrent.futures.ThreadPoolExecutor(1, thread_name_prefix="hairspring-fleet")

    def workers(self) -> dict[str, str]:
        return {"embedded": socket.gethostname()}

    def start(self, worker: str, act: Callable[[str], Any], text: str) -> Any:
        return self._threads.submit(act, text)

    def state(self, task: Any) -> Optional[tuple[bool, Any]]:
        if not task.done():
            return None
        error = task.exception()
        return (True, task.result()) if error is None else (False, error)

    def drop(self, task: Any) -> None:
        task.cancel()


def gather(
    cluster: Cluster,
    act: Callable[[str], Any],
    asked: dict[str, str],
    limit_s: float,
    told: Callable[[str, bool, Any], None],
) -> None:
    """Runs ``act`` with a text on each worker, all at the same time, and calls ``told`` with the worker, whether it succeeded, and its text or error.

    A worker whose text is late gets a TimeoutError, one that leaves the cluster a ConnectionError. The time is measured here alone, so the
    clocks of the hosts do not matter.
    """
    began = time.monotonic()
    pending = {worker: cluster.start(worker, act, text) for worker, text in asked.items()}
    gone: dict[str, int] = {}
    asked_at = began
    while pending:
        for worker, task in list(pending.items()):
            state = cluster.state(task)
            if state is not None:
                del pending[worker]
                told(worker, *state)
        now = time.monotonic()
        if now - asked_at >= WORKERS_S:
            asked_at = now
            try:
                there = cluster.workers()
            except (OSError, TimeoutError) as error:
                for worker in pending:
                    told(worker, False, ConnectionError(f"the scheduler does not answer: {error}"))
                return
            for worker in pending:
                gone[worker] = 0 if worker in there else gone.get(worker, 0) + 1
        for worker, task in list(pending.items()):
            lost = gone.get(worker, 0) >= 2
            if lost or now - began > limit_s:
                del pending[worker]
                cluster.drop(task)
                why = ConnectionError("its worker left the cluster") if lost else TimeoutError(f"no answer within {limit_s:g} s")
                told(worker, False, why)
        if pending:
            time.sleep(LOOK_S)
