"""Functions of the caller's that a model may call as tools."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Final

import msgspec

from sessionmgr.adapter.question import Allow, Decision
from sessionmgr.model import Json, PermissionMode

if TYPE_CHECKING:
    from sessionmgr.adapter.question import ApprovalRequest
    from sessionmgr.adapter.run_context import RunContext

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


@dataclass(frozen=True)
class FunctionTools:
    """The functions that a model may call, and how they are called."""

    tools: tuple[FunctionTool, ...] = ()

    def named(self, name: Json) -> FunctionTool | None:
        """Return the tool of a name."""
        return next((each for each in self.tools if each.name == name), None)

    async def decide(
        self, run: RunContext, tool: FunctionTool, question: ApprovalRequest
    ) -> Decision:
        """Decide whether a tool may be called; `question` is put where its giver does not allow it.

        Whoever gives a tool allows its use; while a run only plans, that holds for those that read.
        """
        if run.permission.asked is not PermissionMode.PLAN or tool.reads_only:
            return Allow()
        return await run.ask(question)

    async def call(self, name: Json, arguments: Json) -> Outcome:
        """Call a tool, and say what the model is told of it."""
        tool = self.named(name)
        if tool is None:
            return Outcome(f"there is no tool {name!r}", failed=True)
        try:
            found = await tool.call(arguments if isinstance(arguments, dict) else {})
            text = found if isinstance(found, str) else msgspec.json.encode(found).decode()
        except Exception as error:  # the caller's function: its failure is for the model to see
            log.warning("event=tool_failed tool=%s", tool.name, exc_info=True)
            return Outcome(f"{type(error).__name__}: {error}", failed=True)
        return Outcome(text)
