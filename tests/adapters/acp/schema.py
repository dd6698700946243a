"""The protocol's own schemas, from its library: validators, and samples of its types."""

from __future__ import annotations

import json
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import jsonschema_rs
import pytest

from tests.real.agent_programs import place

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sessionmgr.model import Json

Definition = dict[str, Any]
LIBRARY: Final = "acp-sdk-2.4.0/node_modules/@agentclientprotocol/sdk/schema"
_SCALARS: Final[dict[str, Json]] = {"string": "s", "integer": 1, "number": 0.5, "boolean": True}


class ProtocolSchema:
    """One schema of the protocol."""

    def __init__(self, document: Definition) -> None:
        self.types: Final[dict[str, Definition]] = document["$defs"]

    def faults(self, name: str, value: Json) -> list[str]:
        """Return what is wrong with a value of a type."""
        schema = {"$ref": f"#/$defs/{name}", "$defs": self.types}
        validator = jsonschema_rs.validator_for(schema)
        return [f"{each.instance_path}: {each.message}" for each in validator.iter_errors(value)]

    def messages(self, side: str, suffix: str) -> dict[str, str]:
        """Return the types of the messages that a side handles, by method."""
        return {
            each["x-method"]: name
            for name, each in self.types.items()
            if each.get("x-side") == side and name.endswith(suffix)
        }

    def unknown_fields(self, name: str, value: dict[str, Json]) -> set[str]:
        """Return the fields of an object that its type does not have."""
        return value.keys() - set(self._properties(self.types[name]))

    def _properties(self, schema: Definition) -> Iterator[str]:
        yield from schema.get("properties", {})
        for part in ("allOf", "anyOf", "oneOf"):
            for each in schema.get(part, []):
                yield from self._properties(self._resolved(each))

    def variants(self, name: str, field: str) -> dict[str, Definition]:
        """Return the variants of a tagged type, by tag."""
        schema = self.types[name]
        found = [*schema.get("oneOf", []), *schema.get("anyOf", [])]
        return {
            each["properties"][field]["const"]: each
            for each in found
            if "const" in each.get("properties", {}).get(field, {})
        }

    def sample(self, schema: Definition | bool, *, full: bool, depth: int = 0) -> Json:
        """Return a value of a type: with all its properties, or with the required ones."""
        if isinstance(schema, bool) or depth > 30:
            return None
        schema = self._resolved(schema)
        for given in ("const", "enum"):
            if given in schema:
                value: Json = schema[given] if given == "const" else schema[given][0]
                return value
        parts = [*schema.get("allOf", []), *self._choice(schema)]
        values = [self.sample(each, full=full, depth=depth + 1) for each in parts]
        if "properties" not in schema and values:
            return _joined(values)
        kind = _kind(schema)
        if kind == "array":
            items = self.sample(schema.get("items", True), full=full, depth=depth + 1)
            return [items] if full or schema.get("minItems") else []
        if kind == "object" or "properties" in schema:
            return _joined([*values, self._object(schema, full=full, depth=depth)])
        if schema.get("format") == "uri":
            return "https://example.invalid/"
        if schema.get("format") == "date-time":
            return "2026-01-01T00:00:00Z"
        return "/" if "pattern" in schema else _SCALARS.get(kind)

    def _object(self, schema: Definition, *, full: bool, depth: int) -> Json:
        names = schema.get("properties", {}) if full else schema.get("required", [])
        return {
            name: self.sample(schema["properties"][name], full=full, depth=depth + 1)
            for name in names
            if name in schema.get("properties", {})
        }

    def _choice(self, schema: Definition) -> list[Definition]:
        choices = [*schema.get("anyOf", []), *schema.get("oneOf", [])]
        named = [each for each in choices if each.get("type") != "null"]
        return named[:1]

    def _resolved(self, schema: Definition) -> Definition:
        name = schema.get("$ref")
        return schema if name is None else self._resolved(self.types[name.rsplit("/", 1)[-1]])


def _kind(schema: Definition) -> str:
    kinds: list[str] = [*schema.get("type", [])] if isinstance(schema.get("type"), list) else []
    return next((each for each in kinds if each != "null"), str(schema.get("type")))


def _joined(values: list[Json]) -> Json:
    joined: dict[str, Json] = {}
    for each in values:
        if not isinstance(each, dict):
            return each
        joined |= each
    return joined


@cache
def load(version: int, kind: str) -> ProtocolSchema:
    """Return the schema of a version; without the library the test is skipped."""
    name = "schema.json" if kind == "stable" else "schema.unstable.json"
    path = place() / LIBRARY / f"v{version}" / name
    if not path.exists():
        pytest.skip(f"{path} does not exist: .ci/agents installs the protocol's library")
    return ProtocolSchema(json.loads(path.read_bytes()))
