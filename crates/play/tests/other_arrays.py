"""Reads arrays with the programs of others: zarr, soundfile and flac.

Called by the test `other_programs_read_arrays` with a folder of recordings, NAME/NAME.npy and the same as .zarr, .wav and .flac; NumPy's array
was compared with the pattern by another test, and is compared again here where the pattern counts.
"""

import json
import pathlib
import subprocess
import sys

import numpy
import soundfile
import zarr

folder = pathlib.Path(sys.argv[1])


def facts_of(sound):
    assert sound.samplerate == 1_000_000
    return json.loads(sound.copy_metadata()["comment"])


def raw(path):
    """The samples of a sound file as the integers that are in it, and its facts."""
    with soundfile.SoundFile(path) as sound:
        if sound.subtype == "FLOAT":
            return sound.read(dtype="float32", always_2d=True), facts_of(sound)
        bits = {"PCM_S8": 8, "PCM_U8": 8, "PCM_16": 16, "PCM_24": 24, "PCM_32": 32}[sound.subtype]
        # soundfile shifts integers to the top of the type.
        return sound.read(dtype="int32", always_2d=True) >> (32 - bits), facts_of(sound)


def decoded(path, channels):
    """The samples of a FLAC file of 32 bits, which soundfile does not read, by the reference decoder."""
    command = ["flac", "--silent", "--decode", "--stdout", "--force-raw-format", "--endian=little", "--sign=signed", path]
    return numpy.frombuffer(subprocess.run(command, capture_output=True, check=True).stdout, "<i4").reshape(-1, channels)


arrays = 0
for place in sorted(path for path in folder.iterdir() if path.is_dir()):
    for path in sorted(place.glob("*.npy")):
        expected = numpy.load(path)
        if path.stem == "gapped":
            # The first 8 and the frames of two gaps are 1, and the others count.
            frames = numpy.arange(len(expected))[:, None] + numpy.arange(2)[None, :]
            count = (frames % 2**16).astype("<u2").view("<i2")
            missing = (expected == 1).all(axis=1)
            assert missing.sum() == 8 + 10 + 1_000_000 and (expected[~missing] == count[~missing]).all()
        group = zarr.open_group(path.with_suffix(".zarr"), mode="r")
        array = group["samples"]
        assert array.shape == expected.shape and array.dtype == expected.dtype, (array, expected.dtype)
        assert numpy.array_equal(array[:], expected, equal_nan=expected.dtype.kind == "f"), path
        assert array.metadata.dimension_names == ("frame", "channel") and array.shards is not None
        assert group.attrs["sample_rate_hz"] == 1e6 and (group.attrs["gaps"] != []) == (place.name in ("gapped", "packed"))
        samples, about = raw(path.with_suffix(".wav"))
        assert numpy.array_equal(samples, expected, equal_nan=expected.dtype.kind == "f"), path
        assert about["first_frame"] == group.attrs["first_frame"]
        if place.name == "gapped":
            assert about["channels"][0]["scale"] == 0.02 and about["channels"][1] == {"unit": "V"}, about
            assert group.attrs["channels"] == about["channels"]
        if place.name != "floats":
            packed = path.with_suffix(".flac")
            subprocess.run(["flac", "--silent", "--test", packed], check=True)
            samples, facts = (decoded(packed, expected.shape[1]), about) if place.name == "noise" else raw(packed)
            assert (samples == expected).all() and facts == about, path
        arrays += 1
# The greater part of what counts up in steps of one is predicted.
size = lambda kind: (folder / "sine" / f"sine.{kind}").stat().st_size
assert size("flac") < size("wav") * 0.75, (size("flac"), size("wav"))
with soundfile.SoundFile(folder / "large.wav") as sound:
    assert (sound.format, sound.frames, sound.channels) == ("RF64", 5 << 28, 4), sound
    sound.seek((5 << 28) - 3)
    assert len(sound.read(dtype="int32")) == 3
print(f"{arrays} arrays")
