"""Files and changed fields in, validated instances out, with faults named by file, line and field."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, get_args, get_origin

from pydantic import BaseModel, ValidationError

from ..models.documents import Document, InputError, Path_, check_text, read_document
from ..models.instance import Instance
from ..models.suggest import did_you_mean


def load(path: str | Path, changes: Mapping[str, str] | None = None) -> Instance:
    """Read an instance from a YAML or JSON file.

    changes: fields to set, by dotted path (`links.0.bandwidth`), before validation.
    Raises InputError: file, line, field, the value found and what is accepted.
    """
    document = read_document(Path(path))
    for field, value in (changes or {}).items():
        set_field(document, field, value)
    return validate(document)


def validate(document: Document) -> Instance:
    """A validated instance from a document. Raises InputError for the first fault in the file."""
    if not isinstance(document.tree, dict):
        raise document.error("holds no instance; give fields such as `model:` and `cards:`")
    folder = document.file.parent if document.file else Path()
    try:
        return Instance.model_validate(document.tree, context={"folder": folder})
    except ValidationError as error:
        faults = [_fault(document, item) for item in error.errors(include_url=False)]
        faults.sort(key=lambda fault: fault.line or 0)
        raise faults[0] from None
    except RecursionError:
        raise document.error("is nested too deeply") from None


def set_field(document: Document, field: str, value: str) -> None:
    """Set one field of a document's tree by its dotted path; list items by number or by name.

    Mappings on the way are made where they are missing. Raises InputError.
    """
    *way, last = field.split(".")
    node = document.tree
    for i, part in enumerate(way):
        key = _key(node, part, field)
        node = node.setdefault(key, {}) if isinstance(node, dict) else node[key]
        if not isinstance(node, (dict, list)):
            where = ".".join(way[: i + 1])
            raise InputError(f"{field}: {where} is a value and has no field {[*way, last][i + 1]!r}")
    if not field.isprintable():
        raise InputError(f"{field!r} is no field")
    parsed = _parse(value, field)
    check_text(document, parsed, tuple(field.split(".")))
    node[_key(node, last, field)] = parsed


def _key(node: Any, part: str, field: str) -> str | int:
    """The key of a mapping, or the number of a list's item by its number or name."""
    if isinstance(node, dict):
        return part
    if not isinstance(node, list):
        raise InputError(f"{field}: there is nothing to set")
    if part.isdecimal() and len(part) < 9 and int(part) < len(node):
        return int(part)
    names = [str(item.get("name")) for item in node if isinstance(item, dict)]
    if part in names:
        return names.index(part)
    hint = f" or one of {', '.join(names)}" if names else ""
    known = did_you_mean(part, names)
    raise InputError(
        f"{field}: there is no item {part!r}{known}; give a number from 0 to {len(node) - 1}{hint}"
    )


def _parse(value: str, field: str) -> Any:
    """A value from the command line: flow-style YAML such as [8, 16] or {a: 1}, else text."""
    if value.lstrip().startswith(("[", "{")):
        from ..models.documents import parse_yaml

        try:
            return parse_yaml(value).tree
        except InputError as error:
            raise InputError(f"{field}: {value!r} {error.problem}") from None
    return value


def copy_of(document: Document) -> Document:
    """A document whose tree may be changed."""
    return Document(copy.deepcopy(document.tree), document.lines, document.file)


def _fault(document: Document, item: Any) -> InputError:
    """One pydantic error as ours."""
    context = item.get("ctx") or {}
    at: Path_ = tuple(p for p in item["loc"]) + tuple(context.get("at", ()))
    at = _real(document.tree, at)
    value = context.get("value", _value(document.tree, at))
    if value is None and item["type"] not in ("missing", "fault"):
        value = item.get("input")
    kind, problem = item["type"], item["msg"]
    if kind == "missing":
        return document.error("is missing", at)
    if kind == "extra_forbidden":
        known = _known_fields(at[:-1])
        listed = f"; known here: {', '.join(sorted(known))}" if known else ""
        return document.error(f"is no known field{did_you_mean(at[-1], known)}{listed}", at)
    if kind == "literal_error" and item["loc"][-1] == "[key]":
        expected = str(context.get("expected"))
        hint = did_you_mean(at[-1], re.findall(r"'([^']+)'", expected))
        return document.error(f"is no name that is accepted here{hint}; give {expected}", at)
    if kind == "literal_error":
        return document.error(f"is not accepted; give {context.get('expected')}", at, value)
    if kind in ("model_type", "dict_type", "model_attributes_type"):
        return document.error("is no mapping; give fields `name: value`", at, value)
    if kind in ("tuple_type", "list_type"):
        return document.error("is no list; give items in [ ] or one per line with '- '", at, value)
    if kind in ("too_short", "too_long"):
        return document.error("has the wrong number of items; give two", at, value)
    if kind in ("less_than_equal", "greater_than_equal"):
        return document.error(f"is out of range; {problem[0].lower()}{problem[1:]}", at, value)
    if isinstance(value, (dict, list)):
        value = None
    return document.error(problem, at, value)


def _real(tree: Any, at: Path_) -> Path_:
    """A location without the parts that pydantic adds for itself (`[key]`)."""
    return tuple(part for part in at if part != "[key]")


def _value(tree: Any, at: Path_) -> Any:
    for part in at:
        if not isinstance(tree, (dict, list)):
            return None
        try:
            tree = tree[part]  # type: ignore[index]
        except (KeyError, IndexError, TypeError):
            return None
    return tree


def _known_fields(at: Iterable[str | int]) -> set[str]:
    """The fields of the schema at a path."""
    kind: Any = Instance
    for part in at:
        model = _model_in(kind)
        if get_origin(kind) in (dict, tuple, list):
            kind = get_args(kind)[1 if get_origin(kind) is dict else 0]
        elif model is not None:
            field = next((f for n, f in model.model_fields.items() if part in (n, f.alias)), None)
            if field is None:
                return set()
            kind = next((k for k in (field.annotation, *get_args(field.annotation)) if _leads_on(k)), None)
    model = _model_in(kind)
    return {f.alias or n for n, f in model.model_fields.items()} if model else set()


def _model_in(kind: Any) -> type[BaseModel] | None:
    return kind if isinstance(kind, type) and issubclass(kind, BaseModel) else None


def _leads_on(kind: Any) -> bool:
    return _model_in(kind) is not None or get_origin(kind) in (dict, tuple, list)
