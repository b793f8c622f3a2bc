"""Recordings as dask arrays: one task for each chunk of whole blocks, which reads and checks it."""

from __future__ import annotations

import functools
from typing import Any, Optional

from dask.array import map_blocks

from .recording import Recording


def to_dask(recording: Recording, first: Optional[int], end: Optional[int], chunk_bytes: int, **options: Any) -> Any:
    """The frames as a dask array; ``Recording.to_dask`` describes it."""
    first, end = recording._bounds(first, end)
    if options["gaps"] == "raise":
        recording._demand(first, end)
    elif options["gaps"] != "fill":
        raise ValueError(f"a dask array cannot have gaps={options['gaps']!r}: choose 'raise' or 'fill'")
    # Refuses a wrong fill or a missing scale now.
    empty = recording.read(first, first, **options)
    edges = recording._contents.edges(first, end, max(chunk_bytes, 1))
    lengths = tuple(after - before for before, after in zip(edges, edges[1:]))
    # Same frames, same name: so that caches are right while a recording grows.
    told = "-".join(str(part) for part in (recording.id, first, end, chunk_bytes, *options.values()))
    return map_blocks(
        _chunk,
        chunks=(lengths, (recording.channels,)),
        dtype=empty.dtype,
        meta=empty[:0],
        name=f"hairspring-{told}",
        first=first,
        handle=Handle(recording),
        options=options,
    )


def _chunk(*, first: int, handle: Handle, options: dict[str, Any], block_info: Any) -> Any:
    start, end = block_info[None]["array-location"][0]
    return handle.recording.read(first + start, first + end, **options)


class Handle:
    """A recording that other processes open by its name: once in each, and only if it is the same one."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording

    def __reduce__(self) -> Any:
        paths, verify = self.recording._opened
        return _opened, (tuple(paths), verify, self.recording.id, self.recording.end_frame)

    def __dask_tokenize__(self) -> Any:
        return self.recording.id, self.recording.end_frame


def _opened(paths: tuple[Any, ...], verify: bool, identity: str, end_frame: int) -> Handle:
    return _once(paths, verify, identity, end_frame)


def _open(paths: tuple[Any, ...], verify: bool, identity: str, _end_frame: int) -> Handle:
    recording = Recording(*paths, verify=verify)
    if recording.id != identity:
        raise ValueError(f"{paths[0]} is another recording now")
    return Handle(recording)


#: A recording that has grown has another end, and is opened again.
_once: Any = functools.lru_cache(maxsize=16)(_open)
