"""The preparation of a run's thread, before the prompt is sent.

The order is fixed: wait for the app-server's handshake, check its version and the thread's tools,
read the configuration, open the thread, apply the permissions, send the system prompt. The prompt
must not be sent if any step returns a failure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec
import trio

from sessionmgr.adapter.kit import DEADLINE, RpcAnswer, config_failure, outdated_failure
from sessionmgr.model import FailureKind, Json, PolicyViolation
from sessionmgr_adapters.codex.config import (
    CodexConfig,
    ConfigCache,
    ConfigFileError,
    decode_config_reply,
)
from sessionmgr_adapters.codex.decode import decode_result
from sessionmgr_adapters.codex.failures import call_failure, unreadable_reply_failure
from sessionmgr_adapters.codex.frames import ThreadResult
from sessionmgr_adapters.codex.launch import codex_home, dynamic_tool, thread_opening
from sessionmgr_adapters.codex.options import CodexOptions
from sessionmgr_adapters.codex.permissions import (
    POLICIES,
    SandboxBounds,
    is_as_requested,
    too_wide_failure,
)
from sessionmgr_adapters.codex.system_prompts import SystemPromptCache, system_prompt_message

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sessionmgr.adapter import RunContext
    from sessionmgr.adapter.kit import ChangeSignal, FunctionTool, JsonRpcCaller
    from sessionmgr.model import Failure
    from sessionmgr_adapters.codex.frames import ThreadSettings
    from sessionmgr_adapters.codex.state import CodexState

OLDEST_VERSION: Final = (0, 163, 0)


class CodexRunRequest(msgspec.Struct, frozen=True):
    """The parts of a run's request that a driver needs."""

    options: CodexOptions
    limits: SandboxBounds
    content: list[Json]
    prompts: SystemPromptCache
    """The system prompts of all threads."""
    warned: set[str]
    """Warnings that concern no thread and were already reported."""


class ThreadPreparation:
    """Prepares a run's thread: opens it, and sets its permissions and its system prompt."""

    def __init__(
        self,
        run: RunContext,
        caller: JsonRpcCaller,
        state: CodexState,
        changes: ChangeSignal,
        request: CodexRunRequest,
        configs: ConfigCache,
    ) -> None:
        self._run: Final = run
        self._options: Final = request.options
        self._request: Final = request
        self._configs: Final = configs
        self._caller: Final = caller
        self._state: Final = state
        self._changes: Final = changes
        self._policy: Final = POLICIES[run.permission.effective]

    async def prepare(self) -> Failure | None:
        """Prepare everything for the prompt; return a failure if the prompt must not be sent."""
        state = self._state
        await self._changes.wait_until(lambda: state.hello is not None)
        assert state.hello is not None
        if state.hello.refusal is not None:
            return call_failure(RpcAnswer(0, "initialize", refusal=state.hello.refusal))
        failure = outdated_failure("Codex", state.hello.version, OLDEST_VERSION)
        if failure is not None:
            return failure
        thread, tools = self._run.provider_session_id, self._options.tools
        failure = (
            await missing_tools_failure(self._caller, thread, tools) if thread and tools else None
        )
        if failure is not None:
            return failure
        configured = await self._configured()
        if not isinstance(configured, CodexConfig):
            return configured
        return await self._open(configured)

    async def _configured(self) -> CodexConfig | Failure:
        """Return the configuration of the run's directory, as the app-server reports it."""
        cwd, configs = self._run.cwd, self._configs
        files = configs.state(codex_home(self._run, self._options), cwd)
        known = configs.get(cwd, files)
        if known is not None:
            return known
        answer = await self._caller.call("config/read", {"cwd": cwd})
        if answer.refusal is not None:
            return call_failure(answer)
        configured = decode_config_reply(answer.result)
        if configured is None:
            return unreadable_reply_failure(answer.method)
        configs.store(cwd, files, configured)
        return configured

    async def _open(self, configured: CodexConfig) -> Failure | None:
        try:
            method, params = thread_opening(
                self._run, self._options, self._request.limits, configured
            )
        except ConfigFileError as error:
            return config_failure(str(error))
        answer = await self._caller.call(method, params)
        if answer.refusal is not None:
            return call_failure(answer)
        if self._state.settings is None:
            return unreadable_reply_failure(answer.method)
        return (
            await self._apply_permissions(self._state.settings) or await self._send_system_prompt()
        )

    async def _apply_permissions(self, found: ThreadSettings) -> Failure | None:
        """Set the thread's sandbox; return a failure if it then allows more than was requested."""
        wanted = self._policy.sandbox_policy(self._request.limits)
        if not is_as_requested(self._policy, wanted, found):
            params: dict[str, Json] = {
                "threadId": self._state.thread,
                "approvalPolicy": self._policy.approval,
                "sandboxPolicy": wanted,
            }
            answer = await self._caller.call("thread/settings/update", params)
            if answer.refusal is not None:
                return call_failure(answer, FailureKind.PERMISSION_REFUSED)
            before = found
            with trio.move_on_after(DEADLINE):
                await self._changes.wait_until(lambda: self._state.settings is not before)
            found = self._state.settings or before
        failure = too_wide_failure(self._policy, wanted, found)
        if failure is not None:
            self._run.emit_nowait(PolicyViolation(rule="permission_mode", detail=failure.message))
        return failure

    async def _send_system_prompt(self) -> Failure | None:
        """Send the model a system prompt that its thread was not started with."""
        run, prompts, thread = self._run, self._request.prompts, self._state.thread
        before, text = run.provider_session_id, run.system_prompt
        if before is not None and text is not None and not prompts.is_current(before, text):
            answer = await self._caller.call(
                "thread/inject_items", system_prompt_message(thread, text)
            )
            if answer.refusal is not None:
                return call_failure(answer)
        prompts.note(thread, text, before=before)
        return None


