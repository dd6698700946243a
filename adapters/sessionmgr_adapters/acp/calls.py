"""Requests of one run to its agent: each is awaited by the method that its answer belongs to."""

from __future__ import annotations

from collections import defaultdict, deque
from typing import TYPE_CHECKING, Final

import trio

from sessionmgr.adapter.kit import Future
from sessionmgr_adapters.acp import frames

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from sessionmgr_adapters.acp.frames import AcpAnswer
    from sessionmgr_adapters.acp.v1 import AcpCall

INITIALIZE: Final = "initialize"
ANSWER_WAIT: Final = 120.0
"""Seconds to wait for an answer."""
LOGIN_WAIT: Final = 600.0
"""Seconds to wait for a login, which may be one of the user in a browser."""
_LOGINS: Final = ("authenticate", "auth/login")
_METHODS: Final[dict[type[object], str]] = {
    frames.Initialized: INITIALIZE,
    frames.OptionsChanged: "session/set_config_option",
}
"""The methods of answers that do not name theirs."""


def method_of(answer: AcpAnswer) -> str:
    """Return the method that a frame answers."""
    if isinstance(answer, frames.SessionOpened | frames.Acknowledged | frames.AcpRefusal):
        return answer.method
    return _METHODS[type(answer)]


class AcpCalls:
    """The open requests of one run. Requests of one method are answered in their order."""

    def __init__(self, send: Callable[[AcpCall], Awaitable[None]]) -> None:
        self._send: Final = send
        self.is_unresponsive = False
        """Whether a request was not answered in time."""
        self._open: Final[defaultdict[str, deque[Future[AcpAnswer]]]] = defaultdict(deque)

    async def call(self, call: AcpCall) -> AcpAnswer:
        """Send a request, and return its answer; no answer in time is a refusal."""
        answered = self._expect(call.method)
        limit = LOGIN_WAIT if call.method in _LOGINS else ANSWER_WAIT
        with trio.move_on_after(limit):
            await self._send(call)
            return await answered.wait()
        self.is_unresponsive = True
        message = f"no answer within {limit:.0f} seconds"
        return frames.AcpRefusal(method=call.method, code=0, message=message)

    def expect_handshake(self) -> Future[AcpAnswer]:
        """Return the future of the handshake, which the connection sends by itself."""
        return self._expect(INITIALIZE)

    def resolve(self, answer: AcpAnswer) -> None:
        """Pass an answer to the task that waits for it."""
        waiting = self._open[method_of(answer)]
        if waiting:
            waiting.popleft().set(answer)

    def _expect(self, method: str) -> Future[AcpAnswer]:
        answered = Future[frames.AcpAnswer]()
        self._open[method].append(answered)
        return answered
