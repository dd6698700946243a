"""Callers: they start runs, control them, read along, and leave at random times."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import trio

from sessionmgr.adapter import Allow, Budget, Deny
from sessionmgr.errors import SessionmgrError
from sessionmgr.manager import (
    BudgetExhausted,
    Clocks,
    ManagerClosing,
    NotPausable,
    NotResumable,
    ProviderDown,
    SessionBusy,
    SessionIsClosed,
)
from sessionmgr.model import TERMINAL, IdKind, encode_json, new_id
from sessionmgr.store import LeaseHeld, Request, StoreError
from tests.simulation.reader import read_along
from tests.simulation.rng import SeededRandom
from tests.simulation.world import FRAIL, STEADY, RunNote

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator

    from sessionmgr.adapter import ApprovalRequest, Decision
    from sessionmgr.manager import Manager, RunHandle, SessionHandle
    from sessionmgr.model import Json, Snapshot
    from tests.simulation.world import ManagerRunNote, SimulatedWorld

BUDGET: Final = Budget(tokens=1000)
SPAN: Final = 60.0
"""Seconds over which callers arrive."""


class CallerError(Exception):
    """Raised by callers in the blocks of their runs."""


class SimulatedCaller:
    """One caller, which works with one session."""

    def __init__(
        self, world: SimulatedWorld, lifetime: ManagerRunNote, manager: Manager, number: int
    ) -> None:
        self._world: Final = world
        self._lifetime: Final = lifetime
        self._manager: Final = manager
        self.name: Final = f"{lifetime.number}-{number}"
        self._rng: Final = SeededRandom(world.seed, "caller", self.name)
        self._provider: Final = self._rng.choice([*STEADY, *STEADY, FRAIL])
        self._budget = BUDGET if self._rng.once_in(4) else None
        self._numbers = 0
        self._session: SessionHandle | None = None
        self.doing = "nothing"

    @property
    def session_id(self) -> str | None:
        """Id of the caller's session, once it has one."""
        return self._session.id if self._session else None

    # --- lifetime ----------------------------------------------------------------------------

    async def run(self) -> None:
        """Arrive at some time, perform some actions, and leave."""
        rng = self._rng
        await trio.sleep(rng.random() * SPAN)
        await self._choose_session()
        session = self._session
        if session is None:
            return
        acts: list[tuple[Callable[[SessionHandle], Awaitable[None]], float]] = [
            (self._submit, 4),
            (self._use_block, 4),
            (self._submit_many, 1.5),
            (self._start_without_waiting, 0.7),
            (self._close, 0.3),
        ]
        for _ in range(rng.randrange(1, 4)):
            await rng.one_of(acts)(session)
            await trio.sleep(rng.moment(12))
        self.doing = "nothing"

    async def _choose_session(self) -> None:
        with self._tolerant("open_session"):
            self._session = await self._open()

    async def _open(self) -> SessionHandle:
        rng, manager = self._rng, self._manager
        approve = rng.one_of([(self._approve, 4.0), (None, 1.0)])
        if rng.once_in(4) and self._world.record.sessions:
            self._budget = None
            id = rng.choice(list(self._world.record.sessions))
            return await manager.session(id, approve=approve)
        opened = await manager.open_session(
            self._provider,
            permission_mode=rng.choice(["default", "default", "full_auto"]),
            approve=approve,
            budget=self._budget,
        )
        if self._budget is not None:
            self._world.limited.add(opened.id)
        return opened

    def _new_name(self, session: SessionHandle) -> str:
        self._numbers += 1
        return f"{session.provider}-{self.name}-{self._numbers}"

    @contextmanager
    def _tolerant(self, doing: str, prompt: str | None = None) -> Generator[None, None, None]:
        """Perform an action that may be refused, if there is a reason for a refusal."""
        self.doing = doing
        try:
            yield
        except SessionmgrError as error:
            if not self._may_be(error):
                self._world.add_violation(f"{self.name} {doing}: {type(error).__name__}: {error}")
            if prompt is not None and not isinstance(error, StoreError):
                self._world.refused.add(prompt)
        except (CallerError, trio.Cancelled):
            raise
        except Exception as error:  # noqa: BLE001  # whatever it is, it is a finding
            self._world.add_violation(f"{self.name} {doing}: unexpected {error!r}")

    def _may_be(self, error: SessionmgrError) -> bool:
        faults, now = self._lifetime.faults, trio.current_time()
        match error:
            case ManagerClosing():
                return now >= self._lifetime.closing_at
            case ProviderDown():
                return error.provider == FRAIL
            case BudgetExhausted():
                return self._session is not None and self._session.id in self._world.limited
            case NotPausable() | NotResumable() | SessionIsClosed():
                return True
            case SessionBusy() | LeaseHeld():
                return self._lifetime.number > 0
            case StoreError():
                return faults.had_bad(now - 70, now)
            case _:
                return False

    # --- actions -----------------------------------------------------------------------------

    def _note(self, run: RunHandle, prompt: str) -> RunNote:
        note = RunNote(run.id, run.session_id, prompt, self._lifetime)
        note.budget = self._budget is not None
        self._world.runs[run.id] = note
        return note

    async def _submit(self, session: SessionHandle) -> None:
        name = self._new_name(session)
        with self._tolerant(f"submit {name}", name):
            run = await session.submit(name)
            await self._follow_run(run, self._note(run, name))

    async def _submit_many(self, session: SessionHandle) -> None:
        started: list[tuple[RunHandle, RunNote]] = []
        for _ in range(self._rng.randrange(2, 5)):
            name = self._new_name(session)
            with self._tolerant(f"submit {name}", name):
                run = await session.submit(name)
                started.append((run, self._note(run, name)))
        async with trio.open_nursery() as nursery:
            for run, note in started:
                nursery.start_soon(self._follow_run, run, note)

    async def _start_without_waiting(self, session: SessionHandle) -> None:
        """Start a run without waiting for the start."""
        name = self._new_name(session)
        self._world.hasty.add(name)
        with trio.move_on_after(self._rng.moment(0.5)), self._tolerant(f"haste {name}"):
            run = await session.submit(name)
            self._note(run, name)

    async def _close(self, session: SessionHandle) -> None:
        with self._tolerant("close"):
            await session.close()

    async def _use_block(self, session: SessionHandle) -> None:
        name = self._new_name(session)
        how = self._rng.choice(["stay", "stay", "break", "raise", "cancel", "both"])
        patience = self._rng.moment(10) if how in {"cancel", "both"} else float("inf")
        if patience < float("inf"):
            self._world.hasty.add(name)
        run: RunHandle | None = None
        note: RunNote | None = None
        try:
            with self._tolerant(f"block {name}"), trio.move_on_after(patience):
                async with session.start(name) as run:
                    note = self._note(run, name)
                    try:
                        await self._in_block(run, note, how)
                    except BaseException:
                        note.left = True
                        raise
        except CallerError:
            if how not in {"raise", "both"}:
                self._world.add_violation(f"{self.name}: Oops without a cause")
        if run is None or note is None:
            return
        self._check_left(run, note)

    async def _in_block(self, run: RunHandle, note: RunNote, how: str) -> None:
        if how == "stay":
            await self._follow_run(run, note)
            return
        note.left = True
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._disturb_run, run, note)
            left = self._rng.randrange(12)
            reader = trio.CancelScope()
            self._lifetime.readers.append(reader)
            with self._tolerant(f"iterate {note.id}"), reader:
                async for _ in run:
                    left -= 1
                    if left < 0:
                        break
            nursery.cancel_scope.cancel()
        if how == "raise":
            raise CallerError
        if how == "both":
            try:
                await trio.sleep_forever()
            finally:
                raise CallerError  # as the clean-up code of a caller may

    def _check_left(self, run: RunHandle, note: RunNote) -> None:
        now, lifetime = trio.current_time(), self._lifetime
        if run.status not in TERMINAL and not lifetime.faults.had_bad(now - 80, now):
            self._world.add_violation(f"the block of {note.id} is left, and it is {run.status}")

    async def _follow_run(self, run: RunHandle, note: RunNote) -> None:
        """Follow a run to its end, and control it meanwhile."""
        async with trio.open_nursery() as nursery:
            for _ in range(self._rng.randrange(3)):
                nursery.start_soon(self._disturb_run, run, note)
            self.doing = f"wait for {note.id} ({note.prompt})"
            note.result = await run.result()
            self.doing = f"control {note.id} ({note.prompt})"

    # --- control of a run --------------------------------------------------------------------

    async def _disturb_run(self, run: RunHandle, note: RunNote) -> None:
        rng = self._rng
        deed = rng.one_of(
            [
                (self._read, 4.0),
                (self._append, 3.0),
                (self._cancel, 2.5),
                (self._pause, 1.5),
                (self._request, 1.0),
            ]
        )
        if deed != self._read:
            if rng.once_in(3):
                await self._wait_for_the_end(run)
            await trio.sleep(rng.moment(15))
        with self._tolerant(f"{deed.__name__} {note.id}"):
            await deed(run, note)

    async def _wait_for_the_end(self, run: RunHandle) -> None:
        """Wait until the run has just ended, but not too long."""
        with self._tolerant("listen"), trio.move_on_after(30):
            async for _ in run:
                pass

    async def _read(self, run: RunHandle, note: RunNote) -> None:
        rng = SeededRandom(self._world.seed, "reader", self.name, note.id)
        await read_along(self._world, self._manager, self._lifetime, run, rng)

    async def _append(self, run: RunHandle, note: RunNote) -> None:
        assert self._session is not None
        world, name = self._world, self._new_name(self._session)
        world.follow_ups[name] = "lost"
        follow_up = await run.append(name)
        world.follow_ups[name] = follow_up.state
        if name not in world.record.queued:
            world.add_violation(f"the follow-up {name} is {follow_up.state} and not stored")
        if follow_up.state == "queued":
            world.follow_ups[name] = follow_up.run.id
            later = self._note(follow_up.run, name)
            if self._rng.once_in(2):
                later.result = await follow_up.run.result()
        elif follow_up.state == "accepted" and world.plays.get(name) != ["append"]:
            world.add_violation(f"the follow-up {name} was accepted: {world.plays.get(name)}")

    async def _cancel(self, run: RunHandle, note: RunNote) -> None:
        world, now = self._world, trio.current_time()
        match self._rng.randrange(10):
            case 0:
                world.all_cancels.append(now)
                await self._manager.cancel_all(detail="all")
            case 1 | 2:
                world.session_cancels.setdefault(note.session_id, []).append(now)
                await self._manager.cancel(note.session_id, detail="the session")
            case 3 | 4:
                world.session_cancels.setdefault(note.session_id, []).append(now)
                assert self._session is not None
                await self._session.cancel()
            case 5 | 6:
                if await self._manager.cancel(note.id):
                    note.cancels.append(now)
            case _:
                if run.cancel("by handle"):
                    note.cancels.append(now)
                if run.cancel("again"):
                    world.add_violation(f"{note.id} could be cancelled twice")
        await trio.lowlevel.checkpoint()

    async def _pause(self, run: RunHandle, note: RunNote) -> None:
        note.paused = True
        assert self._session is not None
        message = self._new_name(self._session) if self._rng.once_in(2) else None
        snapshot = await run.pause(node="n", state={"a": 1}, message=message)
        if run.status != "paused":
            self._world.add_violation(f"{note.id} was paused, and is {run.status}")
        await trio.sleep(self._rng.moment(20))
        await self._resume(snapshot)

    async def _resume(self, snapshot: Snapshot) -> None:
        assert self._session is not None
        name = None if snapshot.message else self._new_name(self._session)
        which = snapshot if self._rng.once_in(2) else snapshot.id
        run = await self._manager.submit_resume(which, name, approve=self._approve)
        note = self._note(run, name or snapshot.message or "")
        note.result = await run.result()

    async def _request(self, run: RunHandle, note: RunNote) -> None:
        """Send a request as another process would: through the store."""
        world, store = self._world, self._world.store
        kind = self._rng.choice(["cancel", "append", "pause", "approve", "nonsense"])
        name = f"req-{self._new_name(self._session)}" if self._session else "req"
        body: dict[str, Json] = {"detail": "from elsewhere"}
        match kind:
            case "cancel":
                world.session_cancels.setdefault(note.session_id, []).append(trio.current_time())
            case "append":
                assert self._session is not None
                body["content"] = self._new_name(self._session)
            case "pause":
                world.pause_requests.add(note.session_id)
            case "approve":
                body["allow"] = self._rng.once_in(2)
            case _:
                pass
        target = self._rng.choice([note.id, note.session_id])
        request_id = new_id(IdKind.BATCH, world.bits)
        await store.submit(
            Request(
                request_id=request_id,
                kind=kind,
                target=target,
                at=int(world.now() * 1000),
                body=encode_json(body),
            )
        )
        self.doing = f"request {kind} of {target} as {name}"
        with trio.move_on_after(100):
            await store.wait_result(request_id)

    async def _approve(self, request: ApprovalRequest) -> Decision:
        world = self._world
        if request.approval_id not in world.record.questions:
            world.add_violation(f"asked {request.approval_id} before it was stored")
        rng = SeededRandom(world.seed, "approve", request.approval_id)
        await trio.sleep(rng.moment(6))
        match rng.randrange(9):
            case 0 | 1 | 2:
                return Allow()
            case 3:
                return Allow(tool_input={"command": "changed"})
            case 4 | 5:
                return Deny(reason="no")
            case 6:
                world.stops.add(request.run_id)
                return Deny(reason="stop it", stop=True)
            case 7:
                raise CallerError
            case _:
                await trio.sleep_forever()
                raise AssertionError


# Floats, as a decoded event has them: a checker compares encoded events.
CLOCKS: Final = Clocks(
    start=30.0,
    store=20.0,
    model=45.0,
    idle=45.0,
    drain=30.0,
    approval=15.0,
    close=2.0,
    tool_warning=20.0,
)
