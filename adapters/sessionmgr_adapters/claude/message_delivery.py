"""Delivery of one run's messages to Claude Code: its prompt, and follow-ups to its running turn.

A message is held back while the context is compacted and, with older versions, which lose it then,
while a tool call has no result yet. Newer versions delay it themselves. Whether a message belongs
to the run is known once the agent has acknowledged it.

The number of results says nothing. A result names the messages that it answers, and a message that
was absorbed into a running turn has no result of its own. Results of older versions name none;
there a message counts as started when it is echoed, and as answered by the next result after that.
Slash commands that the agent runs itself are not echoed; each has a result without a turn of the
model.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final
from uuid import UUID, uuid4, uuid5

import trio

from sessionmgr.adapter.kit import FollowUps
from sessionmgr_adapters.claude.outgoing import ClaudeUserMessage, is_slash_command

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sessionmgr.model import Json
    from sessionmgr_adapters.claude.claude_run import ClaudeRun
    from sessionmgr_adapters.claude.frames import ResultFrame

LIFECYCLE: Final = "msg_lifecycle_v1"
NAMESPACE: Final = UUID("4a3f4d52-8f5c-4bb6-9d44-6f9d5f6c2a10")


def message_uuid(message_id: str) -> str:
    """Return the uuid of a message: the agent drops a second message with the same one."""
    return str(uuid5(NAMESPACE, message_id))


_ENDS: Final = {"completed", "cancelled", "discarded"}
"""Final states of a message."""


class DeliveryStates:
    """Delivery states of one run's unanswered messages, by their uuids."""

    def __init__(self) -> None:
        self._open: Final[dict[str, bool]] = {}
        """Whether the agent has started on each message."""
        self._commands: Final[list[str]] = []

    def send(self, uuid: str, *, alone: bool = False, commands: bool = False) -> None:
        """Add a message; if it is sent `alone`, the agent is idle and starts on it at once.

        One with `commands` may be run by the agent itself, and is not echoed then.
        """
        self._open[uuid] = alone
        if commands:
            self._commands.append(uuid)

    @property
    def has_open(self) -> bool:
        """Whether a message is unanswered."""
        return bool(self._open)

    def report(self, uuid: str, state: str) -> None:
        """Store the state of a message that the agent reports: queued, started, completed."""
        if state in _ENDS:
            self._open.pop(uuid, None)
        elif state == "started" and uuid in self._open:
            self._open[uuid] = True

    def answer(self, uuids: Iterable[str] | None, *, of_model: bool = True) -> None:
        """Handle a result: it answers `uuids` or, if it names none, all started messages.

        If none was started, and the result is not `of_model`, it answers the oldest open command.
        """
        if uuids is None:
            uuids = [uuid for uuid, is_taken in self._open.items() if is_taken]
            if not uuids and not of_model:
                sent = (each for each in self._commands if each in self._open)
                uuids = list(sent)[:1]
        for uuid in uuids:
            self._open.pop(uuid, None)


class OutboundMessages:
    """Messages of one run, with their delivery states."""

    def __init__(self, driver: ClaudeRun) -> None:
        self._driver: Final = driver
        self._deliveries: Final = DeliveryStates()
        self._follow_ups: Final = FollowUps(driver.run)
        self._names: Final[dict[str, str]] = {}
        """Our ids of the follow-ups, by their uuids."""
        self._held: Final[list[ClaudeUserMessage]] = []
        self._reports_deliveries: bool | None = None

    @property
    def is_open(self) -> bool:
        """Whether a message is held, or was sent and is unanswered."""
        return self._deliveries.has_open or bool(self._held)

    # --- sending ---------------------------------------------------------------------------------

    async def send_prompt(self, prompt: Json) -> None:
        """Send the prompt of the run."""
        message = self._message(str(uuid4()), prompt)
        self._deliveries.send(message.uuid, alone=True)
        await self._driver.conversation.send(message)

    async def add(self, content: str, message_id: str) -> bool:
        """Offer another message; return whether it belongs to this run now."""
        at = self._driver.options.follow_up
        message = self._message(message_uuid(message_id), content, None if at == "next" else at)
        self._names[message.uuid] = message_id
        send = partial(self._hold if self._is_held_back else self._send, message)
        return await self._follow_ups.offer(message_id, content, send)

    @property
    def can_release(self) -> bool:
        """Whether a held message may be sent now."""
        return bool(self._held) and not self._is_held_back

    async def release(self) -> None:
        """Send the held messages, as long as they may be sent."""
        await trio.lowlevel.checkpoint()
        while self.can_release:
            await self._send(self._held.pop(0))

    def refuse_held(self) -> None:
        """Refuse the held messages."""
        for message in self._held:
            self._follow_ups.refuse(self._names[message.uuid])
        self._held.clear()

    def close(self) -> None:
        """Release all tasks that wait for an acknowledgement, and report dropped messages."""
        self._follow_ups.end()

    def _message(self, name: str, content: Json, priority: str | None = None) -> ClaudeUserMessage:
        is_text = not self._driver.options.slash_commands
        return ClaudeUserMessage(content=content, uuid=name, priority=priority, is_text=is_text)

    @property
    def _is_held_back(self) -> bool:
        state = self._driver.state
        return state.compacting or (not self._reports_deliveries and bool(state.tools))

    async def _hold(self, message: ClaudeUserMessage) -> None:
        await trio.lowlevel.checkpoint()
        self._held.append(message)
        self._driver.start(self._limit_delivery_time, self._names[message.uuid])

    async def _limit_delivery_time(self, name: str) -> None:
        """Accept a held message in time: its sender waits no longer than the grace."""
        await trio.sleep(self._driver.run.grace / 2)
        self._follow_ups.accept(name)

    async def _send(self, message: ClaudeUserMessage) -> None:
        commands = not message.is_text and is_slash_command(str(message.content))
        self._deliveries.send(message.uuid, commands=commands)
        await self._driver.conversation.send(message)
        if self._reports_deliveries is False:
            self._acknowledge(message.uuid)  # an older version reports no more until it starts

    # --- reports of the agent --------------------------------------------------------------------

    def begin_turn(self, capabilities: Sequence[str]) -> None:
        """Note at the start of a turn whether the agent reports deliveries."""
        if self._reports_deliveries is None:
            self._reports_deliveries = LIFECYCLE in capabilities
        if not self._reports_deliveries:
            for name in self._names:
                self._acknowledge(name)

    def report(self, name: str, state: str) -> None:
        """Handle the agent's report about a message."""
        self._reports_deliveries = True
        self._deliveries.report(name, state)
        self._acknowledge(name)

    def echo(self, name: str) -> None:
        """Handle the echo of a message: the agent has started on it."""
        self._deliveries.report(name, "started")
        self._acknowledge(name)

    def end_turn(self, result: ResultFrame) -> None:
        """Handle a result; that of a turn which no message has caused answers none."""
        is_unasked = result.origin is not None and result.user_message_uuids is None
        answered = [] if is_unasked else result.user_message_uuids
        self._deliveries.answer(answered, of_model=bool(result.num_turns))

    def _acknowledge(self, name: str) -> None:
        if name in self._names:
            self._follow_ups.mark_heard(self._names[name])
