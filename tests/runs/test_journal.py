"""`models.jsonl` holds each release once: what a crash left is completed from the outbox, all else is rejected."""

import json

import pytest

from cases import each
from taciturn.errors import StateConflict
from taciturn.runs.journal import complete, last_lines
from taciturn.store import Chunk

ONE, TWO, THREE, FOUR = (json.dumps({"k": k, "t": 10 * k, "model": [0.5] * 9}).encode() + b"\n" for k in (1, 2, 3, 4))
CHUNKS = [Chunk(1, 1, 10, ONE), Chunk(2, 4, 40, TWO + THREE + FOUR)]
ALL = ONE + TWO + THREE + FOUR


def outbox(after, chunks=CHUNKS):
    return (chunk for chunk in chunks if chunk.last > after)


def completed(path, content):
    path.write_bytes(content)
    assert complete(path, outbox, len(ALL)) == len(ALL)
    return path.read_bytes()


@each("length", range(len(ALL) + 1))
def test_whatever_part_was_written_is_completed(tmp_path, length):
    """A torn line too, and a file that was emptied."""
    assert completed(tmp_path / "m", ALL[:length]) == ALL


@each("zeros", [(0, 5), (20, 40), (60, 150), (100, 222), (0, 222)])
def test_blocks_of_zeros_are_filled(tmp_path, zeros):
    """A power cut may leave a file longer than what reached the disk of it."""
    start, end = (len(ONE) + zero for zero in zeros)
    content = bytearray(ALL.ljust(400, b"\0"))
    content[start:end] = bytes(end - start)
    assert completed(tmp_path / "m", bytes(content)) == ALL


@pytest.mark.privacy
@each(
    "content",
    [
        ALL + b'{"k": 5',
        ALL + FOUR.replace(b"4", b"5"),
        ONE + TWO.replace(b"0.5", b"0.6") + THREE,
        ONE + TWO.replace(b"0.5", b"0.6")[:40],
        ALL + bytes(5000) + b"}",
        TWO.ljust(len(ONE)),
        ONE.replace(b'"k"', b'"j"'),
        b"x" * 500,
        TWO,
        THREE,
        FOUR,
        ONE + THREE,
        ONE + FOUR,
    ],
)
def test_releases_of_a_newer_or_another_store_are_rejected(tmp_path, content):
    """Half a line of them is enough, and nothing is changed."""
    with pytest.raises(StateConflict, match="older than what was released"):
        completed(tmp_path / "m", content)
    assert (tmp_path / "m").read_bytes() == content


@pytest.mark.privacy
@each("content", [ONE, ONE[:10], ALL])
def test_any_release_is_too_many_for_an_empty_outbox(tmp_path, content):
    (tmp_path / "m").write_bytes(content)
    with pytest.raises(StateConflict, match="older than what was released"):
        complete(tmp_path / "m", lambda after: outbox(after, []))
    assert (tmp_path / "m").read_bytes() == content


def test_a_file_that_is_not_there_is_written_if_there_is_something_to_write(tmp_path):
    assert complete(tmp_path / "m", lambda after: outbox(after, [])) == 0
    assert not (tmp_path / "m").exists()
    assert complete(tmp_path / "m", outbox) == len(ALL)
    assert (tmp_path / "m").read_bytes() == ALL


def test_only_the_end_of_a_long_file_is_compared(tmp_path):
    """The chunk of its last line, and those after it."""
    asked = []

    def told(after):
        asked.append(after)
        return outbox(after)

    (tmp_path / "m").write_bytes(ONE + TWO + THREE)
    assert complete(tmp_path / "m", told, len(ALL)) == len(ALL)
    assert set(asked) == {2}
    (tmp_path / "m").write_bytes(ALL[len(ONE) :])  # without a size, a line that is missing before it is not noticed
    assert complete(tmp_path / "m", told) == len(ALL) - len(ONE)


def test_long_lines_are_found_from_their_end(tmp_path):
    """Longer than what is read at first."""
    long = json.dumps({"k": 2, "model": [0.125] * 100_000}).encode() + b"\n"
    (tmp_path / "m").write_bytes(ONE + long)
    complete(tmp_path / "m", lambda after: outbox(after, [Chunk(1, 1, 10, ONE), Chunk(2, 2, 20, long)]))
    assert [line["k"] for line in last_lines(tmp_path / "m", 9)] == [1, 2]
    assert [line["k"] for line in last_lines(tmp_path / "m", 1)] == [2]
