"""Recordings in xarray: the engine ``hairspring``, and coordinates that are computed, never stored.

An index of 8 bytes for each frame would need 800 GB for 10¹¹ frames. ``FrameIndex`` holds the number of the first frame and the rate.
``frame`` and ``time`` are computed where they are looked at, in whole numbers.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Hashable, Iterable, Mapping, NamedTuple, Optional

import numpy
import xarray
from xarray.backends import BackendArray, BackendEntrypoint
from xarray.core import indexing

from .recording import Recording, open_recording

#: The endings of the files that the engine opens.
_ENDINGS = (".sigmf-meta", ".sigmf-data", ".hairspring-journal")

#: The largest index that becomes a pandas index.
MOST_IN_PANDAS = 10_000_000

#: Bytes of the chunks that ``chunks={}`` makes.
_CHUNK = 96 << 20

_SECOND = 1_000_000_000


class FrameClock(NamedTuple):
    """When each frame was taken: the time of one frame, and the stated rate as a fraction."""

    frame: int
    #: Nanoseconds since 1970.
    at_ns: int
    frames: int
    seconds: int

    def times(self, frames: Any) -> Any:
        """The times of frames, rounded down to nanoseconds."""
        # Whole seconds and the rest apart: the product of frames and nanoseconds does not fit into 64 bits.
        whole, rest = numpy.divmod(numpy.asarray(frames, "int64") - self.frame, self.frames)
        within = rest.astype("object") * (self.seconds * _SECOND) // self.frames if self._is_large else rest * (self.seconds * _SECOND) // self.frames
        return (whole * (self.seconds * _SECOND) + numpy.asarray(within, "int64") + self.at_ns).astype("datetime64[ns]")

    @property
    def _is_large(self) -> bool:
        return self.frames * self.seconds * _SECOND >= 1 << 63

    def frame_at(self, at_ns: int) -> int:
        """The first frame that is not before a time."""
        return self.frame - ((self.at_ns - at_ns) * self.frames // (self.seconds * _SECOND))


def clock_of(recording: Recording) -> Optional[FrameClock]:
    """The clock of a recording; None if the recording does not state when its frames were taken."""
    started, rate = recording._contents.started, recording._contents.rate
    if started is None or rate is None:
        return None
    series = recording.metadata.get("global", {}).get("hairspring:series") or {}
    return FrameClock(int(series.get("epoch_frame") or 0), started[0], *rate)


class FrameIndex(xarray.Index):
    """The index of the coordinates ``frame`` and ``time``: positions are computed from the first frame and the rate."""

    def __init__(self, frames: range, clock: Optional[FrameClock], dim: str = "frame") -> None:
        self.frames, self.clock, self.dim = frames, clock, dim

    def create_variables(self, variables: Optional[Mapping[Any, Any]] = None) -> dict[Any, Any]:
        def variable(name: str, values: _Computed) -> Any:
            attrs = variables[name].attrs if variables and name in variables else None
            return xarray.Variable((self.dim,), indexing.LazilyIndexedArray(values), attrs)

        made = {"frame": variable("frame", _Computed(self.frames, None))}
        if self.clock is not None:
            made["time"] = variable("time", _Computed(self.frames, self.clock))
        return made

    def isel(self, indexers: Mapping[Any, Any]) -> Optional[FrameIndex]:
        at = indexers.get(self.dim, slice(None))
        return FrameIndex(self.frames[at], self.clock, self.dim) if isinstance(at, slice) else None

    def sel(self, labels: dict[Any, Any], method: Optional[str] = None, tolerance: Any = None) -> indexing.IndexSelResult:
        if tolerance is not None:
            raise ValueError("a frame index has no tolerance: compare what is found")
        if len(labels) != 1:
            raise ValueError("select by frame or by time, not by both at once")
        ((name, label),) = labels.items()
        if isinstance(label, slice):
            if label.step is not None:
                raise ValueError("select a slice without a step, then take every n-th frame by isel")
            start = 0 if label.start is None else self._position(name, label.start, "backfill")
            stop = len(self.frames) if label.stop is None else self._position(name, label.stop, "pad") + 1
            return indexing.IndexSelResult({self.dim: slice(max(start, 0), max(stop, 0))})
        values = numpy.asarray(getattr(label, "values", label))
        found = [self._found(name, value, method) for value in values.ravel()]
        position: Any = found[0] if values.ndim == 0 else numpy.array(found, "int64").reshape(values.shape)
        if isinstance(label, xarray.Variable):
            position = xarray.Variable(label.dims, position)
        elif isinstance(label, xarray.DataArray):
            position = xarray.DataArray(position, dims=label.dims)
        return indexing.IndexSelResult({self.dim: position})

    def _found(self, name: str, label: Any, method: Optional[str]) -> int:
        position = self._position(name, label, method)
        if not 0 <= position < len(self.frames):
            raise KeyError(label)
        return position

    def _position(self, name: str, label: Any, method: Optional[str]) -> int:
        """The position of a label: that of the frame with it, or of the next one before (``pad``) or behind (``backfill``); it can be
        -1 or the length."""
        if method not in (None, "nearest", "pad", "ffill", "backfill", "bfill"):
            raise ValueError(f"there is no method {method!r}: choose 'nearest', 'pad' or 'backfill'")
        behind = self._behind(name, label)
        exact = behind < len(self.frames) and self._label(name, behind) == self._as_label(name, label)
        if exact or method in ("backfill", "bfill"):
            return behind
        if method in ("pad", "ffill"):
            return behind - 1
        if method == "nearest" and self.frames:
            around = [at for at in (behind - 1, behind) if 0 <= at < len(self.frames)]
            return min(around, key=lambda at: abs(self._label(name, at) - self._as_label(name, label)))
        raise KeyError(label)

    def _behind(self, name: str, label: Any) -> int:
        """The first position whose label is not less."""
        number = self._as_label(name, label)
        if name == "time" and self.clock is not None:
            number = self.clock.frame_at(number)
        frames = self.frames
        if frames.step < 0:
            raise ValueError("select by position (isel): the frames descend")
        behind = max(-(-(number - frames.start) // frames.step), 0)
        # Times are rounded down, so that the frame before can have the same one.
        while name == "time" and 0 < behind <= len(frames) and self._label(name, behind - 1) >= self._as_label(name, label):
            behind -= 1
        return min(behind, len(frames))

    def _label(self, name: str, position: int) -> int:
        frame = self.frames[position]
        return int(self.clock.times([frame])[0].astype("int64")) if name == "time" and self.clock is not None else frame

    @staticmethod
    def _as_label(name: str, label: Any) -> int:
        if name == "time":
            return int(numpy.datetime64(label, "ns").astype("int64"))
        return int(label) if int(label) == label else -(-label // 1)

    def equals(self, other: xarray.Index, **_: Any) -> bool:
        return isinstance(other, FrameIndex) and (self.frames, self.clock) == (other.frames, other.clock)

    @classmethod
    def concat(cls, indexes: Any, dim: Hashable, positions: Optional[Iterable[Iterable[int]]] = None) -> FrameIndex:
        first, last = indexes[0], indexes[-1]
        step = first.frames.step
        follow = all(
            before.frames[-1:] == range(after.frames.start - step, after.frames.start, step) if len(before.frames) else False
            for before, after in zip(indexes, indexes[1:])
        )
        if positions is not None or not follow or any((index.clock, index.frames.step) != (first.clock, step) for index in indexes):
            raise ValueError("only pieces of one recording that follow one another can be concatenated; reset_index() first")
        return cls(range(first.frames.start, last.frames.stop, step), first.clock, first.dim)

    def rename(self, name_dict: Mapping[Any, Any], dims_dict: Mapping[Any, Any]) -> FrameIndex:
        if any(name in name_dict for name in ("frame", "time")):
            raise ValueError("the coordinates frame and time keep their names; reset_index() first")
        return FrameIndex(self.frames, self.clock, dims_dict.get(self.dim, self.dim))

    def to_pandas_index(self) -> Any:
        if len(self.frames) > MOST_IN_PANDAS:
            raise ValueError(f"an index of {len(self.frames)} frames does not become a pandas index: select a piece first")
        frames = numpy.arange(self.frames.start, self.frames.stop, self.frames.step)
        return xarray.Variable(("frame",), frames).to_index()

    def _repr_inline_(self, max_width: int) -> str:
        return f"FrameIndex ({self.frames.start} to {self.frames.stop - 1})"[:max_width]


class _Computed(BackendArray):
    """Numbers of frames, or their times, computed where they are asked for."""

    def __init__(self, frames: range, clock: Optional[FrameClock]) -> None:
        self.frames, self.clock = frames, clock
        self.shape = (len(frames),)
        self.dtype = numpy.dtype("int64" if clock is None else "datetime64[ns]")

    def __getitem__(self, key: Any) -> Any:
        return indexing.explicit_indexing_adapter(key, self.shape, indexing.IndexingSupport.OUTER, self._at)

    def _at(self, key: Any) -> Any:
        (at,) = key
        if isinstance(at, slice):
            taken = self.frames[at]
            numbers = numpy.arange(taken.start, taken.stop, taken.step, dtype="int64")
        else:
            at = numpy.asarray(at)
            numbers = numpy.where(at < 0, at + len(self.frames), at) * self.frames.step + self.frames.start
        return numbers if self.clock is None else self.clock.times(numbers)


class _Rows(BackendArray):
    """The samples of a recording, or which of them are in it, read where they are asked for."""

    def __init__(self, recording: Recording, first: int, end: int, options: dict[str, Any], valid: bool = False) -> None:
        self.recording, self.first, self.options, self.is_valid = recording, first, options, valid
        self.shape = (end - first,) if valid else (end - first, recording.channels)
        self.dtype = numpy.dtype(bool) if valid else recording.read(first, first, **options).dtype

    def __getitem__(self, key: Any) -> Any:
        return indexing.explicit_indexing_adapter(key, self.shape, indexing.IndexingSupport.BASIC, self._read)

    def _read(self, key: Any) -> Any:
        at, *columns = key
        if not isinstance(at, slice):
            return self._between(at, at + 1, columns)[0]
        taken = range(self.shape[0])[at]
        if not taken:
            return self._between(0, 0, columns)
        low, high = min(taken[0], taken[-1]), max(taken[0], taken[-1]) + 1
        return self._between(low, high, columns)[:: taken.step]

    def _between(self, start: int, end: int, columns: list[Any]) -> Any:
        first, end = self.first + start, self.first + end
        if self.is_valid:
            return self.recording.valid(first, end)
        return self.recording.read(first, end, *columns, **self.options)


def _dataset(recording: Recording, first: Optional[int], end: Optional[int], **options: Any) -> xarray.Dataset:
    first, end = recording._bounds(first, end)
    if options["gaps"] not in ("raise", "fill"):
        raise ValueError(f"xarray cannot have gaps={options['gaps']!r}: choose 'raise' or 'fill'")
    described = recording._described()
    attrs: dict[str, Any] = {"id": recording.id, "state": recording.state}
    if recording.sample_rate is not None:
        attrs["sample_rate_hz"] = recording.sample_rate
    units = {str(one["unit"]) for one in described if one.get("unit")}
    if options["scaled"] and len(units) == 1:
        attrs["units"] = units.pop()
    samples = xarray.Variable(("frame", "channel"), indexing.LazilyIndexedArray(_Rows(recording, first, end, options)), attrs)
    edges = recording._contents.edges(first, end, _CHUNK)
    samples.encoding["preferred_chunks"] = {"frame": tuple(after - before for before, after in zip(edges, edges[1:]))}
    variables = {"samples": samples}
    if options["gaps"] == "fill":
        valid = indexing.LazilyIndexedArray(_Rows(recording, first, end, options, valid=True))
        variables["valid"] = xarray.Variable(("frame",), valid)
    index = FrameIndex(range(first, end), clock_of(recording))
    named = recording.channel_names if any(one.get("name") for one in described) else list(range(recording.channels))
    coordinates = xarray.Coordinates.from_xindex(index)
    made = xarray.Dataset(variables, coords=coordinates).assign_coords(channel=named)
    made.attrs = {name: value for name, value in attrs.items() if name != "units"}
    return made


def to_xarray(recording: Recording, first: Optional[int], end: Optional[int], **options: Any) -> xarray.DataArray:
    """The frames as a DataArray; ``Recording.to_xarray`` describes it."""
    return _dataset(recording, first, end, **options)["samples"]


class HairspringBackend(BackendEntrypoint):
    """Opens recordings by ``xarray.open_dataset(path, engine="hairspring")``, with the variable ``samples``."""

    description = "Open recordings of Hairspring, checked by their checksums"
    open_dataset_parameters = ("filename_or_obj", "drop_variables", "gaps", "fill", "scaled", "verify")

    def open_dataset(
        self,
        filename_or_obj: Any,
        *,
        drop_variables: Any = None,
        gaps: str = "raise",
        fill: Optional[float] = None,
        scaled: bool = False,
        verify: bool = True,
    ) -> xarray.Dataset:
        """The recording as a Dataset. With ``gaps="fill"`` it has ``valid``, too: which frames are in the recording."""
        made = _dataset(open_recording(filename_or_obj), None, None, gaps=gaps, fill=fill, scaled=scaled, verify=verify)
        unwanted = [drop_variables] if isinstance(drop_variables, str) else drop_variables or []
        return made.drop_vars([name for name in unwanted if name in made.variables])

    def guess_can_open(self, filename_or_obj: Any) -> bool:
        """Whether this is a file of a recording of Hairspring."""
        if not isinstance(filename_or_obj, (str, os.PathLike)):
            return False
        path = os.fspath(filename_or_obj)
        ending = next((ending for ending in _ENDINGS if path.endswith(ending)), None)
        if ending is None:
            return False
        try:
            about = json.loads(Path(path[: -len(ending)] + ".sigmf-meta").read_text(encoding="utf-8"))
            return "hairspring:layout" in about["global"]
        except (OSError, ValueError, KeyError, TypeError):
            return False
