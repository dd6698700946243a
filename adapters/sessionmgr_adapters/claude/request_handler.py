"""The requests of Claude Code to its host: approvals, hooks and tools of the caller."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

import trio
from msgspec import UNSET
from msgspec.structs import replace

from sessionmgr.adapter.question import Allow
from sessionmgr.model import PermissionMode
from sessionmgr_adapters.claude.functions import PLANS
from sessionmgr_adapters.claude.outgoing import ControlResponse
from sessionmgr_adapters.claude.plan_mode import denies, plan_verdict
from sessionmgr_adapters.claude.questions import approval_request

if TYPE_CHECKING:
    from sessionmgr.adapter.question import Decision
    from sessionmgr.model import Json
    from sessionmgr_adapters.claude.driver import ClaudeDriver
    from sessionmgr_adapters.claude.frames import Ask, HostRequest

log: Final = logging.getLogger("sessionmgr.claude")


class RequestHandler:
    """Answers the requests that come in one run, each in a task of its own."""

    def __init__(self, driver: ClaudeDriver) -> None:
        self._driver: Final = driver
        self._functions: Final = driver.process.spec.functions
        self._open: Final[dict[str, trio.CancelScope]] = {}

    def withdraw(self, request_id: str) -> None:
        """Cancel the answer to a request: Claude Code no longer wants it."""
        if request_id in self._open:
            self._open[request_id].cancel()

    async def serve(self, request: HostRequest) -> None:
        """Answer a request."""
        ask = request.request
        with trio.CancelScope() as scope:
            self._open[request.request_id] = scope
            if ask.subtype == "can_use_tool":
                await self._approve(request.request_id, ask)
            else:
                answer = await self._call(request.request_id, ask)
                await self._driver.conversation.send(answer)
        del self._open[request.request_id]

    async def _call(self, request_id: str, ask: Ask) -> ControlResponse:
        """Call a function of the caller's."""
        functions = self._functions
        response: Json
        try:
            match ask.subtype:
                case "mcp_message":
                    response = {"mcp_response": await functions.serve(ask.message)}
                case "hook_callback" if ask.callback_id == PLANS:
                    is_denied = denies(ask.input, self._driver.process)
                    response = plan_verdict(ask.input, functions, denies=is_denied)
                case "hook_callback":
                    response = await functions.hook(ask.callback_id, ask.input)
                case _:
                    raise LookupError(f"this host does not serve {ask.subtype!r}")
        except Exception as error:  # the caller's function: the run goes on without what it says
            log.warning("event=call_failed subtype=%s", ask.subtype, exc_info=True)
            return ControlResponse(id=request_id, error=f"{type(error).__name__}: {error}")
        return ControlResponse(id=request_id, response=response)

    async def _approve(self, request_id: str, ask: Ask) -> None:
        run = self._driver.run
        tool = self._functions.called(ask.tool_name)
        question = approval_request(ask, (run.cwd, *run.directories))
        decision: Decision
        if tool is None or run.permission.asked is PermissionMode.PLAN:
            if tool is not None and tool.reads_only:
                question = replace(question, effect="read")
            decision = await run.ask(question)
        else:
            decision = Allow(by="caller")  # who gave the tool has allowed it
        if isinstance(decision, Allow) and decision.tool_input is UNSET:
            decision = replace(decision, tool_input=ask.input)  # older versions need it again
        await self._driver.conversation.answer(request_id, decision)
