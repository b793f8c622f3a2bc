"""Callbacks: a function that is called at its times, or as soon as a file can be read, in a thread of its own.

A late or missing call is told, never hidden: each call of a timer has its planned time, its lateness and the number of periods that were missed
since the call before. Missed periods are not made up. An exception ends the thread and is kept until stop() raises it; the end of the
program shows those that are left.
"""

from __future__ import annotations

import atexit
import errno
import math
import os
import select
import sys
import threading
from time import monotonic_ns
from types import TracebackType
from typing import Any, Callable, NamedTuple, Optional, SupportsFloat, TypeVar, Union

from ._hairspring import LongDelay, Timebase

_Self = TypeVar("_Self", bound="Callback")

#: The end of a wait that nothing cuts short: a long delay of this length, with time to get the GIL back before.
_END_NS = 20_000_000
#: The longest wait of one system call: poll() counts milliseconds in an int.
_WAIT_MOST_NS = 3_600_000_000_000
#: Seconds for which the end of the program waits for a call that is still running.
_PATIENCE = 1.0

#: The callbacks that run, or whose exception no stop() has raised.
_started: set[Callback] = set()


class TimerCall(NamedTuple):
    """What a timer tells the function that it calls."""

    #: When the call was to be made, in ns of CLOCK_MONOTONIC, as ``time.monotonic_ns()`` counts.
    planned_ns: int
    #: How much later than that the thread was ready to call, with the GIL; never negative.
    late_ns: int
    #: Periods since the call before that passed without a call.
    missed: int


class ReadableCall(NamedTuple):
    """What a watch on a file tells the function that it calls."""

    #: When the thread was ready to call, with the GIL, in ns of CLOCK_MONOTONIC.
    woke_ns: int
    #: Whether the other side has closed the file and nothing is left to read. This is the last call.
    ended: bool


