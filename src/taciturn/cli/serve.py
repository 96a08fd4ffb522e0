"""`taciturn serve`: streams over HTTP. `taciturn token`: who may do what there."""

from __future__ import annotations

import contextlib
import gc
import ipaddress
import re
import socket
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from taciturn.cli.budget import AsJson, WitnessOption
from taciturn.cli.output import plain_table, print_json, print_table, warn
from taciturn.cli.store import KeyOption
from taciturn.errors import InvalidInput, needs_extra

if TYPE_CHECKING:  # imported inside commands, so that the others start fast
    from taciturn.service.tokens import Token, Tokens

_SWITCH = 2e-4
"""Seconds for which a thread that learns may keep the interpreter from the one that answers."""

_SLOW_S = 2.0
"""Seconds after which a start says what it waits for."""

StoreOption = Annotated[str, typer.Option(help="Database of the streams: a SQLite file, or postgresql://….")]


def serve(
    store: StoreOption = "taciturn.db",
    host: Annotated[str, typer.Option(help="Address to listen at.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen at; 0 for a free one.", min=0, max=65535)] = 8000,
    tick: Annotated[
        str, typer.Option(help="Period of the public clock at whose ticks releases become visible: 1s, 500ms, 1m.")
    ] = "1s",
    tls_cert: Annotated[
        Path | None, typer.Option(help="File of the server's certificate, for https.", metavar="FILE")
    ] = None,
    tls_key: Annotated[Path | None, typer.Option(help="File of the certificate's key.", metavar="FILE")] = None,
    behind_proxy: Annotated[
        bool, typer.Option("--behind-proxy", help="A proxy before this server speaks TLS with the clients.")
    ] = False,
    read_only: Annotated[
        bool, typer.Option("--read-only", help="Show and predict only, beside a process that learns.")
    ] = False,
    diagnostics: Annotated[
        bool, typer.Option("--diagnostics", help="NOT PRIVATE: statistics of the exact rows, for operators.")
    ] = False,
    seed: Annotated[
        int | None, typer.Option(help="Seed of new streams, which are then simulations and NOT PRIVATE.", min=0)
    ] = None,
    streams: Annotated[
        int, typer.Option(help="Most streams that have not ended; others are not shown.", min=1, metavar="COUNT")
    ] = 4096,
    witness: WitnessOption = None,
    key: KeyOption = None,
    log_requests: Annotated[
        bool, typer.Option("--log-requests", help="Log method, route, status and duration of every request.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Serve streams over HTTP: learn from rows, predict, and show what was published.

    Every request needs a token: make one with taciturn token create. Beyond this machine it needs TLS.

    Example: taciturn serve --store taciturn.db --port 8000
    """
    seconds = seconds_of(tick)
    if (tls_cert is None) != (tls_key is None):
        raise InvalidInput("--tls-cert and --tls-key belong together. Pass both, or neither.")
    for file in (tls_cert, tls_key):
        if file is not None and not file.is_file():
            raise InvalidInput(f"{file} is not a file. Check the path.")
    if tls_cert is not None:
        _check_certificate(tls_cert, tls_key)
    if not (is_loopback(host) or tls_cert is not None or behind_proxy):
        raise InvalidInput(
            f"{host} can be reached from other machines, and tokens and rows would be sent in clear. Pass --tls-cert "
            "and --tls-key; or --behind-proxy, if a proxy speaks TLS with the clients; or listen at 127.0.0.1."
        )
    _needs_serve()
    import logging

    from taciturn.service.listener import within_descriptors
    from taciturn.service.server import server_of
    from taciturn.service.service import Limits, Service
    from taciturn.service.warm_up import warm_up
    from taciturn.store import Store

    logging.basicConfig(format="%(asctime)s %(name)s %(levelname)s %(message)s", level=logging.WARNING)
    logging.getLogger("taciturn").setLevel(logging.INFO if log_requests else logging.WARNING)
    secure = tls_cert is not None or behind_proxy
    limits = Limits(streams=streams)
    if behind_proxy:
        limits = replace(limits, address_connections=limits.connections)  # all are the proxy's
    allowed = within_descriptors(limits)
    if allowed is not limits:
        warn(
            f"this server takes {allowed.connections:,} connections at a time, and not {limits.connections:,}, as open "
            "files are limited (ulimit -n)."
        )
    with contextlib.closing(_listening(host, port)) as listening:
        service = Service(
            Store(store, witness=witness, key=key),
            tick=seconds,
            limits=allowed,
            seed=seed,
            diagnostics=diagnostics,
            read_only=read_only,
            secure=secure,
        )
        service.must_read_one()
        with _told_if_slow(None if as_json else "Compiling for this machine, as its first start does …"):
            warm_up(service)
        encrypted = bool(service.store.key_id)
        where = f"{'https' if tls_cert else 'http'}://{_named(host)}:{listening.getsockname()[1]}"
        if as_json:
            print_json(
                {
                    "address": where,
                    "store": service.store.address,
                    "tick": seconds,
                    "secure": secure,
                    "encrypted": encrypted,
                    "witness": witness is not None,
                }
            )
        else:
            typer.echo(f"Serving {service.store.address} at {where}; stop with Ctrl-C.")
            if not encrypted:
                typer.echo(
                    "States are not encrypted: who reads the database reads exact statistics of rows. Pass --key."
                )
            if witness is None:
                typer.echo("No witness: a database restored from a backup may release rounds again. Pass --witness.")
            if not service.tokens.list():
                typer.echo(f"Nobody has a token yet: taciturn token create --store {store} --scope admin")
        if seed is not None:
            warn("new streams are simulations, which are NOT PRIVATE: omit --seed.")
        gc.collect()
        gc.freeze()  # modules stay until the end: no collection need look at them
        gc.set_threshold(50_000, 20, 20)
        sys.setswitchinterval(_SWITCH)
        tls: dict[str, Any] = {"ssl_certfile": str(tls_cert), "ssl_keyfile": str(tls_key)} if tls_cert else {}
        server_of(service, host, port, **tls).run(sockets=[listening])


@contextlib.contextmanager
def _told_if_slow(sentence: str | None) -> Iterator[None]:
    """Print a sentence if a block takes a while."""
    timer = threading.Timer(_SLOW_S, typer.echo, [sentence])
    if sentence is not None:
        timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _check_certificate(certificate: Path, key: Path | None) -> None:
    """Reject files that do not serve TLS, before anything is opened."""
    import ssl

    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key, password="")
    except OSError:  # of which errors of SSL are a kind
        raise InvalidInput(
            f"{certificate} and {key} are not a certificate and its key, in PEM and without a password. Check both "
            "files."
        ) from None


def seconds_of(text: str) -> float:
    """The seconds of a period such as 1s.

    >>> seconds_of("1s"), seconds_of("500ms"), seconds_of("2m"), seconds_of("0.5")
    (1.0, 0.5, 120.0, 0.5)
    """
    found = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m)?", text.strip())
    if found is None:
        raise InvalidInput(f"--tick is a period such as 1s, 500ms or 1m, got {text!r}.")
    return float(found[1]) * {"ms": 0.001, "s": 1.0, None: 1.0, "m": 60.0}[found[2]]


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address.

    >>> is_loopback("127.0.0.1"), is_loopback("::1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, True, False)
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _named(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _listening(host: str, port: int) -> socket.socket:
    """A socket that listens, so that a port in use is an error before anything is opened."""
    made = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((host, port))
        made.listen(2048)  # who reads the address can connect, and waits until the server has started
        return made
    except OSError as error:
        made.close()
        raise InvalidInput(
            f"{host}:{port} cannot be listened at: {error.strerror or error}. Choose another address or port."
        ) from None


def _needs_serve() -> None:
    try:
        import msgspec  # noqa: F401
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError:
        raise InvalidInput(needs_extra("taciturn serve", "serve", "starlette, uvicorn, msgspec")) from None


token = typer.Typer(help="Tokens of taciturn serve: who may do what.", no_args_is_help=True)


@token.command("create")
def create_token(
    scope: Annotated[
        list[str] | None, typer.Option(help="learn, predict, read, operate or admin; repeat it for several.")
    ] = None,
    store: StoreOption = "taciturn.db",
    stream: Annotated[str | None, typer.Option(help="The only stream that it is for; by default all.")] = None,
    days: Annotated[float, typer.Option(help="Days until it expires; 0 for never.", min=0.0)] = 90.0,
    label: Annotated[str | None, typer.Option(help="What it is for, to be recognised in the list.")] = None,
    like: Annotated[
        str | None,
        typer.Option(help="Id of a token that this one follows: it keeps its scopes, stream, label and events."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Make a token, and print it once: only a hash of it is stored.

    A database that does not exist is made, and a warning says so; so does one about a stream that is not there yet.
    With --like it is another token of the same owner: it closes events that the first has opened.

    Example: taciturn token create --store taciturn.db --scope learn --scope predict --stream clicks
    """
    if like is not None and (scope or stream is not None):
        raise InvalidInput("--like keeps the scopes and the stream of a token: leave out --scope and --stream.")
    tokens, new = _tokens_or_new(store) if like is None else (_tokens(store), False)
    seconds = 86_400.0 * days if days else None
    if like is not None:
        made, secret = tokens.follow(like, label=label, seconds=seconds)
    else:
        made, secret = tokens.create(scope or [], stream=stream, label=label or "", seconds=seconds)
    if as_json:
        print_json({**_as_data(made), "token": secret})
    else:
        typer.echo(secret)
    if new:
        warn(
            f"{tokens.database.address} did not exist, and was made. If you meant another database, name it by --store."
        )
    elif made.stream is not None and not tokens.knows(made.stream):
        warn(f"there is no stream {made.stream!r} yet. If that is a misspelling, revoke the token.")
    if as_json:
        return
    typer.echo(f"This is shown once. Revoke it by: taciturn token revoke {made.id} --store {store}", err=True)


@token.command("revoke")
def revoke_token(
    id: Annotated[str, typer.Argument(help="Id of the token, from taciturn token list.", show_default=False)],
    store: StoreOption = "taciturn.db",
    as_json: AsJson = False,
) -> None:
    """Revoke a token, and the browsers that are logged in with it; servers notice within a second.

    Example: taciturn token revoke 3f9a1c02 --store taciturn.db
    """
    _tokens(store).revoke(id)
    if as_json:
        print_json({"revoked": id})
    else:
        typer.echo(f"Revoked {id}.")


@token.command("list")
def list_tokens(store: StoreOption = "taciturn.db", as_json: AsJson = False) -> None:
    """List the tokens of a store, without their secrets.

    Example: taciturn token list --store taciturn.db
    """
    rows = [_as_data(each) for each in _tokens(store).list()]
    if as_json:
        print_json({"tokens": rows})
        return
    table = plain_table("", ("id", "scopes", "stream", "expires", "state"), "label")
    for row in rows:
        stream = "all" if row["stream"] is None else row["stream"]
        table.add_row(row["id"], " ".join(row["scopes"]), stream, row["expires"] or "never", row["state"], row["label"])
    print_table(table)


def _tokens(address: str) -> Tokens:
    from taciturn.store.database import Database

    Database(address)  # a wrong address is an error, and not a new database
    return _tokens_or_new(address)[0]


def _tokens_or_new(address: str) -> tuple[Tokens, bool]:
    """The tokens of a database, and whether it was made now."""
    _needs_serve()
    from taciturn.service.tokens import Tokens
    from taciturn.store import Store
    from taciturn.store.database import Database

    try:
        Database(address).close()
        new = False
    except InvalidInput:
        new = True
    return Tokens(Store(address).database), new


def _as_data(made: Token) -> dict[str, Any]:
    from datetime import UTC, datetime

    from taciturn.service.clock import TickClock

    def text(at: int | None) -> str | None:
        return None if at is None else datetime.fromtimestamp(at / 1000.0, UTC).isoformat(timespec="seconds")

    state = "live" if made.live(TickClock.now()) else "expired" if made.revoked is None else "revoked"
    return {
        "id": made.id,
        "scopes": sorted(made.scopes),
        "stream": made.stream,
        "label": made.label,
        "created": text(made.created),
        "expires": text(made.expires),
        "state": state,
    }
