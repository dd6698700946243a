"""The host of a Claude Code: it answers what is asked of us, beside the reading of what is said."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

import trio
from msgspec import UNSET
from msgspec.structs import replace

from sessionmgr.adapter.question import Allow
from sessionmgr.model import PermissionMode
from sessionmgr_adapters.claude.functions import PLANS
from sessionmgr_adapters.claude.orders import HostReply
from sessionmgr_adapters.claude.planning import denies, plan_verdict
from sessionmgr_adapters.claude.questions import approval_request

if TYPE_CHECKING:
    from sessionmgr.adapter import RunContext
    from sessionmgr.adapter.connections import PulledConversation as Conversation
    from sessionmgr.adapter.question import Decision
    from sessionmgr.model import Json
    from sessionmgr.wire import NoFrame
    from sessionmgr_adapters.claude.frames import Ask, Frame, HostRequest
    from sessionmgr_adapters.claude.orders import Told
    from sessionmgr_adapters.claude.seat import Seat

log: Final = logging.getLogger("sessionmgr.claude")


class Host:
    """Answers the requests that come in one run, each in a task of its own."""

    def __init__(
        self,
        run: RunContext,
        seat: Seat,
        conversation: Conversation[Told, Frame | NoFrame],
    ) -> None:
        self._run: Final = run
        self._seat: Final = seat
        self._functions: Final = seat.spec.functions
        self._conversation: Final = conversation
        self._open: Final[dict[str, trio.CancelScope]] = {}

    def withdraw(self, request_id: str) -> None:
        """Think no more about a request: its answer is not wanted any more."""
        if request_id in self._open:
            self._open[request_id].cancel()

    async def serve(self, request: HostRequest) -> None:
        """Answer a request."""
        ask = request.request
        with trio.CancelScope() as scope:
            self._open[request.request_id] = scope
            if ask.subtype == "can_use_tool":
                await self._approve(request)
            else:
                await self._conversation.send(await self._called(request.request_id, ask))
        del self._open[request.request_id]

    async def _called(self, request_id: str, ask: Ask) -> HostReply:
        """Have a function of the caller's called."""
        response: Json
        try:
            match ask.subtype:
                case "mcp_message":
                    response = {"mcp_response": await self._functions.serve(ask.message)}
                case "hook_callback" if ask.callback_id == PLANS:
                    is_denied = denies(ask.input, self._seat)
                    response = plan_verdict(ask.input, self._functions, denies=is_denied)
                case "hook_callback":
                    response = await self._functions.hook(ask.callback_id, ask.input)
                case _:
                    raise LookupError(f"this host does not serve {ask.subtype!r}")
        except Exception as error:  # the caller's function: the run goes on without what it says
            log.warning("event=call_failed subtype=%s", ask.subtype, exc_info=True)
            return HostReply(id=request_id, error=f"{type(error).__name__}: {error}")
        return HostReply(id=request_id, response=response)

    async def _approve(self, request: HostRequest) -> None:
        ask = request.request
        tool = self._functions.called(ask.tool_name)
        directories = (self._run.cwd, *self._run.directories)
        question = approval_request(ask, directories)
        decision: Decision
        if tool is None or self._run.permission.asked is PermissionMode.PLAN:
            if tool is not None and tool.reads_only:
                question = replace(question, effect="read")
            decision = await self._run.ask(question)
        else:
            decision = Allow(by="caller")  # who gave the tool has allowed it
        if isinstance(decision, Allow) and decision.tool_input is UNSET:
            decision = replace(decision, tool_input=ask.input)  # older ones want to hear it again
        await self._conversation.answer(request.request_id, decision)