class Callback:
    """What timers and watches on files share; make a ``Timer`` or a ``Readable``.

    It starts by ``start()``, or by entering a ``with`` block, and ends by ``stop()`` or the end of the block. It starts only once. Its
    function is called in a thread of its own, one call after the other. All methods may be called by any thread and by the function. In a
    forked process it does not run.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._thread: Optional[threading.Thread] = None
        self._ready = threading.Event()
        self._stopping = False
        self._notifier: Optional[int] = None
        self._unseen: Optional[BaseException] = None
        #: The exception that has ended it; None if there was none.
        self.error: Optional[BaseException] = None
        #: How often the function was called.
        self.calls = 0

    @property
    def running(self) -> bool:
        """Whether it was started and has not ended."""
        return self._thread is not None and self._thread.is_alive()

    def start(self) -> None:
        """Starts the thread and waits until it is ready, 10 to 20 ms for a timer. Raises RuntimeError if it was started before."""
        with self._lock:
            if self._thread is not None:
                raise RuntimeError(f"this {type(self).__name__} was started before; make another one")
            self._notifier = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
            # A daemon, because the end of the program would wait for another one before it calls _end().
            self._thread = threading.Thread(target=self._work, name=f"hairspring {type(self).__name__}", daemon=True)
        _started.add(self)
        self._thread.start()
        self._ready.wait()

    def stop(self) -> None:
        """Ends it. Waits for a call that is running; after that no more calls are made. A timer takes up to 20 ms.

        Called by the function itself, it does not wait: this call is the last one. If an exception has ended the thread, stop() raises
        that exception, once. Stopping what was never started or has ended is no error.
        """
        self._end(None)
        self._raise()

    def wait(self, timeout: Optional[float] = None) -> bool:
        """Waits until it has ended, at most so many seconds, and returns whether it has. Raises what stop() would raise."""
        if self._thread is not None:
            self._thread.join(timeout)
        if self.running:
            return False
        self._raise()
        return True

    def __enter__(self: _Self) -> _Self:
        self.start()
        return self

    def __exit__(
        self, kind: Optional[type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        self._end(None)
        # An exception of the block comes first; that of the function stays in `error`.
        if kind is None:
            self._raise()

    def _end(self, timeout: Optional[float]) -> None:
        self._stopping = True
        if not self.running:
            return
        with self._lock:
            if self._notifier is not None:
                os.eventfd_write(self._notifier, 1)
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(timeout)

    def _raise(self) -> None:
        # The function itself sees its own exceptions.
        if self.running:
            return
        error, self._unseen = self._unseen, None
        _started.discard(self)
        if error is not None:
            raise error

    def _work(self) -> None:
        try:
            self._run()
        except BaseException as error:
            self.error = self._unseen = error
        finally:
            with self._lock:
                notifier, self._notifier = self._notifier, None
            if notifier is not None:
                os.close(notifier)
            if self._unseen is None:
                _started.discard(self)
            self._ready.set()

    def _run(self) -> None:
        raise NotImplementedError

    def _wait(self, poll: select.poll, longest_ns: Optional[int]) -> dict[int, int]:
        """What of the files of `poll` is ready; nothing after so long."""
        limit = None if longest_ns is None else min(longest_ns, _WAIT_MOST_NS) // 1_000_000
        return dict(poll.poll(limit))

    def _poll(self) -> select.poll:
        """A poll object that wakes when stop() writes to the notifier."""
        poll = select.poll()
        assert self._notifier is not None
        poll.register(self._notifier, select.POLLIN)
        return poll

    def __repr__(self) -> str:
        state = "running" if self.running else "not started" if self._thread is None else "ended"
        return f"<{type(self).__name__}: {state}, {self.calls} calls>"


class Timer(Callback):
    """Calls a function after so many seconds, once or, with ``repeat``, each time that they have passed.

        >>> import hairspring
        >>> late_ns = []
        >>> with hairspring.Timer(0.002, lambda call: late_ns.append(call.late_ns), repeat=True):
        ...     _ = hairspring.LongDelay().delay(0.05)
        >>> len(late_ns) > 0 and min(late_ns) >= 0      # never early, by the kernel's clock
        True

    The function gets a ``TimerCall``. Planned times are the time of the start plus whole periods, so lateness does not add up. The thread
    waits with a ``LongDelay``: it sleeps without the GIL, takes the GIL back up to 0.5 ms before the planned time, and polls the rest.
    ``call.late_ns`` contains the wait for the GIL, up to the interpreter's switch interval for each thread that runs Python code.

    Raises ValueError or OverflowError for a time below zero, above 100 days or not finite, and for a period of less than 1 ns.
    """

    def __init__(
        self,
        seconds: SupportsFloat,
        function: Callable[[TimerCall], Any],
        *,
        repeat: bool = False,
        timebase: Optional[Timebase] = None,
    ) -> None:
        super().__init__()
        if not callable(function):
            raise TypeError(f"a timer calls a function, not {function!r}")
        seconds = float(seconds)
        #: The delay or the period, in nanoseconds.
        self.period_ns = math.ceil(seconds * 1e9)
        if not (1 if repeat else 0) <= self.period_ns <= 100 * 86_400 * 10**9:
            raise ValueError(f"the time of a timer must be 0 s to 100 days, and a period above 0 s, not {seconds} s")
        #: Whether it calls again and again.
        self.repeat = bool(repeat)
        #: All periods that passed without a call, up to the last call.
        self.missed = 0
        self._function, self._timebase = function, timebase

    def _run(self) -> None:
        # Learns how late the kernel wakes this thread.
        long, poll = LongDelay(self._timebase), self._poll()
        planned_ns, missed = monotonic_ns() + self.period_ns, 0
        self._ready.set()
        while self._until(planned_ns, long, poll):
            self.calls, self.missed = self.calls + 1, self.missed + missed
            self._function(TimerCall(planned_ns, monotonic_ns() - planned_ns, missed))
            if not self.repeat:
                return
            missed = max(monotonic_ns() - planned_ns, 0) // self.period_ns
            planned_ns += (missed + 1) * self.period_ns

    def _until(self, planned_ns: int, long: LongDelay, poll: select.poll) -> bool:
        """Waits until then; false if it was stopped."""
        while not self._stopping:
            left_ns = planned_ns - monotonic_ns()
            if left_ns <= 0:
                return True
            if left_ns > _END_NS:
                self._wait(poll, left_ns - _END_NS + 1_000_000)
            else:
                long.delay_ns(left_ns)
        return False


class Readable(Callback):
    """Calls a function each time that a file can be read: an event counter (``os.eventfd``), a socket, a pipe, a serial port.

        >>> import os, hairspring
        >>> counter, counts = os.eventfd(0), []
        >>> with hairspring.Readable(counter, lambda call: counts.append(os.eventfd_read(counter))):
        ...     os.eventfd_write(counter, 3)
        ...     _ = hairspring.LongDelay().delay(0.05)
        >>> counts
        [3]

    The function gets a ``ReadableCall`` and must read, or it is called again at once. The thread waits in the kernel without the GIL; to
    get the GIL back takes up to the interpreter's switch interval for each thread that runs Python code. When the other side has closed a
    pipe, the last call has ``ended``. A socket that the other side has closed reads as empty: call ``stop()`` then. Close the file after
    ``stop()``, not before.

    ``file`` is a descriptor or has ``fileno()``; OSError if it is not open. A plain file can always be read.
    """

    def __init__(self, file: Union[int, Any], function: Callable[[ReadableCall], Any]) -> None:
        super().__init__()
        if not callable(function):
            raise TypeError(f"a watch on a file calls a function, not {function!r}")
        self._descriptor = file if isinstance(file, int) else int(file.fileno())
        os.fstat(self._descriptor)
        # Keeps the file open.
        self._file, self._function = file, function

    def _run(self) -> None:
        poll, file = self._poll(), self._descriptor
        poll.register(file, select.POLLIN)
        self._ready.set()
        ended = False
        while not ended:
            ready = self._wait(poll, None).get(file, 0)
            woke_ns = monotonic_ns()
            if self._stopping:
                return
            if ready & select.POLLNVAL:
                raise OSError(errno.EBADF, f"failed to wait for the file {file}: it is not open; stop() before it is closed")
            ended = bool(ready) and not ready & select.POLLIN
            if ready:
                self.calls += 1
                self._function(ReadableCall(woke_ns, ended))


@atexit.register
def _end_all() -> None:
    """Ends all at the end of the program, and shows the exceptions that no stop() has raised."""
    for callback in list(_started):
        callback._end(_PATIENCE)
        error, callback._unseen = callback._unseen, None
        if error is not None:
            sys.excepthook(type(error), error, error.__traceback__)
