"""Validation of structured output, and of the JSON Schemas that describe it.

Without the extra `schema`, output is only known to be JSON, and the run reports that. References to
other documents are never fetched: a schema that contains one cannot be used.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Final, Protocol, cast

import msgspec

from sessionmgr.model import ErrorOccurred, Failure, FailureKind, Json, encode_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MASK: Final = "the value"
"""Replaces a value in messages, because it may be long or secret."""
SHOWN: Final = 60
"""Maximum number of characters of a schema's value in a message."""


class _SchemaFault(Protocol):
    message: str
    instance_path: list[str | int]


class _SchemaValidator(Protocol):
    def iter_errors(self, instance: Json) -> Iterator[_SchemaFault]: ...


def validate_output(
    schema: Json, output: Json | msgspec.UnsetType
) -> Failure | ErrorOccurred | None:
    """Validate the output of a run against its schema, if it has one.

    Returns:
        A failure, a warning that the output could not be validated, or None.
    """
    if schema is None:
        return None
    if output is msgspec.UNSET:
        return _invalid("the turn ended without the structured output", "missing")
    make = find_validator_factory()
    if make is None:
        return _unchecked("the extra `schema` is not installed")
    try:
        validator = make(schema)
    except ValueError as error:
        return _unchecked(f"its schema cannot be used: {_first_line(error)}")
    fault = next(iter(validator.iter_errors(output)), None)
    if fault is None:
        return None
    where = "".join(f"/{each}" for each in fault.instance_path) or "/"
    return _invalid(f"the structured output is not valid: at {where}, {fault.message}")


def schema_fault(schema: Json) -> str | None:
    """Return why a schema cannot be used, as far as this is known before the run."""
    if schema is None:
        return None
    if not isinstance(schema, dict):
        return "it is not an object"
    make = find_validator_factory()
    try:
        if make is not None:
            make(schema)
    except ValueError as error:
        return f"not a valid JSON Schema: {_fault_location(error)}"
    return None


_TYPES: Final = "array, boolean, integer, null, number, object or string"


def _fault_location(error: ValueError) -> str:
    """Return where a schema is wrong, and with which value."""
    path: object = getattr(error, "instance_path", None)
    if not isinstance(path, list) or not path:
        return _first_line(error)
    parts = cast("list[str | int]", path)
    value = encode_json(cast("Json", getattr(error, "instance", None))).decode()
    shown = value if len(value) <= SHOWN else f"{value[: SHOWN - 1]}…"
    hint = f" (types are {_TYPES})" if parts[-1] == "type" else ""
    return f"at /{'/'.join(map(str, parts))}, {shown} is not allowed{hint}"


@cache
def find_validator_factory() -> Callable[[Json], _SchemaValidator] | None:
    """Return the factory of validators; None if the extra is not installed."""
    try:
        library = import_module("jsonschema_rs")
    except ImportError:
        return None
    made = cast("Callable[..., _SchemaValidator]", library.validator_for)

    def make(schema: Json) -> _SchemaValidator:
        try:
            return made(schema, retriever=_refusal_message, mask=MASK)
        except library.ReferencingError as error:
            raise ValueError(str(error)) from None

    return make


def _refusal_message(uri: str) -> Json:
    raise ValueError(f"{uri} is not fetched")


def _first_line(error: ValueError) -> str:
    return str(error).partition("\n")[0]


def _invalid(message: str, code: str = "invalid") -> Failure:
    return Failure(
        kind=FailureKind.STRUCTURED_INVALID,
        message=message,
        resumable=True,
        provider_code=f"{code}_structured_output",
        phase="turn",
    )


def _unchecked(why: str) -> ErrorOccurred:
    failure = Failure(
        kind=FailureKind.CAPABILITY_MISSING,
        message=f"the structured output is JSON, but was not validated: {why}",
        provider_code="unchecked_structured_output",
        phase="turn",
    )
    return ErrorOccurred(failure=failure, severity="warning")
