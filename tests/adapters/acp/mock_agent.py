"""A scripted agent over ACP for a mock: it follows the orders in its prompt."""

from __future__ import annotations

from itertools import count
from typing import Final

from sessionmgr.model import Json
from sessionmgr.testing.mock_sdk import INTERRUPTED, MockConversation
from sessionmgr_adapters.acp.frames import (
    Acknowledged,
    AcpCapabilities,
    AcpFrame,
    AcpRefusal,
    Initialized,
    PermissionOption,
    PermissionRequest,
    PromptEnded,
    SessionMode,
    SessionModes,
    SessionOpened,
    SessionUpdate,
    SteeringAnswered,
)
from sessionmgr_adapters.acp.sdk import AcpOutgoing, AcpReply
from sessionmgr_adapters.acp.updates import (
    AcpUpdate,
    AcpUsage,
    AgentChunk,
    ContentBlock,
    ModeUpdate,
    ToolCallNews,
    ToolCallReport,
)
from sessionmgr_adapters.acp.v1 import AcpCall

Talk = MockConversation[AcpOutgoing, AcpFrame]
NUMBERS: Final = count(1)
ALL: Final = AcpCapabilities(
    load=True,
    resume=True,
    close=True,
    image=True,
    additional_directories=True,
    mcp_http=True,
    mcp_stdio=True,
    system_prompt=True,
)
HELLO: Final = Initialized(
    version=1, agent="mock", agent_version="1.2.3", capabilities=ALL, steers=True
)
MODES: Final = SessionModes(
    current="default", available=(SessionMode(id="default"), SessionMode(id="plan"))
)
OPTIONS: Final = (
    PermissionOption(option_id="always", name="Always", kind="allow_always"),
    PermissionOption(option_id="yes", name="Yes", kind="allow_once"),
    PermissionOption(option_id="no", name="No", kind="reject_once"),
)


def update(session: str, news: AcpUpdate) -> SessionUpdate:
    return SessionUpdate(session_id=session, update=news)


def chunk(session: str, text: str) -> SessionUpdate:
    return update(session, AgentChunk(content=ContentBlock(type="text", text=text)))


async def call_of(it: Talk) -> AcpCall:
    heard = await it.heard()
    assert isinstance(heard, AcpCall), heard
    return heard


async def opening(
    it: Talk,
    hello: Initialized = HELLO,
    modes: SessionModes | None = MODES,
    *,
    confirms: bool = False,
) -> AcpCall:
    """Answer the calls before a prompt, and return the call with the prompt.

    `confirms` reports the mode that was set.
    """
    it.says(hello)
    while True:
        call = await call_of(it)
        match call.method:
            case "session/new":
                session = f"session-{next(NUMBERS)}"
                it.says(SessionOpened(method=call.method, session_id=session, modes=modes))
            case "session/load" | "session/resume":
                it.says(SessionOpened(method=call.method, modes=modes))
            case "session/set_mode" | "session/close":
                if confirms and call.method == "session/set_mode":
                    mode = ModeUpdate(current_mode_id=str(call.params["modeId"]))
                    it.says(update(session_of(call), mode))
                it.says(Acknowledged(method=call.method))
            case "session/prompt":
                return call
            case _:
                raise AssertionError(f"before the prompt came {call!r}")


def session_of(call: AcpCall) -> str:
    return str(call.params["sessionId"])


def prompt_of(call: AcpCall) -> str:
    blocks = call.params["prompt"]
    assert isinstance(blocks, list)
    assert isinstance(blocks[0], dict)
    return str(blocks[0]["text"])


def ended(reason: str = "end_turn") -> PromptEnded:
    return PromptEnded(stop_reason=reason, usage=AcpUsage(input_tokens=3, output_tokens=2))


def permission(
    session: str,
    name: str = "ask-1",
    call: ToolCallNews | None = None,
    options: tuple[PermissionOption, ...] = OPTIONS,
) -> PermissionRequest:
    return PermissionRequest(session_id=session, name=name, tool_call=call, options=options)


def chosen(reply: object) -> Json:
    """Return the option of an answer; None if it was cancelled."""
    assert isinstance(reply, AcpReply), reply
    assert isinstance(reply.result, dict), reply
    outcome = reply.result["outcome"]
    assert isinstance(outcome, dict), reply
    return outcome.get("optionId")


async def agent_of_frames(it: Talk) -> None:
    """Play one run."""
    call = await opening(it)
    session = session_of(call)
    for order in prompt_of(call).split(";"):
        if not await obey(it, order.strip(), session):
            return
    it.says(ended())


async def obey(it: Talk, order: str, session: str) -> bool:
    """Follow one order; return False after the last."""
    verb, _, rest = order.partition(" ")
    match verb:
        case "use":
            id_ = f"call-{next(NUMBERS)}"
            it.says(
                update(
                    session,
                    ToolCallReport(
                        tool_call_id=id_, title=rest, kind="execute", raw_input={"command": rest}
                    ),
                )
            )
            it.says(update(session, ToolCallNews(tool_call_id=id_, status="completed")))
        case "fail":
            it.says(AcpRefusal(method="session/prompt", code=500, message=rest))
            return False
        case "wait":
            while (heard := await it.heard()) != INTERRUPTED:
                hear(it, heard)
            it.says(ended("cancelled"))
            return False
        case "deaf":
            while True:
                await it.heard()
        case "ask":
            return await ask(it, rest, session)
        case _:
            it.says(*(chunk(session, each) for each in order.removeprefix("say ")))
    return True


async def ask(it: Talk, name: str, session: str) -> bool:
    """Send a request, and read other messages meanwhile."""
    id_ = f"call-{next(NUMBERS)}"
    news = ToolCallNews(tool_call_id=id_, title=name, kind="execute", raw_input={"command": name})
    it.says(permission(session, f"ask-{id_}", news))
    while True:
        match await it.heard():
            case AcpReply() as reply:
                status = "completed" if chosen(reply) == "yes" else "failed"
                it.says(update(session, ToolCallNews(tool_call_id=id_, status=status)))
                return True
            case heard if heard == INTERRUPTED:
                it.says(ended("cancelled"))
                return False
            case heard:
                hear(it, heard)


def hear(it: Talk, heard: object) -> None:
    """Accept a further message into the turn."""
    match heard:
        case AcpCall(method="_session/steering"):
            it.says(SteeringAnswered(outcome="injected"))
        case AcpReply():
            pass
        case _:
            raise AssertionError(f"it heard {heard!r}")
