"""Exact delays, a calibrated time base and timing data sheets.

    >>> import hairspring
    >>> report = hairspring.delay(50e-6)        # polls; never early
    >>> report.late_ns >= 0
    True
    >>> long = hairspring.LongDelay()           # learns how late the kernel wakes this thread
    >>> long.delay(0.02).actual >= 0.02         # sleeps, polls only the end
    True

Three laws hold. *Never early*: a delay returns only when its time is over. *Never silent*: its report says what disturbed it. *Never
naked*: a figure of a sheet has unit, count, spread and method, or says why it is absent.

Seconds are floats; names that end in ``_ns`` are nanoseconds as integers. The functions of this module use a time base that the first call
calibrates, which takes 4 to 5 ms once. Delays of at most ``HELD_MOST_NS`` keep the GIL; longer ones release it, and a long delay takes it
back shortly before its end. Ctrl-C ends a long delay or a calibration within 0.15 s.

Only the main interpreter of a process can import this package; others get an ImportError. A free-threaded Python turns the GIL on.
"""

from ._hairspring import (
    HELD_MOST_NS,
    BlockError,
    Gaps,
    Grant,
    Instant,
    LongDelay,
    RealTime,
    Refined,
    Report,
    Summary,
    Timebase,
    Trust,
    Verdict,
    Window,
    delay,
    delay_ns,
    now,
    now_ns,
    probes,
    timebase,
)
from .callbacks import Callback, Readable, ReadableCall, Timer, TimerCall
from .live import LiveFrames, Tap, tap
from .profile import Profile
from .recording import Alignment, Gap, GapError, Recording, RecordingWarning, Section, align, open_recording
from .sheet import Sheet, read_sheet, take_sheet
from .sheet_archive import Archive, ArchivedSheet, archive

__all__ = [
    "HELD_MOST_NS",
    "Alignment",
    "Archive",
    "ArchivedSheet",
    "BlockError",
    "Callback",
    "Gap",
    "GapError",
    "Gaps",
    "Grant",
    "Instant",
    "LiveFrames",
    "LongDelay",
    "Profile",
    "Readable",
    "ReadableCall",
    "RealTime",
    "Recording",
    "RecordingWarning",
    "Refined",
    "Report",
    "Section",
    "Sheet",
    "Summary",
    "Tap",
    "Timebase",
    "Timer",
    "TimerCall",
    "Trust",
    "Verdict",
    "Window",
    "align",
    "archive",
    "delay",
    "delay_ns",
    "now",
    "now_ns",
    "open_recording",
    "probes",
    "read_sheet",
    "take_sheet",
    "tap",
    "timebase",
]
