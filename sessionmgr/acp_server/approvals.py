"""Approval requests of one session, which the client's user answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import trio

from sessionmgr.acp_server.dialect import ALLOW, REJECT, text_block
from sessionmgr.acp_server.errors import AcpRequestRefused
from sessionmgr.acp_server.tool_calls import approval_call_id, describe_tool
from sessionmgr.adapter import Allow, Deny
from sessionmgr.model import ToolApprovalDenied, ToolApprovalGranted, ToolApprovalRequested

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from sessionmgr.acp_server.configuration import AgentContext
    from sessionmgr.acp_server.params import JsonObject
    from sessionmgr.adapter import ApprovalRequest, Decision
    from sessionmgr.model import AnyEvent

_KIND_OF_EFFECT: Final = {
    "read": "read",
    "edit": "edit",
    "command": "execute",
    "network": "fetch",
}
_DECIDED: Final = (ToolApprovalGranted, ToolApprovalDenied)


class ApprovalForwarder:
    """Passes the approval requests of a session's runs to the client, and its answers back.

    `send_state` sends a state of the session, if the version of the protocol has states.
    """

    def __init__(self, context: AgentContext, send_state: Callable[[str], Awaitable[None]]) -> None:
        self._context: Final = context
        self._send_state: Final = send_state
        self._announced: Final[dict[str, trio.Event]] = {}
        """The requests whose updates were sent, by their ids."""
        self._open = 0
        self._is_blocked = False
        """Whether the last state that was sent says that the session waits for its user."""

    async def decide(self, session_id: str, request: ApprovalRequest) -> Decision:
        """Ask the client for a decision, after the updates that come before the request."""
        context = self._context
        try:
            await self._announcement(request.approval_id).wait()
        finally:
            self._announced.pop(request.approval_id, None)
        params = context.dialect.permission(session_id, _described_call(request))
        self._open += 1
        try:
            if context.dialect.has_states and not self._is_blocked:
                self._is_blocked = True
                await self._send_state("requires_action")
            return _decision(await context.connection.request("session/request_permission", params))
        except AcpRequestRefused as refusal:
            return Deny(reason=f"the client could not ask: {refusal}")
        finally:
            self._open -= 1

    async def note(self, events: Sequence[AnyEvent]) -> None:
        """Note that the updates of events were sent."""
        for event in events:
            if isinstance(event, ToolApprovalRequested):
                self._announcement(event.approval_id).set()
        is_decided = any(isinstance(event, _DECIDED) for event in events)
        if is_decided and self._is_blocked and not self._open:
            self._is_blocked = False
            await self._send_state("running")

    def end_run(self) -> None:
        """Forget the requests of a run that is over."""
        self._announced.clear()
        self._is_blocked = False

    def _announcement(self, approval_id: str) -> trio.Event:
        return self._announced.setdefault(approval_id, trio.Event())


def _described_call(request: ApprovalRequest) -> JsonObject:
    """Return the tool call of a request, as an update of it."""
    fields = describe_tool(request.tool_name, request.tool_input, request.paths)
    if fields["kind"] == "other":
        fields["kind"] = _KIND_OF_EFFECT.get(request.effect, "other")
    call_id = approval_call_id(request.run_id, request.tool_call_id, request.approval_id)
    call: JsonObject = {"toolCallId": call_id, **fields, "status": "pending"}
    if request.reason:
        call["content"] = [{"type": "content", "content": text_block(request.reason)}]
    return call


def _decision(answer: object) -> Decision:
    match answer:
        case {"outcome": {"outcome": "selected", "optionId": str(option)}}:
            if option == ALLOW:
                return Allow()
            if option == REJECT:
                return Deny(reason="the user rejected it")
            return Deny(reason=f"the client chose the unknown option {option!r}")
        case _:
            return Deny(reason="the client cancelled the request")
