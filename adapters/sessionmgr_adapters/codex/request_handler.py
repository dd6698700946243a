"""The handler of an app-server's requests in one run; every request gets an answer."""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Final

from sessionmgr.adapter import ApprovalRequest, Deny
from sessionmgr.adapter.kit import (
    TOO_MANY_REQUESTS,
    FunctionTools,
    PeerReply,
    PeerRequest,
    RequestHandler,
    RpcOutgoing,
    ToolOutcome,
)
from sessionmgr.model import (
    ErrorOccurred,
    Failure,
    FailureKind,
    PolicyViolation,
)
from sessionmgr_adapters.codex.approvals import (
    APPROVALS,
    CALL,
    USER,
    approval_request,
    is_expressible,
    request_name,
)
from sessionmgr_adapters.codex.frames import CodexFrame
from sessionmgr_adapters.codex.permissions import POLICIES

if TYPE_CHECKING:
    from sessionmgr.adapter.kit import PhasedConversationRun
    from sessionmgr.model import Json
    from sessionmgr_adapters.codex.options import CodexOptions
    from sessionmgr_adapters.codex.phase import CodexPhase, CodexStep
    from sessionmgr_adapters.codex.state import CodexState

log: Final = logging.getLogger("sessionmgr.codex")


class CodexRequestHandler(RequestHandler[RpcOutgoing, CodexFrame]):
    """Answers the requests of one run. It grants only what the run's policy has allowed."""

    def __init__(
        self,
        driver: PhasedConversationRun[RpcOutgoing, CodexFrame, CodexPhase, CodexStep],
        state: CodexState,
        options: CodexOptions,
    ) -> None:
        super().__init__(driver)
        self._codex: Final = driver
        self._state: Final = state
        self._run: Final = driver.run
        self._tools: Final = FunctionTools(options.tools)

    def handle(self, asking: PeerRequest) -> None:
        """Answer a request in a task of its own, because Codex may withdraw it."""
        name = request_name(asking.id)
        refuse = partial(self._reply, PeerReply(asking.id, error=TOO_MANY_REQUESTS))
        if asking.method in APPROVALS:
            refuse = partial(
                self._codex.conversation.answer, name, Deny(reason=TOO_MANY_REQUESTS, by="limit")
            )
        self.serve(name, partial(self._answer, name, asking), refuse)

    async def _answer(self, name: str, asking: PeerRequest) -> None:
        if asking.method in APPROVALS:
            await self._approve(name, asking)
        elif asking.method == CALL:
            await self._reply(PeerReply(asking.id, await self._call_function(asking)))
        else:
            log.warning(
                "Codex sent a request that is not served; it was refused. method=%s", asking.method
            )
            error = f"this host does not serve {asking.method!r}"
            await self._reply(PeerReply(asking.id, error=error))

    async def _reply(self, reply: PeerReply) -> None:
        await self._codex.conversation.send(reply)

    async def _approve(self, name: str, asking: PeerRequest) -> None:
        directories = (self._run.cwd, *self._run.directories)
        question = approval_request(asking, self._state.tools, self._run.cwd, directories)
        if asking.method != USER and self._leaves_sandbox():
            message = f"Codex asked about {question.tool_name} in a mode without questions"
            self._run.emit_nowait(PolicyViolation(rule="permission_mode", detail=message))
            await self._codex.conversation.answer(name, Deny(reason=message))
            return
        decision = await self._run.ask(question)
        if not is_expressible(asking, question, decision):
            message = f"Codex cannot run {question.tool_name} otherwise than it has asked"
            failure = Failure(kind=FailureKind.CAPABILITY_MISSING, message=f"{message}: denied")
            self._run.emit_nowait(ErrorOccurred(failure=failure, severity="warning"))
            decision = Deny(reason=message)
        await self._codex.conversation.answer(name, decision)

    def _leaves_sandbox(self) -> bool:
        """Whether a request asks for more than the sandbox, in a mode without questions."""
        policy = POLICIES[self._run.permission.effective]
        return policy.approval == "never" and policy.is_confined

    async def _call_function(self, asking: PeerRequest) -> Json:
        """Call one of the caller's functions, and return the reply for Codex."""
        name, arguments = asking.params.get("tool"), asking.params.get("arguments")
        tool = self._tools.find_tool(name)
        if tool is not None:
            call_id = asking.params.get("callId")
            question = ApprovalRequest(
                tool_name=tool.name,
                tool_input=arguments,
                tool_call_id=call_id if isinstance(call_id, str) else None,
            )
            decision = await self._tools.decide(self._run, tool, question)
            if isinstance(decision, Deny):
                return tool_reply(
                    ToolOutcome(decision.reason or "It was not allowed.", failed=True)
                )
        return tool_reply(await self._tools.call(name, arguments))


def tool_reply(outcome: ToolOutcome) -> Json:
    """Return the reply to Codex for a call of a function."""
    return {
        "contentItems": [{"type": "inputText", "text": outcome.text}],
        "success": not outcome.failed,
    }
