"""Samples as files and rings store them, and as numpy has them."""

from __future__ import annotations

from typing import Any

#: The numpy type of each sample container. Packed samples and bits are bytes until they are unpacked.
TYPES = {"i8": "i1", "u8": "u1", "i16": "<i2", "u16": "<u2", "i32": "<i4", "u32": "<u4", "f32": "<f4", "f64": "<f8", "packed12": "u1", "bits": "u1"}


def unpacked(rows: Any, container: str, channels: int) -> Any:
    """Rows of stored bytes as samples; rows of other containers as they are."""
    numpy = numpy_module()
    if container == "packed12":
        a, b, c = (rows.reshape(-1, 3)[:, i].astype(numpy.int16) for i in range(3))
        pairs = numpy.stack([(a | (b & 15) << 8), (b >> 4 | c << 4)], axis=1)
        return ((pairs << 4).astype(numpy.int16) >> 4).reshape(-1, channels)
    if container == "bits":
        return numpy.unpackbits(rows, axis=1, bitorder="little")[:, :channels]
    return rows


def numpy_module():
    try:
        import numpy
    except ImportError as error:
        raise ImportError("recordings need numpy: pip install numpy") from error
    return numpy
