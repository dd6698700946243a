"""The base class of an adapter that passes interrupts and messages on to what plays each run."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, Generic, Protocol, TypeVar

from sessionmgr.adapter import ProviderAdapter
from sessionmgr.model import UNSUPPORTED

if TYPE_CHECKING:
    from collections.abc import Generator

    from sessionmgr.adapter import RunContext


class ActiveRun(Protocol):
    """What plays one run: the driver of a conversation, or a child of the run's own."""

    async def interrupt(self) -> None:
        """Ask the provider to end the turn."""
        ...

    async def add(self, content: str, message_id: str) -> bool:
        """Offer another message to the turn, and return whether it was taken."""
        ...


P = TypeVar("P", bound=ActiveRun)


class RunAdapter(ProviderAdapter, Generic[P]):
    """Keeps what plays each current run, from `playing`."""

    def __init__(self) -> None:
        super().__init__()
        self._runs: Final[dict[str, P]] = {}

    @contextmanager
    def active_runs(self, run: RunContext, played_by: P) -> Generator[None]:
        """Pass the run's interrupts and messages on for the length of a block."""
        self._runs[run.run_id] = played_by
        try:
            yield
        finally:
            del self._runs[run.run_id]

    async def interrupt(self, run: RunContext) -> None:
        """Ask the provider to end the turn; `run` goes on until it has."""
        played_by = self._runs.get(run.run_id)
        if played_by is not None:
            await played_by.interrupt()

    async def append(self, run: RunContext, content: str, message_id: str) -> bool:
        """Offer another message to the turn, and return whether it was taken."""
        played_by = self._runs.get(run.run_id)
        return played_by is not None and await played_by.add(content, message_id)

    @classmethod
    def can_interrupt(cls) -> bool:
        """Whether it can end a turn."""
        return cls.capabilities.interrupt != UNSUPPORTED

    @classmethod
    def can_append(cls) -> bool:
        """Whether it can give a message to a turn that runs."""
        return cls.capabilities.steer != UNSUPPORTED
