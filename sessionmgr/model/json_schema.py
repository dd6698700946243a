"""JSON Schema of what we print and store, made from the values themselves."""

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
        # A later version may say more than this one knows, and is still read.
        definition.pop("additionalProperties", None)
        properties = definition.get("properties", {})
        properties.pop("~source", None)
    return {"$schema": DIALECT, "title": title, "description": description, **made}
