"""Files that end as they should."""

import os

from taciturn.runs.files import write_at


def test_short_writes_are_continued(tmp_path, monkeypatch):
    """A system may take less than it was given."""
    real = os.write
    monkeypatch.setattr(os, "write", lambda handle, data: real(handle, bytes(data)[:3]))
    write_at(tmp_path / "log", 0, b"0123456789")
    assert (tmp_path / "log").read_bytes() == b"0123456789"
