"""Requests of other processes through the store, and the manager's status."""

import msgspec
import pytest
import trio
from trio.testing import MockClock

from sessionmgr.adapter import Allow, ApprovalRequest, Decision
from sessionmgr.manager import Clocks
from sessionmgr.model import Json, MessageSent, RunStatus, Usage
from sessionmgr.store import MemoryStore, Request, StoreClosed, StoreError, UnknownId
from sessionmgr.testing.faulty_store import FaultyStore
from sessionmgr.testing.scripted_provider import Ask, Deaf, Fail, Hang, Hear, Say, Use, Wait
from tests.manager.harness import ManagerHarness, open_harness, run_scripted

Answer = dict[str, Json]


async def ask(house: ManagerHarness, kind: str, target: str, **body: Json) -> Answer:
    name = f"request-{trio.current_time()}-{kind}-{target}"
    request = Request(
        request_id=name, kind=kind, target=target, at=0, body=msgspec.json.encode(body)
    )
    await house.store.submit(request)
    with trio.fail_after(60):
        return msgspec.json.decode(await house.store.wait_result(name), type=dict[str, Json])


async def test_a_run_is_cancelled_from_elsewhere(autojump_clock: MockClock) -> None:
    async with open_harness() as house:
        run, spared = await house.start(Hang()), await house.start(Hang())
        answer = await ask(house, "cancel", run.id, detail="from afar")
        assert answer == {"ok": True, "cancelled": 1}
        result = await run.result()
        assert (result.status, result.detail) == (RunStatus.CANCELLED, "from afar")
        assert spared.status is RunStatus.RUNNING
        assert (await ask(house, "cancel", spared.session_id))["cancelled"] == 1


async def test_a_message_comes_from_elsewhere(autojump_clock: MockClock) -> None:
    async with open_harness() as house:
        run = await house.start(Hear())
        await trio.sleep(1)
        answer = await ask(house, "append", run.id, content="hello from afar")
        assert answer == {"ok": True, "state": "accepted", "run": run.id}
        assert (await run.result()).text == "hello from afar"


async def test_a_run_is_paused_from_elsewhere(autojump_clock: MockClock) -> None:
    async with open_harness() as house:
        run = await house.start(Hang())
        await trio.sleep(1)
        answer = await ask(house, "pause", run.id, node="here")
        snapshot = await house.store.snapshot(str(answer["snapshot"]))
        assert snapshot.run_id == run.id
        assert run.status is RunStatus.PAUSED


@pytest.mark.parametrize("allow", [True, False])
async def test_a_question_is_answered_from_elsewhere(
    autojump_clock: MockClock, allow: bool
) -> None:
    async def approve(_: ApprovalRequest) -> Decision:
        await trio.sleep(1000)
        return Allow()

    async with open_harness() as house:
        session = await house.manager.open_session("actor", approve=approve)
        run = await session.submit(run_scripted(Ask(tool="rm")))
        await trio.sleep(1)
        answer = await ask(house, "approve", run.id, allow=allow, detail="seen")
        assert answer == {"ok": True, "answered": True}
        result = await run.result()
        assert trio.current_time() < 10
        assert result.tool_calls.denied == (not allow)


async def test_what_the_mode_decides_no_other_process_decides(
    autojump_clock: MockClock,
) -> None:
    store = FaultyStore()
    async with open_harness(store=store) as house:
        session = await house.manager.open_session("actor", permission_mode="plan")
        run = await session.submit(run_scripted(Wait(seconds=5), Ask(tool="rm", effect="edit")))
        await trio.sleep(1)
        store.delay = lambda _: 2.0  # storing the mode's decision takes a while
        await trio.sleep(4.5)
        answer = await ask(house, "approve", run.id, allow=True)
        assert answer == {"ok": True, "answered": False}
        result = await run.result()
        assert [denial.by for denial in result.permission_denials] == ["mode"]


async def test_what_cannot_be_done_is_answered_with_the_reason(autojump_clock: MockClock) -> None:
    async with open_harness() as house:
        run = await house.start(Wait(seconds=30), Fail())
        answer = await ask(house, "dance", run.id)
        assert answer["ok"] is False
        session = await house.manager.open_session("actor")
        unnamed = await session.submit(run_scripted(Wait(seconds=30), starts=False))
        answer = await ask(house, "pause", unnamed.id)
        assert answer["ok"] is False
        assert "has not named its session" in str(answer["error"])


async def test_a_slow_request_holds_up_no_other(autojump_clock: MockClock) -> None:
    async with open_harness(clocks=Clocks(close=20)) as house:
        deaf, other = await house.start(Deaf(seconds=15)), await house.start(Hang())
        await trio.sleep(1)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(lambda: ask(house, "pause", deaf.id))
            await trio.sleep(1)
            assert (await ask(house, "cancel", other.id))["cancelled"] == 1
            assert trio.current_time() < 3


