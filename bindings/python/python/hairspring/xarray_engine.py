"""Recordings in xarray: the engine ``hairspring``, and coordinates that are computed, never stored.

An index of 8 bytes for each frame would need 800 GB for 10¹¹ frames. ``FrameIndex`` holds the number of the first frame and the rate.
``frame`` and ``time`` are computed where they are looked at, in whole numbers.
"""

from __future__ import annotations

import datetime
import functools
import json
import os
import re
from pathlib import Path
from typing import Any, Hashable, Iterable, Mapping, NamedTuple, Optional

import numpy
import pandas  # type: ignore
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

#: Nanoseconds in the units of numpy's times.
_UNITS = {"ns": 1, "us": 1000, "ms": 1_000_000, "s": _SECOND}

#: Texts that numpy reads as a time as long as their last part.
_PERIOD = re.compile(r"\d{4}(-\d\d(-\d\d([T ]\d\d(:\d\d(:\d\d(\.(\d{3}|\d{6}|\d{9}))?)?)?)?)?)?")

#: A text with a time zone.
_ZONE = re.compile(r":\d\d.*(Z|[+-]\d\d:?\d\d)$")

#: As many frames show to which unit the times are round.
_FEW = 1000


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


def _nanoseconds(label: Any) -> int:
    """Nanoseconds since 1970 of a time without a zone; whole numbers of any size."""
    if isinstance(label, str) or not isinstance(label, (numpy.datetime64, datetime.date)):
        raise TypeError(f"{label!r} is no time")
    if getattr(label, "tzinfo", None) is not None:
        raise TypeError(f"{label!r} has a time zone: the times of a recording are UTC without one")
    # numpy would take a Timestamp for a datetime, and lose its nanoseconds.
    at = label if isinstance(label, numpy.datetime64) else pandas.Timestamp(label).to_datetime64()
    if numpy.isnat(at):
        raise KeyError(label)
    unit, count = numpy.datetime_data(at.dtype)
    if unit not in _UNITS:
        unit, count, at = "s", 1, at.astype("datetime64[s]")
    return int(at.astype("int64")) * count * _UNITS[unit]


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
        if len(labels) != 1:
            raise ValueError("select by frame or by time, not by both at once")
        if method not in (None, "nearest", "pad", "ffill", "backfill", "bfill"):
            raise ValueError(f"there is no method {method!r}: choose 'nearest', 'pad' or 'backfill'")
        if self.frames.step < 0:
            raise ValueError("select by position (isel): the frames descend")
        ((name, label),) = labels.items()
        if isinstance(label, slice):
            if method is not None:
                raise NotImplementedError("cannot use ``method`` argument if any indexers are slice objects")
            start = 0 if label.start is None else self._position(name, self._bounds(name, label.start)[0], "backfill")
            stop = len(self.frames) if label.stop is None else self._position(name, self._bounds(name, label.stop)[1], "pad") + 1
            return indexing.IndexSelResult({self.dim: slice(max(start, 0), max(stop, 0), label.step)})
        if name == "time" and method is None and self._is_period(label):
            return indexing.IndexSelResult({self.dim: self._within(label)})
        values = numpy.asarray(getattr(label, "values", label), "object" if isinstance(label, (list, tuple)) else None)
        found = [self._found(name, value, method, tolerance) for value in values.ravel()]
        position: Any = found[0] if values.ndim == 0 else numpy.array(found, "int64").reshape(values.shape)
        if isinstance(label, xarray.Variable):
            position = xarray.Variable(label.dims, position)
        elif isinstance(label, xarray.DataArray):
            position = xarray.DataArray(position, dims=label.dims)
        return indexing.IndexSelResult({self.dim: position})

    def _is_period(self, label: Any) -> bool:
        """Whether a text names a longer time than the times themselves are apart, as a day or a second: it then selects all frames in it, as
        with pandas."""
        label = getattr(label, "values", label)
        label = label.item() if isinstance(label, numpy.ndarray) and label.ndim == 0 else label
        try:
            low, high = self._bounds("time", label)
            return isinstance(label, str) and high - low >= self._unit
        except (KeyError, TypeError, ValueError):
            return False

    @functools.cached_property
    def _unit(self) -> int:
        """The longest unit of which the times of the first frames are multiples, in nanoseconds."""
        few = self.clock.times(list(self.frames[:_FEW])) if self.clock is not None else []
        resolution = pandas.DatetimeIndex(few).resolution
        return int(pandas.Timedelta(1, resolution).value)

    def _within(self, label: Any) -> slice:
        low, high = self._bounds("time", str(getattr(label, "values", label)))
        start, stop = self._position("time", low, "backfill"), self._position("time", high, "pad") + 1
        if start == len(self.frames) or stop == 0:
            raise KeyError(label)
        return slice(start, stop)

    def _bounds(self, name: str, label: Any) -> tuple[Any, Any]:
        """The first and the last label that a label of a slice means: a text can mean a whole day."""
        if name != "time":
            return label, label
        if isinstance(label, str) and _PERIOD.fullmatch(label):
            unit = numpy.datetime64(label)
            return _nanoseconds(unit), _nanoseconds(unit + 1) - 1
        if isinstance(label, str):
            if _ZONE.search(label):
                raise ValueError(f"{label!r} has a time zone: the times of a recording are UTC without one")
            period = pandas.Period(label)
            return _nanoseconds(period.start_time), _nanoseconds(period.end_time)
        at = _nanoseconds(label)
        return at, at

    def _found(self, name: str, label: Any, method: Optional[str], tolerance: Any) -> int:
        most = None if tolerance is None else pandas.Timedelta(tolerance).value if name == "time" else tolerance
        try:
            wanted = self._bounds(name, label)[0]
            position = self._position(name, wanted, method)
            if 0 <= position < len(self.frames) and (most is None or abs(self._label(name, position) - wanted) <= most):
                return position
        except (KeyError, TypeError, ValueError) as error:
            raise KeyError(f"not all values found in index {name!r}: {label!r}") from error
        raise KeyError(f"not all values found in index {name!r}: {label!r}")

    def _position(self, name: str, label: Any, method: Optional[str]) -> int:
        """The position of a label, in nanoseconds if it is a time: that of the frame with it, or of the next one before (``pad``) or behind
        (``backfill``); it can be -1 or the length."""
        behind = self._behind(name, label)
        exact = behind < len(self.frames) and self._label(name, behind) == label
        if exact or method in ("backfill", "bfill"):
            return behind
        if method in ("pad", "ffill"):
            return behind - 1
        if method == "nearest" and self.frames:
            around = [at for at in (behind, behind - 1) if 0 <= at < len(self.frames)]
            return min(around, key=lambda at: abs(self._label(name, at) - label))
        raise KeyError(label)

    def _behind(self, name: str, label: Any) -> int:
        """The first position whose label is not less."""
        number = self.clock.frame_at(label) if name == "time" and self.clock is not None else -(-label // 1)
        frames = self.frames
        behind = min(max(int(-(-(number - frames.start) // frames.step)), 0), len(frames))
        # Times are rounded down, so that the frame before can have the same one.
        while name == "time" and behind > 0 and self._label(name, behind - 1) >= label:
            behind -= 1
        return behind

    def _label(self, name: str, position: int) -> int:
        frame = self.frames[position]
        return int(self.clock.times([frame])[0].astype("int64")) if name == "time" and self.clock is not None else frame

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
        return f"FrameIndex ({len(self.frames)} frames from {self.frames.start})"[:max_width]


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
    if first < end:
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
        if not isinstance(filename_or_obj, (str, bytes, os.PathLike)):
            return False
        path = os.fsdecode(filename_or_obj)
        ending = next((ending for ending in _ENDINGS if path.endswith(ending)), None)
        if ending is None:
            return False
        try:
            about = json.loads(Path(path[: -len(ending)] + ".sigmf-meta").read_text(encoding="utf-8"))
            return "hairspring:layout" in about["global"]
        except (OSError, ValueError, KeyError, TypeError):
            return False
