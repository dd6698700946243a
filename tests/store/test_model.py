"""Memory and SQLite stores give equal answers to any sequence of calls."""

import tempfile
from pathlib import Path
from typing import Final, TypeAlias, cast

import trio
from hypothesis import HealthCheck, given, settings, strategies as st
from msgspec.structs import replace

from sessionmgr.store import (
    LeaseOwner,
    LedgerRow,
    MemoryStore,
    NewSession,
    Request,
    RunRow,
    SnapshotRow,
    Store,
    StoreError,
    open_sqlite_store,
)
from sessionmgr.testing.store_conformance.sample_records import batch, put_snapshot

Step: TypeAlias = tuple[object, ...]
Last: TypeAlias = tuple[int, int]

SESSIONS: Final = ("ses_a", "ses_ab", "ses_b")
OWN_RUNS: Final = tuple(f"run_{n}" for n in range(12))  # of each session its own
RUNS: Final = ("run_a", "run_ab", "run_b")
DELTAS: Final = ("message_streamed", "reasoning_streamed", "tool_call_updated")
TYPES: Final = (*DELTAS, *DELTAS, "message_received", "run_started")
ENDS: Final = ("completed", "failed", "paused")
OWNERS: Final = (LeaseOwner("boot", 1, 1), LeaseOwner("boot", 2, 2))
NAMES: Final = (*SESSIONS, "sweeper")

session = st.sampled_from(SESSIONS)
run = st.sampled_from(RUNS)
small = st.integers(0, 12)
appends = st.tuples(
    st.just("append"),
    session,
    st.sampled_from((0, 0, 0, 0, 0, 0, -1, -2, 1)),  # away from the next number
    st.lists(st.sampled_from(TYPES), min_size=1, max_size=5) | st.just([]),
    st.sampled_from((None, *RUNS, *OWN_RUNS)),
    st.sampled_from(("fitting", "fitting", "fitting", "fitting", None, "pending", *ENDS)),
    st.sampled_from((None, None, None, None, None, None, *ENDS)),
    st.sampled_from((0, 0, 0, 0, 0, 0, 1, -1)),  # away from the present fence
    st.sampled_from(("x", "y")),
    small,
)
others = st.one_of(
    st.tuples(st.just("create"), session, st.sampled_from(("p", "q")), small),
    st.tuples(st.just("close"), session, small),
    st.tuples(
        st.just("events"),
        session,
        small,
        st.none() | small,
        st.none() | run,
        st.none() | st.lists(st.sampled_from(TYPES), max_size=3),
        st.integers(1, 6),
    ),
    st.tuples(st.just("prune"), small, st.none() | session),
    st.tuples(
        st.just("sessions"),
        st.none() | st.sampled_from(("p", "q")),
        st.none() | st.sampled_from(("open", "closed")),
        st.none() | small,
        st.integers(1, 3),
        st.none() | st.integers(1, 4),
    ),
    st.tuples(
        st.just("runs"),
        st.none() | session,
        st.none() | st.lists(st.sampled_from(("running", "pending", *ENDS)), max_size=2),
        st.none() | st.sampled_from(("p", "q")),
        st.integers(1, 3),
        st.none() | st.integers(1, 4),
    ),
    st.tuples(st.just("session"), session),
    st.tuples(st.just("run"), run),
    st.tuples(
        st.just("resolve"),
        st.sampled_from(("", "s", "ses_a", "ses_ab", "run_", "run_b", "snp", "snp_1", "x")),
        st.sampled_from((None, "session", "run", "snapshot")),
    ),
    st.tuples(st.just("costs")),
    st.tuples(st.just("put_snapshot"), small, session, st.none() | run, st.integers(0, 1)),
    st.tuples(st.just("snapshots"), session),
    st.tuples(st.just("acquire"), st.sampled_from(NAMES), st.integers(0, 1), small, small),
    st.tuples(st.just("take_over"), st.sampled_from(NAMES), st.integers(0, 1), small, small),
    st.tuples(st.just("renew"), st.sampled_from(NAMES), st.integers(1, 4), small, small),
    st.tuples(st.just("release"), st.sampled_from(NAMES), st.integers(1, 4)),
    st.tuples(st.just("leases")),
    st.tuples(st.just("submit"), st.integers(1, 3), st.sampled_from(("cancel", "pause"))),
    st.tuples(st.just("take"), st.integers(1, 3), st.integers(0, 1), st.booleans()),
    st.tuples(st.just("complete"), st.integers(1, 3), st.binary(max_size=2)),
    st.tuples(st.just("requests"), st.integers(0, 3), st.integers(1, 3)),
    st.tuples(st.just("put_meta"), st.sampled_from("ab"), st.none() | st.binary(max_size=3)),
    st.tuples(st.just("put_backoff"), st.sampled_from("ab"), st.none() | st.binary(max_size=3)),
)
# Most steps are appends: otherwise the others would have no data.
steps = st.integers(0, 2).flatmap(lambda n: appends if n else others)


