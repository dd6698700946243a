"""Runner of supervisor scripts: its children follow the script, and it records every event."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, cast

import outcome
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from sessionmgr.otp import (
    Actor,
    Cast,
    DynamicSupervisor,
    OtpError,
    Ref,
    Stop,
    Supervisor,
    child,
)
from sessionmgr.otp.context import current_child
from sessionmgr.otp.ref import ref_of
from tests.otp.observed_event import CANCELLED, OK, EventKind, ObservedEvent, Trace
from tests.otp.supervisor_scripts import (
    FROM_OUTSIDE,
    REASONS,
    AskSupervisor,
    ChildPlan,
    EndChildren,
    Pause,
    ScriptedCrashError,
    StartCrashError,
    SupervisorOptions,
    SupervisorScript,
    TerminateCrashError,
)

if TYPE_CHECKING:
    from sessionmgr.otp import ChildSpec, ExitReason
    from sessionmgr.otp.child_task import ChildTask

# Long after the last deadline of any script.
LATER = 1000.0


class ScriptHangError(Exception):
    """Nothing moves, nothing will, and it is not over."""


class RunCommand(Cast):
    """Do it."""

    how: str


def obey(how: str) -> None:
    """End in the requested way."""
    if how == "crash":
        raise ScriptedCrashError
    if how != "finish":
        raise Stop(REASONS[how.removeprefix("raise ")])


class PlannedIncarnation:
    """One incarnation, as the world sees it."""

    def __init__(self, world: SupervisorScriptRunner, path: str, plan: ChildPlan) -> None:
        life = current_child()
        assert life is not None
        self.path = path
        self.plan = plan
        self.number = world.born[path]
        self.ref: Ref[Actor] = ref_of(life)
        self.told = trio.Event()
        self.how = ""
        world.born[path] += 1
        world.alive[trio.lowlevel.current_task()] = self

    def tell(self, how: str) -> None:
        """Let it end, as soon as it can."""
        if how == "kill":
            self.ref.kill()
        elif how in FROM_OUTSIDE:
            self.ref.stop(REASONS[how.removeprefix("stop ")])
        elif self.plan.kind in {"actor", "polite"}:
            self.ref.cast(RunCommand(how))
        else:
            self.how = how
            self.told.set()


class PlanRunner:
    """Child that follows a plan, incarnation after incarnation."""

    def __init__(self, world: SupervisorScriptRunner, path: str, plan: ChildPlan) -> None:
        self.world = world
        self.path = path
        self.plan = plan

    def begin(self) -> PlannedIncarnation:
        """Enter the stage."""
        part = PlannedIncarnation(self.world, self.path, self.plan)
        self.world.note("start", part)
        return part

    async def come_up(self, part: PlannedIncarnation) -> None:
        """Get ready, or fail to."""
        if self.plan.init:
            await trio.sleep(self.plan.init)
        if part.number in self.plan.failing:
            raise StartCrashError
        self.world.note("ready", part)

    async def play(self) -> None:
        """Be a function."""
        part = self.begin()
        self.world.note("ready", part)
        await self.perform(part)

    async def play_up(self, *, task_status: trio.TaskStatus[None]) -> None:
        """Be a function that says when it is up."""
        part = self.begin()
        await self.come_up(part)
        task_status.started()
        await self.perform(part)

    async def perform(self, part: PlannedIncarnation) -> None:
        """Wait for the word; then clean up, whatever happens."""
        try:
            await part.told.wait()
            obey(part.how)
        finally:
            if self.plan.farewell:
                with trio.CancelScope(shield=True):
                    await trio.sleep(self.plan.farewell)


class PlannedActor(Actor):
    """An actor that plays a plan."""

    def __init__(self, player: PlanRunner) -> None:
        self.player = player

    async def init(self) -> None:
        self.part = self.player.begin()
        await self.player.come_up(self.part)

    async def handle_cast(self, message: Cast, /) -> None:
        assert isinstance(message, RunCommand)
        obey(message.how)


class TerminatingActor(PlannedActor):
    """One that says farewell."""

    async def terminate(self, reason: ExitReason, /) -> None:
        self.player.world.note("farewell", self.part, reason)
        if self.player.plan.farewell:
            await trio.sleep(self.player.plan.farewell)
        if self.player.plan.sour:
            raise TerminateCrashError


class NestedSupervisor(Supervisor):
    """A supervisor that is a child."""

    def __init__(
        self, player: PlanRunner, specs: list[ChildSpec[Actor]], options: SupervisorOptions
    ) -> None:
        super().__init__(
            *specs,
            strategy=options.strategy,
            max_restarts=options.max_restarts,
            max_seconds=options.max_seconds,
        )
        self.player = player

    async def run(self, record: ChildTask) -> None:
        self.player.begin()
        await super().run(record)


class SupervisorScriptRunner(trio.abc.Instrument):
    """Runner of one script, with the trace of its events."""

    def __init__(self, script: SupervisorScript, *, dynamic: bool = False) -> None:
        self.script = script
        self.trace: Trace = []
        self.born: Counter[str] = Counter()
        self.alive: dict[trio.lowlevel.Task, PlannedIncarnation] = {}
        self.scopes: dict[int, trio.CancelScope] = {}
        self.orders = 0
        self.left_over = 0
        options = script.options
        self.ids = [f"c{number}" for number in range(len(options.plans))]
        self.sup: Supervisor | DynamicSupervisor
        if dynamic:
            self.sup = DynamicSupervisor(
                max_restarts=options.max_restarts, max_seconds=options.max_seconds, max_children=6
            )
        else:
            self.sup = Supervisor(
                *(self.spec(own, plan) for own, plan in zip(self.ids, options.plans, strict=True)),
                strategy=options.strategy,
                max_restarts=options.max_restarts,
                max_seconds=options.max_seconds,
                auto_shutdown=options.auto_shutdown,
            )

    def spec(self, path: str, plan: ChildPlan) -> ChildSpec[Actor]:
        """Say what the child is that plays `plan`."""
        player = PlanRunner(self, path, plan)
        own = path.rpartition("/")[2]
        if plan.kind == "supervisor":
            assert plan.within is not None
            below = [self.spec(f"{path}/x{n}", p) for n, p in enumerate(plan.within.plans)]
            target: object = NestedSupervisor(player, below, plan.within)
            args: tuple[object, ...] = ()
        else:
            target = {
                "function": player.play,
                "started": player.play_up,
                "actor": PlannedActor,
                "polite": TerminatingActor,
            }[plan.kind]
            args = (player,) if plan.kind in {"actor", "polite"} else ()
        return child(
            cast("type[Actor]", target),
            *args,
            id=own,
            restart=plan.restart,
            shutdown=plan.shutdown,
            significant=plan.significant,
            backoff=plan.backoff,
        )

    # The chronicle.

    def note(
        self, kind: EventKind, part: PlannedIncarnation | None, data: object = None, order: int = 0
    ) -> None:
        """Write down what happens."""
        path, number = (part.path, part.number) if part is not None else ("", 0)
        self.trace.append(ObservedEvent(trio.current_time(), kind, path, number, data, order))

    def task_exited(self, task: trio.lowlevel.Task) -> None:
        """Note the end of an incarnation, in the step in which it happens."""
        part = self.alive.pop(task, None)
        if part is not None:
            life = part.ref.child_task()
            assert life is not None
            self.note("gone", part, life.reason)

    # The play.

    def run(self) -> Trace:
        """Play the script from beginning to end.

        Raises:
            Hang: it never comes to an end.
        """
        try:
            clock = MockClock(autojump_threshold=0)
            trio.run(self._run, clock=clock, instruments=[self])
        except trio.TrioInternalError as error:
            if isinstance(error.__cause__, ScriptHangError):
                raise error.__cause__ from None
            raise
        return self.trace

    async def _run(self) -> None:
        guard = trio.lowlevel.spawn_system_task(guard_against_hanging)
        before = trio.lowlevel.current_statistics().tasks_living
        async with trio.open_nursery() as askers:
            with trio.CancelScope() as outer:
                result = await outcome.acapture(self.hold_block, askers, outer)
                error = result.error if isinstance(result, outcome.Error) else None
                self.note("over", None, error)
                if isinstance(error, trio.Cancelled):
                    raise error
            await wait_all_tasks_blocked()
            askers.cancel_scope.cancel()
        self.left_over = trio.lowlevel.current_statistics().tasks_living - before
        trio.lowlevel.reschedule(guard)

    async def hold_block(self, askers: trio.Nursery, outer: trio.CancelScope) -> None:
        """Be the task in which the supervisor's block is."""
        async with self.sup:
            try:
                await self.direct(askers, outer)
            except BaseException as error:
                self.note("stop", None, error)
                raise
            self.note("stop", None)

    async def direct(self, askers: trio.Nursery, outer: trio.CancelScope) -> None:
        """Be the body of the supervisor's block."""
        if isinstance(self.sup, DynamicSupervisor):
            for own, plan in zip(self.ids, self.script.options.plans, strict=True):
                self.orders += 1
                askers.start_soon(
                    self.ask, self.orders, AskSupervisor("start", 0, plan, False, "on"), own
                )
            await wait_all_tasks_blocked()
        for op in self.script.ops:
            if isinstance(op, EndChildren):
                self.end(op)
                await pause(op.then)
            else:
                await self.arrange(op, askers)
        if self.script.rest:
            await trio.sleep(LATER)
            rows = [(row.id, row.state) for row in self.sup.which_children()]
            self.note("quiet", None, rows)
        match self.script.ending:
            case "leave":
                return
            case "raise":
                raise ValueError("the body failed")
            case "interrupt":
                raise KeyboardInterrupt
            case "cancel":
                outer.cancel()
                await trio.lowlevel.checkpoint()

    def end(self, op: EndChildren) -> None:
        """Let children end, all in this moment."""
        parts = sorted(self.alive.values(), key=lambda part: part.path)
        for bit, part in enumerate(parts):
            outside = op.how in FROM_OUTSIDE
            if op.who & (1 << bit) and (part.plan.kind != "supervisor" or outside):
                self.note("told", part, op.how)
                part.tell(op.how)

    async def arrange(self, op: AskSupervisor, askers: trio.Nursery) -> None:
        """Make a request, and perhaps cancel it."""
        self.orders += 1
        number = self.orders
        if op.verb == "start" and op.who > len(self.ids):
            self.ids.append(f"d{number}")
            own = self.ids[-1]
        else:
            own = self.ids[op.who % len(self.ids)]
        askers.start_soon(self.ask, number, op, own)
        await pause(op.then)
        if op.withdraw and number in self.scopes:
            self.trace.append(ObservedEvent(trio.current_time(), "withdraw", "", order=number))
            self.scopes[number].cancel()

    async def ask(self, number: int, op: AskSupervisor, own: str) -> None:
        """Ask the supervisor, and note the answer."""
        answer: object = CANCELLED
        with trio.CancelScope() as scope:
            self.scopes[number] = scope
            self.trace.append(
                ObservedEvent(trio.current_time(), "order", own, 0, (op.verb, op.plan), number)
            )
            answer = await self.say(op, own)
        del self.scopes[number]
        self.trace.append(ObservedEvent(trio.current_time(), "answer", own, 0, answer, number))

    async def say(self, op: AskSupervisor, own: str) -> object:
        """Give the order."""
        try:
            match op.verb:
                case "start":
                    await self.sup.start_child(self.spec(own, op.plan))
                case "terminate":
                    await self.sup.terminate_child(own)
                case "restart":
                    assert isinstance(self.sup, Supervisor)
                    await self.sup.restart_child(own)
                case "delete":
                    assert isinstance(self.sup, Supervisor)
                    await self.sup.delete_child(own)
        except OtpError as error:
            return type(error)
        return OK


async def pause(then: Pause) -> None:
    """Wait as an op says."""
    if then == "tick":
        await trio.lowlevel.checkpoint()
    elif then == "settle":
        await wait_all_tasks_blocked()
    elif not isinstance(then, str):
        await trio.sleep(then)


async def guard_against_hanging() -> None:
    """Break the run, shields or not, when virtual time has run far past the script."""

    def give_up(_raise_cancel: object) -> trio.lowlevel.Abort:
        raise ScriptHangError

    with trio.CancelScope(deadline=100 * LATER):
        await trio.lowlevel.wait_task_rescheduled(give_up)
