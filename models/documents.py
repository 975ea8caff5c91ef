"""Text files in, plain trees out: strict YAML and JSON with the line of every field.

YAML scalars stay text (so ``1e3`` is a number only where the schema means one, and ``no`` is never false).
Tags, duplicate keys, several documents, files that grow by aliases and deep nesting are refused.
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

Path_ = tuple[str | int, ...]
_MOST_BYTES = 64 * 2**20
_MOST_NODES = 200_000
_MOST_DEPTH = 40
_PLAIN = str.maketrans("", "", "\n\t\r")  # control characters that texts of several lines have
_Loader = getattr(yaml, "CBaseLoader", yaml.BaseLoader)


class InputError(Exception):
    """What a user handed in cannot be used: file, line, field, the value found and what is accepted."""

    def __init__(
        self,
        problem: str,
        *,
        file: object = None,
        line: int | None = None,
        at: Path_ = (),
        value: object = None,
    ) -> None:
        self.problem, self.file, self.line, self.at, self.value = problem, file, line, at, value
        place = ":".join(str(part) for part in (file, line) if part is not None)
        name = ".".join(str(part) if str(part).isprintable() else repr(part) for part in at)
        shown = "" if value is None else f"{_short(value)} "
        super().__init__(": ".join(part for part in (place, name, shown + problem) if part))


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


@dataclass
class Document:
    """A tree of dicts, lists and text, and the line (from 1) on which each path begins."""

    tree: Any
    lines: dict[Path_, int] = field(default_factory=dict)
    file: Path | None = None

    def line(self, at: Path_) -> int | None:
        """The line of a path, or of its nearest ancestor that has one."""
        while at and at not in self.lines:
            at = at[:-1]
        return self.lines.get(at)

    def error(self, problem: str, at: Path_ = (), value: object = None) -> InputError:
        return InputError(problem, file=self.file, line=self.line(at), at=at, value=value)


def read_text(path: Path) -> str:
    """The text of a UTF-8 file (a byte order mark is dropped). Raises InputError."""
    try:
        if path.is_dir():
            raise InputError("is a folder; give a file", file=path)
        with path.open("rb") as file:
            data = file.read(_MOST_BYTES + 1)  # a device may never end
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", file=path) from None
    except ValueError:
        raise InputError("is no usable file name", file=repr(str(path))) from None
    if len(data) > _MOST_BYTES:
        raise InputError(f"is too large; at most {_MOST_BYTES} bytes are read", file=path)
    body = data.removeprefix(codecs.BOM_UTF8)
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        line, at = body.count(b"\n", 0, error.start) + 1, error.start + len(data) - len(body)
        raise InputError(f"is not UTF-8 text (byte {at}); save it as UTF-8", file=path, line=line) from None
    if "\0" in text:
        raise InputError("is a binary file; give UTF-8 text", file=path)
    return text


def read_document(path: Path) -> Document:
    """Read a YAML or JSON file strictly. Raises InputError."""
    text = read_text(path)
    return parse_json(text, path) if path.suffix == ".json" else parse_yaml(text, path)


def parse_json(text: str, file: Path | None = None) -> Document:
    """Parse JSON; duplicate keys, NaN and infinities are refused. Numbers stay text, as in YAML."""

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        seen: dict[str, Any] = {}
        for key, value in items:
            if key in seen:
                raise InputError(f"the key {key!r} stands twice in one object", file=file)
            seen[key] = value
        return seen

    def refuse(name: str) -> None:
        raise InputError(f"{name} is not a number that can be used", file=file)

    try:
        tree = json.loads(
            text, object_pairs_hook=pairs, parse_constant=refuse, parse_float=str, parse_int=str
        )
    except json.JSONDecodeError as error:
        raise InputError(f"is not valid JSON: {error.msg}", file=file, line=error.lineno) from None
    except RecursionError:
        raise InputError("is nested too deeply", file=file) from None
    document = Document(tree, file=file)
    check_text(document)
    return document


def parse_yaml(text: str, file: Path | None = None) -> Document:
    """Parse one YAML document strictly. Raises InputError with the line."""
    document = Document(None, file=file)
    try:
        _build(text, document)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else None
        raise InputError(
            f"is not valid YAML: {error.problem or error.context}", file=file, line=line
        ) from None
    except yaml.YAMLError as error:
        raise InputError(f"is not valid YAML: {' '.join(str(error).split())}", file=file) from None
    if document.tree is None or document.tree == "":
        raise InputError("is empty", file=file)
    check_text(document)
    return document


def check_text(document: Document, tree: Any = None, at: Path_ = ()) -> None:
    """Refuse what no terminal and no UTF-8 file should be given, and trees that are nested too deeply."""
    stack = [(document.tree if tree is None else tree, at)]
    while stack:
        node, path = stack.pop()
        if len(path) > _MOST_DEPTH:
            raise document.error(f"is nested more than {_MOST_DEPTH} levels deep", path[:3])
        if isinstance(node, dict):
            stack += [(value, (*path, key)) for key, value in node.items()]
            if odd := next((key for key in node if not str(key).isprintable()), None):
                raise document.error("holds control characters", (*path, odd))
        elif isinstance(node, list):
            stack += [(value, (*path, i)) for i, value in enumerate(node)]
        elif isinstance(node, str) and not node.translate(_PLAIN).isprintable():
            raise document.error("holds control characters", path, node)


@dataclass
class _Open:
    """A mapping or sequence whose end has not been read yet."""

    node: dict[str, Any] | list[Any]
    path: Path_
    anchor: str | None
    key: str | None = None  # of a mapping: the key that waits for its value


def _build(text: str, document: Document) -> None:
    """Walk the parser's events with a stack of our own: no recursion, no object is ever constructed."""
    stack: list[_Open] = []
    anchors: dict[str, Any] = {}
    nodes = documents = 0

    def fail(problem: str, event: yaml.Event) -> InputError:
        line = _line(event)
        return InputError(problem, file=document.file, line=line, at=stack[-1].path if stack else ())

    def place(value: Any, event: yaml.Event) -> None:
        """Put a value where the innermost open node expects one."""
        if not stack:
            document.tree = value
            return
        top = stack[-1]
        if isinstance(top.node, list):
            top.node.append(value)
        elif top.key is None:
            if not isinstance(value, str):
                raise fail("a key must be plain text", event)
            if value in top.node:
                raise fail(f"the key {value!r} stands twice", event)
            top.node[value] = ""
            top.key = value
            document.lines[(*top.path, value)] = _line(event)
        else:
            top.node[top.key], top.key = value, None

    def here() -> Path_:
        if not stack:
            return ()
        top = stack[-1]
        return (*top.path, len(top.node) if isinstance(top.node, list) else top.key or "")

    for event in yaml.parse(text, Loader=_Loader):
        if isinstance(event, yaml.DocumentStartEvent):
            documents += 1
            if documents > 1:
                raise fail("holds a second document; one is expected", event)
        elif isinstance(event, yaml.AliasEvent):
            if event.anchor not in anchors:
                raise fail(f"the alias *{event.anchor} stands before its anchor has ended", event)
            document.lines[here()] = _line(event)
            try:
                copy, size = _copy(anchors[event.anchor])
            except InputError as error:
                raise fail(error.problem, event) from None
            nodes += size
            place(copy, event)
        elif isinstance(event, (yaml.ScalarEvent, yaml.CollectionStartEvent)):
            nodes += 1
            if event.tag not in (None, "!") and not (
                isinstance(event, yaml.ScalarEvent) and event.implicit[1]
            ):
                raise fail(f"the tag {event.tag!r} is not allowed; write plain values", event)
            if stack and isinstance(stack[-1].node, list):
                document.lines[here()] = _line(event)
            if isinstance(event, yaml.ScalarEvent):
                if event.anchor:
                    anchors[event.anchor] = event.value
                place(event.value, event)
            else:
                if len(stack) >= _MOST_DEPTH:
                    raise fail(f"is nested more than {_MOST_DEPTH} levels deep", event)
                path = here()
                node: dict[str, Any] | list[Any] = {} if isinstance(event, yaml.MappingStartEvent) else []
                place(node, event)
                stack.append(_Open(node, path, event.anchor))
        elif isinstance(event, yaml.CollectionEndEvent):
            top = stack.pop()
            if top.anchor:
                anchors[top.anchor] = top.node
        if nodes > _MOST_NODES:
            raise fail(f"grows beyond {_MOST_NODES} values (aliases?)", event)


def _line(event: yaml.Event) -> int:
    return event.start_mark.line + 1 if event.start_mark else 0


def _copy(tree: Any) -> tuple[Any, int]:
    """A deep copy of a tree and its number of nodes, given up beyond the limit."""
    size = 0

    def walk(node: Any, depth: int) -> Any:
        nonlocal size
        size += 1
        if size > _MOST_NODES:
            raise InputError(f"grows beyond {_MOST_NODES} values (aliases?)")
        if depth > _MOST_DEPTH:
            raise InputError(f"is nested more than {_MOST_DEPTH} levels deep")
        if isinstance(node, dict):
            return {key: walk(value, depth + 1) for key, value in node.items()}
        return [walk(value, depth + 1) for value in node] if isinstance(node, list) else node

    return walk(tree, 0), size


def paths(tree: Any, at: Path_ = ()) -> Iterator[Path_]:
    """Every path of a tree, parents first."""
    yield at
    items = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in items:
        yield from paths(value, (*at, key))
