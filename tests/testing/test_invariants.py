"""The checker detects each violation of an invariant."""

from collections.abc import Callable

import msgspec
import pytest
import trio
from trio.testing import MockClock

from sessionmgr.model import (
    Event,
    MessageSent,
    Run,
    RunCompleted,
    RunFailed,
    RunStarted,
    SessionCreated,
    TokenUsageUpdated,
    ToolApprovalGranted,
    Usage,
    encode_event,
    encode_json,
    reduce_all,
)
from sessionmgr.store import EventRow, LedgerRow, MemoryStore
from sessionmgr.store.rows import NewSession, Page, StoredRun, StoredSession
from sessionmgr.testing.invariants import broken_laws


class SampleRecord:
    """A small correct record, which tests damage."""

    def __init__(self) -> None:
        sent = MessageSent(message_id="m", content="hi", state="sent")
        used = TokenUsageUpdated(usage=Usage(output=5), cost=0.5)
        self.events: list[tuple[str | None, Event]] = [
            (None, SessionCreated()),
            ("run_1", sent),
            ("run_1", RunStarted()),
            ("run_1", used),
            ("run_1", RunCompleted()),
        ]
        self.status = "completed"
        self.ledger = [LedgerRow(run_id="run_1", output=5, nano_usd=500_000_000)]
        self.change: Callable[[Run], Run] = lambda run: run
        self.renumber: Callable[[int], int] = lambda seq: seq


class SpoiltStore(MemoryStore):
    """A store that returns a record unchanged, valid or not."""

    def __init__(self, record: SampleRecord) -> None:
        super().__init__()
        stamped = [
            event.stamped(seq=seq, at="", session_id="ses_1", run_id=run_id, provider="p")
            for seq, (run_id, event) in enumerate(record.events, 1)
        ]
        run = reduce_all(Run(id="run_1", session_id="ses_1", provider="p"), stamped)
        self.rows = [
            EventRow(record.renumber(e.seq), e.run_id, e.type, encode_event(e)) for e in stamped
        ]
        self.body = encode_json(record.change(run))
        self.status = record.status
        self._ledger = [("ses_1", row) for row in record.ledger]

    async def fill(self) -> None:
        await self.create_session(NewSession(session_id="ses_1", provider="p", at=0, body=b"{}"))
        self._sessions["ses_1"].events = list(self.rows)
        session: StoredSession = await self.session("ses_1")
        run = StoredRun(
            run_id="run_1",
            session_id=session.session_id,
            provider="p",
            status=self.status,
            first_seq=2,
            last_seq=len(self.rows),
            terminal_seq=None,
            ended=None,
            body=self.body,
        )
        self._stored_run = run

    async def runs(self, **_: object) -> Page[StoredRun]:
        await trio.lowlevel.checkpoint()
        return Page((self._stored_run,))


Spoil = Callable[[SampleRecord], object]


def insert(place: int, event: Event) -> Spoil:
    def spoil(record: SampleRecord) -> None:
        record.events.insert(place, ("run_1", event))

    return spoil


def put(name: str, value: object) -> Spoil:
    return lambda record: setattr(record, name, value)


def changed(**fields: object) -> Spoil:
    def change(run: Run) -> Run:
        return msgspec.structs.replace(run, **fields)

    return put("change", change)


def after_a_gap(seq: int) -> int:
    return seq + (seq > 2)


BREACHES: dict[str, tuple[Spoil, str]] = {
    "a gap": (put("renumber", after_a_gap), "but last_seq is"),
    "a second end": (insert(5, RunFailed()), "ends 2 times"),
    "no end": (lambda record: record.events.pop(), "no terminal event"),
    "another status": (put("status", "failed"), "its events say completed"),
    "another record": (changed(text="never said"), "differs from the fold of its events"),
    "another sum": (changed(usage=Usage(output=6)), "its events report usage"),
    "an unbooked use": (put("ledger", []), "the ledger has"),
    "a use booked twice": (lambda r: r.ledger.append(r.ledger[0]), "the ledger has"),
    "a second start": (insert(3, RunStarted()), "starts more than once"),
    "an answer to nothing": (insert(3, ToolApprovalGranted(approval_id="a")), "no open question"),
    "a message sent twice": (
        insert(3, MessageSent(message_id="m", content="hi", state="sent")),
        "is sent after sent",
    ),
    "a message forgotten": (
        insert(3, MessageSent(message_id="n", content="hi", state="queued")),
        "messages without an outcome",
    ),
    "no beginning": (lambda record: record.events.pop(0), "begins with message_sent"),
}


async def spoilt(spoil: Spoil) -> list[str]:
    record = SampleRecord()
    spoil(record)
    store = SpoiltStore(record)
    await store.fill()
    return await broken_laws(store)


async def test_a_record_that_is_right_breaks_no_law(autojump_clock: MockClock) -> None:
    assert await spoilt(lambda _: None) == []


@pytest.mark.parametrize("name", BREACHES)
async def test_a_breach_is_seen(autojump_clock: MockClock, name: str) -> None:
    spoil, says = BREACHES[name]
    found = await spoilt(spoil)
    assert any(says in each for each in found), found
