"""A function of the caller's that a model may call as a tool, and what calling it comes to."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Final

import msgspec

from sessionmgr.model import Json

log: Final = logging.getLogger("sessionmgr.adapter")


@dataclass(frozen=True)
class FunctionTool:
    """A function that the model may call, with an object that is valid against `schema`.

    What it returns is told to the model: a text as it is, anything else as JSON. What it raises is
    told as the tool's failure. Whoever gives a tool allows its use; while a run only plans, that
    holds for those that read.
    """

    name: str
    description: str
    call: Callable[[dict[str, Json]], Awaitable[Json]]
    schema: Mapping[str, Json] = field(default_factory=lambda: {"type": "object"})
    reads_only: bool = False
    """Whether it changes nothing, so that it may be called in a run that only plans."""


_PYTHON: Final[dict[str, object]] = {"type": "object", "description": "a Python object"}
AnyTool = Annotated[FunctionTool, msgspec.Meta(extra_json_schema=_PYTHON)]


class Outcome(msgspec.Struct, frozen=True):
    """What is told to the model of a call."""

    text: str
    failed: bool = False


async def outcome_of(tool: FunctionTool, given: Json) -> Outcome:
    """Call a tool, and say what is to be told of it."""
    try:
        found = await tool.call(given if isinstance(given, dict) else {})
        text = found if isinstance(found, str) else msgspec.json.encode(found).decode()
    except Exception as error:  # the caller's function: its failure is for the model to see
        log.warning("event=tool_failed tool=%s", tool.name, exc_info=True)
        return Outcome(f"{type(error).__name__}: {error}", failed=True)
    return Outcome(text)
