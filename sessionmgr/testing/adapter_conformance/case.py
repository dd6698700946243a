"""The case of an adapter: the prompts that its conformance tests need, and their results."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from sessionmgr.adapter import ProviderAdapter
    from sessionmgr.model import Json
    from sessionmgr.testing.player import Dialect


@dataclass(frozen=True, slots=True, kw_only=True)
class Play:
    """A prompt and its options; `text` is the expected result text, None accepts any."""

    prompt: str
    text: str | None = None
    options: Mapping[str, Json] = field(default_factory=dict[str, "Json"])


@dataclass(frozen=True, slots=True, kw_only=True)
class AdapterCase:
    """An adapter to test, and prompts for it."""

    adapter: type[ProviderAdapter]
    answers: Play
    """A prompt that succeeds."""
    fails: Play | None = None
    """A prompt that fails, as the provider itself reports."""
    hangs: Play | None = None
    """A prompt that streams its text and then works until it is interrupted."""
    deaf: Play | None = None
    """A prompt that streams its text and then ignores interrupts."""
    asks: Play | None = None
    """A prompt that asks for approval of one tool call, and continues after either answer."""
    virtual: bool = False
    """Whether the tests can run in virtual time: the adapter uses no child and no thread."""
    grace: float = 2.0
    """Seconds for an interrupted run to end."""
    moments: int = 20
    """The number of events of a run after which a test cancels or acts, spread over the run."""
    dialect: Dialect | None = None
    """The agent's dialect, so that a player can replace the agent's program."""
    command_option: str = "command"
    """The option that names the program."""

    def moments_of(self, events: int, most: int) -> list[int]:
        """Return the indexes of the events after which a test acts.

        Args:
            events: The number of events.
            most: The maximum number of indexes.
        """
        wanted = min(self.moments, most)
        if events <= wanted:
            return list(range(events))
        return [place * (events - 1) // max(wanted - 1, 1) for place in range(wanted)]

    def steps(self) -> Iterator[int]:
        """Return the scheduler steps at which a test acts; in real time few, as each is slow."""
        if self.virtual:
            return count()
        return (2**power for power in range(self.moments // 4))
