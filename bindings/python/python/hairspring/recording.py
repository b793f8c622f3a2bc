"""Recordings, mapped into memory by numpy, with their gaps."""

from __future__ import annotations

import functools
import json
import os
import warnings
from pathlib import Path
from typing import Any, Iterator, NamedTuple, Optional, Union

from . import _hairspring

#: The numpy type of each sample container. Packed samples and bits are bytes until they are unpacked.
_TYPES = {"i8": "i1", "u8": "u1", "i16": "<i2", "u16": "<u2", "i32": "<i4", "f32": "<f4", "packed12": "u1", "bits": "u1"}


class RecordingWarning(UserWarning):
    """A recording is not in order: it was cut off or damaged, or is still being written. Its proven samples are available."""


class Gap(NamedTuple):
    """Frames that the source produced and that the recording lacks."""

    #: The number of the first missing frame, counted by the source from 0.
    first_frame: int
    frames: int
    #: The cause: ``buffer_full``, ``served_late``, ``overwritten``, ``source``, ``write_failed``, ``damaged``, ``resumed``; None
    #: for a recording of another program, whose captures show gaps without causes.
    cause: Optional[str]


class Recording:
    """A recording: its proven samples as memory maps, with rate, channels, gaps and metadata."""

    def __init__(self, *paths: Union[str, os.PathLike], verify: bool = False) -> None:
        numpy = _numpy()
        if not paths:
            raise TypeError("name a recording")
        contents = _hairspring.read_recording([Path(path) for path in paths], verify)
        self._opened = [Path(path).absolute() for path in paths], verify
        #: The SigMF metadata of the first member, with the extension ``hairspring``: docs/recording-format.md. The other
        #: attributes describe the samples that are proven.
        self.metadata: dict[str, Any] = json.loads(contents.meta.read_text(encoding="utf-8"))
        self._kind = numpy.dtype(_TYPES[contents.container])
        self._container = contents.container
        self._row_bytes, self._per_row = contents.grain
        #: Number of channels, or of digital lines.
        self.channels: int = contents.channels
        #: Frames per second; None without a clock.
        self.sample_rate: Optional[float] = contents.rate[0] / contents.rate[1] if contents.rate else None
        #: ``complete``, ``stopped``, ``incomplete``, ``unaccounted``, ``recovered``; ``recording`` if it was cut off or is still
        #: being written; ``foreign`` if another program made it: then its length is the size of its file, and no checksum proves
        #: its samples.
        self.state: str = contents.state
        #: Why the recording is not in order, in words; empty if it is in order. ``hairspring recover`` mends it.
        self.faults: list[str] = contents.faults
        self._stretches = contents.stretches
        self._maps = [self._mapped(member, path) for member, path in enumerate(contents.data)]
        self._whole: Any = None
        #: The missing frames, in order.
        self.gaps: list[Gap] = self._between() if contents.gaps is None else [Gap(*gap) for gap in contents.gaps]

    def __reduce__(self) -> Any:
        """Pickles the arguments of the opening, not the samples: unpickling opens the files again and shows their contents at that time."""
        paths, verify = self._opened
        return functools.partial(Recording, verify=verify), tuple(paths)

    @property
    def is_in_order(self) -> bool:
        """Whether files, journals and metadata agree and nothing is missing that no gap declares."""
        return not self.faults

    @property
    def data(self) -> Any:
        """The samples as the file stores them, mapped: a row for each frame, a column for each channel. Packed samples and bits are bytes,
        which ``frames()`` unpacks. ValueError if the frames are not one contiguous piece of one file."""
        if self._whole is None:
            ends = [(member, offset + length) for member, offset, length, _ in self._stretches]
            starts = [(member, offset) for member, offset, _, _ in self._stretches]
            if ends[:-1] != starts[1:]:
                raise ValueError("the frames are not one contiguous piece of one file: use runs() or frames()")
            member, start = starts[0] if starts else (0, 0)
            self._whole = self._rows(member, start, ends[-1][1] - start if ends else 0)
        return self._whole

    def runs(self) -> Iterator[tuple[int, Any]]:
        """The runs of frames without a gap, in order: the number of the first frame, counted by the source, and the values. A new run also
        begins where the recording continues in another file, so that nothing has to be copied."""
        for member, offset, length, first in self._stretches:
            yield first, self._unpacked(self._rows(member, offset, length))

    def frames(self) -> Any:
        """All proven values, a row for each frame: the memory map itself if no samples have to be unpacked or joined."""
        try:
            return self._unpacked(self.data)
        except ValueError:
            return _numpy().concatenate([values for _, values in self.runs()])

    def _mapped(self, member: int, path: Path) -> Any:
        ends = [offset + length for own, offset, length, _ in self._stretches if own == member]
        return _numpy().memmap(path, "u1", "r", shape=(max(ends),)) if ends else None

    def _rows(self, member: int, offset: int, length: int) -> Any:
        columns = self._row_bytes // self._kind.itemsize
        if length == 0:
            return _numpy().empty((0, columns), self._kind)
        return self._maps[member][offset : offset + length].view(self._kind).reshape(-1, columns)

    def _unpacked(self, rows: Any) -> Any:
        numpy = _numpy()
        if self._container == "packed12":
            a, b, c = (rows.reshape(-1, 3)[:, i].astype(numpy.int16) for i in range(3))
            pairs = numpy.stack([(a | (b & 15) << 8), (b >> 4 | c << 4)], axis=1)
            return ((pairs << 4).astype(numpy.int16) >> 4).reshape(-1, self.channels)
        if self._container == "bits":
            return numpy.unpackbits(rows, axis=1, bitorder="little")[:, : self.channels]
        return rows

    def _between(self) -> list[Gap]:
        """The gaps between runs, without causes."""
        gaps, expected = [], 0
        for _, _, length, first in self._stretches:
            if first > expected:
                gaps.append(Gap(expected, first - expected, None))
            expected = first + length // self._row_bytes * self._per_row
        return gaps

    def __len__(self) -> int:
        return sum(length for _, _, length, _ in self._stretches) // self._row_bytes * self._per_row

    def __repr__(self) -> str:
        order = "" if self.is_in_order else ", not in order"
        return f"<Recording: {len(self)} frames of {self.channels} channels, {len(self.gaps)} gaps, {self.state}{order}>"


def open_recording(path: Union[str, os.PathLike], *more: Union[str, os.PathLike], verify: bool = False) -> Recording:
    """Opens a recording by its name, or by the name of any of its files. One member of a recording that is striped over several folders
    leads to all others, unless they were moved: then name them all.

    It trusts journals and checksums, never the size of a file. It reads blocks that no sync covers and compares them with their checksums,
    and with ``verify`` all blocks; a block that does not match becomes a gap. A recording that is not in order (cut off, damaged, or still
    being written) opens with its proven samples, a ``RecordingWarning`` and its ``faults``; ``hairspring recover`` mends it.

    Raises OSError if it cannot be read, and ValueError if it is not a recording or members of it are missing.
    """
    recording = Recording(path, *more, verify=verify)
    if not recording.is_in_order:
        said = "; ".join(recording.faults[:3]) + ("; …" if len(recording.faults) > 3 else "")
        remedy = "recorded by another program" if recording.state == "foreign" else f"`hairspring recover {path}` mends it"
        warnings.warn(f"{path} is not in order: {said}; {len(recording)} frames of it are offered; {remedy}", RecordingWarning, 2)
    return recording


def _numpy():
    try:
        import numpy
    except ImportError as error:
        raise ImportError("recordings need numpy: pip install numpy") from error
    return numpy
