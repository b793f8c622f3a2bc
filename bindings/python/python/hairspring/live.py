"""Live taps: the frames of a recording that another process makes, while it makes it."""

from __future__ import annotations

import json
from typing import Any, Iterator, NamedTuple, Optional

from . import _hairspring
from ._samples import TYPES, numpy_module, unpacked

#: Frames of a read without a number: about so many bytes.
_READ_BYTES = 1 << 20


class LiveFrames(NamedTuple):
    """Frames that follow each other, and what is missing before them."""

    #: The number of the first frame, counted by the source from 0. None if there is no frame, or if this reader was so far behind that
    #: nobody knows the number any more.
    first_frame: Optional[int]
    #: The samples as stored, frames x channels.
    samples: Any
    #: Frames that this reader was too slow for, before the first of these.
    missed: int


class Tap:
    """A reader of a running recording; ``tap(name)`` makes one.

    The recorder does not know its readers and never waits for them. A reader that is too slow misses frames and counts them. Iterating
    yields ``LiveFrames`` until the recording ends:

        >>> import hairspring
        >>> for frames in hairspring.tap("adc"):                        # doctest: +SKIP
        ...     print(frames.first_frame, frames.samples.mean(axis=0), frames.missed)

    A tap belongs to one thread at a time; calls of others wait. It cannot be pickled.
    """

    def __init__(self, name: str) -> None:
        self._handle = _hairspring.TapHandle(str(name))
        about = self._handle.about()
        #: Number of channels, or of digital lines.
        self.channels: int = about["channels"]
        #: Bits of a sample that carry information.
        self.resolution_bits: int = about["resolution_bits"]
        #: Frames per second, as the card states it; None without a clock.
        self.sample_rate: Optional[float] = about["rate"][0] / about["rate"][1] if about["rate"] else None
        #: Identity of the recording, 32 hexadecimal digits.
        self.id: str = about["id"]
        #: What the recorder's ring holds, in bytes. A reader that is further behind misses frames.
        self.buffer_bytes: int = about["capacity_bytes"]
        #: User and process of the recorder, as the kernel states them.
        self.recorder: tuple[int, int] = about["recorder"]
        described = json.loads(about["text"]) if about["text"] else []
        #: What each channel measures (name, unit, scale, ...), as the recording describes it; empty if nobody said.
        self.channel_descriptions: list[dict[str, Any]] = described
        self._container = about["container"]
        self._per_row, self._row_bytes = about["grain"]

    @property
    def dtype(self) -> Any:
        """The numpy type of the samples."""
        kind = {"packed12": "int16", "bits": "uint8"}.get(self._container, TYPES[self._container])
        return numpy_module().dtype(kind)

    @property
    def state(self) -> str:
        """``running``; ``finished``, ``stopped``, ``overrun`` or ``failed`` after the source has ended; ``gone`` if the recorder died."""
        return self._handle.state()

    @property
    def missed(self) -> int:
        """All frames that this reader was too slow for since it was opened."""
        return self._handle.missed()

    @property
    def lost(self) -> Optional[int]:
        """All frames that the source lost: gaps of the recording. None if the recorder died while it wrote that."""
        return self._handle.lost()

    @property
    def clock_pairs(self) -> list[tuple[int, int, int]]:
        """Readings of CLOCK_MONOTONIC and CLOCK_REALTIME in ns, and how far they may be off; the newest 16, oldest first."""
        return self._handle.clocks()[0]

    @property
    def clock_marks(self) -> list[tuple[int, int, int]]:
        """Frames, and between which ns of CLOCK_MONOTONIC each was taken: the first one and the newest 15."""
        return self._handle.clocks()[1]

    def read(self, frames: Optional[int] = None, *, timeout: Optional[float] = None) -> LiveFrames:
        """Reads the frames that come next, at most so many, by default about a megabyte.

        Waits until they are there, at most ``timeout`` seconds, without the GIL; returns fewer frames then, before a gap of the source, and
        at the end of the stream. A wait is for at most half of the recorder's ring. Raises ValueError for less than one frame.
        """
        frames = self._usual() if frames is None else frames
        if frames < 1 or (timeout is not None and not timeout >= 0):
            raise ValueError("read at least one frame, and wait for 0 s or more")
        limit = None if timeout is None else min(int(timeout * 1e9), 2**63)
        return self._shaped(self._handle.read(frames, limit))

    def newest(self, frames: int) -> LiveFrames:
        """The newest frames, at most so many and at most half of the ring, without a wait. The next ``read`` goes on behind them. The frames
        between are passed over, not missed."""
        if frames < 1:
            raise ValueError("read at least one frame")
        return self._shaped(self._handle.newest(frames))

    def __iter__(self) -> Iterator[LiveFrames]:
        """Pieces of frames until the stream has ended and all frames were read."""
        while True:
            piece = self.read()
            if len(piece.samples):
                yield piece
            elif self.state != "running":
                return

    def _usual(self) -> int:
        return max(_READ_BYTES // self._row_bytes, 1) * self._per_row

    def _shaped(self, piece: Any) -> LiveFrames:
        numpy = numpy_module()
        stored = numpy.asarray(piece)
        if self._container in ("packed12", "bits"):
            rows = unpacked(stored.reshape(-1, self._row_bytes), self._container, self.channels)
        else:
            rows = stored.view(TYPES[self._container]).reshape(-1, self.channels)
        return LiveFrames(piece.first_frame, rows, piece.missed)

    def __repr__(self) -> str:
        rate = "no clock" if self.sample_rate is None else f"{self.sample_rate:g} frames/s"
        return f"<Tap: {self.channels} channels of {self._container}, {rate}, {self.state}>"


def tap(name: str) -> Tap:
    """Opens the live tap that ``hairspring record --tap NAME`` offers, by its name or by the path of its socket.

    Raises FileNotFoundError if no recorder offers it, PermissionError if this user may not look on, OSError if what answers is no tap of
    this version, ValueError for a name that cannot be one.
    """
    return Tap(name)
