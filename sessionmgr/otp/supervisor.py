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
        self._slots: dict[str, ChildEntry] = {}
        self._born = 0
        # Restarts that wait for their back-off: entry to time.
        self._due: dict[ChildEntry, float] = {}
        self._set_children()

    def _set_children(self) -> None:
        self._born = 0
        self._slots.clear()
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
            if candidate not in self._slots and candidate not in reserved:
                own = candidate
        slot = self._slots[own] = ChildEntry(spec, own)
        return slot

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
        for slot in list(self._slots.values()):
            reason = await self._start(slot)
            if self._running_task.stop_reason is not None:
                return
            if reason is not None:
                raise self._start_failure(slot, reason)

    async def _supervise(self) -> None:
        while not self._is_stopping():
            now = trio.current_time()
            for slot in [slot for slot, due in self._due.items() if due <= now]:
                del self._due[slot]
                await self._start_entries(slot)
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
            if item.slot.restarting and self._slots.get(item.slot.id) is item.slot:
                await self._restart(item.slot, item.reason)
        elif isinstance(item, Caller) and item.waiting:
            order = cast("SupervisorRequest", item.message)
            await order.do(item)

    async def _stop_children(self) -> None:
        for slot in reversed(list(self._slots.values())):
            await self._stop_entry(slot)

    def _live_children(self) -> list[ChildTask]:
        return [
            slot.life
            for slot in self._slots.values()
            if slot.life is not None and slot.life.reason is None
        ]

    # Exits and restarts.

    async def _handle_exit(self, life: ChildTask) -> None:
        slot = self._slots.get(life.id)
        if slot is None or slot.life is not life or life.reason is None:
            # A group restart, or a request, has handled this exit already.
            return
        slot.life = None
        spec = slot.spec
        if wants_restart(spec.restart, life.reason):
            if spec.backoff and life.has_been_up_for(spec.backoff.maximum):
                slot.quick_restarts = 0
            await self._restart(slot, life.reason)
            return
        if spec.restart == "temporary":
            del self._slots[slot.id]
        if spec.significant:
            left = [
                other
                for other in self._slots.values()
                if other.spec.significant and not other.is_stopped
            ]
            if ends_supervisor(self._auto_shutdown, left):
                self._running_task.stop_reason = Shutdown("auto_shutdown")

    async def _restart(self, slot: ChildEntry, reason: ExitReason) -> None:
        """Count a restart, and make it: now, or after the back-off."""
        self._exits.append(reason)
        if not self._intensity.record(trio.current_time()):
            error = RestartIntensityExceeded(self.name, slot.id, list(self._exits), *self._limits)
            report.gave_up(error)
            raise error from cause_of(reason)
        slot.restarting = True
        for name in reversed(restarted_with(self._strategy, list(self._slots), slot.id)):
            other = self._slots[name]
            if other is not slot:
                await self._stop_entry(other)
                # A restart that it waited for itself is included in this one.
                other.restarting = False
                other.restarts_with = slot
                self._due.pop(other, None)
            if other.spec.restart == "temporary":
                del self._slots[name]
        if slot.spec.backoff is None:
            await self._start_entries(slot, reason)
        else:
            delay = slot.spec.backoff.delay(slot.quick_restarts, random.random())
            slot.quick_restarts += 1
            self._due[slot] = trio.current_time() + delay

    async def _start_entries(self, failed: ChildEntry, reason: ExitReason = NORMAL) -> None:
        group = [
            self._slots[name]
            for name in restarted_with(self._strategy, list(self._slots), failed.id)
        ]
        for slot in group:
            if slot.life is not None:
                continue
            if self._is_stopping():
                return
            slot.restarts += 1
            failure = await self._start(slot)
            if self._is_stopping():
                return
            if failure is not None:
                # Retry after the items in the inbox, so that a stop is not delayed.
                report.start_failed(self.name, slot.id, failure)
                slot.restarting = True
                for other in group:
                    if other.life is None and other is not slot:
                        other.restarting = False
                        other.restarts_with = slot
                self._inbox.append(StartRetry(slot, failure))
                return
            self._restarts += 1
            report.child_restarted(self.name, slot.id, reason)

    async def _start(self, slot: ChildEntry, order: Caller | None = None) -> ExitReason | None:
        """Start a child and wait until it is up; return the exit reason if it did not start."""
        me = self._running_task
        life = slot.life = ChildTask(slot.spec, slot.id, self, slot.restarts)
        slot.restarting = False
        slot.restarts_with = None
        self._due.pop(slot, None)
        self._start_in_context(life)
        me.begin_waiting(life)
        while not life.ready and life.reason is None and me.stop_reason is None:
            if order is not None and not order.waiting:
                break
            await self._pause()
        me.end_waiting(life)
        if life.ready:
            return None
        if life.reason is None:
            await self._stop_entry(slot)
            return SHUTDOWN
        slot.life = None
        return life.reason

    async def _stop_entry(self, slot: ChildEntry) -> None:
        """Stop a child: with a request, and with a kill after its `shutdown` time."""
        me, life = self._running_task, slot.life
        if life is None:
            return
        patience = 0.0 if me.killed else slot.spec.stop_timeout
        deadline = trio.current_time() + patience
        if patience > 0:
            life.request_stop(SHUTDOWN, deadline)
        me.begin_waiting(life)
        while life.reason is None:
            if me.killed or trio.current_time() >= deadline:
                life.kill()
                deadline = math.inf
            await self._pause(deadline)
        me.end_waiting(life)
        slot.life = None

    def _start_failure(self, slot: ChildEntry, reason: ExitReason) -> StartFailed:
        error = StartFailed(self.name, slot.id, reason)
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
            if spec.id is not None and spec.id in self._slots:
                caller.fail(DuplicateChild(self.name, spec.id))
                return
            slot = self._add_entry(spec)
            reason = await self._start(slot, caller)
            if reason is not None or not caller.waiting:
                await self._stop_entry(slot)
                del self._slots[slot.id]
            self._answer_start(caller, slot, reason)

        return cast("Ref[A]", await self._request("start_child", do))

    async def terminate_child(self, child: str | Ref[Actor]) -> None:
        """Stop a child and do not restart it; a temporary one is forgotten.

        Args:
            child: The id of the child, or a reference to it.

        Raises:
            UnknownChild: There is no such child.
        """

        async def do(caller: Caller) -> None:
            slot = self._entry_of(child)
            if slot is None:
                caller.fail(UnknownChild(self.name, child))
                return
            await self._stop_entry(slot)
            slot.restarting = False
            slot.restarts_with = None
            self._due.pop(slot, None)
            if slot.spec.restart == "temporary":
                del self._slots[slot.id]
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
            slot = self._stopped_entry(id, caller)
            if slot is not None:
                reason = await self._start(slot, caller)
                if not caller.waiting:
                    await self._stop_entry(slot)
                self._answer_start(caller, slot, reason)

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
            slot = self._stopped_entry(id, caller)
            if slot is not None:
                del self._slots[id]
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

    def _answer_start(self, caller: Caller, slot: ChildEntry, reason: ExitReason | None) -> None:
        if self._running_task.stop_reason is not None:
            caller.fail(SupervisorStopping(self.name))
        elif reason is not None:
            caller.fail(self._start_failure(slot, reason))
        elif slot.life is not None:
            caller.reply(ref_of(slot.life))

    def _entry_of(self, child: str | Ref[Actor]) -> ChildEntry | None:
        if isinstance(child, str):
            return self._slots.get(child)
        life = child.child_task()
        slot = None if life is None else self._slots.get(life.id)
        return slot if slot is not None and slot.life is life else None

    def _stopped_entry(self, id: str, caller: Caller) -> ChildEntry | None:
        slot = self._slots.get(id)
        if slot is None:
            caller.fail(UnknownChild(self.name, id))
        elif not slot.is_stopped:
            caller.fail(ChildRunning(self.name, id, slot.state))
            return None
        return slot

    # Introspection.

    def which_children(self) -> list[ChildRow]:
        """List the children, in start order."""
        self._require_started()
        return [
            ChildRow(
                id=slot.id,
                ref=None if slot.life is None else ref_of(slot.life),
                kind=slot.spec.role,
                state=slot.state,
                restarts=slot.restarts,
            )
            for slot in self._slots.values()
        ]

    def _find_child(self, id: str) -> ChildTask | None:
        slot = self._slots.get(id)
        return None if slot is None else slot.life

    def _restarts_in_window(self) -> int:
        return self._intensity.count(trio.current_time())
