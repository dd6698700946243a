"""What must be known of an adapter before it can be tried: prompts, and what they come to."""

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
    """A prompt; `text` is what must have been said in the end, None is anything."""

    prompt: str
    text: str | None = None
    options: Mapping[str, Json] = field(default_factory=dict[str, "Json"])


@dataclass(frozen=True, slots=True, kw_only=True)
class AdapterCase:
    """An adapter to try, and what to say to it."""

    adapter: type[ProviderAdapter]
    answers: Play
    """Is answered well."""
    fails: Play | None = None
    """Goes wrong, as the provider itself says."""
    hangs: Play | None = None
    """Streams its text, and then works on until it is asked to end."""
    deaf: Play | None = None
    """Streams its text, and then hears nothing any more."""
    asks: Play | None = None
    """Asks whether it may use a tool, once, and goes on with either answer."""
    virtual: bool = False
    """Nothing real is waited for, no child and no thread: it can be tried in virtual time."""
    grace: float = 2.0
    """Seconds for a polite end."""
    moments: int = 20
    """At how many moments of a run a law is tried that holds at any, spread over all of them."""
    dialect: Dialect | None = None
    """How its agent talks, so that a player can take the place of the agent's program."""
    command_option: str = "command"
    """The option that names the program."""

    def moments_of(self, events: int, most: int) -> list[int]:
        """Return at which of so many events something is tried.

        Args:
            events: The number of events.
            most: The maximum number of moments.
        """
        wanted = min(self.moments, most)
        if events <= wanted:
            return list(range(events))
        return [place * (events - 1) // max(wanted - 1, 1) for place in range(wanted)]

    def steps(self) -> Iterator[int]:
        """Return the steps of the scheduler at which something is tried; real ones cost seconds."""
        if self.virtual:
            return count()
        return (2**power for power in range(self.moments // 4))
