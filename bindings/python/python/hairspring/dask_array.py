"""Recordings as dask arrays: one task for each chunk of whole blocks, which reads and checks it."""

from __future__ import annotations

import functools
import hashlib
from typing import Any, Optional

from dask.array import map_blocks

from .recording import Recording, _reopened


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
    seen = recording._fingerprint(first, end)
    told = repr((seen, chunk_bytes, sorted(options.items())))
    return map_blocks(
        _chunk,
        chunks=(lengths, (recording.channels,)),
        dtype=empty.dtype,
        meta=empty[:0],
        name=f"hairspring-{hashlib.sha256(told.encode()).hexdigest()[:32]}",
        first=first,
        handle=Handle(recording, seen),
        options=options,
    )


def _chunk(*, first: int, handle: Handle, options: dict[str, Any], block_info: Any) -> Any:
    start, end = block_info[None]["array-location"][0]
    return handle.recording.read(first + start, first + end, **options)


class Handle:
    """A recording that other processes open by its name: once in each, and only if it is the same one."""

    def __init__(self, recording: Recording, seen: str) -> None:
        self.recording, self.seen = recording, seen

    def __reduce__(self) -> Any:
        paths, verify = self.recording._opened
        return _opened, (tuple(paths), verify, self.recording.id, self.seen)

    def __dask_tokenize__(self) -> Any:
        return self.seen


def _opened(paths: tuple[Any, ...], verify: bool, identity: str, seen: str) -> Handle:
    return _once(paths, verify, identity, seen)


def _open(paths: tuple[Any, ...], verify: bool, identity: str, seen: str) -> Handle:
    return Handle(_reopened(*paths, verify=verify, id=identity, seen=seen), seen)


#: A recording that has grown or was mended since is opened again.
_once: Any = functools.lru_cache(maxsize=16)(_open)
