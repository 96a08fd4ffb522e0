"""Encrypted states: AES-256-GCM, with the stream, its generation and the kind of blob as associated data.

A state holds exact statistics, so its blob is as sensitive as the rows. A key has 32 bytes, from a file that only its
owner can read, or from the environment variable `TACITURN_KEY` as 64 hexadecimal digits. Each blob names its key by an
id, the first 8 bytes of the key's SHA-256, so that a wrong key is an error that says so. A blob moved to another stream
or generation does not decrypt.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import stat
from pathlib import Path

from taciturn.errors import InvalidInput, StateConflict

VARIABLE = "TACITURN_KEY"
_MARK = b"taciturn encrypted 1\n"
_ID = 8
_NONCE = 12


class Key:
    """A key of 32 bytes.

    >>> key = Key(bytes(32))
    >>> key.decrypt(key.encrypt(b"secret", "a stream", 3), "a stream", 3)
    b'secret'
    """

    def __init__(self, key: bytes) -> None:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        if len(key) != 32:
            raise InvalidInput(f"a key has 32 bytes, got {len(key)}. Make one by `taciturn store new-key FILE`.")
        self.id = hashlib.sha256(b"taciturn key id" + key).digest()[:_ID]
        self._cipher = AESGCM(key)

    def __repr__(self) -> str:
        return f"Key(id={self.id.hex()})"

    def encrypt(self, data: bytes, lineage: str, generation: int, kind: str = "state") -> bytes:
        """Encrypt the blob of a generation of a stream: its `state`, or its position in the `input`."""
        nonce = secrets.token_bytes(_NONCE)
        return _MARK + self.id + nonce + self._cipher.encrypt(nonce, data, _associated(lineage, generation, kind))

    def decrypt(self, blob: bytes, lineage: str, generation: int, kind: str = "state") -> bytes:
        """Decrypt it; an error if the key is another one, or the blob was changed or moved."""
        from cryptography.exceptions import InvalidTag

        rest = blob[len(_MARK) :]
        if rest[:_ID] != self.id:
            raise StateConflict(
                f"this state is encrypted by the key {rest[:_ID].hex()}, and the given one is {self.id.hex()}. Give "
                "the key that it was encrypted with."
            )
        nonce, data = rest[_ID : _ID + _NONCE], rest[_ID + _NONCE :]
        try:
            return self._cipher.decrypt(nonce, data, _associated(lineage, generation, kind))
        except (InvalidTag, ValueError):  # the latter if it was cut
            raise StateConflict(
                "this state is damaged, or belongs to another stream or generation. Restore the database."
            ) from None


def is_encrypted(blob: bytes) -> bool:
    """Whether a blob was made by `Key.encrypt`."""
    return blob.startswith(_MARK)


def _associated(lineage: str, generation: int, kind: str) -> bytes:
    return f"{kind} {generation} {lineage}".encode()


def read_key(path: str | os.PathLike[str] | None) -> Key | None:
    """The key in a file, or without one that of the environment; None if there is neither."""
    if path is None:
        text = os.environ.get(VARIABLE)  # if it is set and empty, a key was meant
        return None if text is None else _parsed(text, f"the environment variable {VARIABLE}")
    try:
        status = os.stat(path)
        data = Path(path).read_bytes()
    except OSError as error:
        raise InvalidInput(
            f"the key {path} cannot be read: {error.strerror}. Check its name and permissions."
        ) from None
    if stat.S_IMODE(status.st_mode) & 0o077:
        raise InvalidInput(f"others may read the key {path}. Restrict it: chmod 600 {path}")
    return Key(data) if len(data) == 32 else _parsed(data.decode("ascii", "replace"), str(path))


def _parsed(text: str, where: str) -> Key:
    try:
        return Key(bytes.fromhex(text.strip()))
    except ValueError:
        raise InvalidInput(
            f"{where} must hold 64 hexadecimal digits. Make one by `taciturn store new-key FILE`."
        ) from None


def new_key(path: str | os.PathLike[str]) -> Key:
    """Write a random key to a new file that only its owner can read."""
    key = secrets.token_bytes(32)
    try:
        handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    except FileExistsError:
        raise InvalidInput(f"{path} exists. A key is never replaced: give another name.") from None
    except OSError as error:
        raise InvalidInput(f"{path} cannot be written: {error.strerror}. Check the folder.") from None
    with os.fdopen(handle, "w") as file:
        file.write(key.hex() + "\n")
        file.flush()
        os.fsync(file.fileno())
    return Key(key)
