"""The messages of one run: its prompt, and those that are added while the agent works.

A message is added to the running turn if the agent takes it there. Otherwise, in version 2, it is a
prompt that the agent queues. Requests of one method are answered in their order.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

import trio

from sessionmgr.adapter.kit import FollowUps

if TYPE_CHECKING:
    from sessionmgr.adapter.kit import ConversationRun
    from sessionmgr_adapters.acp.frames import AcpFrame
    from sessionmgr_adapters.acp.sdk import AcpOutgoing
    from sessionmgr_adapters.acp.v1 import AcpCall

MAX_QUEUED: Final = 16
"""Maximum number of prompts that the agent has not taken; further messages become runs."""
_OWN: Final = ""
"""The name of the run's own prompt."""


class RunMessages:
    """The messages of one run, and the answers to them."""

    def __init__(self, driver: ConversationRun[AcpOutgoing, AcpFrame]) -> None:
        self._driver: Final = driver
        self._follow_ups: Final = FollowUps(driver.run)
        self._prompts: Final[deque[str]] = deque()
        """The ids of the prompts that the agent has not answered."""
        self._steering: Final[deque[str]] = deque()
        """The ids of the messages into the turn that the agent has not answered."""

    @property
    def are_answered(self) -> bool:
        """Whether the agent has answered each prompt."""
        return not self._prompts

    async def send_prompt(self, call: AcpCall) -> None:
        """Send the prompt of the run."""
        self._prompts.append(_OWN)
        await self._driver.conversation.send(call)

    async def steer(self, content: str, message_id: str, call: AcpCall) -> bool:
        """Send a message into the turn, and return whether the agent has taken it."""

        async def send() -> None:
            self._steering.append(message_id)
            await self._driver.conversation.send(call)

        return await self._follow_ups.offer(message_id, content, send)

    async def queue(self, content: str, message_id: str, call: AcpCall) -> bool:
        """Send a further prompt, and return whether it is one of this run.

        The agent answers once it takes the prompt, which can be long after; the caller does not
        wait for that.
        """
        if len(self._prompts) >= MAX_QUEUED:
            await trio.lowlevel.checkpoint()
            return False

        async def send() -> None:
            self._prompts.append(message_id)
            self._driver.start(self._limit_wait, message_id)
            await self._driver.conversation.send(call)

        return await self._follow_ups.offer(message_id, content, send)

    async def _limit_wait(self, message_id: str) -> None:
        await trio.sleep(self._driver.run.grace / 2)
        self._follow_ups.accept(message_id)

    def note_prompt(self, *, is_heard: bool) -> bool:
        """Note the answer to the oldest prompt; return whether it is the run's own."""
        name = self._prompts.popleft()
        if name != _OWN:
            self._settle(name, is_heard=is_heard)
        return name == _OWN

    def note_steering(self, *, is_heard: bool) -> None:
        """Note the answer to the oldest message into the turn."""
        self._settle(self._steering.popleft(), is_heard=is_heard)

    def end(self) -> None:
        """Refuse the messages that the agent has not taken."""
        self._follow_ups.end()

    def _settle(self, message_id: str, *, is_heard: bool) -> None:
        if is_heard:
            self._follow_ups.mark_heard(message_id)
        else:
            self._follow_ups.refuse(message_id)
