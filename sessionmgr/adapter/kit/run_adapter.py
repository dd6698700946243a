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
    def active_runs(self, run: RunContext, driver: P) -> Generator[None]:
        """Forward the run's interrupts and messages to its driver for the length of a block."""
        self._runs[run.run_id] = driver
        try:
            yield
        finally:
            del self._runs[run.run_id]

    async def interrupt(self, run: RunContext) -> None:
        """Ask the provider to end the turn; `run` continues until it has ended."""
        driver = self._runs.get(run.run_id)
        if driver is not None:
            await driver.interrupt()

    async def append(self, run: RunContext, content: str, message_id: str) -> bool:
        """Offer another message to the turn, and return whether it was accepted."""
        driver = self._runs.get(run.run_id)
        return driver is not None and await driver.add(content, message_id)

    @classmethod
    def can_interrupt(cls) -> bool:
        """Whether it can end a turn."""
        return cls.capabilities.interrupt != UNSUPPORTED

    @classmethod
    def can_append(cls) -> bool:
        """Whether it can send a message to the current turn."""
        return cls.capabilities.steer != UNSUPPORTED
