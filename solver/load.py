"""Files and changed fields in, validated instances out, with faults named by file, line and field."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, get_args, get_origin

from pydantic import BaseModel, ValidationError

from ..models.documents import Document, InputError, Path_, read_document
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
    parts, node, at = field.split("."), document.tree, list[str | int]()
    parsed = _parse(value)
    for position, part in enumerate(parts):
        last = position == len(parts) - 1
        if isinstance(node, dict):
            at.append(part)
            if last:
                node[part] = parsed
            else:
                node = node.setdefault(part, {})
                if not isinstance(node, (dict, list)):
                    raise InputError(f"{field}: {'.'.join(map(str, at))} is a value and has no field {parts[position + 1]!r}")
        elif isinstance(node, list):
            index = _index(node, part)
            if index is None:
                names = [item["name"] for item in node if isinstance(item, dict) and "name" in item]
                raise InputError(f"{field}: no item {part!r} in {'.'.join(map(str, at)) or 'the list'}{did_you_mean(part, names)}; "
                                 f"give a number from 0 to {len(node) - 1}" + (f" or one of {', '.join(names)}" if names else ""))
            at.append(index)
            if last:
                node[index] = parsed
            else:
                node = node[index]
        else:
            raise InputError(f"{field}: there is nothing to set")


def _index(items: list[Any], part: str) -> int | None:
    if part.isdigit():
        return int(part) if int(part) < len(items) else None
    return next((i for i, item in enumerate(items) if isinstance(item, dict) and item.get("name") == part), None)


def _parse(value: str) -> Any:
    """A value from the command line: flow-style YAML such as [8, 16] or {a: 1}, else text."""
    if value.lstrip().startswith(("[", "{")):
        from ..models.documents import parse_yaml

        return parse_yaml(value).tree
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
        if isinstance(tree, dict) and part in tree:
            tree = tree[part]
        elif isinstance(tree, list) and isinstance(part, int) and part < len(tree):
            tree = tree[part]
        else:
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
