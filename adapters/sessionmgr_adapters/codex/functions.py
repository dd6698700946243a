"""Functions of the caller's that Codex may call: its dynamic tools.

A thread has the tools that it was begun with, and keeps them when it is gone on with.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import msgspec
import trio

from sessionmgr.adapter.kit.run_end import config_invalid
from sessionmgr.adapter.kit.tool import FunctionTool, Outcome
from sessionmgr.model import Failure, Json
from sessionmgr_adapters.codex.decode import decoded
from sessionmgr_adapters.codex.failures import refused, unreadable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sessionmgr.adapter.kit.json_rpc_caller import JsonRpcCaller

CodexTool: TypeAlias = FunctionTool
"""A function that the model may call."""


def described(tool: CodexTool) -> Json:
    """Return what Codex is told of a tool."""
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "inputSchema": dict(tool.schema),
    }


async def unoffered(
    caller: JsonRpcCaller, thread: str, tools: Sequence[CodexTool]
) -> Failure | None:
    """Return the failure that it is if a thread was begun without some of these tools."""
    answer = await caller.call("thread/read", {"threadId": thread, "includeTurns": False})
    if answer.refusal is not None:
        return refused(answer)
    read = decoded(answer.result, _ThreadRead)
    if read is None:
        return unreadable(answer.method)
    begun = None if read.thread.path is None else await _begun_with(trio.Path(read.thread.path))
    if begun is None:
        return _invalid(f"it is not known which functions the thread {thread} was begun with")
    missing = [each.name for each in tools if not any(_is_same(each, one) for one in begun)]
    if not missing:
        return None
    names = ", ".join(missing)
    return _invalid(f"the thread was begun without {names}, and a thread keeps its functions")


async def _begun_with(file: trio.Path) -> list[Json] | None:
    """Return the tools that a thread was begun with; None if they are not found out."""
    try:
        async with await file.open("rb") as record:
            begun = msgspec.json.decode(await record.readline(), type=_Begun)
    except (OSError, msgspec.DecodeError):
        return None
    return begun.payload.dynamic_tools or []


def _is_same(tool: CodexTool, begun: Json) -> bool:
    known = described(tool)
    assert isinstance(known, dict)
    return isinstance(begun, dict) and all(begun.get(name) == known[name] for name in known)


def _invalid(message: str) -> Failure:
    return config_invalid(f"options.tools: {message}")


def told(outcome: Outcome) -> Json:
    """Return what Codex is told of a call."""
    return {
        "contentItems": [{"type": "inputText", "text": outcome.text}],
        "success": not outcome.failed,
    }


class _Thread(msgspec.Struct):
    path: str | None = None


class _ThreadRead(msgspec.Struct):
    thread: _Thread


class _Payload(msgspec.Struct):
    dynamic_tools: list[Json] | None = None


class _Begun(msgspec.Struct, tag_field="type", tag="session_meta"):
    """The first line of a thread's record."""

    payload: _Payload
