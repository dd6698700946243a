"""The generator of the simplest value that is valid against a JSON schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast

from sessionmgr.model import Json

SAMPLE_TEXT: Final = "sample"
_DEEPEST: Final = 20


def sample_value(schema: Mapping[str, Json] | bool, root: Mapping[str, Json] | None = None) -> Json:
    """Return a value for a schema; an object gets its required properties only.

    It supports the keywords that schemas for models' output use; with others (`pattern`, `not`)
    the value may be invalid.
    """
    return _sample(schema, {} if isinstance(schema, bool) else root or schema, 0)


def _sample(schema: Json | Mapping[str, Json], root: Mapping[str, Json], depth: int) -> Json:
    if not isinstance(schema, Mapping) or depth > _DEEPEST:
        return None
    for given in ("const", "default"):
        if given in schema:
            return schema[given]
    match schema:
        case {"enum": [first, *_]} | {"examples": [first, *_]}:
            return first
        case {"$ref": str(name)}:
            return _sample(_resolve(name, root), root, depth + 1)
        case {"anyOf": [*choices]} | {"oneOf": [*choices]}:
            return _sample(_simplest(choices), root, depth + 1)
        case {"allOf": [*parts]}:
            return _merged(parts, root, depth)
        case {"type": [*kinds]}:
            kind = next((each for each in kinds if each != "null"), "null")
            return _of_type(str(kind), schema, root, depth)
        case {"type": str(kind)}:
            return _of_type(kind, schema, root, depth)
        case {"properties": _}:
            return _of_type("object", schema, root, depth)
        case _:
            return None


def _of_type(kind: str, schema: Mapping[str, Json], root: Mapping[str, Json], depth: int) -> Json:
    match kind.lower():  # in upper case in the Gemini API
        case "object":
            properties = _mapping(schema.get("properties"))
            required = schema.get("required")
            names = required if isinstance(required, list) else []
            return {
                str(name): _sample(properties.get(str(name), True), root, depth + 1)
                for name in names
            }
        case "array":
            least = schema.get("minItems")
            count = least if isinstance(least, int) else 0
            return [_sample(schema.get("items", True), root, depth + 1) for _ in range(count)]
        case "string":
            return _text(schema)
        case "integer" | "number":
            return _number(schema)
        case "boolean":
            return False
        case _:
            return None


def _text(schema: Mapping[str, Json]) -> str:
    shaped = {
        "date": "2000-01-01",
        "date-time": "2000-01-01T00:00:00Z",
        "email": "user@example.invalid",
        "uri": "http://example.invalid/",
        "uuid": "00000000-0000-4000-8000-000000000000",
    }
    shape = schema.get("format")
    text = shaped.get(shape, SAMPLE_TEXT) if isinstance(shape, str) else SAMPLE_TEXT
    least, most = schema.get("minLength"), schema.get("maxLength")
    if isinstance(least, int):
        text = text.ljust(least, "x")
    return text[:most] if isinstance(most, int) else text


def _number(schema: Mapping[str, Json]) -> Json:
    least, above = schema.get("minimum"), schema.get("exclusiveMinimum")
    most, below = schema.get("maximum"), schema.get("exclusiveMaximum")
    if isinstance(least, int | float):
        return least
    if isinstance(above, int | float):
        return above + 1
    if isinstance(most, int | float):
        return min(most, 0)
    if isinstance(below, int | float):
        return min(below - 1, 0)
    return 0


def _simplest(choices: list[Json]) -> Json:
    for choice in choices:
        if not (isinstance(choice, dict) and choice.get("type") == "null"):
            return choice
    return choices[0] if choices else None


def _merged(parts: list[Json], root: Mapping[str, Json], depth: int) -> Json:
    values = [_sample(part, root, depth + 1) for part in parts]
    if values and all(isinstance(value, dict) for value in values):
        return {name: each for value in values for name, each in _mapping(value).items()}
    return values[0] if values else None


def _resolve(name: str, root: Mapping[str, Json]) -> Json:
    at: Json = dict(root)
    for part in name.removeprefix("#").strip("/").split("/"):
        if part:
            at = _mapping(at).get(part.replace("~1", "/").replace("~0", "~"))
    return at


def _mapping(value: Json) -> Mapping[str, Json]:
    return cast("Mapping[str, Json]", value) if isinstance(value, Mapping) else {}
