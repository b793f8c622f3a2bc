"""Recordings, mapped into memory by numpy, with what is missing from them."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Iterator, NamedTuple, Optional, Union

#: What numpy calls the containers of samples. Packed samples and bits are bytes until they are unpacked.
_TYPES = {"i8": "i1", "u8": "u1", "i16": "<i2", "u16": "<u2", "i32": "<i4", "f32": "<f4", "packed12": "u1", "bits": "u1"}
#: Files that belong to a recording, by the ends of their names.
_ENDS = (".sigmf-data", ".sigmf-meta", ".hairspring-journal")


class Gap(NamedTuple):
    """Frames that the source produced and that are not there."""

    #: The first, counted by the source from 0.
    first_frame: int
    frames: int
    #: Why: ``buffer_full``, ``served_late``, ``overwritten``, ``source``, ``write_failed``, ``damaged``, ``resumed``; None where the
    #: recording was cut off and only its metadata tell.
    cause: Optional[str]


class Recording:
    """One member of a recording: its samples as a memory map, and what they are."""

    def __init__(self, path: Union[str, os.PathLike]) -> None:
        numpy = _numpy()
        base = _base(path)
        #: What SigMF and the extension ``hairspring`` say of it; docs/recording-format.md.
        self.metadata: dict[str, Any] = json.loads(_beside(base, ".sigmf-meta").read_text(encoding="utf-8"))
        try:
            about = self.metadata["global"]
            self._layout = about["hairspring:layout"]
            columns = about["core:num_channels"]
            if columns < 1 or self.channels < 1:
                raise ValueError("it has no channels")
            kind = _TYPES[self._layout["container"]]
            data = _beside(base, ".sigmf-data")
            length = data.stat().st_size // (numpy.dtype(kind).itemsize * columns)
            #: The samples as they are in the file: a row for each frame, a column for each channel. Packed samples and bits are bytes:
            #: ``frames()`` unpacks them.
            self.data = numpy.memmap(data, kind, "r", shape=(length, columns)) if length else numpy.empty((0, columns), kind)
            rate = about["hairspring:recording"]["rate"]
            #: Frames per second; None without a clock.
            self.sample_rate: Optional[float] = rate["frames"] / rate["seconds"] if rate else None
            #: ``complete``, ``stopped``, ``incomplete``, ``unaccounted``, ``recovered``; ``recording`` if it was cut off.
            self.state: str = about.get("hairspring:state", "recording")
            self._stretches = list(self._stretches_of(self.metadata["captures"]))
            #: What is missing, in order.
            self.gaps: list[Gap] = self._gaps(about.get("hairspring:result"))
        except (ArithmeticError, AttributeError, KeyError, TypeError, ValueError) as error:
            said = f"{error} is not in its metadata" if isinstance(error, KeyError) else error
            raise ValueError(f"{base} is no recording of hairspring: {said}") from None

    @property
    def channels(self) -> int:
        """Channels, or digital lines."""
        return self._layout["channels"]

    def runs(self) -> Iterator[tuple[int, Any]]:
        """The runs of frames without a gap: the number of the first, counted by the source, and the values."""
        for start, end, first in self._stretches:
            values = self._unpacked(self.data[start:end])
            yield first * self._per_row(), values

    def frames(self) -> Any:
        """All values that are there, a row for each frame: the memory map itself if nothing is to be unpacked or left out."""
        stretches = self._stretches
        if stretches and stretches[0][0] == 0 and stretches[-1][1] == len(self.data) and self._is_seamless(stretches):
            return self._unpacked(self.data)
        parts = [values for _, values in self.runs()]
        return _numpy().concatenate(parts) if parts else self._unpacked(self.data[:0])

    @staticmethod
    def _is_seamless(stretches: list[tuple[int, int, int]]) -> bool:
        return all(before[1] == after[0] for before, after in zip(stretches, stretches[1:]))

    def _stretches_of(self, captures: list[dict[str, Any]]) -> Iterator[tuple[int, int, int]]:
        """First row, end, and number of the first, of each run."""
        starts = [capture["core:sample_start"] for capture in captures]
        for capture, start, end in zip(captures, starts, [*starts[1:], len(self.data)]):
            if "hairspring:frames" in capture and "core:global_index" not in capture:
                continue  # A hole: the block that was meant for this place is in another file.
            yield start, end, capture.get("core:global_index", start)

    def _per_row(self) -> int:
        """Frames in a row of the file."""
        if self._layout["container"] == "packed12":
            return self.data.shape[1] * 2 // 3 // self.channels
        return 1

    def _unpacked(self, rows: Any) -> Any:
        numpy = _numpy()
        if self._layout["container"] == "packed12":
            a, b, c = (rows.reshape(-1, 3)[:, i].astype(numpy.int16) for i in range(3))
            pairs = numpy.stack([(a | (b & 15) << 8), (b >> 4 | c << 4)], axis=1)
            return ((pairs << 4).astype(numpy.int16) >> 4).reshape(-1, self.channels)
        if self._layout["container"] == "bits":
            return numpy.unpackbits(rows, axis=1, bitorder="little")[:, : self.channels]
        return rows

    def _gaps(self, result: Optional[dict[str, Any]]) -> list[Gap]:
        if result is not None:
            return [Gap(gap["first_frame"], gap["frames"], gap["cause"]) for gap in result["gaps"]]
        # Cut off: what lies between two runs is missing, whatever became of it.
        gaps, expected = [], 0
        for start, end, first in self._stretches:
            if first > expected:
                gaps.append(Gap(expected * self._per_row(), (first - expected) * self._per_row(), None))
            expected = first + (end - start)
        return gaps

    def __len__(self) -> int:
        return len(self.data) * self._per_row()

    def __repr__(self) -> str:
        return f"<Recording: {len(self)} frames of {self.channels} channels, {len(self.gaps)} gaps, {self.state}>"


def open_recording(path: Union[str, os.PathLike]) -> Recording:
    """Opens a recording by the name it was given, or by that of any of its files. Nothing is read but what is looked at.

    Of a recording that was striped over several folders this is one member, whose runs say what is in it. Run ``hairspring recover``
    first on one that was cut off. Raises OSError if it cannot be opened and ValueError if it is none.
    """
    return Recording(path)


def _base(path: Union[str, os.PathLike]) -> Path:
    base = Path(path)
    for end in _ENDS:
        if base.name.endswith(end):
            return base.with_name(base.name[: -len(end)])
    return base


def _beside(base: Path, end: str) -> Path:
    return base.with_name(base.name + end)


def _numpy():
    try:
        import numpy
    except ImportError as error:
        raise ImportError("recordings need numpy: pip install numpy") from error
    return numpy
