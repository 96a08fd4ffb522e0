"""The reference of the command line, read off the command itself: one that is added appears by itself."""

from __future__ import annotations

import inspect
import re
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

MARK = "<!-- commands -->"
KINDS = {int: "N", float: "NUMBER", Path: "PATH"}


def commands(command: Any, name: str = "taciturn") -> Iterator[tuple[str, Any]]:
    """Every command with its full name, those of groups included; groups themselves are left out."""
    children: dict[str, Any] = getattr(command, "commands", {})
    if not children:
        yield name, command
    for child in sorted(children):
        yield from commands(children[child], f"{name} {child}")


def reference(app: Any) -> str:
    """A section for each command: what it does, an example, its arguments and options."""
    return "\n".join(section(name, command) for name, command in commands(app))


def section(name: str, command: Any) -> str:
    """One command."""
    parts = re.split(r"\n\s*\n", (command.help or "").strip())
    examples = [part.removeprefix("Example:").strip() for part in parts if part.startswith("Example:")]
    prose = [" ".join(part.split()) for part in parts if not part.startswith("Example:")]
    shown, kinds = [p for p in command.params if not p.hidden], typing.get_type_hints(inspect.unwrap(command.callback))
    arguments = [_metavar(param) for param in shown if _is_argument(param)]
    usage = " ".join([name, *arguments, *(["[OPTIONS]"] if len(shown) > len(arguments) else [])])
    console = ["```console", *(f"$ {words}" for words in (usage, *examples)), "```", ""]
    rows = [f"| {_spelled(p, kinds.get(p.name, str))} | {p.help or ''} | {_default(p)} |" for p in shown]
    table = ["| option | meaning | default |", "|---|---|---|", *rows, ""] if rows else []
    return "\n".join([f"## {name}", "", *(f"{words}\n" for words in prose), *console, *table])


def _is_argument(param: Any) -> bool:
    return bool(param.param_type_name == "argument")


def _metavar(param: Any) -> str:
    return str(param.metavar or param.name.upper())


def _spelled(param: Any, kind: Any) -> str:
    """As it is typed, and what may stand there."""
    kind = next((part for part in typing.get_args(kind) if part is not type(None)), kind) if _optional(kind) else kind
    choices = typing.get_args(kind) if typing.get_origin(kind) is Literal else ()
    words = _metavar(param) if _is_argument(param) else ", ".join([*param.opts, *param.secondary_opts])
    if not (choices or _is_argument(param) or kind is bool):
        words += f" {param.metavar or KINDS.get(kind, 'TEXT')}"
    return f"`{words}`" + "".join(f"{',' if i else '<br>'} `{choice}`" for i, choice in enumerate(choices))


def _optional(kind: Any) -> bool:
    return type(None) in typing.get_args(kind)


def _default(param: Any) -> str:
    if param.required:
        return "required"
    if getattr(param, "is_flag", False):
        return "on" if param.default is True else "off"
    return "–" if param.default is None else f"`{param.default}`"
