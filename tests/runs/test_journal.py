"""`models.jsonl` holds each release once: what a crash left is completed, what is not ours is refused."""

import json
import shutil

import pytest

from taciturn.errors import StateConflict
from taciturn.runs.journal import last_lines, replay

ONE, TWO, THREE = (json.dumps({"k": k, "t": 10 * k, "model": [0.5] * 9}).encode() + b"\n" for k in (1, 2, 3))
WRITTEN, UNWRITTEN = ONE, TWO + THREE


def brought_up(path, content):
    path.write_bytes(content)
    replay(path, len(WRITTEN), UNWRITTEN, 1)
    return path.read_bytes()


@pytest.mark.parametrize("length", range(len(TWO + THREE) + 1))
def test_whatever_part_was_written_is_completed(tmp_path, length):
    """A torn line too."""
    assert brought_up(tmp_path / "m", WRITTEN + UNWRITTEN[:length]) == WRITTEN + UNWRITTEN


@pytest.mark.parametrize("zeros", [(0, 5), (20, 40), (60, 200)])
def test_blocks_of_zeros_are_filled(tmp_path, zeros):
    """A power cut may leave a file longer than what reached the disk of it."""
    tail = bytearray(UNWRITTEN.ljust(300, b"\0"))
    tail[slice(*zeros)] = bytes(zeros[1] - zeros[0])
    assert brought_up(tmp_path / "m", WRITTEN + bytes(tail)) == WRITTEN + UNWRITTEN


@pytest.mark.privacy
@pytest.mark.parametrize(
    "content",
    [
        WRITTEN + UNWRITTEN + b'{"k": 4',
        WRITTEN + UNWRITTEN + THREE.replace(b"3", b"4"),
        WRITTEN + TWO.replace(b"0.5", b"0.6") + THREE,
        WRITTEN + TWO.replace(b"0.5", b"0.6")[:40],
        WRITTEN + UNWRITTEN + bytes(5000) + b"}",
    ],
)
def test_releases_of_a_newer_or_another_state_are_refused(tmp_path, content):
    """Half a line of them is enough, and nothing is changed."""
    with pytest.raises(StateConflict, match="older than what was released"):
        brought_up(tmp_path / "m", content)
    assert (tmp_path / "m").read_bytes() == content


@pytest.mark.parametrize("content", [b"", ONE[:-1], TWO.ljust(len(ONE)), ONE.replace(b'"k"', b'"j"'), b"x" * 500])
def test_lines_that_are_gone_or_others_are_refused(tmp_path, content):
    with pytest.raises(StateConflict, match="does not hold the 1 releases"):
        brought_up(tmp_path / "m", content)


def test_a_file_that_is_not_there_is_written_if_nothing_was(tmp_path):
    replay(tmp_path / "m", 0, UNWRITTEN, 0)
    assert (tmp_path / "m").read_bytes() == UNWRITTEN
    shutil.rmtree(tmp_path)
    tmp_path.mkdir()
    replay(tmp_path / "m", 0, b"", 0)
    assert not (tmp_path / "m").exists()


def test_long_lines_are_found_from_their_end(tmp_path):
    """Longer than what is read at first."""
    long = json.dumps({"k": 7, "model": [0.125] * 100_000}).encode() + b"\n"
    (tmp_path / "m").write_bytes(ONE + long)
    replay(tmp_path / "m", len(ONE + long), b"", 7)
    assert [line["k"] for line in last_lines(tmp_path / "m", 9)] == [1, 7]
    assert [line["k"] for line in last_lines(tmp_path / "m", 1)] == [7]
