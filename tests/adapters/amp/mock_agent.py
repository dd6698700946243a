"""A scripted Amp for a mock: it follows the orders in its prompt."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Final, Unpack

import trio

from sessionmgr.manager import Manager, open_manager
from sessionmgr.manager.run_plan import RunArguments
from sessionmgr.model import AnyEvent, Json, PermissionMode, RunResult
from sessionmgr.store import MemoryStore
from sessionmgr.testing.mock_sdk import INTERRUPTED, MockConversation, MockSdk, with_sdk
from sessionmgr_adapters.amp import AmpAdapter
from sessionmgr_adapters.amp.frames import (
    AmpAssistant,
    AmpInit,
    AmpMessage,
    AmpOutgoing,
    AmpPrompt,
    AmpResult,
    AmpUser,
    AnyAmpFrame,
    EndOfInput,
)
from sessionmgr_adapters.amp.launch import AmpSpec

Talk = MockConversation[AmpOutgoing, AnyAmpFrame]
Script = Callable[[Talk], Awaitable[None]]
NUMBERS: Final = count(1)
ENVIRON: Final = {"AMP_API_KEY": "sgamp_0123456789abcdef", "HOME": "/nowhere", "PATH": "/bin"}
CANCELLED: Final = "User cancelled (SIGINT/SIGTERM)"


def assistant(*blocks: Json, stop: str | None = None, **fields: Json) -> AmpAssistant:
    """Return a message of the model."""
    usage: Json = {"input_tokens": 10, "output_tokens": 2, "cache_read_input_tokens": 3}
    message = AmpMessage(content=list(blocks), stop_reason=stop, usage=usage)
    return AmpAssistant(message=message, **fields)


def text(words: str, stop: str | None = None) -> AmpAssistant:
    """Return a message that is a text."""
    return assistant({"type": "text", "text": words}, stop=stop)


def tool(id_: str, name: str, tool_input: Json = None) -> Json:
    """Return the block of a tool call."""
    return {"type": "tool_use", "id": id_, "name": name, "input": tool_input}


def user(*blocks: Json) -> AmpUser:
    """Return a message to the model."""
    return AmpUser(message=AmpMessage(content=list(blocks)))


def done(id_: str, output: str = "done", *, failed: bool = False) -> Json:
    """Return the block of a tool's result."""
    return {"type": "tool_result", "tool_use_id": id_, "content": output, "is_error": failed}


def said(words: str) -> AmpUser:
    """Return one of our messages, as Amp repeats it."""
    return user({"type": "text", "text": words})


def success(words: str = "") -> AmpResult:
    """Return the result of a turn that has succeeded."""
    return AmpResult(subtype="success", is_error=False, result=words)


def failure(error: str, subtype: str = "error_during_execution") -> AmpResult:
    """Return the result of a turn that has failed."""
    return AmpResult(subtype=subtype, is_error=True, error=error)


def words_of(prompt: AmpPrompt) -> str:
    """Return the text of a message."""
    match prompt.content[0]:
        case {"text": str(words)}:
            return words
        case other:
            raise AssertionError(f"no text: {other!r}")


async def opening(it: Talk, *tools: Json) -> AmpPrompt:
    """Begin a thread, or continue one, and return the prompt."""
    heard = await it.heard()
    assert isinstance(heard, AmpPrompt), heard
    spec = it.opening
    assert isinstance(spec, AmpSpec)
    argv = spec.command.argv
    thread = argv[3] if argv[1:3] == ("threads", "continue") else f"T-{next(NUMBERS)}"
    it.says(AmpInit(subtype="init", session_id=thread, cwd="/work", tools=list(tools)))
    it.says(said(words_of(heard)))
    return heard


async def agent_of_frames(it: Talk) -> None:
    """Play one run."""
    messages = [await opening(it)]
    words = ""
    while messages:
        for order in words_of(messages.pop(0)).split(";"):
            words = await obey(it, order.strip(), messages)
            if not words:
                return
        it.says(text(words, "end_turn"))
        while not messages:
            heard = await it.heard()
            if isinstance(heard, EndOfInput):
                it.says(success(words))
                return
            if heard == INTERRUPTED:
                it.says(failure(CANCELLED))
                return
            hear(it, heard, messages)


def hear(it: Talk, heard: object, messages: list[AmpPrompt]) -> None:
    """Accept a further message."""
    assert isinstance(heard, AmpPrompt), heard
    messages.append(heard)
    it.says(said(words_of(heard)))


async def obey(it: Talk, order: str, messages: list[AmpPrompt]) -> str:
    """Follow one order; return the text of the turn so far, or nothing after the last order."""
    verb, _, rest = order.partition(" ")
    match verb:
        case "use":
            id_ = f"toolu_{next(NUMBERS)}"
            it.says(assistant(tool(id_, rest, {"n": 1}), stop="tool_use"))
            it.says(user(done(id_)))
        case "fail":
            it.says(failure(rest))
            return ""
        case "wait":
            while (heard := await it.heard()) != INTERRUPTED:
                hear(it, heard, messages)
            it.says(failure(CANCELLED))
            return ""
        case "deaf":
            await trio.sleep_forever()
        case "half":
            it.says(text("half"))
            return "half"
        case _:
            return order.removeprefix("say ")
    return "used"


@asynccontextmanager
async def manager_of(
    script: Script, environ: dict[str, str] = ENVIRON
) -> AsyncGenerator[tuple[Manager, MockSdk[AmpOutgoing, AnyAmpFrame]], None]:
    """Open a manager with the adapter, on a mock."""
    async with (
        MockSdk(script) as sdk,
        open_manager(
            store=MemoryStore(), adapters={"amp": with_sdk(AmpAdapter, sdk)}, environ=environ
        ) as manager,
    ):
        yield manager, sdk


async def play(
    script: Script,
    prompt: str = "hi",
    mode: str = "default",
    cwd: Path | None = None,
    environ: dict[str, str] = ENVIRON,
    **wishes: Unpack[RunArguments],
) -> tuple[RunResult, list[AnyEvent]]:
    """Play one run to its end."""
    async with manager_of(script, environ) as (manager, _):
        session = await manager.open_session(
            "amp", cwd=cwd or ".", permission_mode=PermissionMode(mode)
        )
        run = await session.submit(prompt, **wishes)
        events = [event async for event in run]
        return await run.result(), events
