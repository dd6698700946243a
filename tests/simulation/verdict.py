"""Verdict on a simulation: all stored events are lawful, and each end has a reason."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from sessionmgr.model import TERMINAL, FailureKind, decode_run
from sessionmgr.testing.invariants import broken_laws
from tests.simulation.simulated_caller import CLOCKS
from tests.simulation.small_inbox import LARGEST
from tests.simulation.world import FRAIL

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sessionmgr.model import RunResult
    from sessionmgr.store import StoredRun
    from tests.simulation.store_record import StoredEventNote
    from tests.simulation.workload import Workload
    from tests.simulation.world import SimulatedWorld

SLACK: Final = 0.5
"""Tolerance in seconds for steps that take no virtual time of their own."""


class _End(msgspec.Struct, frozen=True):
    type: str
    reason: str | None = None
    detail: str | None = None
    failure: dict[str, object] | None = None


class _Sent(msgspec.Struct, frozen=True):
    content: str
    state: str


async def find_violations(world: SimulatedWorld) -> list[str]:
    """Return all violations, one sentence each."""
    found = list(world.complaints)
    found += await broken_laws(world.store)
    found += await _unlike_the_record(world)
    for run in await _runs(world):
        found += _run(world, run)
    if world.record.largest > LARGEST:
        found.append(f"a batch of {world.record.largest} bytes: its writer did not wait for room")
    found += _follow_ups(world)
    found += _plays(world)
    found += _approvals(world)
    for prompt in world.refused:
        if prompt in world.record.queued and not _is_a_follow_up(world, prompt):
            found.append(f"{prompt} was refused, and is stored")
    return found


def _is_a_follow_up(world: SimulatedWorld, prompt: str) -> bool:
    return prompt in world.follow_ups


async def _runs(world: SimulatedWorld) -> list[StoredRun]:
    found: list[StoredRun] = []
    cursor = None
    while True:
        page = await world.store.runs(cursor=cursor)
        found += page.rows
        cursor = page.cursor
        if cursor is None:
            return found


async def _unlike_the_record(world: SimulatedWorld) -> list[str]:
    """Check that the store has exactly what was ever stored."""
    found: list[str] = []
    for session_id, noted in world.record.sessions.items():
        page = await world.store.events(session_id, limit=10**6)
        if [each.row for each in noted] != list(page.rows):
            found.append(f"{session_id}: its stored events have changed")
    return found


# --- ends, and their reasons -----------------------------------------------------------------


def _run(world: SimulatedWorld, stored: StoredRun) -> Iterator[str]:
    name = stored.run_id
    noted = world.record.ends.get(name)
    if noted is None:
        return  # reported by the laws
    end = msgspec.json.decode(noted.row.body, type=_End)
    rows = [each for each in world.record.sessions[stored.session_id] if each.row.run_id == name]
    first = msgspec.json.decode(rows[0].row.body, type=_Sent)
    workload = world.workload(first.content)
    why = EndReasons(world, stored, first.content, workload, noted)
    if not why.explain(stored.status, end):
        yield (
            f"{name} ({first.content}, {workload.kind}) is {stored.status} "
            f"({end.reason}, {end.detail}, {end.failure}), and this end has no reason"
        )
    yield from _result(world, stored, workload)
    yield from _agreed(world, stored, workload)
    yield from _in_time(world, stored, workload, noted)


class EndReasons:
    """Possible reasons for the end of one run."""

    def __init__(
        self,
        world: SimulatedWorld,
        stored: StoredRun,
        prompt: str,
        workload: Workload,
        noted: StoredEventNote,
    ) -> None:
        self._world = world
        self._stored = stored
        self._workload = workload
        self._prompt = prompt
        self._note = world.runs.get(stored.run_id)
        self._end = noted.at
        self._begin = world.record.first[stored.run_id].at
        self._lifetimes = [
            lifetime
            for lifetime in world.lifetimes
            if lifetime.began <= self._end and lifetime.over_at >= self._begin
        ]

    def explain(self, status: str, end: _End) -> bool:
        """Return whether a run may have ended like this."""
        kind = None if end.failure is None else end.failure.get("kind")
        match status, end.reason, kind:
            case "cancelled", "user", _:
                return self._was_cancelled()
            case "cancelled", "shutdown", _:
                return any(lifetime.closing_at <= self._end for lifetime in self._lifetimes)
            case "paused", _, _:
                paused = self._note is not None and self._note.paused
                return paused or self._stored.session_id in self._world.pause_requests
            case "failed", _, "manager_crashed":
                return self._manager_crashed()
            case "failed", _, "store_failed":
                return self._bad_weather(CLOCKS.of("store"))
            case "failed", _, "adapter_crashed":
                return self._workload.crashes or self._stored.provider == FRAIL
            case "failed", _, "budget_exceeded":
                return _spends(self._workload) or self._session_has_spent()
            case _:
                return status in self._workload.ends

    def _session_has_spent(self) -> bool:
        """Return whether other runs of the session may have used up its budget."""
        world, session = self._world, self._stored.session_id
        of_it = [note for note in world.runs.values() if note.session_id == session]
        return session in world.limited and any(_spends(world.workload(n.prompt)) for n in of_it)

    def _was_cancelled(self) -> bool:
        world, note = self._world, self._note
        if self._prompt in world.hasty or self._stored.run_id in world.stops:
            return True
        if world.follow_ups.get(self._prompt) == "lost":  # the caller that appended it did not wait
            return True
        if any(at <= self._end for at in world.all_cancels):
            return True
        if any(at <= self._end for at in world.session_cancels.get(self._stored.session_id, [])):
            return True
        if note is None:  # the start was not awaited
            return any(lifetime.closing_at <= self._end for lifetime in self._lifetimes) or (
                self._bad_weather(0)
            )
        return note.left or any(at <= self._end for at in note.cancels)

    def _manager_crashed(self) -> bool:
        session = self._stored.session_id
        for lifetime in self._lifetimes:
            injected = lifetime.faults.injected.get(session, [])
            if any(at <= self._end for at in injected) or lifetime.killed_at <= self._end:
                return True
        return self._bad_weather(CLOCKS.of("store"))

    def _bad_weather(self, seconds: float) -> bool:
        return any(
            lifetime.faults.was_bad(self._begin - 60, self._end) >= seconds > 0
            or (not seconds and lifetime.faults.was_bad(self._begin - 60, self._end) > 0)
            for lifetime in self._lifetimes
        )


def _spends(workload: Workload) -> bool:
    return workload.kind == "costly" or workload.tokens > 0


def _result(world: SimulatedWorld, stored: StoredRun, workload: Workload) -> Iterator[str]:
    record = decode_run(stored.body)
    note = world.runs.get(stored.run_id)
    result = None if note is None else note.result
    if result is not None and result.status not in TERMINAL:
        yield f"the result of {stored.run_id} has the status {result.status}"
    elif (
        result is not None
        and not _was_never_stored(world, result)
        and _facts(result) != _facts(record)
    ):
        yield f"the result of {stored.run_id} was {result}, and stored is {record}"
    if stored.status == "completed" and workload.says is not None:
        tokens = record.usage.input + record.usage.output
        if record.text != workload.says or tokens != workload.tokens:
            yield f"{stored.run_id} says {record.text!r} and used {tokens}: {workload}"


def _agreed(world: SimulatedWorld, stored: StoredRun, workload: Workload) -> Iterator[str]:
    """Check that callers received what was promised."""
    note = world.runs.get(stored.run_id)
    if note is None:
        return
    record = decode_run(stored.body)
    lost = record.failure is not None and record.failure.kind in {
        FailureKind.MANAGER_CRASHED,
        FailureKind.STORE_FAILED,
    }
    # If the store was slow, the end may have come together with the usage.
    begun = world.record.first[stored.run_id].at
    held_up = any(lifetime.faults.was_bad(begun, float("inf")) for lifetime in world.lifetimes)
    if note.cancels and stored.status != "cancelled" and not lost:
        yield f"{note.id} was cancelled, the cancel was accepted, and it is {stored.status}"
    if note.budget and workload.kind == "costly" and stored.status == "completed" and not held_up:
        yield f"{note.id} went beyond its budget, and is {stored.status}"


def _facts(result: RunResult) -> tuple[object, ...]:
    return result.status, result.reason, result.text, result.usage, result.failure


def _was_never_stored(world: SimulatedWorld, result: RunResult) -> bool:
    """Return whether a result could not be stored: the run has another end in the store."""
    if result.failure is not None and result.failure.kind is FailureKind.STORE_FAILED:
        return True
    lifetime = world.runs[result.id].lifetime
    return lifetime.faults.had_bad(lifetime.closing_at, lifetime.over_at)


def _in_time(
    world: SimulatedWorld, stored: StoredRun, workload: Workload, noted: StoredEventNote
) -> Iterator[str]:
    """L6: each cancelled run ended within its grace, store faults aside."""
    note = world.runs.get(stored.run_id)
    if note is None or not note.cancels or stored.status != "cancelled":
        return
    at = note.cancels[0]
    over = world.overs.get(note.id, at)
    grace = CLOCKS.of("close") + workload.deaf_for + SLACK
    if over - at > grace and note.prompt in world.plays:
        yield f"{note.id} ({workload.kind}) was cancelled at {at}, but worked until {over}"
    faulty = sum(lifetime.faults.was_bad(at - 10, noted.at) for lifetime in world.lifetimes)
    if faulty or note.lifetime.killed_at < noted.at:
        return
    if noted.at - at > CLOCKS.of("close") + SLACK:
        yield f"{stored.run_id} ({workload.kind}) was cancelled at {at}, and ended at {noted.at}"


# --- messages and approvals -------------------------------------------------------------------


def _plays(world: SimulatedWorld) -> Iterator[str]:
    for prompt, plays in world.plays.items():
        if len(plays) > 1:
            yield f"{prompt} reached its provider {len(plays)} times: {plays}"


def _follow_ups(world: SimulatedWorld) -> Iterator[str]:
    for content, outcome in world.follow_ups.items():
        plays = world.plays.get(content, [])
        if outcome == "accepted" and plays != ["append"]:
            yield f"the follow-up {content} was accepted, and reached {plays or 'no provider'}"
        if outcome not in {"accepted", "unknown", "lost"} and "append" in plays:
            yield f"the follow-up {content} was queued as {outcome}, and also taken into the turn"


def _approvals(world: SimulatedWorld) -> Iterator[str]:
    """Check that no tool was used before the answer to its request was stored."""
    for session_id, rows in world.record.sessions.items():
        asked: dict[tuple[str | None, object], int] = {}
        for noted in rows:
            row = noted.row
            if not row.type.startswith("tool_") or row.type == "tool_call_updated":
                continue
            said = msgspec.json.decode(row.body)
            key = (row.run_id, said.get("tool_call_id"))
            if row.type == "tool_approval_requested":
                asked[key] = row.seq
            elif row.type in {"tool_approval_granted", "tool_approval_denied"}:
                asked.pop(key, None)
            elif row.type == "tool_call_started" and key in asked:
                yield f"{session_id}: number {row.seq} uses a tool before its request was answered"
