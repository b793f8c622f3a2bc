"""The archive of sheets from Python: lists, frames, trends; and its table as other readers see it."""

import json
import pathlib
import shutil
import subprocess
import sys
import threading

import pytest

import hairspring
from hairspring import archive

READING = "clocks.read.now.later"


@pytest.fixture(scope="module")
def sheet():
    """A sheet whose reading of the time has a median: on a busy machine a small difference is only known to be at most so large."""
    for _ in range(10):
        taken = hairspring.take_sheet("clocks.read", effort="quick")
        if any(row["id"] == READING and row.get("figure", {}).get("median") is not None for row in rows(taken.dict)):
            return taken
    pytest.skip("in ten sheets no reading of the time had a median: the machine is too busy")


def rows(document):
    return [row for chapter in document["chapters"] for table in chapter["tables"] for row in table["rows"]]


def day(sheet, number, host="bench", times=1.0):
    """The sheet as if it had been taken on this day, with all medians multiplied."""
    document = json.loads(sheet.json())
    document["taken"]["start"] = f"2025-01-{number:02}T04:00:00.123456789Z"
    for fact in document["conditions"]["facts"]:
        if fact["id"] == "host.name":
            fact.clear()
            fact |= {"id": "host.name", "label": "Host", "value": host}
    for row in rows(document):
        if row.get("figure", {}).get("median") is not None:
            row["figure"]["median"] *= times
    return json.dumps(document)


def medians(document):
    """The number of figures with a median. One that is only known to be at most so large has none."""
    return sum(row.get("figure", {}).get("median") is not None for row in rows(document))


@pytest.fixture(scope="module")
def full(sheet, tmp_path_factory):
    opened = archive(tmp_path_factory.mktemp("archive") / "kept.db", create=True)
    for number in range(1, 13):
        opened.add(day(sheet, number, times=1.0 if number < 7 else 2.0))
    opened.add(day(sheet, 3, host="stand"))
    return opened


@pytest.fixture
def kept(full, tmp_path):
    """An archive of 13 sheets, for this test alone."""
    return archive(shutil.copy(full.path, tmp_path / "kept.db"))


def test_sheets_are_added_once_and_come_back(sheet, tmp_path):
    with pytest.raises(FileNotFoundError, match="hairspring archive add"):
        archive(tmp_path / "kept.db")
    opened = archive(tmp_path / "kept.db", create=True)
    id, new = opened.add(sheet)
    assert new and opened.add(sheet.json()) == (id, False) and len(opened) == 1
    assert opened[id[:8]].dict == sheet.dict and next(iter(opened)).id == id
    with pytest.raises(KeyError):
        opened["0" * 32]
    for text in ["", "{}", json.dumps(sheet.dict | {"schema": "hairspring.sheet/2"}), "[" * 100_000]:
        with pytest.raises(ValueError):
            opened.add(text)
    assert len(archive(tmp_path / "kept.db")) == 1
    (tmp_path / "other.db").write_text("notes " * 1000)
    with pytest.raises(ValueError, match="not an archive"):
        archive(tmp_path / "other.db", create=True)


def test_a_frame_has_a_row_for_each_figure_of_each_sheet(kept):
    pandas = pytest.importorskip("pandas")
    every = kept.frame()
    assert len(every) == sum(medians(kept[one.id].dict) for one in kept) and set(every["machine"]) == {one.machine for one in kept}
    now = kept.frame("clocks.read.now.later", machine="bench")
    assert isinstance(now, pandas.DataFrame) and len(now) == 12 and set(now["unit"]) == {"ns"}
    assert now["taken"].iloc[0] == pandas.Timestamp("2025-01-01T04:00:00.123456789Z") and now["taken"].is_monotonic_increasing
    assert (now["median"].iloc[6:].to_numpy() / now["median"].iloc[0]).round(6).tolist() == [2.0] * 6
    assert len(kept.frame(["clocks.read.now.*"], machine="stand")) == len(set(kept.frame(["clocks.read.now.*"])["id"]))
    assert kept.frame("no.such.row").empty and kept.frame(effort="thorough").empty
    with pytest.raises(KeyError, match="bench"):
        kept.frame(machine="nowhere")
    with pytest.raises(ValueError):
        kept.frame("")


def test_trends_are_those_of_the_command(kept):
    (trend,) = kept.trends("clocks.read.now.later", machine="bench")
    assert trend["cuts"] == [] and len(trend["medians"]) == 12 and trend["unit"] == "ns"


def test_a_thread_adds_while_another_reads(kept, sheet):
    adding = threading.Thread(target=lambda: [kept.add(day(sheet, number, host="other")) for number in range(1, 8)])
    adding.start()
    while adding.is_alive():
        assert len(kept.frame("clocks.read.now.later", machine="bench")) == 12
    adding.join()
    assert len(kept) == 20


@pytest.fixture
def exported(command, kept, tmp_path):
    line = [command, "archive", "--archive", kept.path, "export", tmp_path / "table"]
    ended = subprocess.run(line, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 0, ended.stderr
    return tmp_path / "table"


def test_duckdb_reads_the_table(kept, exported):
    duckdb = pytest.importorskip("duckdb")
    of = f"FROM read_parquet('{exported}/**/*.parquet', hive_partitioning = true)"
    rows = duckdb.sql(f"SELECT count(*), count(DISTINCT sheet), count(DISTINCT machine), min(year) {of}").fetchall()
    assert rows == [(sum(one.figures + one.absent for one in kept), 13, 2, 2025)]
    query = f"SELECT epoch_us(taken), taken_ns, median {of} WHERE id = 'clocks.read.now.later' AND host = 'bench' ORDER BY taken"
    found = duckdb.sql(query).fetchall()
    assert len(found) == 12 and all(us == ns // 1000 for us, ns, _ in found)
    own = kept.frame("clocks.read.now.later", machine="bench")["median"].tolist()
    assert [median for _, _, median in found] == own


def test_polars_reads_the_table(kept, exported):
    polars = pytest.importorskip("polars")
    lazy = polars.scan_parquet(f"{exported}/**/*.parquet", hive_partitioning=True)
    now = lazy.filter((polars.col("id") == "clocks.read.now.later") & (polars.col("host") == "bench")).sort("taken").collect()
    assert now["median"].to_list() == kept.frame("clocks.read.now.later", machine="bench")["median"].tolist()
    assert now.schema["taken"] == polars.Datetime("us", "UTC") and now["taken_ns"][0] % 1000 == 789 and now["year"][0] == 2025
    # A row without a reason has a figure, be it one without a median.
    without = lazy.filter(polars.col("absent").is_null()).select("n").collect()
    assert without["n"].null_count() == 0 and len(without) == sum(one.figures for one in kept)


def test_without_pandas_a_frame_says_what_to_do(kept, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="pip install pandas"):
        kept.frame()


def test_the_example_reads_the_archive(kept):
    pytest.importorskip("pandas")
    script = pathlib.Path(__file__).parents[1] / "examples" / "read_archive.py"
    ended = subprocess.run([sys.executable, script, kept.path], capture_output=True, text=True, timeout=60)
    assert ended.returncode == 0 and "13 sheets" in ended.stdout and "bench" in ended.stdout, ended.stdout + ended.stderr
