"""A row's way through the code, as it was run: which files and functions one call goes through, in order.

`python -m docs_build.row` writes the tables of `docs/row.md` anew; a test compares them with what is run
(`--check`), in a process of its own, since what is cached is not called.
"""

from __future__ import annotations

import asyncio
import difflib
import re
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import taciturn

SOURCE = Path(taciturn.__file__).parent
PAGE = Path(__file__).parents[1] / "docs" / "row.md"
CHANCE = {"finish"}
"""The end of a draw that the sampler's fast path rejected: whether it is called is up to chance."""
TABLE = re.compile(r"(<!-- way: (?P<name>[a-z_]+) -->\n).*?(<!-- end -->)", re.S)


@dataclass
class Way:
    """The functions of this package that were called, in order."""

    calls: list[CodeType] = field(default_factory=list)

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(f"{SOURCE}/") and code.co_name not in CHANCE:
            self.calls.append(code)

    @property
    def visits(self) -> list[str]:
        """The files in the order in which calls enter them; calls within a file are one visit."""
        files = [str(Path(code.co_filename).relative_to(SOURCE)) for code in self.calls]
        return [file for before, file in zip(["", *files], files, strict=False) if file != before]

    @property
    def files(self) -> int:
        """Number of files."""
        return len({*self.visits})

    @property
    def returns(self) -> int:
        """How often a call enters a file that was left before."""
        return len(self.visits) - self.files

    def table(self) -> str:
        """Files in the order of their first calls, with the functions called in each, and the number of returns."""
        visits = self.visits
        lines = ["| | file | functions | returns |", "|---:|---|---|---:|"]
        for number, file in enumerate(dict.fromkeys(visits), 1):
            own = [code.co_qualname for code in self.calls if code.co_filename == str(SOURCE / file)]
            names = [f"`{name.replace('.<locals>', '')}`" for name in dict.fromkeys(own) if name[-1] != ">"]
            again = visits.count(file) - 1
            lines.append(f"| {number} | `{file}` | {', '.join(names)} | {again or ''} |")
        return "\n".join([f"{self.files} files, {self.returns} returns.", "", *lines, ""])


@contextmanager
def traced(way: Way) -> Iterator[None]:
    """Note the calls of this thread."""
    before = sys.getprofile()
    sys.setprofile(way)
    try:
        yield
    finally:
        sys.setprofile(before)


def partial_fit() -> Way:
    """A later call of `PrivateLogisticRegression.partial_fit`, by private FTRL with a BLT, with a release."""
    from taciturn.datasets import ad_impressions
    from taciturn.estimators.sklearn import PrivateLogisticRegression

    data, way = ad_impressions(400), Way()
    model = PrivateLogisticRegression(
        epsilon=1.0, delta=1e-6, feature_bound=1.0, classes=[-1, 1], horizon=4000, method="ftrl", release=100
    )
    for start in range(0, 300, 100):
        model.partial_fit(data.X[start : start + 100], data.y[start : start + 100])
    with traced(way):
        model.partial_fit(data.X[300:], data.y[300:])
    return way


def post() -> Way:
    """One durable POST of examples in JSON, from the request to the answer after its commit; later than the first."""
    from taciturn.contract.contract import contract_of
    from taciturn.service.app import Application
    from taciturn.service.service import Service
    from taciturn.store import Store

    columns = {"age": {"range": [0, 100]}, "town": {"categories": ["Oslo", "Rome"]}}
    declared = {
        "privacy": {"epsilon": 1.0},
        "target": {"column": "y", "positive": ["yes"]},
        "learning": {"horizon": 4000, "release": 2},
        "columns": columns,
    }
    body = b'{"rows": [{"age": 30, "town": "Oslo", "y": "yes"}, {"age": 40, "town": "Rome", "y": "no"}]}'
    way = Way()

    async def all_requests(folder: str) -> None:
        service = Service(Store(f"{folder}/streams.db"))
        service.create("clicks", contract_of(declared))
        token = service.tokens.create(["learn"])[1]
        app = Application(service)
        service.refresh()  # once, as at a tick; without `start`, nothing runs beside the request
        for number in range(4):
            if number == 3:
                recording.set()
                sys.setprofile(noted)
            await request(app, "/v1/streams/clicks/examples", body, token, f"key-{number}")
        sys.setprofile(None)
        recording.clear()
        service.close()

    recording, lock = threading.Event(), threading.Lock()

    def noted(frame: FrameType, event: str, argument: Any) -> None:
        if recording.is_set():
            with lock:
                way(frame, event, argument)

    threading.setprofile(noted)
    try:
        with tempfile.TemporaryDirectory() as folder:
            asyncio.run(all_requests(folder))
    finally:
        threading.setprofile(None)
    return way


async def request(app: Any, path: str, body: bytes, token: str, key: str) -> None:
    """Send one request to an ASGI application, without a server."""
    headers = [
        (b"authorization", b"Bearer " + token.encode()),
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        (b"idempotency-key", key.encode()),
    ]
    scope = {"type": "http", "method": "POST", "path": path, "query_string": b"", "headers": headers}
    scope |= {"http_version": "1.1", "scheme": "http", "client": ("127.0.0.1", 1), "root_path": "", "raw_path": b""}
    sent: list[dict[str, Any]] = []
    messages: Iterator[dict[str, Any]] = iter([{"type": "http.request", "body": body, "more_body": False}])

    async def receive() -> dict[str, Any]:
        for message in messages:
            return message
        await asyncio.Event().wait()  # the client stays
        return {"type": "http.disconnect"}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    await app(scope, receive, send)
    if sent[0]["status"] != 200:
        raise RuntimeError(f"the request was answered {sent}")


WAYS: dict[str, Callable[[], Way]] = {"partial_fit": partial_fit, "post": post}


def with_tables(page: str, ways: dict[str, Way]) -> str:
    """The page, its tables replaced by those of `ways`."""
    return TABLE.sub(lambda mark: f"{mark[1]}{ways[mark['name']].table()}{mark[3]}", page)


def main(arguments: list[str]) -> int:
    """Write the page anew; with `--check`, print what would change."""
    from taciturn.kernel.noise.sampling import lattice_normal

    lattice_normal(2.0**30, (10_000,))  # so that all of the sampler is compiled, also what chance seldom calls
    before = PAGE.read_text(encoding="utf-8")
    after = with_tables(before, {name: way() for name, way in WAYS.items()})
    if "--check" in arguments:
        sys.stdout.writelines(difflib.unified_diff(before.splitlines(True), after.splitlines(True), "page", "run", n=0))
        return int(before != after)
    PAGE.write_text(after, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
