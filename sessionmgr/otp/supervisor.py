"""Supervisor: starts its children in order, restarts them by rule, stops them in reverse order.

| in OTP | here |
|---|---|
| `Supervisor.start_link(children, opts)` | `async with Supervisor(*children, ...)`, or as a child |
| `Supervisor.child_spec/2` | `child(...)` |
| too many restarts: exit reason `shutdown` | `RestartIntensityExceeded`, a crash |
| `{:error, {:already_started, pid}}` | `DuplicateChild` |
| `Supervisor.terminate_child/2` … | `await sup.terminate_child(id)` … |

So a transient supervisor that gave up is restarted by its parent; in OTP it is not.

Group strategies restart every child of the group, as OTP does, including one that ended normally or
was terminated by hand; `delete_child` prevents that.

The strategy: one task, which is never cancelled. It takes exits, requests and due restarts from one
inbox in order of arrival, and completes each before the next, waiting only by being woken. After
every wait it checks first whether the supervisor itself must stop.
"""

from __future__ import annotations

import math
import random
from collections import deque
from typing import TYPE_CHECKING, Final, TypeVar, cast

import trio
from trio.lowlevel import enable_ki_protection, wait_task_rescheduled

from sessionmgr.otp import report
from sessionmgr.otp.base_supervisor import BaseSupervisor
from sessionmgr.otp.child_builder import as_spec
from sessionmgr.otp.child_entry import ChildEntry, StartRetry, SupervisorRequest
from sessionmgr.otp.child_rows import ChildRow
from sessionmgr.otp.child_task import ChildTask
from sessionmgr.otp.errors import (
    ChildRunning,
    DuplicateChild,
    RestartIntensityExceeded,
    StartFailed,
    SupervisorStopping,
    UnknownChild,
)
from sessionmgr.otp.exit_reason import NORMAL, SHUTDOWN, ExitReason, Shutdown, cause_of
from sessionmgr.otp.ref import Caller, open_call, ref_of
from sessionmgr.otp.restart_intensity import RestartWindow, check_limits
from sessionmgr.otp.restart_policy import (
    AutoShutdown,
    Strategy,
    ends_supervisor,
    restarted_with,
    wants_restart,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from sessionmgr.otp.actor import Actor
    from sessionmgr.otp.child_spec import ChildSpec
    from sessionmgr.otp.ref import Ref

STRATEGIES: Final = ("one_for_one", "one_for_all", "rest_for_one")
AUTO_SHUTDOWNS: Final = ("never", "any_significant", "all_significant")

A = TypeVar("A", bound="Actor")


class Supervisor(BaseSupervisor):
    """Supervisor of children that depend on each other, in a significant order.

    Children start in the given order and stop in reverse order, one by one, each within its
    `shutdown` time. The `strategy` determines what the end of one child means for the others:
    `one_for_one` (nothing), `one_for_all` (all restart), `rest_for_one` (those after it
    restart). After more than `max_restarts` restarts within `max_seconds` seconds, of all
    children together, the supervisor stops all children and raises `RestartIntensityExceeded`.

    As a block it runs while its body runs; giving up cancels the body and raises that exception
    from the block. Inside another supervisor it is a child like any other.

    `auto_shutdown` ends it with its `significant` children: with the first of them
    (`any_significant`) or the last (`all_significant`).
    """

    def __init__(
        self,
        *children: ChildSpec[Actor] | Callable[..., object] | BaseSupervisor,
        strategy: Strategy = "one_for_one",
        max_restarts: int = 3,
        max_seconds: float = 5.0,
        auto_shutdown: AutoShutdown = "never",
        name: str | None = None,
    ) -> None:
        super().__init__(name)
        if strategy not in STRATEGIES:
            raise ValueError(f"strategy={strategy!r}: must be one of {', '.join(STRATEGIES)}")
        if auto_shutdown not in AUTO_SHUTDOWNS:
            raise ValueError(
                f"auto_shutdown={auto_shutdown!r}: must be one of {', '.join(AUTO_SHUTDOWNS)}"
            )
        self._strategy: Strategy = strategy
        self._auto_shutdown: AutoShutdown = auto_shutdown
        self._limits = check_limits(max_restarts, max_seconds)
        self._intensity = RestartWindow(*self._limits)
        self._exits: deque[ExitReason] = deque(maxlen=max_restarts + 1)
        self._specs = [as_spec(what) for what in children]
        self._entries: dict[str, ChildEntry] = {}
        self._born = 0
        # Restarts that wait for their back-off: entry to time.
        self._due: dict[ChildEntry, float] = {}
        self._set_children()

    def _set_children(self) -> None:
        self._born = 0
        self._entries.clear()
        self._due.clear()
        given = [spec.id for spec in self._specs if spec.id is not None]
        for spec in self._specs:
            self._check_significant(spec)
            if spec.id is not None and given.count(spec.id) > 1:
                raise DuplicateChild(self.name, spec.id)
        for spec in self._specs:
            self._add_entry(spec, given)

    def _add_entry(self, spec: ChildSpec[Actor], reserved: Sequence[str] = ()) -> ChildEntry:
        own = spec.id
        while own is None:
            self._born += 1
            candidate = f"{spec.label}-{self._born}"
            if candidate not in self._entries and candidate not in reserved:
                own = candidate
        entry = self._entries[own] = ChildEntry(spec, own)
        return entry

    def _check_significant(self, spec: ChildSpec[Actor]) -> None:
        if spec.significant and self._auto_shutdown == "never":
            raise ValueError(
                f"child {spec.id or spec.label!r} is significant, but supervisor {self.name!r} has "
                "auto_shutdown='never': set it to any_significant or all_significant"
            )

    # The main task.

    async def _start_children(self) -> None:
        self._intensity = RestartWindow(*self._limits)
        self._exits.clear()
        self._set_children()
        for entry in list(self._entries.values()):
            reason = await self._start(entry)
            if self._running_task.stop_reason is not None:
                return
            if reason is not None:
                raise self._start_failure(entry, reason)

    async def _supervise(self) -> None:
        while not self._is_stopping():
            now = trio.current_time()
            for entry in [entry for entry, due in self._due.items() if due <= now]:
                del self._due[entry]
                await self._start_entries(entry)
            if self._is_stopping():
                return
            if self._inbox:
                await self._handle_item(self._inbox.popleft())
            else:
                await self._pause(min(self._due.values(), default=math.inf))

    def _is_stopping(self) -> bool:
        return self._running_task.stop_reason is not None

    async def _handle_item(self, item: object) -> None:
        if isinstance(item, ChildTask):
            await self._handle_exit(item)
        elif isinstance(item, StartRetry):
            if item.entry.restarting and self._entries.get(item.entry.id) is item.entry:
                await self._restart(item.entry, item.reason)
        elif isinstance(item, Caller) and item.waiting:
            order = cast("SupervisorRequest", item.message)
            await order.do(item)

    async def _stop_children(self) -> None:
        for entry in reversed(list(self._entries.values())):
            await self._stop_entry(entry)

    def _live_children(self) -> list[ChildTask]:
        return [
            entry.record
            for entry in self._entries.values()
            if entry.record is not None and entry.record.reason is None
        ]

    # Exits and restarts.

    async def _handle_exit(self, record: ChildTask) -> None:
        entry = self._entries.get(record.id)
        if entry is None or entry.record is not record or record.reason is None:
            # A group restart, or a request, has handled this exit already.
            return
        entry.record = None
        spec = entry.spec
        if wants_restart(spec.restart, record.reason):
            if spec.backoff and record.has_been_up_for(spec.backoff.maximum):
                entry.quick_restarts = 0
            await self._restart(entry, record.reason)
            return
        if spec.restart == "temporary":
            del self._entries[entry.id]
        if spec.significant:
            left = [
                other
                for other in self._entries.values()
                if other.spec.significant and not other.is_stopped
            ]
            if ends_supervisor(self._auto_shutdown, left):
                self._running_task.stop_reason = Shutdown("auto_shutdown")

    async def _restart(self, entry: ChildEntry, reason: ExitReason) -> None:
        """Count a restart, and make it: now, or after the back-off."""
        self._exits.append(reason)
        if not self._intensity.record(trio.current_time()):
            error = RestartIntensityExceeded(self.name, entry.id, list(self._exits), *self._limits)
            report.gave_up(error)
            raise error from cause_of(reason)
        entry.restarting = True
        for name in reversed(restarted_with(self._strategy, list(self._entries), entry.id)):
            other = self._entries[name]
            if other is not entry:
                await self._stop_entry(other)
                # A restart that it waited for itself is included in this one.
                other.restarting = False
                other.restarts_with = entry
                self._due.pop(other, None)
            if other.spec.restart == "temporary":
                del self._entries[name]
        if entry.spec.backoff is None:
            await self._start_entries(entry, reason)
        else:
            delay = entry.spec.backoff.delay(entry.quick_restarts, random.random())
            entry.quick_restarts += 1
            self._due[entry] = trio.current_time() + delay

    async def _start_entries(self, failed: ChildEntry, reason: ExitReason = NORMAL) -> None:
        group = [
            self._entries[name]
            for name in restarted_with(self._strategy, list(self._entries), failed.id)
        ]
        for entry in group:
            if entry.record is not None:
                continue
            if self._is_stopping():
                return
            entry.restarts += 1
            failure = await self._start(entry)
            if self._is_stopping():
                return
            if failure is not None:
                # Retry after the items in the inbox, so that a stop is not delayed.
                report.start_failed(self.name, entry.id, failure)
                entry.restarting = True
                for other in group:
                    if other.record is None and other is not entry:
                        other.restarting = False
                        other.restarts_with = entry
                self._inbox.append(StartRetry(entry, failure))
                return
            self._restarts += 1
            report.child_restarted(self.name, entry.id, reason)

    async def _start(self, entry: ChildEntry, order: Caller | None = None) -> ExitReason | None:
        """Start a child and wait until it is up; return the exit reason if it did not start."""
        me = self._running_task
        record = entry.record = ChildTask(entry.spec, entry.id, self, entry.restarts)
        entry.restarting = False
        entry.restarts_with = None
        self._due.pop(entry, None)
        self._start_in_context(record)
        me.begin_waiting(record)
        while not record.ready and record.reason is None and me.stop_reason is None:
            if order is not None and not order.waiting:
                break
            await self._pause()
        me.end_waiting(record)
        if record.ready:
            return None
        if record.reason is None:
            await self._stop_entry(entry)
            return SHUTDOWN
        entry.record = None
        return record.reason

    async def _stop_entry(self, entry: ChildEntry) -> None:
        """Stop a child: with a request, and with a kill after its `shutdown` time."""
        me, record = self._running_task, entry.record
        if record is None:
            return
        patience = 0.0 if me.killed else entry.spec.stop_timeout
        deadline = trio.current_time() + patience
        if patience > 0:
            record.request_stop(SHUTDOWN, deadline)
        me.begin_waiting(record)
        while record.reason is None:
            if me.killed or trio.current_time() >= deadline:
                record.kill()
                deadline = math.inf
            await self._pause(deadline)
        me.end_waiting(record)
        entry.record = None

    def _start_failure(self, entry: ChildEntry, reason: ExitReason) -> StartFailed:
        error = StartFailed(self.name, entry.id, reason)
        error.__cause__ = cause_of(reason)
        return error

    # Requests.

    async def start_child(
        self, what: ChildSpec[A] | Callable[..., object] | BaseSupervisor
    ) -> Ref[A]:
        """Add a child after the others, and wait until it is up.

        If the caller is cancelled meanwhile, the child is stopped and forgotten.

        Args:
            what: The child, as `child` describes it, or a class of actors, an async function or a
                supervisor.

        Raises:
            StartFailed: It did not start, and is not kept.
            DuplicateChild: The id is taken, possibly by a stopped child.
        """
        spec = as_spec(what)
        self._check_significant(spec)

        async def do(caller: Caller) -> None:
            if spec.id is not None and spec.id in self._entries:
                caller.fail(DuplicateChild(self.name, spec.id))
                return
            entry = self._add_entry(spec)
            reason = await self._start(entry, caller)
            if reason is not None or not caller.waiting:
                await self._stop_entry(entry)
                del self._entries[entry.id]
            self._answer_start(caller, entry, reason)

        return cast("Ref[A]", await self._request("start_child", do))

    async def terminate_child(self, child: str | Ref[Actor]) -> None:
        """Stop a child and do not restart it; a temporary one is forgotten.

        Args:
            child: The id of the child, or a reference to it.

        Raises:
            UnknownChild: There is no such child.
        """

        async def do(caller: Caller) -> None:
            entry = self._entry_of(child)
            if entry is None:
                caller.fail(UnknownChild(self.name, child))
                return
            await self._stop_entry(entry)
            entry.restarting = False
            entry.restarts_with = None
            self._due.pop(entry, None)
            if entry.spec.restart == "temporary":
                del self._entries[entry.id]
            caller.reply(None)

        await self._request("terminate_child", do)

    async def restart_child(self, id: str) -> Ref[Actor]:
        """Start a stopped child again.

        Args:
            id: The id of the child.

        Raises:
            UnknownChild: There is no such child.
            ChildRunning: It is not stopped.
            StartFailed: It did not start; it is kept.
        """

        async def do(caller: Caller) -> None:
            entry = self._stopped_entry(id, caller)
            if entry is not None:
                reason = await self._start(entry, caller)
                if not caller.waiting:
                    await self._stop_entry(entry)
                self._answer_start(caller, entry, reason)

        return cast("Ref[Actor]", await self._request("restart_child", do))

    async def delete_child(self, id: str) -> None:
        """Forget a stopped child.

        Args:
            id: The id of the child.

        Raises:
            UnknownChild: There is no such child.
            ChildRunning: It is not stopped: call `terminate_child` first.
        """

        async def do(caller: Caller) -> None:
            entry = self._stopped_entry(id, caller)
            if entry is not None:
                del self._entries[id]
                caller.reply(None)

        await self._request("delete_child", do)

    @enable_ki_protection
    async def _request(self, name: str, do: Callable[[Caller], Awaitable[None]]) -> object:
        caller = open_call(SupervisorRequest(name, do), self._require_running())
        self._inbox.append(caller)
        self._wake()
        return await wait_task_rescheduled(caller.abandon)

    def _reject(self, item: object) -> None:
        if isinstance(item, Caller) and item.waiting:
            item.fail(SupervisorStopping(self.name))

    def _answer_start(self, caller: Caller, entry: ChildEntry, reason: ExitReason | None) -> None:
        if self._running_task.stop_reason is not None:
            caller.fail(SupervisorStopping(self.name))
        elif reason is not None:
            caller.fail(self._start_failure(entry, reason))
        elif entry.record is not None:
            caller.reply(ref_of(entry.record))

    def _entry_of(self, child: str | Ref[Actor]) -> ChildEntry | None:
        if isinstance(child, str):
            return self._entries.get(child)
        record = child.child_task()
        entry = None if record is None else self._entries.get(record.id)
        return entry if entry is not None and entry.record is record else None

    def _stopped_entry(self, id: str, caller: Caller) -> ChildEntry | None:
        entry = self._entries.get(id)
        if entry is None:
            caller.fail(UnknownChild(self.name, id))
        elif not entry.is_stopped:
            caller.fail(ChildRunning(self.name, id, entry.state))
            return None
        return entry

    # Introspection.

    def which_children(self) -> list[ChildRow]:
        """List the children, in start order."""
        self._require_started()
        return [
            ChildRow(
                id=entry.id,
                ref=None if entry.record is None else ref_of(entry.record),
                kind=entry.spec.role,
                state=entry.state,
                restarts=entry.restarts,
            )
            for entry in self._entries.values()
        ]

    def _find_child(self, id: str) -> ChildTask | None:
        entry = self._entries.get(id)
        return None if entry is None else entry.record

    def _restarts_in_window(self) -> int:
        return self._intensity.count(trio.current_time())
