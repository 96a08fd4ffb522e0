"""Keys: files that only their owner reads, the environment, and blobs that are bound to their place."""

from __future__ import annotations

import os
import stat
import sys

import pytest

from taciturn import InvalidInput, StateConflict
from taciturn.kernel.accounting.cost import gaussian
from taciturn.store import Store
from taciturn.store.encryption import VARIABLE, Key, is_encrypted, new_key, read_key

pytestmark = pytest.mark.privacy


def test_a_blob_is_read_where_it_was_written_only():
    key = Key(bytes(range(32)))
    blob = key.encrypt(b"secret", "a stream", 3)
    assert key.decrypt(blob, "a stream", 3) == b"secret"
    for place in (("another", 3), ("a stream", 4), ("a stream", 3, "input"), ("state 3 a stream", 3)):
        with pytest.raises(StateConflict, match="belongs to another stream or generation"):
            key.decrypt(blob, *place)


def test_a_changed_blob_is_rejected():
    """At every byte."""
    key = Key(bytes(range(32)))
    blob = key.encrypt(b"secret", "a stream", 3)
    for at in range(len(blob)):
        changed = blob[:at] + bytes([blob[at] ^ 1]) + blob[at + 1 :]
        if is_encrypted(changed):
            with pytest.raises(StateConflict):
                key.decrypt(changed, "a stream", 3)
    for length in range(len(blob)):
        if is_encrypted(blob[:length]):
            with pytest.raises(StateConflict):
                key.decrypt(blob[:length], "a stream", 3)


def test_equal_states_have_different_blobs():
    key = Key(bytes(range(32)))
    assert len({key.encrypt(b"secret", "a stream", 3) for _ in range(50)}) == 50


def test_another_key_is_named():
    one, two = Key(bytes(32)), Key(bytes(range(32)))
    with pytest.raises(StateConflict, match=f"by the key {one.id.hex()}, and the given one is {two.id.hex()}"):
        two.decrypt(one.encrypt(b"secret", "a stream", 0), "a stream", 0)
    assert repr(one) == f"Key(id={one.id.hex()})"


def test_a_key_file_is_new_and_private(tmp_path):
    key = new_key(tmp_path / "key")
    assert stat.S_IMODE((tmp_path / "key").stat().st_mode) == 0o600
    assert read_key(tmp_path / "key").id == key.id
    with pytest.raises(InvalidInput, match="never replaced"):
        new_key(tmp_path / "key")
    with pytest.raises(InvalidInput, match="cannot be written"):
        new_key(tmp_path / "missing" / "key")


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has other permissions")
@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o777])
def test_a_key_that_others_may_read_is_rejected(mode, tmp_path):
    new_key(tmp_path / "key")
    os.chmod(tmp_path / "key", mode)
    with pytest.raises(InvalidInput, match="chmod 600"):
        read_key(tmp_path / "key")


@pytest.mark.parametrize(("content", "fine"), [(b"\x00" * 32, True), (b"00" * 32 + b"\n", True), (b"0" * 63, False)])
def test_a_key_is_32_bytes_or_64_digits(content, fine, tmp_path):
    (tmp_path / "key").write_bytes(content)
    os.chmod(tmp_path / "key", 0o600)
    if fine:
        assert read_key(tmp_path / "key").id == Key(bytes(32)).id
    else:
        with pytest.raises(InvalidInput, match="64 hexadecimal digits"):
            read_key(tmp_path / "key")


def test_a_missing_key_is_an_error(tmp_path):
    with pytest.raises(InvalidInput, match="cannot be read: No such file"):
        read_key(tmp_path / "key")


def test_the_key_may_be_in_the_environment(tmp_path, monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)
    assert read_key(None) is None
    monkeypatch.setenv(VARIABLE, "07" * 32)
    store = Store(tmp_path / "stream.db")
    store.create("stream", lineage="a", position=(0, 0, 0, "0"), reserved=gaussian(0.01), state=b"a secret")
    assert b"a secret" not in (tmp_path / "stream.db").read_bytes()
    assert Store(tmp_path / "stream.db").load("stream").state == b"a secret"
    monkeypatch.setenv(VARIABLE, "7")
    with pytest.raises(InvalidInput, match=f"environment variable {VARIABLE} must hold 64"):
        Store(tmp_path / "stream.db")
    monkeypatch.delenv(VARIABLE)
    with pytest.raises(InvalidInput, match="encrypted, and no key is given"):
        Store(tmp_path / "stream.db").load("stream")


def test_a_state_in_clear_beside_a_key_is_rejected(tmp_path, monkeypatch):
    """One that was never encrypted, with a remedy; and one that was exchanged for another."""
    monkeypatch.delenv(VARIABLE, raising=False)
    new_key(tmp_path / "key")
    plain = Store(tmp_path / "stream.db")
    plain.create("stream", lineage="a", position=(0, 0, 0, "0"), reserved=gaussian(0.01), state=b"a state")
    store = Store(tmp_path / "stream.db", key=tmp_path / "key")
    with pytest.raises(InvalidInput, match=r"is not encrypted, and a key is given.*rotate-key"):
        store.load("stream")
    assert store.rotate_key(tmp_path / "key") == 1
    assert store.load("stream").state == b"a state"
    with store.database.transaction() as now:
        now.execute("UPDATE streams SET state = ?", b"another state")
    with pytest.raises(StateConflict, match="what was encrypted is in clear"):
        store.load("stream")
    with pytest.raises(StateConflict, match="what was encrypted is in clear"):
        store.rotate_key(tmp_path / "key")


@pytest.mark.privacy
def test_users_records_in_clear_beside_a_key_are_rejected(tmp_path, monkeypatch):
    """Whoever can write to the database, and has no key, cannot let users begin to count again."""
    monkeypatch.delenv(VARIABLE, raising=False)
    new_key(tmp_path / "key")
    store = Store(tmp_path / "stream.db", key=tmp_path / "key")
    given = {"position": (0, 0, 0, "0"), "reserved": gaussian(0.01), "layers": {"records": b"of users"}}
    saved = store.create("stream", lineage="a", **given)
    assert store.layers(saved) == {"records": b"of users"}
    with store.database.transaction() as now:
        now.execute("UPDATE layers SET content = ?, key = ''", b"")
    with pytest.raises(StateConflict, match="users' records of stream: what was encrypted is in clear"):
        store.layers(store.load("stream"))
    with pytest.raises(StateConflict, match="users' records of a: what was encrypted is in clear"):
        store.rotate_key(tmp_path / "key")
