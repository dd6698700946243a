"""JSON Schemas of stored and printed values, generated from the types."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from sessionmgr.model.event.codec import KnownEvent
from sessionmgr.model.run import RunResult

if TYPE_CHECKING:
    from sessionmgr.model.json_codec import Json

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"


def event_schema() -> dict[str, Json]:
    """Return the schema of one event."""
    return _schema(KnownEvent, "A sessionmgr event", "One event, as stored and as printed.")


def result_schema() -> dict[str, Json]:
    """Return the schema of one result."""
    return _schema(RunResult, "A sessionmgr result", "What became of a run.")


def _schema(of: Any, title: str, description: str) -> dict[str, Json]:
    made = msgspec.json.schema(of)
    for definition in made["$defs"].values():
        # Later versions may add fields, and their records must stay valid.
        definition.pop("additionalProperties", None)
        properties = definition.get("properties", {})
        properties.pop("~source", None)
    return {"$schema": DIALECT, "title": title, "description": description, **made}