async def test_a_request_goes_to_the_manager_that_has_the_run(autojump_clock: MockClock) -> None:
    store = MemoryStore()
    async with (
        open_harness(store=store, lawful=False) as first,
        open_harness(store=store, lawful=False) as second,
    ):
        runs = [await first.start(Hang()), await second.start(Hang())]
        for run in runs:
            assert (await ask(first, "cancel", run.id))["cancelled"] == 1
            assert (await run.result()).status is RunStatus.CANCELLED


class SlowToComplete(MemoryStore):
    async def complete(self, request_id: str, result: bytes) -> None:
        await trio.sleep(1)
        await super().complete(request_id, result)


async def test_who_asks_is_answered_although_the_manager_is_left_meanwhile(
    autojump_clock: MockClock,
) -> None:
    store = SlowToComplete()
    async with trio.open_nursery() as nursery:
        async with open_harness(store=store) as house:
            run = await house.start(Hang())
            await trio.sleep(1)
            request = Request(request_id="r", kind="pause", target=run.id, at=0, body=b"{}")
            nursery.start_soon(store.submit, request)
            assert (await run.result()).status is RunStatus.PAUSED
        with trio.fail_after(1):
            answer = msgspec.json.decode(await store.wait_result("r"), type=dict[str, Json])
        assert answer["ok"] is True
        assert (await store.snapshot(str(answer["snapshot"]))).run_id == run.id


class StumblingRequestStore(MemoryStore):
    stumbles = 1

    async def complete(self, request_id: str, result: bytes) -> None:
        if self.stumbles:
            self.stumbles -= 1
            raise RuntimeError("an unexpected error")
        await super().complete(request_id, result)


async def test_a_request_whose_handling_crashed_is_answered_and_not_done_twice(
    autojump_clock: MockClock,
) -> None:
    async with open_harness(store=StumblingRequestStore()) as house:
        session = await house.manager.open_session("actor")
        run = await session.submit(run_scripted(Hear(), Hang()))
        await trio.sleep(1)
        answer = await ask(house, "append", run.id, content="more")
        assert answer["ok"] is False
        assert "the outcome is unknown" in str(answer["error"])
        run.cancel()
        await run.result()
        sent = [each async for each in run if isinstance(each, MessageSent)]
        assert len({each.message_id for each in sent if each.content == "more"}) == 1


class RefusingStore(MemoryStore):
    """A store that accepts no answer."""

    why: StoreError = StoreClosed("the store")

    async def complete(self, request_id: str, result: bytes) -> None:
        await trio.lowlevel.checkpoint()
        raise self.why


@pytest.mark.parametrize(
    ("why", "said"),
    [
        (StoreClosed("the store"), "The answer to a request was not stored in time. request=r"),
        (
            UnknownId("request", "r"),
            "The answer to a request could not be stored. request=r error=no request 'r' is stored",
        ),
    ],
    ids=["away", "unknown"],
)
async def test_an_answer_that_the_store_does_not_take_is_in_the_log(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture, why: StoreError, said: str
) -> None:
    store = RefusingStore()
    store.why = why
    async with open_harness(store=store, clocks=Clocks(store=30)) as house:
        run = await house.start(Hang())
        await trio.sleep(1)
        await store.submit(Request(request_id="r", kind="cancel", target=run.id, at=0, body=b"{}"))
        assert (await run.result()).status is RunStatus.CANCELLED
        await trio.sleep(31)
        assert said in caplog.text


async def test_costs_are_returned_by_run_and_by_session(autojump_clock: MockClock) -> None:
    async with open_harness() as house:
        session = await house.manager.open_session("actor")
        runs = [
            await session.submit(run_scripted(Use(input=1, output=2, usd=0.25))),
            await session.submit(run_scripted(Use(output=10))),
        ]
        for run in runs:
            await run.result()
        spent = await house.manager.costs([session.id, *(run.id for run in runs), "run_nothing"])
        assert spent.keys() == {session.id, *(run.id for run in runs)}
        assert spent[session.id].usage == Usage(input=1, output=12)
        assert spent[session.id].cost.usd == 0.25
        assert spent[runs[1].id].cost.usd is None
        assert spent[runs[0].id].usage == (await runs[0].result()).usage


async def test_the_stored_sessions_are_returned(autojump_clock: MockClock) -> None:
    async with open_harness() as house:
        sessions = [await house.manager.open_session("actor", metadata={"n": n}) for n in range(3)]
        for session in sessions[:2]:
            await (await session.submit(run_scripted(Say(text="x")))).result()
        await trio.sleep(100)
        told = {each.id: each for each in await house.manager.sessions()}
        assert told.keys() == {session.id for session in sessions[:2]}
        assert told[sessions[0].id].metadata == {"n": 0}
        assert told[sessions[0].id].provider_session_id == f"of-{sessions[0].id}"
