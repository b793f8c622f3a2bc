"""Windows: the words of a mapped file."""

import struct

import pytest

from hairspring import Window


@pytest.fixture
def file(tmp_path):
    file = tmp_path / "card"
    file.write_bytes(struct.pack("=1024I", *range(1024)))
    return file


def test_words_are_those_of_the_file(file):
    with Window(file, writable=True) as window:
        assert len(window) == 4096 and window.read(12) == 3
        window.write(12, 0xFFFF_FFFF)
        assert window.read(12) == 0xFFFF_FFFF and "4096 bytes" in repr(window)
    assert file.read_bytes()[12:16] == b"\xff" * 4


def test_a_window_may_be_a_part(file):
    window = Window(str(file), bytes=8)
    assert len(window) == 8 and window.read(4) == 1
    with pytest.raises(IndexError):
        window.read(8)


@pytest.mark.parametrize(
    ("offset", "error"),
    [(2, IndexError), (4096, IndexError), (2**63, IndexError), (-4, OverflowError), (2**64, OverflowError)]
    + [(1.0, TypeError), ("0", TypeError), (None, TypeError), (True, TypeError)],
)
def test_bad_offsets_are_refused(file, offset, error):
    window = Window(file, writable=True)
    with pytest.raises(error):
        window.read(offset)
    with pytest.raises(error):
        window.write(offset, 1)


@pytest.mark.parametrize(
    ("value", "error"), [(2**32, ValueError), (-1, OverflowError), (0.5, TypeError), ("1", TypeError), (False, TypeError)]
)
def test_bad_values_are_refused(file, value, error):
    with pytest.raises(error):
        Window(file, writable=True).write(0, value)


def test_a_window_is_for_reading_only_unless_it_is_asked_to_be_written_to(file):
    before = file.read_bytes()
    file.chmod(0o400)
    with Window(file) as window:
        assert window.read(12) == 3
        with pytest.raises(ValueError, match="writable=True"):
            window.write(12, 1)
    assert file.read_bytes() == before


def test_a_closed_window_says_so(file):
    window = Window(file)
    window.close()
    window.close()
    for use in (lambda: window.read(0), lambda: window.write(0, 1), lambda: len(window)):
        with pytest.raises(ValueError, match="closed"):
            use()
    assert "closed" in repr(window)


def test_a_file_that_is_cut_is_an_error_and_no_end_of_the_process(file):
    window = Window(file, writable=True)
    file.write_bytes(b"")
    with pytest.raises(OSError, match="cut"):
        window.read(0)
    with pytest.raises(OSError, match="cut"):
        window.write(0, 1)


def test_what_cannot_be_mapped_is_told(tmp_path, file):
    for wrong in [
        lambda: Window(tmp_path / "none"),
        lambda: Window(tmp_path),
        lambda: Window("/dev/null"),
        lambda: Window(file, bytes=8192),
        lambda: Window(file, offset=3),
        lambda: Window(file, offset=4096),
    ]:
        with pytest.raises(OSError, match="failed to map"):
            wrong()
    with pytest.raises(TypeError):
        Window(3)
