"""Reads recordings with the programs of others: sigmf-python, NumPy and h5py.

Called by the test `other_programs_read_recordings_and_views` with docs/recording-format.md, whose Python code is run here, and a
folder of recordings: NAME/dM/x.sigmf-* for each member M, and NAME/view.h5 and NAME/from_N.npy for those that count.
"""

import json
import pathlib
import re
import sys
import warnings

import h5py
import numpy
import sigmf.sigmffile

warnings.simplefilter("error")
docs, folder = map(pathlib.Path, sys.argv[1:])
code = re.findall(r"^```python\n(.*?)^```", docs.read_text(), re.M | re.S)
assert code, "the documentation has no Python code"
documented = {}
for block in code:
    exec(block, documented)


def expected(layout, first, count):
    """What the pattern 'counter' has in frames from `first` on."""
    channels, bits = layout["channels"], layout["resolution_bits"]
    frames = numpy.arange(first, first + count, dtype=numpy.int64)[:, None]
    lines = numpy.arange(channels, dtype=numpy.int64)[None, :]
    if layout["container"] == "bits":
        return (frames >> (lines % 64)) & 1
    codes = (frames + lines) % 2**bits
    signed = layout["container"] not in ("u8", "u16")
    return numpy.where(codes >= 2 ** (bits - 1), codes - 2**bits, codes) if signed else codes


def check_foreign(meta):
    """sigmf-python finds it valid and maps as many samples as there are."""
    recording = sigmf.sigmffile.fromfile(str(meta), autoscale=False)
    recording.validate()
    data = meta.with_suffix(".sigmf-data")
    sample_bytes = recording.get_sample_size() * recording.num_channels
    assert recording.sample_count * sample_bytes == data.stat().st_size, meta
    mapped = recording[:]
    raw = numpy.fromfile(data, dtype=mapped.dtype).reshape(mapped.shape)
    assert (mapped == raw).all(), meta
    return recording


recordings = 0
for place in sorted(folder.iterdir()):
    members = sorted(place.glob("d*/x.sigmf-meta"))
    layout = json.loads(members[0].read_text())["global"]["hairspring:layout"]
    counts = (place / "view.h5").exists()
    seen = []
    for meta in members:
        check_foreign(meta)
        if json.loads(meta.read_text())["global"]["hairspring:state"] == "recording":
            # Nothing but its journal says how much of the file was recorded.
            try:
                next(documented["runs"](meta.with_suffix("")))
                raise AssertionError(f"{meta}: the size of a file was believed")
            except ValueError as refused:
                assert "hairspring recover" in str(refused), refused
            continue
        for first, values in documented["runs"](meta.with_suffix("")):
            if counts:
                assert (values == expected(layout, first, len(values))).all(), (meta, first)
            seen.append((first, len(values)))
    if counts:
        for path in place.glob("from_*.npy"):
            values = numpy.load(path)
            first = int(path.stem.split("_")[1])
            assert values.size and (values == expected(layout, first, len(values))).all(), path
        shown = []
        with h5py.File(place / "view.h5") as view:
            assert view.attrs["sample_rate_hz"] == 1e6 and view.attrs["hardware"] == b"virtual"
            if place.name == "described":
                assert [name.decode() for name in view.attrs["channel_names"]] == ['a, "b"', ""], view.attrs["channel_names"]
                assert [unit.decode() for unit in view.attrs["channel_units"]] == ["kPa", "V"]
                assert view.attrs["channel_scales"][0] == 0.02 and numpy.isnan(view.attrs["channel_scales"][1])
                assert view.attrs["channel_offsets"].tolist()[0] == -1
                assert view.attrs["frame0_latest_ns"] - view.attrs["frame0_earliest_ns"] == 70
            for dataset in view.values():
                first = int(dataset.attrs["first_frame"])
                values = documented["unpack"](dataset[:], layout)
                assert (values == expected(layout, first, len(values))).all(), (place, first)
                shown.append((first, len(values)))
        assert sum(count for _, count in shown) == sum(count for _, count in seen), place
    recordings += 1
print(f"{recordings} recordings")
