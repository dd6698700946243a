"""The messages of one run to Claude Code: its prompt, and further ones while its turn is on.

A message at the wrong time is held back: while the context is compacted; and with older versions,
which lose track of it, while a tool call has no result yet. Newer versions wait for that
themselves. Whether a message belongs to the run is known once the agent has acknowledged it.

Results are never counted. A result names the messages that it answers, and a message that was
absorbed into a running turn has no result of its own. Older versions name none; there a message
counts as taken when it is echoed, and as answered by the next result after that. Slash commands
that the agent runs itself are not echoed; each has a result without a turn of the model.
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
"""States of a message to which nothing more will happen."""


class DeliveryStates:
    """The messages of one run that are not answered, by their uuids."""

    def __init__(self) -> None:
        self._open: Final[dict[str, bool]] = {}
        """Whether each of them was taken."""
        self._commands: Final[list[str]] = []

    def send(self, uuid: str, *, alone: bool = False, commands: bool = False) -> None:
        """Note a message; one that is `alone` reaches an idle agent, which takes it at once.

        One that `commands` may be run by the agent itself, and is not echoed then.
        """
        self._open[uuid] = alone
        if commands:
            self._commands.append(uuid)

    @property
    def has_open(self) -> bool:
        """Whether a message is not answered."""
        return bool(self._open)

    def report(self, uuid: str, state: str) -> None:
        """Note what the agent says of a message: queued, started, completed."""
        if state in _ENDS:
            self._open.pop(uuid, None)
        elif state == "started" and uuid in self._open:
            self._open[uuid] = True

    def answer(self, uuids: Iterable[str] | None, *, of_model: bool = True) -> None:
        """Note a result: it answers `uuids` or, if it names none, all that was taken.

        If none was, and the result is not `of_model`, it answers the oldest open command.
        """
        if uuids is None:
            uuids = [uuid for uuid, is_taken in self._open.items() if is_taken]
            if not uuids and not of_model:
                sent = (each for each in self._commands if each in self._open)
                uuids = list(sent)[:1]
        for uuid in uuids:
            self._open.pop(uuid, None)


class OutboundMessages:
    """The messages of one run, and what is known of them."""

    def __init__(self, driver: ClaudeRun) -> None:
        self._driver: Final = driver
        self._deliveries: Final = DeliveryStates()
        self._follow_ups: Final = FollowUps(driver.run)
        self._names: Final[dict[str, str]] = {}
        """Our names for the follow-ups, by their uuids."""
        self._held: Final[list[ClaudeUserMessage]] = []
        self._reports_deliveries: bool | None = None

    @property
    def is_open(self) -> bool:
        """Whether a message was sent, or is to be, that is not answered."""
        return self._deliveries.has_open or bool(self._held)

    # --- out -------------------------------------------------------------------------------------

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
        """Whether a message is held that may be sent now."""
        return bool(self._held) and not self._is_held_back

    async def release(self) -> None:
        """Send the held messages, as long as they may be sent."""
        await trio.lowlevel.checkpoint()
        while self.can_release:
            await self._send(self._held.pop(0))

    def refuse_held(self) -> None:
        """Send no more of what is held."""
        for message in self._held:
            self._follow_ups.refuse(self._names[message.uuid])
        self._held.clear()

    def close(self) -> None:
        """Release all who wait for an acknowledgement, and report what is dropped."""
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
        """Accept a held message for this run, as its sender waits for the grace at most."""
        await trio.sleep(self._driver.run.grace / 2)
        self._follow_ups.accept(name)

    async def _send(self, message: ClaudeUserMessage) -> None:
        commands = not message.is_text and is_slash_command(str(message.content))
        self._deliveries.send(message.uuid, commands=commands)
        await self._driver.conversation.send(message)
        if self._reports_deliveries is False:
            self._acknowledge(message.uuid)  # an older version says no more before it is taken

    # --- what the agent says of it ---------------------------------------------------------------

    def begin_turn(self, capabilities: Sequence[str]) -> None:
        """Note at the start of a turn whether the agent reports deliveries."""
        if self._reports_deliveries is None:
            self._reports_deliveries = LIFECYCLE in capabilities
        if not self._reports_deliveries:
            for name in self._names:
                self._acknowledge(name)

    def report(self, name: str, state: str) -> None:
        """Note what the agent says of a message."""
        self._reports_deliveries = True
        self._deliveries.report(name, state)
        self._acknowledge(name)

    def echo(self, name: str) -> None:
        """Note that a message came back: the agent has taken it."""
        self._deliveries.report(name, "started")
        self._acknowledge(name)

    def end_turn(self, result: ResultFrame) -> None:
        """Note a result; one of a turn that no message has asked for answers none."""
        is_unasked = result.origin is not None and result.user_message_uuids is None
        answered = [] if is_unasked else result.user_message_uuids
        self._deliveries.answer(answered, of_model=bool(result.num_turns))

    def _acknowledge(self, name: str) -> None:
        if name in self._names:
            self._follow_ups.mark_heard(self._names[name])
