"""Delivery states of the messages of one run: each message is answered once, by which result.

Results are never counted. A result names the messages that it answers, and a message that was
absorbed into a running turn has no result of its own. Older versions name none; there a message
counts as taken when it is echoed, and as answered by the next result after that. Slash commands
that the agent runs itself are not echoed; each has a result without a turn of the model.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import TYPE_CHECKING, Final
from uuid import UUID, uuid5

if TYPE_CHECKING:
    from collections.abc import Iterable

NAMESPACE: Final = UUID("4a3f4d52-8f5c-4bb6-9d44-6f9d5f6c2a10")


def uuid_of(message_id: str) -> str:
    """Return the uuid of a message: the agent drops a second message with the same one."""
    return str(uuid5(NAMESPACE, message_id))


class DeliveryState(Enum):
    """How far a message has come."""

    SENT = auto()
    TAKEN = auto()
    ANSWERED = auto()


_REPORTED: Final = {
    "started": DeliveryState.TAKEN,
    "completed": DeliveryState.ANSWERED,
    "cancelled": DeliveryState.ANSWERED,
    "discarded": DeliveryState.ANSWERED,
}


class Deliveries:
    """The messages of one run that are not answered, by their uuids."""

    def __init__(self) -> None:
        self._open: Final[dict[str, DeliveryState]] = {}
        self._commands: Final[list[str]] = []

    def send(self, uuid: str, *, alone: bool = False, commands: bool = False) -> None:
        """Note a message; one that is `alone` reaches an idle agent, which takes it at once.

        One that `commands` may be run by the agent itself, and is not echoed then.
        """
        self._open[uuid] = DeliveryState.TAKEN if alone else DeliveryState.SENT
        if commands:
            self._commands.append(uuid)

    @property
    def are_open(self) -> bool:
        """Whether a message is not answered."""
        return bool(self._open)

    def report(self, uuid: str, state: str) -> None:
        """Note what the agent says of a message: queued, started, completed."""
        found = _REPORTED.get(state)
        if found is DeliveryState.ANSWERED:
            self._open.pop(uuid, None)
        elif found is not None and uuid in self._open:
            self._open[uuid] = found

    def echo(self, uuid: str) -> None:
        """Note that a message came back: the agent has taken it."""
        self.report(uuid, "started")

    def answer(self, uuids: Iterable[str] | None, *, of_model: bool = True) -> None:
        """Note a result: it answers `uuids` or, if it names none, all that was taken.

        If none was, and the result is not `of_model`, it answers the oldest open command.
        """
        if uuids is None:
            uuids = [uuid for uuid, state in self._open.items() if state is DeliveryState.TAKEN]
            if not uuids and not of_model:
                sent = (each for each in self._commands if each in self._open)
                uuids = list(sent)[:1]
        for uuid in uuids:
            self._open.pop(uuid, None)
