"""What the metadata of a series claim, checked by readers that are not ours: sigmf-python, pyzstd, zstd, h5py, zarr, soundfile and flac.

The samples are those of a converter that puts its bits at the top of a wider sample (`justified: high`). The test made the volts, so it knows
what the codes must be worth. Nothing here imports hairspring: the command records, compresses and exports, other programs read.
"""

import csv
import json
import pathlib
import shutil
import subprocess
import time

import pytest

numpy = pytest.importorskip("numpy")
sigmf = pytest.importorskip("sigmf.sigmffile")
pyzstd = pytest.importorskip("pyzstd")
h5py = pytest.importorskip("h5py")
zarr = pytest.importorskip("zarr")
soundfile = pytest.importorskip("soundfile")

FRAMES, CHANNELS, RATE_HZ = 300_000, 2, 100_000
# Volts that one step of the converter is worth, and volts at its code 0, for each channel.
STEPS, OFFSETS = (0.0025, -0.125), (0.75, -3.5)
LAYOUTS = {
    "12 in 16": ("12bit", "<i2", 12),
    "14 in 16": ("14bit", "<i2", 14),
    "12 in 16 without a sign": ("12bit,u", "<u2", 12),
    "24 in 32": ("24bit", "<i4", 24),
}


class Recorded:
    """A series of left-justified samples, and the truth about them."""

    def __init__(self, command, folder, name):
        described, self.type, bits = LAYOUTS[name]
        self.command, self.folder, self.base = command, folder, folder / "x"
        self.container_bits = 8 * numpy.dtype(self.type).itemsize
        self.shift = self.container_bits - bits
        is_signed = numpy.dtype(self.type).kind == "i"
        self.least, self.most = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if is_signed else (0, 2**bits - 1)
        steps = numpy.random.default_rng(7).integers(-20, 21, (FRAMES, CHANNELS)).cumsum(axis=0)
        self.counts = numpy.clip(steps + (self.least + self.most) // 2, self.least, self.most)
        self.counts[1000:1003], self.counts[200_000] = self.most, self.least
        self.samples = (self.counts << self.shift).astype(self.type)
        self.volts = self.counts * numpy.array(STEPS) + numpy.array(OFFSETS)
        clip = f"clip:{self.least << self.shift}..{self.most << self.shift}"
        channels = [
            f"{number}=name:in{number},unit:V,scale:{step / 2**self.shift!r},offset:{offset},{clip},justified:high"
            for number, (step, offset) in enumerate(zip(STEPS, OFFSETS))
        ]
        self.record(f"stdin:{CHANNELS}ch,{described},{RATE_HZ // 1000}kS/s", channels)
        self.segments = sorted(path.with_suffix("") for path in folder.glob("x-*.sigmf-meta"))
        assert len(self.segments) > 2

    def record(self, card, channels):
        """Sends the samples a block at a time, slowly enough that the files of the next segments can be made meanwhile."""
        described = [argument for channel in channels for argument in ("--channel", channel)]
        arguments = ["record", "--card", card, "--to", self.base, "--notify", "32KiB", "--segment", "128KiB", "--quiet", *described]
        data, block = self.samples.tobytes(), 32 << 10
        with subprocess.Popen([self.command, *map(str, arguments)], stdin=subprocess.PIPE, stderr=subprocess.PIPE) as running:
            for at in range(0, len(data), block):
                running.stdin.write(data[at : at + block])
                running.stdin.flush()
                # On a busy machine the next files come later.
                wanted, give_up = at // block // 6 + 1, time.monotonic() + 3
                time.sleep(0.02)
                while len(list(self.folder.glob("x-*.hairspring-journal"))) < wanted and time.monotonic() < give_up:
                    time.sleep(0.02)
            _, said = running.communicate(timeout=60)
            assert running.returncode == 0, said

    def run(self, *arguments):
        ended = subprocess.run([self.command, *map(str, arguments)], capture_output=True, text=True, timeout=120)
        assert ended.returncode == 0, ended.stderr

    def about(self, segment):
        return json.loads(segment.with_suffix(".sigmf-meta").read_text())

    def check(self, first, samples):
        """The samples of frames from `first` on are those that were made, and what the metadata say of them holds."""
        assert samples.dtype == numpy.dtype(self.type) and (samples == self.samples[first : first + len(samples)]).all()

    def check_claims(self, about, first, samples):
        """Samples, counts of the converter and volts of a segment, from nothing but its metadata."""
        self.check(first, samples)
        layout, channels = about["hairspring:layout"], about["hairspring:channels"]
        assert about["core:sample_rate"] == RATE_HZ and [one["name"] for one in channels] == ["in0", "in1"]
        for number, channel in enumerate(channels):
            codes = samples[:, number].astype("i8")
            assert channel["justified"] == "high"
            counts = codes >> (self.container_bits - layout["resolution_bits"])
            expected = self.counts[first : first + len(samples), number]
            assert (counts << self.shift == codes).all() and (counts == expected).all(), "the low bits are zero, the high ones the counts"
            low, high = channel["clip"]
            assert ((codes <= low) == (expected == self.least)).all() and ((codes >= high) == (expected == self.most)).all()
            self.check_volts(first, codes, number, channel)

    def check_volts(self, first, codes, number, channel):
        assert channel["unit"] == "V"
        volts = codes * channel["scale"] + channel["offset"]
        assert numpy.allclose(volts, self.volts[first : first + len(codes), number], rtol=1e-12, atol=1e-9)


@pytest.fixture(params=LAYOUTS)
def recorded(request, tmp_path, command):
    return Recorded(command, tmp_path, request.param)


def decompressed(path):
    """A compressed file by the command that the format promises; it must find every checksum right."""
    if shutil.which("zstd") is None:
        pytest.skip("the command zstd is not there; `cargo xtask test --setup` installs it")
    return subprocess.run(["zstd", "--decompress", "--stdout", "--quiet", path], capture_output=True, check=True).stdout


def every_segment(recorded):
    """Each segment as sigmf-python finds it through the collection: the base path, the metadata, the first frame and the samples."""
    collection = sigmf.fromfile(str(recorded.folder / "x.sigmf-collection"))
    collection.verify_stream_hashes()
    assert [recorded.folder / name for name in collection.get_stream_names()] == recorded.segments
    end = 0
    for segment, listed in zip(recorded.segments, collection.get_collection_field("hairspring:series")["segments"]):
        found = sigmf.fromfile(str(segment.with_suffix(".sigmf-meta")), autoscale=False)
        found.validate()
        first, samples = found.get_captures()[0].get("core:global_index", 0), found[:]
        assert listed == {"name": segment.name, "number": int(segment.name[2:]), "first_frame": first, "frames": len(samples)}
        assert first == end == found.get_global_field("hairspring:series")["first_frame"]
        end += len(samples)
        yield segment, found.get_global_info(), first, samples
    assert end == FRAMES


def test_sigmf_python_finds_in_each_segment_the_volts_that_were_measured(recorded):
    for _, about, first, samples in every_segment(recorded):
        recorded.check_claims(about, first, samples)


def test_compressed_segments_are_read_by_zstd_and_in_any_place_by_a_reader_of_its_seekable_format(recorded):
    plain = {segment: segment.with_suffix(".sigmf-data").read_bytes() for segment in recorded.segments}
    recorded.run("compress", recorded.base)
    sigmf.fromfile(str(recorded.folder / "x.sigmf-collection"), skip_checksum=True).verify_stream_hashes()
    for segment, expected in plain.items():
        data = segment.with_suffix(".sigmf-data")
        packed = pathlib.Path(f"{data}.zst")
        assert packed.stat().st_size < len(expected) and not data.exists()
        assert pyzstd.decompress(packed.read_bytes()) == decompressed(packed) == expected
        about = recorded.about(segment)
        size = numpy.dtype(recorded.type).itemsize * CHANNELS
        start, frames = about["captures"][0].get("core:global_index", 0), about["captures"][0]["hairspring:frames"]
        with pyzstd.SeekableZstdFile(packed, "r") as file:
            for at in (0, 1, frames // 2, frames - 7):
                file.seek(at * size)
                piece = numpy.frombuffer(file.read(7 * size), recorded.type).reshape(-1, CHANNELS)
                recorded.check_claims(about["global"], start + at, piece)
            assert file.seek(0, 2) == len(expected)
        # What zstd makes of it is what the metadata describe.
        data.write_bytes(decompressed(packed))
    for _, about, first, samples in every_segment(recorded):
        assert about["core:extensions"][0]["version"] == "2.1.0"
        recorded.check_claims(about, first, samples)


def test_exports_of_compressed_segments_have_the_volts_that_were_measured(recorded):
    recorded.run("compress", recorded.base)
    for ending in ("npy", "zarr", "wav", "flac"):
        recorded.run("export", recorded.base, "--out", recorded.folder / f"x.{ending}")
    recorded.check(0, numpy.load(recorded.folder / "x.npy"))
    group = zarr.open_group(recorded.folder / "x.zarr", mode="r")
    attributes = dict(group.attrs)
    assert attributes["first_frame"] == 0 and attributes["sample_rate_hz"] == RATE_HZ
    arrays = {"zarr": (group["samples"][:], attributes["channels"])}
    # FLAC and WAV know no samples of 16 bits without a sign, and soundfile no FLAC of 32 bits.
    widths = {"<u2": {"wav": 32, "flac": 24}}.get(recorded.type, {"wav": recorded.container_bits, "flac": recorded.container_bits})
    for ending, bits in widths.items():
        path = recorded.folder / f"x.{ending}"
        if ending == "flac" and bits == 32:
            if shutil.which("flac") is None:
                pytest.skip("the command flac is not there; `cargo xtask test --setup` installs it")
            subprocess.run(["flac", "--silent", "--decode", "--output-name", recorded.folder / "flac.wav", path], check=True)
            path = recorded.folder / "flac.wav"
        with soundfile.SoundFile(path) as sound:
            assert sound.samplerate == RATE_HZ and sound.subtype == f"PCM_{bits}"
            samples = sound.read(dtype="int32", always_2d=True) >> (32 - bits)
            if path.name != "flac.wav":
                arrays[ending] = (samples, json.loads(sound.copy_metadata()["comment"])["channels"])
            assert (samples == recorded.samples).all()
    for samples, channels in arrays.values():
        for number, channel in enumerate(channels):
            assert channel["justified"] == "high"
            recorded.check_volts(0, samples[:, number].astype("i8"), number, channel)
    first = 150_000
    recorded.run("export", recorded.base, "--out", recorded.folder / "x.csv", "--from", first, "--frames", 500)
    with (recorded.folder / "x.csv").open(newline="") as file:
        head, *rows = csv.reader(file)
    for number in range(CHANNELS):
        # in0 [code; V = 0.00015625 * code + 0.75]
        name, _, formula = head[2 + number].partition(" [code; V = ")
        scale, offset = formula.rstrip("]").split(" * code + ")
        assert name == f"in{number}" and int(rows[0][0]) == first and float(rows[0][1]) == first / RATE_HZ
        codes = numpy.array([int(row[2 + number]) for row in rows])
        recorded.check_volts(first, codes, number, {"unit": "V", "scale": float(scale), "offset": float(offset)})


def test_h5py_finds_the_volts_in_views_of_the_segments_that_are_restored(recorded):
    recorded.run("compress", recorded.base)
    recorded.run("compress", recorded.base, "--undo")
    end = 0
    for segment in recorded.segments:
        recorded.run("export", segment, "--out", segment.with_suffix(".h5"))
        with h5py.File(segment.with_suffix(".h5")) as view:
            samples, first = view["data"][:], int(view["data"].attrs["first_frame"])
            assert first == end and view.attrs["sample_rate_hz"] == RATE_HZ
            recorded.check(first, samples)
            end += len(samples)
            for number in range(CHANNELS):
                assert view.attrs["channel_names"][number] == f"in{number}".encode()
                channel = {"unit": view.attrs["channel_units"][number].decode()}
                channel |= {"scale": view.attrs["channel_scales"][number], "offset": view.attrs["channel_offsets"][number]}
                recorded.check_volts(first, samples[:, number].astype("i8"), number, channel)
    assert end == FRAMES
