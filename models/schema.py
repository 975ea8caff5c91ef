"""What all schemas share: strict, frozen, named things and faults that know their field."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, PlainValidator, WithJsonSchema
from pydantic_core import PydanticCustomError

NAME = r"[A-Za-z0-9][A-Za-z0-9._-]*"


class Schema(BaseModel):
    """A frozen record; a field that it does not know is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


def fault(problem: str, at: tuple[str | int, ...] = (), value: object = None) -> PydanticCustomError:
    """An error about a field below the one being validated; `at` is the path from there."""
    return PydanticCustomError("fault", "{problem}", {"problem": problem, "at": at, "value": value})


def refuse_unbuilt(data: Any, unbuilt: dict[str, str]) -> None:
    """Refuse by name the fields whose meaning is designed but not built: never ignore them."""
    if isinstance(data, dict):
        for name in unbuilt.keys() & data.keys():
            raise fault(f"is not built yet ({unbuilt[name]}); leave it out", (name,))


def _read_name(value: object) -> str:
    import re

    if not isinstance(value, str) or not re.fullmatch(NAME, value) or len(value) > 80:
        raise PydanticCustomError(
            "name", "is no name; give letters, digits, '.', '_' or '-', beginning with a letter or digit"
        )
    return value


def _read_text(value: object) -> str:
    if not isinstance(value, str) or not value.strip() or len(value) > 2000:
        raise PydanticCustomError("text", "is no text; give up to 2000 characters")
    return value


Name = Annotated[str, PlainValidator(_read_name), WithJsonSchema({"type": "string", "pattern": f"^{NAME}$"})]
Text = Annotated[str, PlainValidator(_read_text), WithJsonSchema({"type": "string"})]
