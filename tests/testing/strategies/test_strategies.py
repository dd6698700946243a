"""The strategies produce what they promise, and a program can be tested with them."""

import msgspec
import pytest
import trio
from hypothesis import Phase, find, given, settings, strategies as st

from sessionmgr.manager import Clocks, open_manager
from sessionmgr.model import (
    EVENT_TYPES,
    TERMINAL,
    FailureKind,
    KnownEvent,
    ToolCallStarted,
    decode_event,
    encode_event,
)
from sessionmgr.testing.faulty_store import Fault, FaultKind, FaultyStore, InjectedError
from sessionmgr.testing.player import Misbehaviour
from sessionmgr.testing.scripted_provider import (
    Hang,
    Say,
    Script,
    parse_script,
    scripted,
    write_script,
)
from sessionmgr.testing.seeded_schedule import run_scheduled
from sessionmgr.testing.strategies import (
    chaos,
    event_of,
    events,
    faults,
    histories,
    scripts,
    steps,
    structs,
)


@pytest.mark.parametrize("name", sorted(EVENT_TYPES))
def test_every_type_of_event_is_made(name: str) -> None:
    of = EVENT_TYPES[name]
    first = settings(max_examples=1, phases=[Phase.generate])
    assert find(event_of(of), lambda _: True, settings=first).type == name


@given(event_of(ToolCallStarted))
def test_events_of_one_type_are_whole_and_meet_again(event: ToolCallStarted) -> None:
    assert decode_event(encode_event(event)) == event
    assert event.tool_call_id in {"a", "b", "c"}


def test_what_is_made_shrinks_to_next_to_nothing() -> None:
    assert find(histories(), lambda _: True) == []
    assert find(scripts(), lambda script: bool(script.steps)).steps == (Say(text=""),)
    assert find(st.lists(faults()), lambda _: True) == []


@given(scripts())
def test_a_script_can_be_written_into_a_prompt(script: Script) -> None:
    assert parse_script(write_script(script)) == script


@given(steps(tools=["only"]))
def test_a_step_asks_for_no_other_tool(step: msgspec.Struct) -> None:
    assert getattr(step, "tool", "only") == "only"


@given(faults([FaultKind.LOSE]))
def test_a_fault_is_of_the_kinds_that_are_wanted(fault: Fault) -> None:
    assert fault.kind is FaultKind.LOSE


@given(chaos())
def test_a_way_to_misbehave_is_one_of_the_table(way: Misbehaviour) -> None:
    assert way.name


def test_a_field_that_nobody_can_make_is_named() -> None:
    class Odd(msgspec.Struct):
        what: bytes

    with pytest.raises(TypeError, match="BytesType"):
        structs(Odd)


@settings(max_examples=30)
@given(script=scripts(), troubles=st.lists(faults(), max_size=3), seed=st.integers(0, 9))
def test_whatever_an_agent_and_a_store_do_a_run_ends_once(
    script: Script, troubles: list[Fault], seed: int
) -> None:
    async def main() -> None:
        store = FaultyStore()
        clocks = Clocks(start=20, model=20, idle=20, drain=20, tool=20, approval=10, close=2)
        adapters = {"actor": scripted("actor")}
        async with open_manager(store=store, adapters=adapters, clocks=clocks) as manager:
            session = await manager.open_session("actor", cwd="/")
            run = await session.submit(write_script(script))
            async with trio.open_nursery() as nursery:
                nursery.start_soon(store.inject, troubles)
                result = await run.result()
        assert result.status in TERMINAL
        rows = (await store.events(session.id)).rows
        ends = [row.type for row in rows if row.type.removeprefix("run_") in TERMINAL]
        assert len(ends) == 1
        # An append that was stored but not confirmed is reported as the store's failure.
        untold = result.failure is not None and result.failure.kind is FailureKind.STORE_FAILED
        assert untold or ends == [f"run_{result.status}"]

    run_scheduled(main, seed)


@settings(max_examples=20)
@given(st.lists(events(), min_size=3, max_size=3))
def test_events_of_all_types_are_mixed(some: list[KnownEvent]) -> None:
    assert {event.type for event in some} <= set(EVENT_TYPES)


# A recorder crashes with an unknown error, and the reconciler ends its runs; but with LOSE the
# end of the cancelled run has been stored before, and remains.
ENDS = {kind: "failed" if kind is FaultKind.FAIL else "cancelled" for kind in FaultKind}


@pytest.mark.parametrize(("kind", "end"), ENDS.items())
def test_each_fault_is_felt_and_over_in_the_end(kind: FaultKind, end: str) -> None:
    async def main() -> None:
        store = FaultyStore()
        async with open_manager(store=store, adapters={"actor": scripted("actor")}) as manager:
            session = await manager.open_session("actor", cwd="/")
            run = await session.submit(write_script(Script(steps=(Say(text="a"), Hang()))))
            await store.inject([Fault(kind=kind, after=1.0, seconds=3.0)])
            assert store.thawed.is_set()
            assert not store.closed
            run.cancel()
            assert (await run.result()).status == end
        assert not store.raises
        assert not store.after

    run_scheduled(main, 0)


def test_an_injected_error_is_nothing_that_the_library_knows() -> None:
    assert InjectedError.__mro__[1] is Exception
