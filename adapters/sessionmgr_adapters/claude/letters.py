"""What became of the messages that a run has sent: each is answered once, and by which result.

Results are never counted. A result names the messages that it answers, and a message that was taken
into a running turn has none of its own. Older ones name nothing; there a message counts as taken
when it is echoed, and as answered by the next result after that; commands that the agent does by
itself are not echoed, and each has a result without a turn of the model's.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import TYPE_CHECKING, Final
from uuid import UUID, uuid5

if TYPE_CHECKING:
    from collections.abc import Iterable


NAMESPACE: Final = UUID("4a3f4d52-8f5c-4bb6-9d44-6f9d5f6c2a10")


def uuid_of(message_id: str) -> str:
    """Return the uuid that a message is sent with: what is sent twice is taken once."""
    return str(uuid5(NAMESPACE, message_id))


class Fate(Enum):
    """How far a message has come."""

    SENT = auto()
    TAKEN = auto()
    SETTLED = auto()


_STATES: Final = {
    "started": Fate.TAKEN,
    "completed": Fate.SETTLED,
    "cancelled": Fate.SETTLED,
    "discarded": Fate.SETTLED,
}


class Letters:
    """The messages of one run, by the uuids that they were sent with."""

    def __init__(self) -> None:
        self._fates: Final[dict[str, Fate]] = {}
        self._commands: Final[list[str]] = []

    def send(self, uuid: str, *, alone: bool = False, commands: bool = False) -> None:
        """Note a message; `alone` is one to an agent at rest, which takes it at once.

        One that `commands` may be done by the agent itself, and is not echoed then.
        """
        self._fates[uuid] = Fate.TAKEN if alone else Fate.SENT
        if commands:
            self._commands.append(uuid)

    @property
    def are_open(self) -> bool:
        """Whether something was sent that is not answered."""
        return any(fate is not Fate.SETTLED for fate in self._fates.values())

    def live(self, uuid: str, state: str) -> None:
        """Take in what is told of a message's life."""
        fate = _STATES.get(state)
        if fate is not None and self._fates.get(uuid) not in (None, Fate.SETTLED):
            self._fates[uuid] = fate

    def echo(self, uuid: str) -> None:
        """Note that a message came back: the agent has taken it."""
        self.live(uuid, "started")

    def settle(self, uuids: Iterable[str] | None, *, of_model: bool = True) -> None:
        """Take in a result: it answers `uuids`, or if it does not say, all that was taken.

        If nothing was, and it is none `of_model`, it answers the first command that is open.
        """
        if uuids is None:
            uuids = [uuid for uuid, fate in self._fates.items() if fate is Fate.TAKEN]
            if not uuids and not of_model:
                uuids = [each for each in self._commands if self._fates[each] is Fate.SENT][:1]
        for uuid in uuids:
            self.live(uuid, "completed")