async def answer(store: Store, step: Step, last: Last) -> object:
    """Return the store's answer, errors included; `last` is the state of the session."""
    try:
        return await carry_out(store, step, last)
    except StoreError as error:
        return type(error), str(error)


async def carry_out(store: Store, step: Step, last: Last) -> object:
    match step:
        case "create", str(session_id), str(provider), int(at):
            new = NewSession(session_id=session_id, provider=provider, at=at, body=b"{}")
            await store.create_session(new)
            return None
        case "close", str(session_id), int(at):
            closing = batch(last[0] + 1, "session_closed", session_id=session_id, at=at)
            return await store.append(replace(closing, fence=last[1], closes=True))
        case "append", *_:
            return await append(store, step, last)
        case "prune", int(before), (str() | None) as session_id:
            return await store.prune(before=before, session_id=session_id)
        case "session", str(session_id):
            return await store.session(session_id)
        case "run", str(run_id):
            return await store.run(run_id)
        case "costs", *_:
            return dict(await store.costs([*SESSIONS, *RUNS, "uuid", "none"]))
        case _:
            return await carry_out_more(store, step)


def names(value: object) -> list[str]:
    assert isinstance(value, list)
    return [str(each) for each in cast("list[object]", value)]


async def append(store: Store, step: Step, last: Last) -> object:
    _, session_id, offset, types, run_id, status, end, fence, name, at = step
    assert isinstance(session_id, str)
    assert isinstance(offset, int)
    assert isinstance(fence, int)
    assert isinstance(at, int)
    kinds = [*names(types), *([f"run_{end}"] if end else [])]
    said = (end or "running") if status == "fitting" else status
    run_name = f"{run_id}{session_id[4:]}" if run_id in OWN_RUNS else run_id
    assert run_name is None or isinstance(run_name, str)
    made = batch(
        last[0] + 1 + offset,
        *kinds,
        session_id=session_id,
        run=run_name,
        fence=max(last[1] + fence, 0),
        name=str(name),
        at=at,
        ledger=[LedgerRow(run_name, "uuid", at, nano_usd=at - 6 if at % 2 else None)],
    )
    runs = () if said is None or run_name is None else (RunRow(run_name, str(said), b"r"),)
    return await store.append(replace(made, runs=runs, session=str(at).encode()))


