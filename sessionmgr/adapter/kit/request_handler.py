"""Handler of a provider's requests in one run: each is answered in its own task.

The provider may withdraw a request before it is answered. Up to `limit` requests are open at once;
a further one is refused. If the provider cannot accept another input for a tool (not
`takes_input`), a decision that has one is sent as a denial, and the run's record gets a warning.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Generic, TypeVar

import trio
from msgspec import UNSET

from sessionmgr.adapter import Deny
from sessionmgr.model import ErrorOccurred, Failure, FailureKind

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from sessionmgr.adapter import ApprovalRequest, Decision
    from sessionmgr.adapter.kit.conversation_run import ConversationRun

Outgoing = TypeVar("Outgoing")
Frame = TypeVar("Frame")

MAX_OPEN_REQUESTS: Final = 64
TOO_MANY_REQUESTS: Final = "too many requests are open"


class RequestHandler(Generic[Outgoing, Frame]):
    """Handler of one conversation's requests, which have the provider's names."""

    def __init__(
        self,
        driver: ConversationRun[Outgoing, Frame],
        *,
        limit: int = MAX_OPEN_REQUESTS,
        takes_input: bool = True,
    ) -> None:
        self._driver: Final = driver
        self._takes_input: Final = takes_input
        self._limit: Final = limit
        self._open: Final[dict[str, trio.CancelScope]] = {}

    def __len__(self) -> int:
        return len(self._open)

    def ask(self, name: str, request: ApprovalRequest) -> None:
        """Ask for the run's decision about a request, and send it to the provider.

        `name` is the conversation's own. Where the provider's ids are numbers or strings, the
        conversation maps names to ids (`JsonRpcConversation.open_requests`), because "1" and 1 are
        two ids.
        """

        async def answer() -> None:
            decision = self._possible(request, await self._driver.run.ask(request))
            await self._driver.conversation.answer(name, decision)

        async def refuse() -> None:
            await self._driver.conversation.answer(name, Deny(reason=TOO_MANY_REQUESTS, by="limit"))

        self.serve(name, answer, refuse)

    def _possible(self, request: ApprovalRequest, decision: Decision) -> Decision:
        """Return the decision in a form that the provider can accept."""
        if self._takes_input or isinstance(decision, Deny):
            return decision
        if decision.tool_input in (UNSET, request.tool_input):
            return decision
        message = f"{request.tool_name}: the provider cannot replace its input; the call was denied"
        failure = Failure(kind=FailureKind.CAPABILITY_MISSING, message=message)
        self._driver.run.emit_nowait(ErrorOccurred(failure=failure, severity="warning"))
        return Deny(reason=message, by="adapter")

    def serve(
        self,
        name: str,
        answer: Callable[[], Awaitable[None]],
        refuse: Callable[[], Awaitable[None]],
    ) -> None:
        """Run `answer` in its own task, or `refuse` if too many requests are open."""
        if len(self._open) >= self._limit:
            self._driver.start(refuse)
            return
        scope = self._open[name] = trio.CancelScope()
        self._driver.start(self._serve, name, scope, answer)

    def withdraw(self, name: str) -> None:
        """Cancel the answer to a request; the provider no longer expects one."""
        if name in self._open:
            self._open[name].cancel()

    async def _serve(
        self, name: str, scope: trio.CancelScope, answer: Callable[[], Awaitable[None]]
    ) -> None:
        try:
            with scope:
                await answer()
        finally:
            if self._open.get(name) is scope:  # a provider may reuse a name
                del self._open[name]
