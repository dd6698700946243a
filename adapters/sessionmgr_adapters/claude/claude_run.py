"""The base class of the driver: the state of one run, and its requests to the process.

The modules that the driver calls (configuration, plan mode, message delivery, the request handler)
use this class, so they need not import the driver.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from sessionmgr.adapter.kit import Future, PhasedConversationRun, RequestHandler
from sessionmgr.model import Failure, FailureKind
from sessionmgr.wire import NoFrame
from sessionmgr_adapters.claude.frames import ClaudeFrame
from sessionmgr_adapters.claude.outgoing import ClaudeOutgoing, ControlRefusedError, ControlRequest
from sessionmgr_adapters.claude.phase import MINOR, TRANSITIONS, ClaudePhase, ClaudeStep
from sessionmgr_adapters.claude.state import ClaudeState

if TYPE_CHECKING:
    from sessionmgr.adapter import RunContext
    from sessionmgr.model import Json
    from sessionmgr_adapters.claude.claude_process import ClaudeProcess
    from sessionmgr_adapters.claude.frames import ControlReplyBody
    from sessionmgr_adapters.claude.options import ClaudeOptions

ClaudeRead: TypeAlias = ClaudeFrame | NoFrame


class ClaudeRun(PhasedConversationRun[ClaudeOutgoing, ClaudeRead, ClaudePhase, ClaudeStep]):
    """One run on one process, without the reading of its frames."""

    def __init__(self, run: RunContext, process: ClaudeProcess, options: ClaudeOptions) -> None:
        super().__init__(
            run, TRANSITIONS, ClaudePhase.CONFIGURING, lost=ClaudeStep.LOSE, minor=MINOR
        )
        self.process: Final = process
        self.options: Final = options
        self.state: Final = ClaudeState(process.usage)
        self.state.session_id = process.spec.session
        self.requests: Final = RequestHandler(self)
        self._replies: Final[dict[str, Future[ControlReplyBody]]] = {}

    @property
    def awaits_reply(self) -> bool:
        """Whether a request has no reply yet."""
        return bool(self._replies)

    def take_reply(self, reply: ControlReplyBody) -> bool:
        """Complete the request that a reply answers; False if there is none."""
        future = self._replies.pop(reply.request_id, None)
        if future is not None:
            future.set(reply)
        return future is not None

    async def request(
        self,
        subtype: str,
        fields: dict[str, Json],
        kind: FailureKind = FailureKind.CONFIG_INVALID,
        how: str = "refused",
    ) -> Json:
        """Send a request to Claude Code and wait for its reply.

        Raises:
            ControlRefusedError: Claude Code refused. Its failure is of this `kind`, and says `how`.
        """
        self.process.requests += 1
        id_ = f"{subtype}-{self.process.requests}"
        future = self._replies[id_] = Future()
        await self.conversation.send(ControlRequest(id=id_, subtype=subtype, fields=fields))
        reply = await future.wait()
        if reply.subtype == "success":
            return reply.response
        message = f"Claude Code {how} {subtype}: {reply.error or 'without a reason'}"
        code = reply.error_code
        raise ControlRefusedError(
            Failure(kind=kind, message=message, provider_code=code, phase="start")
        )
