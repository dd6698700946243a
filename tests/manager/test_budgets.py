"""A session's budget covers all its runs, a manager's budget all runs; all of them apply."""

import pytest
import trio
from trio.testing import MockClock

from sessionmgr.adapter import UNSUPPORTED, Budget
from sessionmgr.manager import BudgetExhausted, BudgetUnenforceable
from sessionmgr.model import FailureKind, RunResult
from sessionmgr.store import MemoryStore
from sessionmgr.testing.scripted_provider import ALL_IT_DOES, Hang, Say, Use, Wait, scripted
from tests.manager.harness import open_harness, run_scripted


def outcome(result: RunResult) -> tuple[str, str | None, str | None]:
    kind = result.failure.kind.value if result.failure else None
    return result.status.value, kind, result.detail


def using(usd: float, *, then_hangs: bool = False) -> str:
    return run_scripted(
        Use(output=10, usd=usd), *((Hang(),) if then_hangs else (Say(text="done"),))
    )


async def test_a_session_spends_no_more_than_its_budget(autojump_clock: MockClock) -> None:
    async with open_harness() as house:
        session = await house.manager.open_session("actor", budget=Budget(usd=1))
        first = await (await session.submit(using(0.75))).result()
        assert outcome(first) == ("completed", None, None)
        second = await (await session.submit(using(0.25, then_hangs=True))).result()
        assert outcome(second) == (
            *("failed", "budget_exceeded"),
            "0.2500 usd used of 0.25 that was left",
        )
        with pytest.raises(BudgetExhausted, match=r"session's budget is used up: \$1.0000 of \$1"):
            await session.submit(using(0.1))
        other = await house.manager.open_session("actor")
        assert outcome(await (await other.submit(using(5))).result())[0] == "completed"


@pytest.mark.parametrize("budget", [Budget(usd=1), Budget(tokens=40)], ids=["usd", "tokens"])
async def test_what_a_run_tells_in_parts_counts_once(
    autojump_clock: MockClock, budget: Budget
) -> None:
    part = (Use(output=10, usd=0.25), Wait(seconds=1))
    async with open_harness() as house:
        session = await house.manager.open_session("actor", budget=budget)
        first = await session.submit(run_scripted(*part, *part, Say(text="done")))
        assert outcome(await first.result()) == ("completed", None, None)
        second = await session.submit(run_scripted(*part, Say(text="done")))
        assert outcome(await second.result()) == ("completed", None, None)
        third = await session.submit(run_scripted(*part, Hang()))
        assert outcome(await third.result())[:2] == ("failed", "budget_exceeded")


async def test_what_a_session_has_spent_counts_when_another_manager_takes_it_up(
    autojump_clock: MockClock,
) -> None:
    store = MemoryStore()
    async with open_harness(store=store) as house:
        session = await house.manager.open_session("actor", budget=Budget(tokens=15))
        await (await session.submit(using(0.1))).result()
    async with open_harness(store=store) as house:
        again = await house.manager.session(session.id)
        result = await (await again.submit(using(0.1, then_hangs=True))).result()
        assert outcome(result)[:2] == ("failed", "budget_exceeded")
        with pytest.raises(BudgetExhausted, match="20 of 15 tokens"):
            await again.submit(using(0.1))
        # Another manager that takes over the session may raise it.
        richer = await house.manager.session(session.id, budget=Budget(tokens=100))
        assert outcome(await (await richer.submit(using(0.1))).result())[0] == "completed"


async def test_a_run_that_waits_for_its_turn_does_not_start_when_the_budget_is_used_up(
    autojump_clock: MockClock,
) -> None:
    async with open_harness() as house:
        session = await house.manager.open_session("actor", budget=Budget(usd=1))
        first = await session.submit(run_scripted(Use(usd=1.5), Say(text="done")))
        second = await session.submit(run_scripted(Say(text="never")))
        await first.result()
        assert outcome(await second.result()) == (
            *("failed", "budget_exceeded"),
            "the session's budget is used up: $1.5000 of $1",
        )
        assert [entry.what for entry in house.actor.log].count("prompt") == 1


async def test_all_runs_of_a_manager_end_when_its_budget_is_used_up(
    autojump_clock: MockClock,
) -> None:
    async with open_harness(budget=Budget(usd=1)) as house:
        one = await house.start(Use(usd=0.5), Hang())
        other = await house.start(Wait(seconds=5), Use(usd=0.5), Hang())
        begun = trio.current_time()
        for run in (one, other):
            result = await run.result()
            assert result.failure is not None
            assert result.failure.kind is FailureKind.BUDGET_EXCEEDED
            assert "manager's budget is used up: $1.0000 of $1" in (result.detail or "")
        assert trio.current_time() - begun < 20
        with pytest.raises(BudgetExhausted, match="manager's budget is used up"):
            await house.start(Say(text="x"))


async def test_the_budget_of_a_run_holds_beside_that_of_its_session(
    autojump_clock: MockClock,
) -> None:
    async with open_harness(budget=Budget(usd=9)) as house:
        session = await house.manager.open_session("actor", budget=Budget(usd=5))
        run = await session.submit(using(0.5, then_hangs=True), budget=Budget(usd=0.5))
        assert outcome(await run.result())[1:] == ("budget_exceeded", "0.5000 usd used of 0.5")


@pytest.mark.parametrize("level", ["manager", "session"])
async def test_a_budget_of_any_level_is_refused_where_it_cannot_be_enforced(level: str) -> None:
    free = scripted("actor", capabilities=type(ALL_IT_DOES)(usage=UNSUPPORTED, cost=UNSUPPORTED))
    budget = Budget(usd=1)
    async with open_harness(actor=free, budget=budget if level == "manager" else None) as house:
        session = await house.manager.open_session(
            "actor", budget=budget if level == "session" else None
        )
        with pytest.raises(BudgetUnenforceable, match="actor reports no cost"):
            await session.submit("x")
