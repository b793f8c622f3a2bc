"""Recordings: their frames by number, read and checked by the compiled module, and their files as memory maps."""

from __future__ import annotations

import bisect
import functools
import hashlib
import importlib
import itertools
import json
import os
import time
import warnings
from pathlib import Path
from typing import Any, Iterator, NamedTuple, Optional, Sequence, Union

from . import _hairspring
from ._hairspring import BlockError
from ._frames import Gap, Section
from ._samples import TYPES, numpy_module, unpacked

#: Causes of missing frames that were not lost.
_NO_LOSS = ("left_out", "deleted")

_Path = Union[str, bytes, os.PathLike]
_Channels = Union[None, int, str, slice, Sequence[Union[int, str]]]

#: Frames that follow() reads at once have about so many bytes.
_FOLLOWED = 64 << 20


class RecordingWarning(UserWarning):
    """A recording is not in order: it was cut off or damaged, or is still being written. Its proven samples are available."""


class GapError(ValueError):
    """The requested frames are not all in the recording. ``gaps`` lists the missing ones. ``gaps="split"``, ``"fill"`` or ``"skip"``
    reads the others."""

    def __init__(self, message: str, gaps: list[Gap]) -> None:
        super().__init__(message, gaps)
        self.gaps = gaps

    def __str__(self) -> str:
        return str(self.args[0])