# --- functions -----------------------------------------------------------------------------------


async def missing_tools_failure(
    caller: JsonRpcCaller, thread: str, tools: Sequence[FunctionTool]
) -> Failure | None:
    """Return a failure if a thread was started without some of these functions.

    A thread keeps the functions that it was started with; resuming it cannot add any.
    """
    answer = await caller.call("thread/read", {"threadId": thread, "includeTurns": False})
    if answer.refusal is not None:
        return call_failure(answer)
    read = decode_result(answer.result, ThreadResult)
    if read is None:
        return unreadable_reply_failure(answer.method)
    recorded = (
        None if read.thread.path is None else await _recorded_tools(trio.Path(read.thread.path))
    )
    if recorded is None:
        return _invalid(f"cannot read which functions the thread {thread} was started with")
    missing = [each.name for each in tools if not any(_is_same(each, one) for one in recorded)]
    if not missing:
        return None
    names = ", ".join(missing)
    return _invalid(f"the thread was started without {names}, and a thread keeps its functions")


async def _recorded_tools(file: trio.Path) -> list[Json] | None:
    """Return the tools that a thread was started with; None if its record cannot be read."""
    try:
        async with await file.open("rb") as record:
            recorded = msgspec.json.decode(await record.readline(), type=_SessionMeta)
    except (OSError, msgspec.DecodeError):
        return None
    return recorded.payload.dynamic_tools or []


def _is_same(tool: FunctionTool, recorded: Json) -> bool:
    known = dynamic_tool(tool)
    return isinstance(recorded, dict) and all(recorded.get(name) == known[name] for name in known)


def _invalid(message: str) -> Failure:
    return config_failure(f"options.tools: {message}")


class _SessionMetaPayload(msgspec.Struct):
    dynamic_tools: list[Json] | None = None


class _SessionMeta(msgspec.Struct, tag_field="type", tag="session_meta"):
    """The first line of a thread's record."""

    payload: _SessionMetaPayload
