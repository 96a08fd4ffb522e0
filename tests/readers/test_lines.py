"""Lines end at newlines and nowhere else, in bounded memory; a live input does not wait."""

import io
import os
import threading
import time
from codecs import BOM_UTF8

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taciturn.readers import lines as module
from taciturn.readers.lines import LONGEST, Lines, line_ends


def joined(lines):
    return b"".join(part.content for part in lines.parts(10))


class Drops(io.BytesIO):
    """A stream that hands out a few bytes at a time."""

    def read(self, size=-1):
        return super().read(min(size, 3))


@given(st.binary(max_size=60).map(lambda b: b.replace(b"\r", b"\n")), st.integers(1, 5))
def test_blocks_are_the_lines_in_order(data, most):
    lines = Lines(Drops(data))
    first, blocks = lines.first(), [part.content for part in lines.parts(most)]
    assert first + b"".join(blocks) == data
    assert lines.size == len(data)
    assert all(len(line_ends(block)) <= most for block in blocks)
    assert all(block.endswith(b"\n") for block in blocks[:-1])


def test_a_line_without_end_takes_no_memory_without_end(monkeypatch):
    """Ten megabytes without a newline: a megabyte is stored, and the lines before and after are complete."""
    monkeypatch.setattr(module, "_CHUNK", 2**18)
    data = b"head\nbefore\n" + b"x" * (10 * LONGEST) + b"\nafter\n"
    lines = Lines(io.BytesIO(data))
    lines.first()
    stored = b""
    for block, _ in lines.parts(10):
        assert len(lines._pending) <= LONGEST + 2 * 2**18
        stored += block
    before, long, after = stored.split(b"\n")[:3]
    assert (before, after, len(long)) == (b"before", b"after", LONGEST + 1)
    assert lines.size == len(data)


@pytest.mark.parametrize("data", [b"", b"a\n", b"\xef\xbba\n", b"\xef", b"\xef\xbb", b"\n"])
def test_a_mark_is_skipped_at_the_start_however_it_arrives(data, monkeypatch):
    for chunk in (1, 2, 3, 100):
        monkeypatch.setattr(module, "_CHUNK", chunk)
        marked = Lines(io.BytesIO(BOM_UTF8 + data), skip_mark=True)
        assert joined(marked) == data
        assert marked.size == len(BOM_UTF8 + data)
        assert joined(Lines(io.BytesIO(data), skip_mark=True)) == data
        assert joined(Lines(io.BytesIO(BOM_UTF8 + data))) == BOM_UTF8 + data


def test_a_mark_is_no_part_of_a_line_of_legal_length():
    data = b"x" * LONGEST
    assert joined(Lines(io.BytesIO(BOM_UTF8 + data), skip_mark=True)) == data


def test_a_legal_line_is_not_cut(monkeypatch):
    monkeypatch.setattr(module, "_CHUNK", 2**18)
    data = b"x" * LONGEST + b"\n" + b"y" * LONGEST
    assert joined(Lines(io.BytesIO(data))) == data


def test_a_pipe_that_pauses_hands_over_what_has_arrived():
    """The writer goes on only when its first line was read: a reader that waits for more waits for ever."""
    read, write = os.pipe()
    seen, patient = threading.Event(), []

    def trickle():
        with os.fdopen(write, "wb", buffering=0) as pipe:
            pipe.write(b"row 0\nhal")
            patient.append(seen.wait(20.0))
            pipe.write(b"f\nlast")

    writer = threading.Thread(target=trickle)
    writer.start()
    blocks = []
    with os.fdopen(read, "rb") as pipe:
        for block, _ in Lines(pipe).parts(1_000):
            blocks.append(block)
            seen.set()
    writer.join()
    assert patient == [True]
    assert (blocks[0], b"".join(blocks[1:])) == (b"row 0\n", b"half\nlast")


def test_a_pipe_that_never_pauses_hands_over_all_the_same():
    read, write = os.pipe()
    stop = threading.Event()

    def chatter():
        with os.fdopen(write, "wb", buffering=0) as pipe:
            while not stop.is_set():
                pipe.write(b"row\n")
                time.sleep(0.02)

    writer = threading.Thread(target=chatter)
    writer.start()
    start = time.monotonic()
    with os.fdopen(read, "rb") as pipe:
        block, _ = next(Lines(pipe).parts(10**6))
        waited = time.monotonic() - start
        stop.set()
        writer.join()
    assert set(block.split(b"\n")) == {b"row", b""}
    assert 0.5 < waited < 20.0


@pytest.mark.parametrize("data", [b"", b"\n", b"a", b"a\n", b"\n\n"])
def test_ends_count_lines(data):
    assert len(line_ends(data)) == len(data.split(b"\n")) - (data.endswith(b"\n") or not data)


@pytest.mark.privacy
@given(st.lists(st.integers(0, 40), min_size=1, max_size=30), st.integers(1, 7), st.integers(1, 50))
def test_blocks_end_by_the_number_of_rows_and_not_by_their_length(lengths, most, chunk):
    """Of a file, all blocks but the last have as many rows, however long each is and however they are read."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_CHUNK", chunk)
        blocks, rows = [], 0
        for content, last in Lines(io.BytesIO(b"".join(b"x" * length + b"\n" for length in lengths))).parts(most):
            rows += len(line_ends(content))
            if last:
                blocks.append(rows)
                rows = 0
    assert [*blocks, rows] == [*[most] * (len(lengths) // most), len(lengths) % most]


def test_what_a_pipe_has_sent_is_a_block_when_it_pauses():
    """Rows that came before a pause are the last of theirs, however full a chunk was before it."""
    read, write = os.pipe()
    seen, parts = threading.Event(), []

    def trickle():
        with os.fdopen(write, "wb", buffering=0) as pipe:
            pipe.write(b"row\n" * 5 + b"ro")
            seen.wait(20.0)
            pipe.write(b"w\n")

    writer = threading.Thread(target=trickle)
    writer.start()
    with os.fdopen(read, "rb") as pipe, pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_CHUNK", 8)
        for part in Lines(pipe).parts(1_000):
            parts.append(part)
            if part.last:
                seen.set()
    writer.join()
    assert b"".join(part.content for part in parts) == b"row\n" * 6
    assert [part.last for part in parts].index(True) == len(parts) - 2
