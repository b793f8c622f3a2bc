"""One recording is never taken for another: recordings of other programs, copies, mended ones, names that are not UTF-8."""

import hashlib
import json
import os
import pickle
import shutil
import sys
import warnings

import pytest

from hairspring import BlockError, Gap, GapError, open_recording
from test_reading import rows_of
from test_recording import data_of, written

numpy = pytest.importorskip("numpy")
pytestmark = pytest.mark.usefixtures("no_other_warning")


def foreign(folder, samples, datatype, captures=({"core:sample_start": 0},), name="foreign", **keys):
    """A recording of another program."""
    about = {"core:datatype": datatype, "core:version": "1.2.5", "core:sample_rate": 1000, **{f"core:{key}": value for key, value in keys.items()}}
    (folder / f"{name}.sigmf-meta").write_text(json.dumps({"global": about, "captures": list(captures), "annotations": []}))
    (folder / f"{name}.sigmf-data").write_bytes(samples.tobytes())
    return folder / name


@pytest.mark.parametrize(
    ("datatype", "parts", "samples"),
    [
        ("ci8", "i1", "complex64"),
        ("cu8", "u1", "complex64"),
        ("ci16_le", "<i2", "complex64"),
        ("ci32_le", "<i4", "complex128"),
        ("cf32_le", "<f4", "complex64"),
    ],
)
@pytest.mark.parametrize("channels", [1, 3])
def test_complex_samples_are_complex_arrays(tmp_path, datatype, parts, samples, channels):
    stored = numpy.arange(24 * channels).astype(parts)
    recording = open_recording(foreign(tmp_path, stored, datatype, num_channels=channels))
    expected = (stored[0::2] + 1j * stored[1::2].astype(float)).astype(samples).reshape(-1, channels)
    assert recording.channels == channels and recording.dtype == samples and len(recording) == 12
    for read in (recording[:], recording.read(gaps="fill"), recording.to_dask(chunk_bytes=16).compute(scheduler="sync"), recording.to_xarray().values):
        assert read.dtype == samples and (read == expected).all()
    assert (recording[3:7, channels - 1] == expected[3:7, channels - 1]).all() and (recording[-1] == expected[-1]).all()
    assert (next(recording.runs())[1] == expected).all()
    assert recording.data.shape == (12, 2 * channels) and recording.data.dtype == parts


def test_missing_complex_samples_are_filled_with_nan(tmp_path):
    captures = [{"core:sample_start": 0}, {"core:sample_start": 2, "core:global_index": 3}]
    recording = open_recording(foreign(tmp_path, numpy.arange(8, dtype="<f4"), "cf32_le", captures))
    filled = recording.read(gaps="fill")
    assert numpy.isnan(filled[2, 0]) and filled[[0, 1, 3, 4], 0].tolist() == [1j, 2 + 3j, 4 + 5j, 6 + 7j]


def test_a_first_index_that_is_not_0_is_the_first_frame(tmp_path):
    """Symptom: read() raised GapError for the frames before it, or tried to fill them."""
    captures = [{"core:sample_start": 0, "core:global_index": 1_700_000_000_000}]
    recording = open_recording(foreign(tmp_path, numpy.arange(10, dtype="<i2"), "ri16_le", captures))
    assert (recording.first_frame, len(recording), recording.gaps) == (1_700_000_000_000, 10, [])
    assert recording.read().ravel().tolist() == list(range(10)) and recording[1_700_000_000_003].tolist() == [3]
    assert recording.to_dask().compute(scheduler="sync").shape == (10, 1) and recording.to_xarray().sel(frame=1_700_000_000_009).item() == 9
    with pytest.raises(IndexError):
        recording[3]


def test_recordings_of_other_programs_have_identities_of_their_own(tmp_path):
    """Symptom: all had the identity 0, so that dask took the samples of one for those of another."""
    dask = pytest.importorskip("dask.array")
    a = open_recording(foreign(tmp_path, numpy.arange(1000, dtype="<i2"), "ri16_le", name="a"))
    b = open_recording(foreign(tmp_path, numpy.full(1000, 7, "<i2"), "ri16_le", name="b"))
    assert a.id != b.id and int(a.id, 16) and len(a.id) == 32
    assert dask.stack([a.to_dask(), b.to_dask()]).compute(scheduler="sync")[:, 10, 0].tolist() == [10, 7]
    assert open_recording(tmp_path / "a").id == a.id and open_recording(tmp_path / "a").to_dask().name == a.to_dask().name


