"""The table of recorded streams: a name, and a function that runs the stream in a folder and returns what it made."""

from collections.abc import Callable, Mapping
from pathlib import Path

Stream = Callable[[Path], Mapping[str, object]]
STREAMS: dict[str, Stream] = {}


def stream(name: str) -> Callable[[Stream], Stream]:
    """Enter a function into the table; the first line of its docstring says what it covers."""

    def enter(function: Stream) -> Stream:
        if STREAMS.setdefault(name, function) is not function:
            raise ValueError(f"two streams are called {name}. Rename one of them.")
        return function

    return enter
