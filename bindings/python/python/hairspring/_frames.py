"""Runs of frames: those that are missing, and those without a gap."""

from __future__ import annotations

from typing import NamedTuple


class Gap(NamedTuple):
    """Frames that the source produced and that the recording lacks."""

    #: The number of the first missing frame, counted by the source from 0.
    first_frame: int
    frames: int
    #: The cause: ``buffer_full``, ``served_late``, ``overwritten``, ``source``, ``write_failed``, ``resumed``; ``damaged``, also for
    #: frames that are in no file; ``left_out`` if no trigger asked for them, ``deleted`` if retention deleted them, ``not_stated`` in a
    #: recording of another program.
    cause: str


class Section(NamedTuple):
    """Frames without a gap."""

    #: The number of the first frame, counted by the source from 0.
    first_frame: int
    frames: int
