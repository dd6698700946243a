"""Pool of processes that each serve one of the provider's sessions.

A process is kept between the runs of its session. If it does not fit the next run, it is ended, and
another is started once its process tree is empty: two processes never serve the same session.
"""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

import trio

from sessionmgr.adapter import Closable, KeyedSpec
from sessionmgr.adapter.kit.connection_pool import ConnectionPool

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Hashable

    from sessionmgr.adapter.kit.connection_pool import ConnectionLease
    from sessionmgr.otp import DynamicSupervisor


class SessionProcess(Closable, Protocol):
    """Process that serves the session that is the key of its spec."""

    @property
    def spec(self) -> Any:
        """The spec from which it was started."""
        ...

    @property
    def gone(self) -> trio.Event:
        """Set by the pool when the process tree is empty."""
        ...

    def fits(self, spec: Any) -> bool:
        """Whether the process can serve a run that needs `spec`."""
        ...


Spec = TypeVar("Spec", bound=KeyedSpec)
P = TypeVar("P", bound=SessionProcess)


class SessionPool(ConnectionPool[Spec, P]):
    """Pool of processes, by their sessions."""

    def __init__(self, start: Callable[[Spec], AbstractAsyncContextManager[P]]) -> None:
        super().__init__(partial(self._start_next, start))
        self._processes: Final[dict[Hashable, P]] = {}

    @asynccontextmanager
    async def lease(
        self, spec: Spec, owner: DynamicSupervisor, *, alone: bool = False
    ) -> AsyncGenerator[ConnectionLease[P], None]:
        """Lease the session's process if it fits and need not be for this run `alone`.

        Otherwise end it, and start another.
        """
        while True:
            async with super().lease(spec, owner) as lease:
                process = lease.connection
                if process.spec is spec or (not alone and process.fits(spec)):
                    yield lease
                    return
                lease.abandon()
            await process.gone.wait()

    async def end(self, key: Hashable) -> None:
        """End the process of a session, and wait until its process tree is empty.

        A leased process is ended when it is returned, so the caller must limit the wait.
        """
        await trio.lowlevel.checkpoint()
        self.retire(key)
        process = self._processes.get(key)
        if process is not None:
            await process.gone.wait()

    @asynccontextmanager
    async def _start_next(
        self, start: Callable[[Spec], AbstractAsyncContextManager[P]], spec: Spec
    ) -> AsyncGenerator[P, None]:
        before = self._processes.get(spec.key)
        if before is not None:
            await before.gone.wait()
        process: P | None = None
        try:
            async with start(spec) as process:
                self._processes[spec.key] = process
                yield process
        finally:
            if process is not None:
                process.gone.set()
                if self._processes.get(spec.key) is process:
                    del self._processes[spec.key]