async def carry_out_more(store: Store, step: Step) -> object:
    arguments: list[object] = list(step[1:])
    match step[0], *arguments:
        case "events", str(session_id), int(after), until, run_id, types, int(limit):
            return await store.events(
                session_id,
                after=after,
                until=until if isinstance(until, int) else None,
                run_id=run_id if isinstance(run_id, str) else None,
                types=None if types is None else names(types),
                limit=limit,
            )
        case "sessions", provider, state, since, int(limit), cursor:
            return await store.sessions(
                provider=provider if isinstance(provider, str) else None,
                state="open" if state == "open" else "closed" if state else None,
                since=since if isinstance(since, int) else None,
                limit=limit,
                cursor=cursor if isinstance(cursor, int) else None,
            )
        case "runs", session_id, statuses, provider, int(limit), cursor:
            return await store.runs(
                session_id=session_id if isinstance(session_id, str) else None,
                statuses=None if statuses is None else names(statuses),
                provider=provider if isinstance(provider, str) else None,
                limit=limit,
                cursor=cursor if isinstance(cursor, int) else None,
            )
        case "resolve", str(prefix), None:
            return await store.resolve(prefix)
        case "resolve", str(prefix), "session":
            return await store.resolve(prefix, "session")
        case "resolve", str(prefix), "run":
            return await store.resolve(prefix, "run")
        case "resolve", str(prefix), "snapshot":
            return await store.resolve(prefix, "snapshot")
        case "put_snapshot", int(n), str(session_id), run_id, int(variant):
            snapshot = SnapshotRow(
                snapshot_id=f"snp_{n}",
                session_id=session_id,
                run_id=run_id if isinstance(run_id, str) else None,
                at=n,
                body=bytes(variant),
            )
            await put_snapshot(store, snapshot)
            return None
        case "snapshots", str(session_id):
            return await store.snapshots(session_id)
        case _:
            return await carry_out_the_rest(store, step)


async def carry_out_the_rest(store: Store, step: Step) -> object:
    match step:
        case "acquire", str(name), int(who), int(now), int(ttl):
            return await store.acquire(name, OWNERS[who], now=now, ttl=ttl)
        case "take_over", str(name), int(who), int(now), int(ttl):
            mine = OWNERS[who]
            return await store.acquire(name, mine, now=now, ttl=ttl, gone=lambda o: o != mine)
        case "renew", str(name), int(fence), int(now), int(ttl):
            return await store.renew(name, fence, now=now, ttl=ttl)
        case "release", str(name), int(fence):
            await store.release(name, fence)
            return None
        case "leases", *_:
            return [*await store.leases(), *await store.leases("ses_")]
        case "submit", int(n), str(kind):
            request = Request(request_id=f"req_{n}", kind=kind, target="run_a", at=n)
            return await store.submit(request)
        case "take", int(n), int(who), bool(gone):
            return await store.claim_request(f"req_{n}", OWNERS[who], gone=lambda _: gone)
        case "complete", int(n), bytes(result):
            await store.complete(f"req_{n}", result)
            return await store.wait_result(f"req_{n}")
        case "requests", int(after), int(limit):
            return list(await store.requests(after=after, limit=limit))
        case "put_meta", str(key), (bytes() | None) as body:
            await store.put_meta(key, body)
            return await store.meta("a"), await store.meta("b")
        case "put_backoff", str(key), (bytes() | None) as body:
            await store.put_backoff(key, body)
            return dict(await store.backoffs())
        case _:
            raise AssertionError(step)


async def last_of(store: Store, step: Step) -> Last:
    """Return the last number and the fence of the session of an append."""
    if step[0] not in {"append", "close"}:
        return 0, 0
    try:
        session = await store.session(str(step[1]))
    except StoreError:
        return 0, 0
    return session.last_seq, session.fence


async def compare(directory: str, asked: list[Step]) -> int:
    """Compare both stores; return how many appends were stored."""
    memory = MemoryStore()
    stored = 0
    path = Path(directory) / "s.db"
    async with open_sqlite_store(path, executor="inline", poll=None) as sqlite:
        for session_id in SESSIONS[:2]:
            for store in (memory, sqlite):
                new = NewSession(session_id=session_id, provider="p", at=0, body=b"{}")
                await store.create_session(new)
        for step in asked:
            last = await last_of(memory, step)
            expected = await answer(memory, step, last)
            assert await answer(sqlite, step, last) == expected, step
            stored += step[0] == "append" and await last_of(memory, step) > last
        for session_id in SESSIONS[:2]:
            assert await memory.events(session_id) == await sqlite.events(session_id)
    return stored


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(asked=st.lists(steps, min_size=20, max_size=60))
def test_memory_and_sqlite_give_equal_answers(asked: list[Step]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        trio.run(compare, directory, asked)
