"""Files are replaced atomically, and have the permissions of other files of their owner."""

import contextlib
import os

import pytest

from taciturn.kernel.atomic import OWNER_ONLY, Entry, replaced


def write(path, data, **options):
    with replaced(path, **options) as file:
        file.write(data)


@pytest.mark.parametrize("step", ["replace", "fsync"])
def test_a_step_that_fails_leaves_the_old_file_and_nothing_beside_it(tmp_path, monkeypatch, step):
    write(tmp_path / "page", b"old")

    def broken(*_, **__):
        raise OSError("no")

    monkeypatch.setattr(os, step, broken)
    with pytest.raises(OSError, match="no"):
        write(tmp_path / "page", b"new")
    assert (tmp_path / "page").read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["page"]


def test_a_block_that_fails_leaves_the_old_file_and_nothing_beside_it(tmp_path):
    write(tmp_path / "page", b"old")
    with contextlib.suppress(KeyboardInterrupt), replaced(tmp_path / "page") as file:
        file.write(b"half of the new")
        raise KeyboardInterrupt
    assert (tmp_path / "page").read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["page"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no pipes with names")
def test_a_pipe_is_written_to_and_stays(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    assert not os.path.isfile(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    write(tmp_path / "pipe", b"through it")
    assert os.read(reader, 100) == b"through it"
    os.close(reader)
    assert not os.path.isfile(tmp_path / "pipe")
    assert os.listdir(tmp_path) == ["pipe"]


@pytest.mark.skipif(not os.path.exists("/dev/null"), reason="this system has no such device")
def test_devices_are_told_from_files(tmp_path):
    """Asked, and not tried: a fault here would replace the device of whoever runs the tests."""
    assert Entry.of("/dev/null").is_device
    assert Entry.of("/dev/stdout").is_device == os.path.exists("/dev/stdout")
    for path in (tmp_path, tmp_path / "none", tmp_path / "page"):
        assert not Entry.of(path).is_device
        (tmp_path / "page").write_bytes(b"old")


def test_no_reader_sees_the_new_file_before_it_is_complete(tmp_path):
    with replaced(tmp_path / "page") as file:
        file.write(b"new")
        assert not (tmp_path / "page").exists()


@pytest.mark.parametrize(
    ("mode", "mask", "expected"),
    [(0o666, 0o022, 0o644), (0o644, 0o077, 0o600), (0o644, 0o002, 0o644), (OWNER_ONLY, 0o000, 0o600)],
)
def test_modes_are_those_of_files_that_open_makes(tmp_path, mode, mask, expected):
    before = os.umask(mask)
    try:
        write(tmp_path / "page", b"", mode=mode)
        assert os.umask(mask) == mask
    finally:
        os.umask(before)
    assert (tmp_path / "page").stat().st_mode & 0o777 == expected