def test_a_copy_is_the_same_recording_if_its_metadata_state_the_hash_of_the_data(tmp_path):
    """The command and Python have one rule, which is in the compiled module."""
    base = foreign(tmp_path, numpy.arange(1000, dtype="<i2"), "ri16_le", name="a")
    ids = []
    for stated in (None, hashlib.sha512(data_of(base).read_bytes()).hexdigest()):
        meta = base.with_name("a.sigmf-meta")
        about = json.loads(meta.read_text())
        about["global"] |= {"core:sha512": stated} if stated else {}
        meta.write_text(json.dumps(about))
        for copy in (tmp_path / "one", tmp_path / "two"):
            shutil.rmtree(copy, ignore_errors=True)
            copy.mkdir()
            shutil.copy(meta, copy)
            shutil.copy(data_of(base), copy)
        ids.append([open_recording(tmp_path / copy / "a").id for copy in ("one", "two")])
    assert ids[0][0] != ids[0][1] and ids[1][0] == ids[1][1]


def test_a_file_that_was_replaced_is_another_recording(tmp_path):
    pytest.importorskip("dask.array")
    base = foreign(tmp_path, numpy.arange(1000, dtype="<i2"), "ri16_le")
    before = open_recording(base)
    array, text = before.to_dask(), pickle.dumps(before)
    other = foreign(tmp_path, numpy.full(1000, 7, "<i2"), "ri16_le", name="other")
    os.utime(data_of(other), ns=(1, 1))
    os.replace(data_of(other), data_of(base))
    after = open_recording(base)
    assert after.id != before.id and after.to_dask().name != array.name
    with pytest.raises(ValueError, match="another recording now"):
        pickle.loads(text)
    with pytest.raises(ValueError, match="another recording now"):
        next(before.follow())


def test_copies_of_a_recording_are_told_apart_by_what_is_in_them(tmp_path):
    """Symptom: one copy lacks a block, and dask gave its filled samples for those of the whole one."""
    dask = pytest.importorskip("dask.array")
    (tmp_path / "a").mkdir()
    whole = open_recording(written(tmp_path / "a", rows_of(12), channels=3))
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    damaged = bytearray(data_of(tmp_path / "b/made").read_bytes())
    damaged[4 * 6] ^= 1
    data_of(tmp_path / "b/made").write_bytes(damaged)
    with pytest.warns(match="not in order"):
        lacking = open_recording(tmp_path / "b/made", verify=True)
    assert lacking.id == whole.id and lacking.gaps == [Gap(4, 4, "damaged")]
    arrays = [recording.to_dask(gaps="fill", fill=-1) for recording in (whole, lacking)]
    both = dask.stack(arrays).compute(scheduler="sync")
    assert (both[0] == rows_of(12)).all() and (both[1, 4:8] == -1).all()
    # At one place, too.
    os.replace(data_of(tmp_path / "a/made"), data_of(tmp_path / "b/made"))
    mended = open_recording(tmp_path / "b/made", verify=True)
    assert mended.to_dask(gaps="fill", fill=-1).name != arrays[1].name


def test_dask_names_xarrays_by_what_is_in_them(tmp_path):
    dask_base = pytest.importorskip("dask.base")
    pytest.importorskip("xarray")
    a = open_recording(foreign(tmp_path, numpy.arange(1000, dtype="<i2"), "ri16_le", name="a"))
    b = open_recording(foreign(tmp_path, numpy.full(1000, 7, "<i2"), "ri16_le", name="b"))
    again = open_recording(tmp_path / "a")
    tokens = [dask_base.tokenize(one.to_xarray().variable) for one in (a, again, b)]
    assert tokens[0] == tokens[1] != tokens[2]
    chunked = [one.to_xarray().chunk(frame=100) for one in (a, b)]
    assert abs(chunked[0] - chunked[1]).max().compute().item() == 992


