"""Base class of an adapter that forwards interrupts and messages to the driver of each run."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, Generic, Protocol, TypeVar

from sessionmgr.adapter import ProviderAdapter
from sessionmgr.model import UNSUPPORTED

if TYPE_CHECKING:
    from collections.abc import Generator

    from sessionmgr.adapter import RunContext


class ActiveRun(Protocol):
    """Driver of one run: of a conversation, or of the run's own child."""

    async def interrupt(self) -> None:
        """Ask the provider to end the turn."""
        ...

    async def add(self, content: str, message_id: str) -> bool:
        """Offer another message to the turn, and return whether it was accepted."""
        ...


P = TypeVar("P", bound=ActiveRun)


class RunAdapter(ProviderAdapter, Generic[P]):
    """Base class of adapters that register the driver of each current run (`active_runs`)."""

    def __init__(self) -> None:
        super().__init__()
        self._runs: Final[dict[str, P]] = {}

    @contextmanager
    def active_runs(self, run: RunContext, played_by: P) -> Generator[None]:
        """Forward the run's interrupts and messages to its driver for the length of a block."""
        self._runs[run.run_id] = played_by
        try:
            yield
        finally:
            del self._runs[run.run_id]

    async def interrupt(self, run: RunContext) -> None:
        """Ask the provider to end the turn; `run` continues until it has ended."""
        played_by = self._runs.get(run.run_id)
        if played_by is not None:
            await played_by.interrupt()

    async def append(self, run: RunContext, content: str, message_id: str) -> bool:
        """Offer another message to the turn, and return whether it was accepted."""
        played_by = self._runs.get(run.run_id)
        return played_by is not None and await played_by.add(content, message_id)

    @classmethod
    def can_interrupt(cls) -> bool:
        """Whether it can end a turn."""
        return cls.capabilities.interrupt != UNSUPPORTED

    @classmethod
    def can_append(cls) -> bool:
        """Whether it can send a message to the current turn."""
        return cls.capabilities.steer != UNSUPPORTED
