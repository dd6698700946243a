"""The handler of an agent's requests in one run: permissions, questions, files and terminals.

Each request gets an answer. What the agent does through us obeys the run's permission mode, even if
the agent did not ask before.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from sessionmgr.adapter import Allow, ApprovalRequest, Deny
from sessionmgr.adapter.kit import RequestHandler
from sessionmgr.model import ErrorOccurred, Failure, FailureKind
from sessionmgr_adapters.acp import frames
from sessionmgr_adapters.acp.answers import elicitation_answer, permission_answer
from sessionmgr_adapters.acp.client_files import ClientFiles
from sessionmgr_adapters.acp.client_requests import (
    DENIED,
    REQUEST_CANCELLED,
    ClientRefusal,
    GrantedCalls,
)
from sessionmgr_adapters.acp.client_terminals import ClientTerminals
from sessionmgr_adapters.acp.frames import AcpFrame
from sessionmgr_adapters.acp.permissions import (
    chosen_option,
    is_question,
    permission_question,
    unchosen_option,
)
from sessionmgr_adapters.acp.sdk import AcpOutgoing, AcpReply

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection

    from sessionmgr.adapter.kit import ConversationRun
    from sessionmgr.model import Json
    from sessionmgr_adapters.acp.frames import AgentRequest
    from sessionmgr_adapters.acp.state import AcpState

_UNKNOWN: Final = ClientRefusal(-32601, "this client does not serve the request")
_WITHDRAWN: Final = ClientRefusal(REQUEST_CANCELLED, "the request was cancelled")
_TOO_MANY: Final = ClientRefusal(DENIED, "too many requests are open")


class AcpRequestHandler(RequestHandler[AcpOutgoing, AcpFrame]):
    """Answers the requests of one run."""

    def __init__(
        self,
        driver: ConversationRun[AcpOutgoing, AcpFrame],
        state: AcpState,
        is_stopping: Callable[[], bool],
        edit_tools: Collection[str] = (),
    ) -> None:
        super().__init__(driver, takes_input=False)
        self._acp: Final = driver
        self._state: Final = state
        self._is_stopping: Final = is_stopping
        self._edit_tools: Final = edit_tools
        self._granted: Final = GrantedCalls(driver.run, state, is_stopping)
        self._files: Final = ClientFiles(self._granted)
        self._terminals: Final = ClientTerminals(driver, state, self._granted)
        self.has_denied = False
        """Whether a request for permission was denied."""
        self._questions: Final[dict[str, Json]] = {}
        """The open questions to the user, with the answers that cancel them."""

    def handle(self, request: AgentRequest) -> None:
        """Answer a request in a task of its own."""
        name = request.name
        match request:
            case frames.PermissionRequest():
                self._ask(name, partial(self._permit, request), permission_answer(None))
            case frames.ElicitationRequest():
                self._ask(name, partial(self._elicit, request), elicitation_answer("cancel"))
            case frames.ReadFileRequest():
                self._serve_client(name, partial(self._files.read, request))
            case frames.WriteFileRequest():
                self._serve_client(name, partial(self._files.write, request))
            case frames.TerminalCreateRequest():
                self._serve_client(name, partial(self._terminals.create, request))
            case frames.TerminalRequest():
                self._serve_client(name, partial(self._terminals.handle, request))
            case _:
                self._acp.start(self._refuse, name, _UNKNOWN)

    async def cancel_questions(self) -> None:
        """Answer the open questions to the user as cancelled."""
        for name, cancelled in list(self._questions.items()):
            self.withdraw(name)
            await self._reply(name, cancelled)

    def cancel(self, name: str) -> None:
        """Answer a request that the agent has withdrawn."""
        self.withdraw(name)
        self._acp.start(self._refuse, name, _WITHDRAWN)

    # --- questions to the user -------------------------------------------------------------------

    def _ask(self, name: str, answer: Callable[[], Awaitable[Json]], cancelled: Json) -> None:
        if self._is_stopping():
            self._acp.start(self._reply, name, cancelled)
            return
        self._questions[name] = cancelled

        async def ask() -> None:
            try:
                await self._reply(name, await answer())
            finally:
                self._questions.pop(name, None)

        async def refuse() -> None:
            self._questions.pop(name, None)
            await self._reply(name, cancelled)

        self.serve(name, ask, refuse)

    async def _permit(self, request: frames.PermissionRequest) -> Json:
        upsert = request.tool_call
        call = None if upsert is None else self._state.call(upsert.tool_call_id)
        question = permission_question(request, call, self._granted.directories, self._edit_tools)
        decision = await self._acp.run.ask(question)
        if not is_question(request):
            decision = self._possible(question, decision)
        option = chosen_option(request, decision)
        self.has_denied = self.has_denied or isinstance(decision, Deny)
        if isinstance(decision, Allow):
            if option is None:
                self._warn(unchosen_option(request, question.tool_name))
                option = chosen_option(request, Deny())
            elif call is not None:
                self._granted.add(call.id, question)
        return permission_answer(option)

    async def _elicit(self, request: frames.ElicitationRequest) -> Json:
        asked: dict[str, Json] = {"message": request.message}
        if request.mode == "url":
            asked["url"] = request.url
        else:
            asked["schema"] = request.requested_schema
        decision = await self._acp.run.ask(
            ApprovalRequest(
                tool_name="elicitation",
                tool_input=asked,
                tool_call_id=request.tool_call_id,
                reason=request.message,
                effect="question",
            )
        )
        if not isinstance(decision, Allow):
            return elicitation_answer("decline")
        if request.mode == "url":
            return elicitation_answer("accept")
        content = decision.tool_input
        if isinstance(content, dict):
            return elicitation_answer("accept", content)
        self._warn("elicitation: the decision has no tool_input with the answer; it was declined")
        return elicitation_answer("decline")

    def _warn(self, message: str) -> None:
        failure = Failure(kind=FailureKind.CAPABILITY_MISSING, message=message)
        self._acp.run.emit_nowait(ErrorOccurred(failure=failure, severity="warning"))

    # --- files and terminals ---------------------------------------------------------------------

    def _serve_client(self, name: str, act: Callable[[], Awaitable[Json]]) -> None:
        async def answer() -> None:
            try:
                result = await act()
            except ClientRefusal as refusal:
                await self._refuse(name, refusal)
            else:
                await self._reply(name, result)

        self.serve(name, answer, partial(self._refuse, name, _TOO_MANY))

    async def _reply(self, name: str, result: Json) -> None:
        await self._acp.conversation.send(AcpReply(name, result))

    async def _refuse(self, name: str, refusal: ClientRefusal) -> None:
        await self._acp.conversation.send(AcpReply(name, None, refusal.code, str(refusal)))