class Recording:
    """A recording: its frames by number, with rate, channels, gaps and metadata.

    ``recording[a:b]`` reads frames a to before b, as the source counted them from 0, and ``recording[a:b, "pressure"]`` one channel.
    It raises GapError if one of them is missing: ``read`` has other ways. Every block is compared with its checksum; a bad one raises
    BlockError with its place.
    """

    def __init__(self, *paths: _Path, verify: bool = False) -> None:
        self._open(paths, verify)

    def _open(self, paths: Sequence[_Path], verify: Optional[bool], since: Optional[int] = None) -> None:
        """With ``since``, only the segments of a series from that frame on."""
        numpy = numpy_module()
        if not paths:
            raise TypeError("name a recording")
        named = [Path(os.fsdecode(path)) for path in paths]
        contents, about = _read(named, verify, since)
        self._contents = contents
        self._opened = [path.absolute() for path in named], bool(verify)
        #: The SigMF metadata of the first member, with the extension ``hairspring``: docs/recording-format.md. The other
        #: attributes describe the samples that are proven.
        self.metadata: dict[str, Any] = json.loads(about)
        self._container = contents.container
        self._kind = numpy.dtype(TYPES[contents.container])
        # What is read has the lowest byte first; a memory map has what is in the file.
        self._mapped_kind = self._kind.newbyteorder(">") if contents.is_big_endian else self._kind
        self._is_complex = contents.state == "foreign" and self.metadata["global"]["core:datatype"].startswith("c")
        self._row_bytes, self._per_row = contents.grain
        #: Its identity, 32 hexadecimal digits. That of a recording of another program is a hash of its metadata and of the hash that they
        #: state for the data; without that, of the path, inode, size and time of the data file.
        self.id: str = contents.id
        #: Number of channels, or of digital lines. A complex channel is one.
        self.channels: int = contents.channels // (2 if self._is_complex else 1)
        #: Frames per second; None without a clock.
        self.sample_rate: Optional[float] = contents.rate[0] / contents.rate[1] if contents.rate else None
        #: ``complete``, ``stopped``, ``incomplete``, ``unaccounted``, ``recovered``; ``recording`` if it was cut off or is still
        #: being written; ``foreign`` if another program made it: then its length is the size of its file, and no checksum proves
        #: its samples.
        self.state: str = contents.state
        #: Why the recording is not in order, in words; empty if it is in order. ``hairspring recover`` mends it, unless :attr:`owner` says who
        #: works on it.
        self.faults: list[str] = contents.faults
        self._stretches = contents.stretches
        self._axis = contents.axis
        self._maps: Optional[list[Any]] = None
        self._whole: Any = None
        #: The runs of frames without a gap, in order.
        self.sections: list[Section] = [Section(*section) for section in contents.sections]
        self._missing = [Gap(*missing[:3]) for missing in contents.missing]
        #: The lost frames with their causes, in order: all that are missing, but for those that no trigger asked for or retention deleted.
        self.gaps: list[Gap] = [gap for gap in self._missing if gap.cause not in _NO_LOSS]
        #: The number of its first frame, and that of the frame behind the last one, missing ones included. The first is 0, or that of a
        #: segment in its series, or the first index of another program's recording.
        self.first_frame: int
        self.end_frame: int
        self.first_frame, self.end_frame = contents.extent

    def __reduce__(self) -> Any:
        """Pickles the arguments of the opening, not the samples: unpickling opens the files again and shows their contents at that time.
        It raises ValueError if another recording is there."""
        paths, verify = self._opened
        # Dask names what it has computed by what is pickled.
        return functools.partial(_reopened, verify=verify, id=self.id, seen=self._seen), tuple(paths)

    @functools.cached_property
    def _seen(self) -> str:
        return self._fingerprint(self.first_frame, self.end_frame)

    def _fingerprint(self, first: int, end: int) -> str:
        """A hash of what a read of these frames returns: the recording, its place, and which of the frames are where in which file. What
        is recorded behind them does not change it."""
        stretches, members = [], set()
        for member, offset, length, number in self._stretches:
            frames = length // self._row_bytes * self._per_row
            if number < end and number + frames > first:
                stretches.append((offset, min(frames, end - number), number))
                members.add(member)
        places = [os.path.realpath(self._contents.data[member]) for member in sorted(members)]
        of = self.id, self._contents.container, first, end, stretches, self.missing(first, end), places
        return hashlib.sha256(repr(of).encode()).hexdigest()[:32]

    @property
    def owner(self) -> Optional[str]:
        """Who owned the files when they were opened: ``is being recorded by process 4711 (hairspring)``; None if nobody did."""
        return self._contents.owner()

    @property
    def is_in_order(self) -> bool:
        """Whether files, journals and metadata agree and nothing is missing that no gap declares."""
        return not self.faults

    @property
    def dtype(self) -> Any:
        """The numpy type of the samples that are read."""
        numpy = numpy_module()
        if self._is_complex:
            return numpy.result_type(self._kind, "complex64")
        return numpy.dtype("int16") if self._container == "packed12" else self._kind

    @property
    def channel_names(self) -> list[str]:
        """The names of the channels as the metadata state them; their numbers as text without names."""
        return [str(described.get("name") or number) for number, described in enumerate(self._described())]

    def read(
        self,
        first: Optional[int] = None,
        end: Optional[int] = None,
        channels: _Channels = None,
        *,
        gaps: str = "raise",
        fill: Optional[float] = None,
        scaled: bool = False,
        verify: bool = True,
    ) -> Any:
        """Reads frames ``first`` to before ``end``, as the source counted them: a row for each frame, a column for each channel.

        ``channels`` are numbers, names, or a slice of numbers. ``gaps`` says what to do where frames are missing:

        * ``"raise"``: raises GapError, which lists them.
        * ``"split"``: returns a list of pairs, the number of the first frame and the array of each run without a gap.
        * ``"fill"``: puts ``fill`` in their place. Floats have NaN without it; whole numbers need it. ``valid`` tells which are filled.
        * ``"skip"``: leaves them out, so that the frames around a gap become neighbours.

        ``scaled`` returns floats in the unit of each channel, by the scale and offset that the recording states. Every block is read
        whole and compared with its checksum, unless ``verify`` is False; a bad one raises BlockError. The GIL is released meanwhile.
        """
        if gaps not in ("raise", "split", "fill", "skip"):
            raise ValueError(f"there is no gaps={gaps!r}: choose 'raise', 'split', 'fill' or 'skip'")
        first, end = self._bounds(first, end)
        columns = self._columns(channels)
        if gaps == "raise":
            self._demand(first, end)
        numpy = numpy_module()
        scale = self._scale(columns) if scaled else None
        kind = numpy.result_type(self.dtype, float) if scaled else self.dtype
        if gaps == "fill":
            fill = self._filling(fill, kind)
        read = self._runs(first, end, columns, verify, join=gaps == "skip")
        runs = [(number, _scaled(rows, scale)) for number, rows in read]
        if gaps == "split":
            return runs
        width = numpy.empty((0, self.channels))[:, columns].shape[1:]
        if gaps == "fill" and [(number, len(rows)) for number, rows in runs] != [(first, end - first)]:
            whole = numpy.full((end - first, *width), fill, kind)
            for number, rows in runs:
                whole[number - first : number - first + len(rows)] = rows
            return whole
        if len(runs) == 1:
            return runs[0][1]
        return numpy.concatenate([rows for _, rows in runs]) if runs else numpy.empty((0, *width), kind)

    def __getitem__(self, key: Any) -> Any:
        """``recording[a:b]``, ``recording[a:b, channels]``, ``recording[a]``: frames by number. Negative numbers count from the end."""
        rows, channels = key if isinstance(key, tuple) and len(key) == 2 else (key, None)
        if isinstance(rows, slice):
            if rows.step not in (None, 1):
                raise ValueError("a recording is read frame by frame: slice the array that is read to leave frames out")
            first, end, _ = slice(*(self._counted(at) for at in (rows.start, rows.stop))).indices(self.end_frame)
            first = max(first, self.first_frame)
            return self.read(first, max(first, end), channels)
        try:
            number = rows.__index__()
        except AttributeError:
            raise TypeError(f"frames are numbers or slices of numbers, not {type(rows).__name__}") from None
        number += self.end_frame if number < 0 else 0
        if not self.first_frame <= number < self.end_frame:
            has = f"{self.first_frame} to {self.end_frame - 1}" if len(self) else "none"
            raise IndexError(f"there is no frame {rows}: the recording has {has}")
        return self.read(number, number + 1, channels)[0]

    #: Frames are read in pieces, not one by one.
    __iter__ = None

    def missing(self, first: Optional[int] = None, end: Optional[int] = None) -> list[Gap]:
        """The missing frames between two numbers, cut at these, with their causes."""
        first, end = self._bounds(first, end)
        begin = max(bisect.bisect_right(self._missing, (first, float("inf"))) - 1, 0)
        pieces = []
        for gap in itertools.islice(self._missing, begin, None):
            if gap.first_frame >= end:
                break
            start, stop = max(gap.first_frame, first), min(gap.first_frame + gap.frames, end)
            if start < stop:
                pieces.append(Gap(start, stop - start, gap.cause))
        return pieces

    def valid(self, first: Optional[int] = None, end: Optional[int] = None) -> Any:
        """A boolean for each frame between two numbers: whether it is in the recording."""
        first, end = self._bounds(first, end)
        valid = numpy_module().zeros(end - first, bool)
        for section in self._sections_in(first, end):
            valid[max(section.first_frame - first, 0) : section.first_frame + section.frames - first] = True
        return valid

    def follow(
        self,
        first: Optional[int] = None,
        channels: _Channels = None,
        *,
        gaps: str = "raise",
        scaled: bool = False,
        verify: bool = True,
        poll: float = 0.1,
        timeout: Optional[float] = None,
    ) -> Iterator[tuple[int, Any]]:
        """Reads a recording while it grows: yields the number of the first frame and the rows of each new piece, until the recording
        has ended. It starts with what is there. ``gaps`` is ``"raise"`` or ``"split"``.

        It ends, too, when nobody owns the recording any more: its recorder was killed. RecordingWarning says so.

        It looks into the journals each ``poll`` seconds and reads what they name as written; of a series only those of the segments that it
        has not read yet. It does not disturb the recorder otherwise. If retention deletes frames before they are read, ``"raise"`` raises
        GapError with the cause ``deleted``, and ``"split"`` goes on with the first frame that is left.
        Raises TimeoutError if no frame came for ``timeout`` seconds. Where the file system has no locks, nothing else shows that a recorder was
        killed.
        """
        if gaps not in ("raise", "split"):
            raise ValueError(f"follow() cannot do gaps={gaps!r}: choose 'raise' or 'split'")
        at = self.first_frame if first is None else first.__index__()
        if at < self.first_frame:
            raise IndexError(f"there is no frame {at}: the recording begins with {self.first_frame}")
        most = max(_FOLLOWED // self._row_bytes, 1) * self._per_row
        since = time.monotonic()
        while True:
            recording, took = self._looked(at)
            deleted = recording.first_frame - at
            if deleted > 0 and gaps == "raise":
                raise _gap_error([Gap(at, deleted, "deleted")])
            at = max(at, recording.first_frame)
            cut_off = recording.state == "recording" and recording.owner is None and recording._contents.is_owner_known()
            # A block before others may still be written, unless nobody writes any more.
            grows = recording.state == "recording" and not (cut_off and gaps == "split")
            end = recording._contents.settled if grows else recording.end_frame
            while at < end:
                upto = min(end, at + most)
                if gaps == "raise":
                    recording._demand(at, upto)
                try:
                    pieces = recording.read(at, upto, channels, gaps="split", scaled=scaled, verify=verify)
                except (FileNotFoundError, BlockError):
                    if self._looked(at)[0].first_frame <= at:
                        raise
                    break  # Retention has deleted them.
                yield from pieces
                at, since = upto, time.monotonic()
            else:
                if recording.state != "recording":
                    return
                if cut_off:
                    name = self._opened[0][0]
                    told = f"{name}: its recorder was cut off at frame {at}; `hairspring recover {name}` mends it"
                    warnings.warn(told, RecordingWarning, 2)
                    return
                if timeout is not None and time.monotonic() - since > timeout:
                    raise TimeoutError(f"no frame came after frame {at - 1} for {timeout} s; was the recorder killed?")
                # Looking takes at most half of the time, however long the journal is.
                time.sleep(max(poll, took))

    def _looked(self, at: int) -> tuple[Recording, float]:
        """The recording from the segment with a frame on, as its journals describe it now, and the seconds that looking took. Nothing is proven
        but what is read."""
        begun = time.monotonic()
        looked = Recording.__new__(Recording)
        looked._open(self._opened[0], None, at)
        if looked.id != self.id:
            raise ValueError(f"{self._opened[0][0]} is another recording now")
        return looked, time.monotonic() - begun

    def to_dask(
        self,
        first: Optional[int] = None,
        end: Optional[int] = None,
        *,
        chunk_bytes: int = 96 << 20,
        gaps: str = "raise",
        fill: Optional[float] = None,
        scaled: bool = False,
        verify: bool = True,
    ) -> Any:
        """The frames as a dask array, in chunks of whole blocks of about ``chunk_bytes``. Row 0 is frame ``first``. Needs
        ``hairspring[dask]``. Missing frames raise GapError at once; ``gaps="fill"`` fills them as ``read`` does."""
        _extra("dask", "dask.array")
        from .dask_array import to_dask

        return to_dask(self, first, end, chunk_bytes, gaps=gaps, fill=fill, scaled=scaled, verify=verify)

    def to_xarray(
        self,
        first: Optional[int] = None,
        end: Optional[int] = None,
        *,
        gaps: str = "raise",
        fill: Optional[float] = None,
        scaled: bool = False,
        verify: bool = True,
    ) -> Any:
        """The frames as an xarray DataArray, which reads what is used of it. Its coordinates ``frame`` and ``time`` are computed, not
        stored. Needs ``hairspring[xarray]``. Where frames are missing, loading raises GapError; ``gaps="fill"`` fills them."""
        _extra("xarray", "xarray")
        from .xarray_engine import to_xarray

        return to_xarray(self, first, end, gaps=gaps, fill=fill, scaled=scaled, verify=verify)

    @property
    def data(self) -> Any:
        """The samples as the file stores them, mapped and not checked: a row for each frame, a column for each channel. Packed samples and
        bits are bytes. ValueError if the frames are not one contiguous piece of one file, or if that is compressed."""
        if self._whole is None:
            ends = [(member, offset + length) for member, offset, length, _ in self._stretches]
            starts = [(member, offset) for member, offset, _, _ in self._stretches]
            if ends[:-1] != starts[1:]:
                raise ValueError("the frames are not one contiguous piece of one file: use runs() or read()")
            member, start = starts[0] if starts else (0, 0)
            self._whole = self._rows(member, start, ends[-1][1] - start if ends else 0)
        return self._whole

    def time_of(self, frame: int) -> Optional[tuple[int, int]]:
        """When a frame was taken: not before and not after these nanoseconds of ``CLOCK_MONOTONIC``, which ``hairspring.Timebase`` shares. None
        if the recording is too short to tell, or an older version wrote it. The bounds hold if the card's clock is steady."""
        return self._axis.time_of(frame)

    def runs(self) -> Iterator[tuple[int, Any]]:
        """The runs of frames without a gap, in order, mapped and not checked: the number of the first frame, and the values. A new run
        also begins where the recording continues in another file, so that nothing has to be copied. Compressed data cannot be mapped, and are
        read."""
        compressed = [_is_compressed(path) for path in self._contents.data]
        for member, offset, length, first in self._stretches:
            if compressed[member]:
                end = first + length // self._row_bytes * self._per_row
                yield from self._runs(first, end, slice(None), verify=False, join=False)
                continue
            yield first, self._unpacked(self._rows(member, offset, length))

    def _rows(self, member: int, offset: int, length: int) -> Any:
        if self._maps is None:
            self._maps = [self._mapped(number, path) for number, path in enumerate(self._contents.data)]
        if length == 0:
            return self._view(numpy_module().empty(0, "u1"))
        if self._maps[member] is None:
            path = self._contents.data[member]
            raise ValueError(f"{path} is compressed and cannot be mapped: use read() or runs(), or restore it with hairspring compress --undo")
        return self._view(self._maps[member][offset : offset + length], self._mapped_kind)

    def _mapped(self, member: int, path: Path) -> Any:
        ends = [offset + length for own, offset, length, _ in self._stretches if own == member]
        return numpy_module().memmap(path, "u1", "r", shape=(max(ends),)) if ends and not _is_compressed(path) else None

    def _view(self, stored: Any, kind: Any = None) -> Any:
        return stored.view(kind or self._kind).reshape(-1, self._row_bytes // self._kind.itemsize)

    def _runs(self, first: int, end: int, columns: Any, verify: bool, join: bool) -> Iterator[tuple[int, Any]]:
        """The runs between two frames. With `join`, neighbours in the memory are one run whatever lies between them."""
        if first == end:
            return
        numpy = numpy_module()
        piece = self._contents.read(first, end, verify)
        stored = numpy.asarray(piece)
        runs: list[tuple[int, int, int]] = []
        for number, frames, at in piece.runs:
            length = frames // self._per_row * self._row_bytes
            if join and runs and runs[-1][1] == at and self._per_row == 1:
                runs[-1] = (*runs[-1][:1], at + length, runs[-1][2])
            else:
                runs.append((number, at + length, at))
        for number, stop, start in runs:
            rows = self._unpacked(self._view(stored[start:stop]))
            # Of a row of two frames one can lie outside.
            rows = rows[max(first - number, 0) : len(rows) if join and self._per_row == 1 else end - number, columns]
            # A few frames do not keep the memory of whole blocks.
            yield max(number, first), rows.copy() if rows.base is not None and rows.nbytes * 2 < len(stored) else rows

    def _unpacked(self, rows: Any) -> Any:
        if self._is_complex:
            part = numpy_module().dtype(f"f{self.dtype.itemsize // 2}")
            return rows.astype(part, copy=False).view(self.dtype)
        return unpacked(rows, self._container, self.channels)

    def _sections_in(self, first: int, end: int) -> Iterator[Section]:
        begin = max(bisect.bisect_right(self.sections, (first, float("inf"))) - 1, 0)
        for section in self.sections[begin:]:
            if section.first_frame >= end:
                return
            if section.first_frame + section.frames > first:
                yield section

    def _demand(self, first: int, end: int) -> None:
        """Raises GapError if a frame is missing."""
        missing = self.missing(first, end)
        if missing:
            raise _gap_error(missing)

    def _bounds(self, first: Optional[int], end: Optional[int]) -> tuple[int, int]:
        first = self.first_frame if first is None else first.__index__()
        end = self.end_frame if end is None else end.__index__()
        if not self.first_frame <= first <= end <= self.end_frame:
            has = f"{self.first_frame} to before {self.end_frame}" if len(self) else "none"
            raise IndexError(f"there are no frames {first} to before {end}: the recording has {has}")
        return first, end

    def _counted(self, number: Optional[int]) -> Optional[int]:
        """A number that counts from the end if it is negative."""
        return number if number is None or number >= 0 else max(self.end_frame + number, 0)

    def _described(self) -> list[dict[str, Any]]:
        """What the metadata say about each channel."""
        described = self.metadata.get("global", {}).get("hairspring:channels") or []
        return [*described, *({} for _ in range(self.channels - len(described)))]

    def _columns(self, channels: _Channels) -> Any:
        """Channels as numpy takes them."""
        if channels is None:
            return slice(None)
        if isinstance(channels, str):
            return self._column(channels)
        if isinstance(channels, slice) or hasattr(channels, "__index__"):
            return channels
        return [self._column(channel) for channel in channels]

    def _column(self, channel: Union[int, str]) -> int:
        if not isinstance(channel, str):
            return channel
        names = self.channel_names
        if channel not in names:
            raise KeyError(f"there is no channel {channel!r}: choose from {', '.join(names)}")
        return names.index(channel)

    def _scale(self, columns: Any) -> tuple[Any, Any]:
        numpy = numpy_module()
        numbers = numpy.arange(self.channels)[columns]
        described = self._described()
        for number in numpy.atleast_1d(numbers):
            if described[number].get("scale") is None:
                raise ValueError(f"the recording states no scale for channel {number}: read it without scaled=True")
        scale = numpy.array([one.get("scale") or 0.0 for one in described])[columns]
        return scale, numpy.array([one.get("offset") or 0.0 for one in described])[columns]

    def _filling(self, fill: Optional[float], kind: Any) -> Any:
        numpy = numpy_module()
        if fill is None:
            if kind.kind not in "fc":
                raise ValueError("gaps='fill' needs a value for whole numbers: give fill=0 or another, or scaled=True for NaN")
            return numpy.nan
        filled = numpy.asarray(fill).astype(kind)
        if filled != fill and fill == fill:
            raise ValueError(f"fill={fill} is no {kind} value")
        return filled

    def __len__(self) -> int:
        """The number of frames from the first to the last, missing ones included."""
        return self.end_frame - self.first_frame

    def __repr__(self) -> str:
        order = "" if self.is_in_order else ", not in order"
        return f"<Recording: {len(self)} frames of {self.channels} channels, {len(self.gaps)} gaps, {self.state}{order}>"


class Alignment(NamedTuple):
    """Where one recording lies on the time axis of another; both are intervals."""

    #: How much later the frame of ``b`` was taken than that of ``a``: at least, at most.
    offset_ns: tuple[int, int]
    #: The frames of ``b`` between which ``b`` was when the frame of ``a`` was taken, counted by the source; None if they are not bounded.
    frames: Optional[tuple[int, int]]


def align(a: Recording, b: Recording, frame: int = 0) -> Alignment:
    """How much later frame ``frame`` of ``b`` was taken than frame ``frame`` of ``a``, and where ``b`` was then.

    Raises ValueError if the recordings are of different boots of a computer, or too short to tell.
    """
    return Alignment(*a._axis.align(b._axis, frame))


def open_recording(path: _Path, *more: _Path, verify: bool = False) -> Recording:
    """Opens a recording by its name, or by the name of any of its files. One member of a recording that is striped over several folders
    leads to all others, unless they were moved: then name them all.

    It trusts journals and checksums, never the size of a file. It reads blocks that no sync covers and compares them with their checksums,
    and with ``verify`` all blocks; a block that does not match becomes a gap. A recording that is not in order (cut off or damaged) opens with
    its proven samples, a ``RecordingWarning`` and its ``faults``; ``hairspring recover`` mends it. One that is still being recorded opens with
    what is proven so far and a ``RecordingWarning`` that names the process.

    Raises OSError if it cannot be read, and ValueError if it is not a recording or members of it are missing.
    """
    recording = Recording(path, *more, verify=verify)
    name = os.fsdecode(path)
    owner = recording.owner if recording.state == "recording" or not recording.is_in_order else None
    if owner is not None:
        stored = sum(section.frames for section in recording.sections)
        warnings.warn(f"{name} {owner}: {stored} frames of it are offered so far", RecordingWarning, 2)
    elif not recording.is_in_order:
        said = "; ".join(recording.faults[:3]) + ("; …" if len(recording.faults) > 3 else "")
        remedy = "recorded by another program" if recording.state == "foreign" else f"`hairspring recover {name}` mends it"
        stored = sum(section.frames for section in recording.sections)
        warnings.warn(f"{name} is not in order: {said}; {stored} frames of it are offered; {remedy}", RecordingWarning, 2)
    return recording


def _reopened(*paths: Path, verify: bool, id: str, seen: str) -> Recording:
    """The recording of an identity; ``seen`` is what was in it when it was pickled."""
    recording = Recording(*paths, verify=verify)
    if recording.id != id:
        raise ValueError(f"{paths[0]} is another recording now")
    return recording


def _read(paths: list[Path], verify: Optional[bool], since: Optional[int]) -> tuple[Any, bytes]:
    """What is in a recording, and its metadata. Retention may delete the first segment meanwhile: then it is opened again."""
    for tries_left in (2, 1, 0):
        try:
            contents = _hairspring.read_recording(paths, verify, since)
            # In an archive the metadata are no file.
            return contents, contents.document.encode() if contents.document else contents.meta.read_bytes()
        except FileNotFoundError:
            if not tries_left:
                raise
    raise AssertionError


def _gap_error(missing: list[Gap]) -> GapError:
    listed = [f"frames {gap.first_frame} to {gap.first_frame + gap.frames - 1} ({gap.cause})" for gap in missing[:3]]
    rest = f" and {len(missing) - 3} more gaps" if len(missing) > 3 else ""
    return GapError(f"the recording lacks {', '.join(listed)}{rest}: choose gaps='split', 'fill' or 'skip'", missing)


def _is_compressed(data: Path) -> bool:
    return not Path(data).exists() and Path(f"{data}.zst").exists()


def _scaled(rows: Any, scale: Optional[tuple[Any, Any]]) -> Any:
    return rows if scale is None else rows * scale[0] + scale[1]


def _extra(name: str, module: str) -> None:
    """Says how to install what an optional part needs."""
    try:
        importlib.import_module(module)
    except ImportError as error:
        raise ImportError(f"to_{name}() needs {name}: pip install 'hairspring[{name}]'") from error
