"""The supervision tree of a manager: its children, the order of their start, and its end."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import trio

from sessionmgr.manager.errors import ManagerDown
from sessionmgr.manager.shutdown import end_all_runs
from sessionmgr.manager.sigint_guard import install_interrupt_guard, remove_interrupt_guard
from sessionmgr.otp import OtpError, Supervisor, child
from sessionmgr.store import MemoryStore, Store, StoreError, open_sqlite_store

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from sessionmgr.manager.manager_state import ManagerState
    from sessionmgr.manager.reconciler import Reconciler
    from sessionmgr.manager.request_server import RequestServer
    from sessionmgr.manager.session_supervisor import SessionSupervisor


class SupervisionTree:
    """The supervision tree of an open manager."""

    def __init__(
        self,
        manager_state: ManagerState,
        store: StoreChild,
        reconciler: Reconciler,
        supervisor: SessionSupervisor,
        request_server: RequestServer,
    ) -> None:
        self._state: Final = manager_state
        self._reconciler: Final = reconciler
        self._root: Final = Supervisor(
            child(manager_state.launcher.serve, id="launcher"),
            Supervisor(child(store.run, manager_state, id="writer"), name="store"),
            # These serve all sessions; a crash of one stops none of them.
            Supervisor(
                child(self._reconcile, id="reconciler"),
                child(self._state.timeouts.run, id="clocks"),
                child(supervisor.renew_leases, id="leases"),
                child(supervisor.sweep_abandoned_runs, id="sweep"),
                child(request_server.serve, id="requests"),
                name="services",
            ),
            supervisor.sessions,
            supervisor.providers,
            child(self._admission_gate, id="gate", shutdown=float("inf")),
            strategy="rest_for_one",
            name="manager",
        )

    async def open(self) -> None:
        """Start the tree.

        Raises:
            ManagerDown: The tree does not start; `__cause__` is the reason.
        """
        self._enter()
        try:
            await self._root.__aenter__()
        except OtpError as error:
            self._exit()
            raise _user_error(error) from error
        except BaseException:
            self._exit()
            raise

    async def close(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        """Close the gate, end all runs, and stop the tree."""
        try:
            return await self._root.__aexit__(exc_type, exc, traceback)
        except OtpError as error:
            if error is exc:
                raise
            raise ManagerDown(error) from error
        except BaseExceptionGroup as group:
            raise translate_group(group, exc, ManagerDown) from None
        finally:
            self._reconciler.release_waiters("the manager is down")
            self._exit()
            self._state.lifetime.end()

    def draw(self) -> str:
        """Return a drawing of the tree as it is now."""
        return self._root.tree()

    def _enter(self) -> None:
        install_interrupt_guard()
        self._state.presence.register()

    def _exit(self) -> None:
        self._state.presence.unregister()
        remove_interrupt_guard()

    # --- the children ----------------------------------------------------------------------------

    async def _reconcile(self, *, task_status: trio.TaskStatus[None]) -> None:
        await self._reconciler.reconcile_store()
        task_status.started()
        await self._reconciler.watch()

    async def _admission_gate(self, *, task_status: trio.TaskStatus[None]) -> None:
        """Admit runs until the end; then end all runs before anything else stops."""
        manager_state = self._state
        manager_state.open = True
        task_status.started()
        try:
            await trio.sleep_forever()
        except trio.Cancelled:  # not a crash: the block ends
            manager_state.open = False
            clocks = manager_state.clocks
            await end_all_runs(manager_state.runs, clocks)  # shielded  # noqa: ASYNC102
            with trio.move_on_after(clocks.of("close"), shield=True):
                await self._reconciler.store_spooled_ends()
            raise
        finally:
            manager_state.open = False


def _user_error(error: BaseException) -> BaseException:
    """Return the error that a user can act on: an error of the store, else `ManagerDown`."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, StoreError):
            return cause
        cause = cause.__cause__
    return ManagerDown(error)


def translate_group(
    group: BaseExceptionGroup[BaseException],
    body: BaseException | None,
    down: Callable[[BaseException], BaseException],
) -> BaseExceptionGroup[BaseException]:
    """Replace the supervisors' own errors in a group by `down`, except for errors of `body`."""
    members: list[BaseException] = []
    for error in group.exceptions:
        if isinstance(error, OtpError) and error is not body:
            said = down(error)
            said.__cause__ = error
            members.append(said)
        else:
            members.append(error)
    return group.derive(members)


class StoreChild:
    """The child that opens the store: a file, or a store of the caller."""

    def __init__(self, store: Store | str | Path | None) -> None:
        self._path: Final = Path(store) if isinstance(store, str | Path) else None
        self._given: Final = MemoryStore() if store is None else store

    @property
    def spool_path(self) -> Path | None:
        """The path of the spool beside the store's file."""
        if self._path is None or not self._path.name:
            return None  # `/` and `.` have no name; opening the store refuses them
        return self._path.with_name(f"{self._path.name}-spool")

    async def run(self, manager_state: ManagerState, *, task_status: trio.TaskStatus[None]) -> None:
        """Open the store, and keep it open until the child is stopped."""
        manager_state.store_path = self._path
        if self._path is None:
            assert not isinstance(self._given, str | Path)
            manager_state.store = self._given
            task_status.started()
            await trio.sleep_forever()
        else:
            async with open_sqlite_store(self._path) as store:
                manager_state.store = store
                task_status.started()
                try:
                    await trio.sleep_forever()
                finally:
                    manager_state.has_store = False
