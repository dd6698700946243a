"""Handler of Claude Code's requests to its host: approvals, hooks and the caller's tools."""

from __future__ import annotations

import logging
from functools import partial
from pathlib import PurePath
from typing import TYPE_CHECKING, Final

from msgspec import UNSET
from msgspec.structs import replace

from sessionmgr.adapter import Allow, ApprovalRequest
from sessionmgr.adapter.kit import TOO_MANY_REQUESTS, is_protected, resolve_within
from sessionmgr_adapters.claude.functions import PLAN_MODE_HOOK
from sessionmgr_adapters.claude.outgoing import ControlResponse
from sessionmgr_adapters.claude.plan_mode import is_hook_needed, plan_verdict
from sessionmgr_adapters.claude.tool_access import tool_effect

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sessionmgr.model import Json
    from sessionmgr_adapters.claude.claude_run import ClaudeRun
    from sessionmgr_adapters.claude.frames import HostRequest, HostRequestBody

log: Final = logging.getLogger("sessionmgr.claude")

_PATHS: Final = ("file_path", "notebook_path", "path")
SAFETY_CHECK: Final = "safetyCheck"
"""Why Claude Code asks in any mode: the call may be an edit that has other effects later."""


def handle_request(driver: ClaudeRun, request: HostRequest) -> None:
    """Answer a request in its own task."""
    name, ask = request.request_id, request.request
    answer = _approve if ask.subtype == "can_use_tool" else _call_function
    refuse = partial(driver.conversation.send, ControlResponse(id=name, error=TOO_MANY_REQUESTS))
    driver.requests.serve(name, partial(answer, driver, name, ask), refuse)


async def _call_function(driver: ClaudeRun, request_id: str, ask: HostRequestBody) -> None:
    """Call a function of the caller; its exceptions do not fail the run."""
    functions = driver.process.spec.functions
    response: Json
    try:
        match ask.subtype:
            case "mcp_message":
                response = {"mcp_response": await functions.serve(ask.message)}
            case "hook_callback" if ask.callback_id == PLAN_MODE_HOOK:
                is_denied = is_hook_needed(ask.input, driver.process)
                response = plan_verdict(ask.input, functions, denies=is_denied)
            case "hook_callback":
                response = await functions.call_hook(ask.callback_id, ask.input)
            case _:
                raise LookupError(f"this host does not serve {ask.subtype!r}")
        answer = ControlResponse(id=request_id, response=response)
    except Exception as error:
        log.warning("A request of Claude Code failed. subtype=%s", ask.subtype, exc_info=True)
        answer = ControlResponse(id=request_id, error=f"{type(error).__name__}: {error}")
    await driver.conversation.send(answer)


async def _approve(driver: ClaudeRun, request_id: str, ask: HostRequestBody) -> None:
    run, functions = driver.run, driver.process.spec.functions
    question = approval_request(ask, (run.cwd, *run.directories))
    decision = await functions.decide(run, functions.find_called(ask.tool_name), question)
    if isinstance(decision, Allow) and decision.tool_input is UNSET:
        decision = replace(decision, tool_input=ask.input)  # older versions need the input again
    await driver.conversation.answer(request_id, decision)


def approval_request(ask: HostRequestBody, directories: Sequence[str]) -> ApprovalRequest:
    """Return the approval request for a tool in a run that may work in `directories`.

    Relative paths are resolved against the first of `directories`, where the run works.
    """
    effect = tool_effect(ask.tool_name)
    named = _named_paths(ask.input)
    paths = tuple(resolve_within(directories, each) for each in named)
    if effect == "edit" and (
        ask.decision_reason_type == SAFETY_CHECK
        # Claude Code resolves these against the directory in which its last command ended.
        or any(not PurePath(each).is_absolute() for each in named)
        or any(is_protected(each, directories) for each in (*named, *paths))
    ):
        effect = "other"
    return ApprovalRequest(
        tool_name=ask.tool_name,
        tool_input=ask.input,
        tool_call_id=ask.tool_use_id,
        reason=ask.decision_reason or ask.description,
        effect=effect,
        paths=paths,
    )


def _named_paths(tool_input: Json) -> list[str]:
    given = tool_input if isinstance(tool_input, dict) else {}
    return [each for name in _PATHS if isinstance(each := given.get(name), str)]