def test_what_is_recorded_later_does_not_change_the_name_of_an_array(tmp_path):
    pytest.importorskip("dask.array")
    (tmp_path / "a").mkdir()
    written(tmp_path / "a", rows_of(20), channels=3, ended=False)
    with pytest.warns(match="cut off"):
        late = open_recording(tmp_path / "a/made")
    written(tmp_path / "a", rows_of(12), channels=3, ended=False)
    with pytest.warns(match="cut off"):
        early = open_recording(tmp_path / "a/made")
    assert len(early) < len(late) and early.to_dask(0, 8).name == late.to_dask(0, 8).name != late.to_dask(0, 12).name


NAMES = ["name with spaces", "ünï→", os.fsdecode(b"latin\xe9-\xff"), "x" * 230]


@pytest.mark.parametrize("name", NAMES, ids=["spaces", "utf-8", "bytes", "long"])
def test_names_are_bytes(tmp_path, name):
    try:
        base = foreign(tmp_path, numpy.arange(10, dtype="<i2"), "ri16_le", name=name)
    except OSError as error:
        pytest.skip(f"this file system refuses the name: {error}")
    for named in (base, str(base), os.fsencode(base)):
        recording = open_recording(named)
        assert recording.read().ravel().tolist() == list(range(10))
    assert (pickle.loads(pickle.dumps(recording)).read() == recording.read()).all() and recording.data.shape == (10, 1)
    if "dask" in sys.modules or pytest.importorskip("dask"):
        assert recording.to_dask().compute(scheduler="sync").shape == (10, 1)
    made = written(tmp_path, rows_of(12), channels=3)
    own = tmp_path / name
    for ending in (".sigmf-data", ".sigmf-meta", ".hairspring-journal"):
        os.replace(f"{made}{ending}", f"{own}{ending}")
    damaged = bytearray(data_of(own).read_bytes())
    recording = open_recording(own)
    damaged[0] ^= 1
    data_of(own).write_bytes(damaged)
    with pytest.raises(BlockError) as raised:
        recording[0:4]
    assert os.fspath(raised.value.path) == os.fspath(data_of(own))


def test_a_name_that_is_too_long_is_refused_as_the_system_says(tmp_path):
    with pytest.raises(OSError, match="[Nn]ame too long"):
        open_recording(tmp_path / ("x" * 300))


def test_an_empty_recording_is_an_empty_array_of_dask_and_xarray(tmp_path):
    """Symptom: to_dask() raised about empty tuples."""
    pytest.importorskip("dask.array")
    xarray = pytest.importorskip("xarray")
    base = written(tmp_path, numpy.empty((0, 4), "<i2"), channels=4)
    ten = open_recording(written(tmp_path, rows_of(10), channels=3, name="ten"))
    for recording, shape in ((open_recording(base), (0, 4)), (ten, (0, 3))):
        bounds = (recording.first_frame,) * 2
        array = recording.to_dask(*bounds)
        assert array.shape == array.compute(scheduler="sync").shape == shape and array.dtype == "<i2"
        assert recording.to_dask(*bounds, gaps="fill", fill=0).sum().compute(scheduler="sync") == 0
        made = recording.to_xarray(*bounds)
        assert made.shape == made.values.shape == shape and made.frame.values.tolist() == [] and repr(made)
    for chunks in (None, {}):
        with xarray.open_dataset(f"{base}.sigmf-meta", engine="hairspring", chunks=chunks) as made:
            assert made.samples.values.shape == (0, 4)


def test_warnings_of_a_cut_copy_and_its_array_agree(tmp_path):
    pytest.importorskip("dask.array")
    base = written(tmp_path, rows_of(12), channels=3)
    os.truncate(data_of(base), 30)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        recording = open_recording(base)
    with pytest.raises(GapError):
        recording.to_dask()
    filled = recording.to_dask(gaps="fill", fill=-1).compute(scheduler="sync")
    assert (filled == recording.read(gaps="fill", fill=-1)).all() and (filled[4:] == -1).all() and len(filled) == 12
    assert (recording.to_xarray(gaps="fill", fill=-1).values == filled).all()
