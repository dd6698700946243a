"""The answers to our requests as frames, for both protocol versions. Nothing here raises."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from sessionmgr.model import Json
from sessionmgr.wire import RpcErrorResponse, UntypedFrame
from sessionmgr_adapters.acp import frames
from sessionmgr_adapters.acp.decode import (
    as_dict,
    as_list,
    as_text,
    config_options,
    convert_leniently,
    read_json,
)
from sessionmgr_adapters.acp.updates import AcpUsage

if TYPE_CHECKING:
    from sessionmgr.wire import RpcResponse

OPENING: Final = frozenset({"session/new", "session/load", "session/resume", "session/fork"})
_NAMING: Final = frozenset({"session/new", "session/fork"})


def read_answer(
    method: str, answer: RpcResponse | RpcErrorResponse, *, prompt_ends: bool
) -> frames.AcpAnswer:
    """Return the frame of an answer.

    Args:
        method: The method of our request.
        answer: The answer to it.
        prompt_ends: Whether the answer to a prompt is the end of its turn, as in version 1.
    """
    if isinstance(answer, RpcErrorResponse):
        data = read_json(answer.data)
        return frames.AcpRefusal(method=method, code=answer.code, message=answer.message, data=data)
    result = as_dict(read_json(answer.result))
    if method == "initialize":
        return _initialized(result)
    if method in OPENING:
        return _opened(method, result)
    if method == "session/prompt":
        return _prompt_ended(result) if prompt_ends else _prompt_accepted(result)
    return _other(method, result)


def _unreadable(method: str, why: str, result: Json) -> frames.AcpRefusal:
    message = f"the answer to {method} has an unknown form: {why}"
    return frames.AcpRefusal(method=method, code=None, message=message, data=result)


# --- initialize ----------------------------------------------------------------------------------


def _initialized(result: dict[str, Json]) -> frames.AcpAnswer:
    """Judge the version by the form of the answer: an agent may echo a version it cannot speak."""
    info, capabilities = result.get("info"), result.get("capabilities")
    echoed = result.get("protocolVersion")
    is_v2 = isinstance(info, dict) and isinstance(capabilities, dict)
    if not is_v2 and not isinstance(echoed, int):
        return _unreadable("initialize", "it has no protocolVersion", result)
    agent = as_dict(info if is_v2 else result.get("agentInfo"))
    meta = as_dict(result.get("_meta"))
    return frames.Initialized(
        version=2 if is_v2 else 1,
        agent=as_text(agent.get("name")),
        title=as_text(agent.get("title")),
        agent_version=as_text(agent.get("version")),
        capabilities=(
            _capabilities_v2(as_dict(capabilities))
            if is_v2
            else _capabilities_v1(as_dict(result.get("agentCapabilities")))
        ),
        auth_methods=tuple(_auth_methods(result.get("authMethods"))),
        steers=as_dict(meta.get("steering")).get("supported") is True,
        meta=result.get("_meta"),
    )


def _capabilities_v1(given: dict[str, Json]) -> frames.AcpCapabilities:
    session = as_dict(given.get("sessionCapabilities"))
    prompt = as_dict(given.get("promptCapabilities"))
    mcp = as_dict(given.get("mcpCapabilities"))
    return frames.AcpCapabilities(
        load=given.get("loadSession") is True,
        resume=_has(session, "resume"),
        list=_has(session, "list"),
        close=_has(session, "close"),
        delete=_has(session, "delete"),
        fork=_has(session, "fork"),
        additional_directories=_has(session, "additionalDirectories"),
        image=prompt.get("image") is True,
        audio=prompt.get("audio") is True,
        embedded_context=prompt.get("embeddedContext") is True,
        mcp_stdio=True,
        mcp_http=mcp.get("http") is True,
        mcp_sse=mcp.get("sse") is True,
        logout=_has(as_dict(given.get("auth")), "logout"),
        system_prompt=_has(session, "systemPrompt"),
        system_prompt_override=_overrides(session),
    )


def _capabilities_v2(given: dict[str, Json]) -> frames.AcpCapabilities:
    session = as_dict(given.get("session"))
    prompt, mcp = as_dict(session.get("prompt")), as_dict(session.get("mcp"))
    # An agent with sessions must be able to resume, replay, list and close them.
    required = _has(given, "session")
    return frames.AcpCapabilities(
        load=required,
        resume=required,
        list=required,
        close=required,
        delete=_has(session, "delete"),
        fork=_has(session, "fork"),
        additional_directories=_has(session, "additionalDirectories"),
        image=_has(prompt, "image"),
        audio=_has(prompt, "audio"),
        embedded_context=_has(prompt, "embeddedContext"),
        mcp_stdio=_has(mcp, "stdio"),
        mcp_http=_has(mcp, "http"),
        logout=_has(given, "auth"),
        system_prompt=_has(session, "systemPrompt"),
        system_prompt_override=_overrides(session),
    )


def _has(group: dict[str, Json], name: str) -> bool:
    """Whether a capability is there: an object, even an empty one."""
    return isinstance(group.get(name), dict)


def _overrides(session: dict[str, Json]) -> bool:
    return _has(as_dict(as_dict(session.get("systemPrompt")).get("mode")), "override")


def _auth_methods(value: Json) -> list[frames.AuthMethod]:
    found: list[frames.AuthMethod] = []
    for each in map(as_dict, as_list(value)):
        name = each.get("methodId", each.get("id"))
        if isinstance(name, str):
            method = frames.AuthMethod(
                id=name,
                name=as_text(each.get("name")),
                description=as_text(each.get("description")) or None,
                type=as_text(each.get("type")) or _older_type(each.get("_meta")),
                args=tuple(arg for arg in as_list(each.get("args")) if isinstance(arg, str)),
                env=_env(each.get("env")),
            )
            found.append(method)
    return found


def _older_type(meta: Json) -> str:
    """Return the type of a method that names none: before there were types, by an extension."""
    return "terminal" if "terminal-auth" in as_dict(meta) else "agent"


def _env(value: Json) -> dict[str, str]:
    """Return an environment: an object in version 1, an array of variables in version 2."""
    pairs = dict(value) if isinstance(value, dict) else {}
    for each in map(as_dict, as_list(value)):
        pairs[as_text(each.get("name"))] = each.get("value")
    return {name: text for name, text in pairs.items() if name and isinstance(text, str)}


# --- sessions ------------------------------------------------------------------------------------


def _opened(method: str, result: dict[str, Json]) -> frames.AcpAnswer:
    session = as_text(result.get("sessionId"))
    if method in _NAMING and not session:
        return _unreadable(method, "it has no sessionId", result)
    return frames.SessionOpened(
        method=method,
        session_id=session,
        modes=_modes(result.get("modes"), "currentModeId", "availableModes", "id"),
        models=_modes(result.get("models"), "currentModelId", "availableModels", "modelId"),
        options=config_options(result.get("configOptions")),
    )


def _modes(value: Json, current: str, available: str, key: str) -> frames.SessionModes | None:
    if not isinstance(value, dict):
        return None
    modes = [
        frames.SessionMode(
            id=as_text(each.get(key)),
            name=as_text(each.get("name")),
            description=as_text(each.get("description")) or None,
        )
        for each in map(as_dict, as_list(value.get(available)))
    ]
    return frames.SessionModes(
        current=as_text(value.get(current)) or None,
        available=tuple(each for each in modes if each.id),
    )


class _PromptResult(msgspec.Struct, rename="camel"):
    stop_reason: str
    usage: AcpUsage | None = None
    meta: Json = msgspec.field(name="_meta", default=None)


def _prompt_ended(result: dict[str, Json]) -> frames.AcpAnswer:
    ended = convert_leniently(result, _PromptResult)
    if isinstance(ended, UntypedFrame):
        return _unreadable("session/prompt", ended.why, result)
    return frames.PromptEnded(stop_reason=ended.stop_reason, usage=ended.usage, meta=ended.meta)


def _prompt_accepted(result: dict[str, Json]) -> frames.AcpAnswer:
    message = as_text(result.get("messageId"))
    if not message:
        return _unreadable("session/prompt", "it has no messageId", result)
    return frames.PromptAccepted(message_id=message)


def _other(method: str, result: dict[str, Json]) -> frames.AcpAnswer:
    match method:
        case "session/set_config_option":
            return frames.OptionsChanged(options=config_options(result.get("configOptions")))
        case "session/list":
            listed = [
                convert_leniently(each, frames.ListedSession)
                for each in as_list(result.get("sessions"))
            ]
            return frames.SessionsListed(
                sessions=tuple(each for each in listed if not isinstance(each, UntypedFrame)),
                next_cursor=as_text(result.get("nextCursor")) or None,
            )
        case "_session/steering":
            return frames.SteeringAnswered(outcome=as_text(result.get("outcome")))
        case _:
            return frames.Acknowledged(method=method)
