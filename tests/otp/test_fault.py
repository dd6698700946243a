"""P27: a cancel, a Ctrl-C or a crash at any step of anything breaks no law.

For each scenario and each kind of fault, the scenario is run with the fault at its first
step, at its second, and so on until it ends before that. With `--hypothesis-profile=long`
more orders of turns are tried, and with `brief` some of the steps.
"""

from __future__ import annotations

import gc
import itertools
import random
from collections.abc import Iterator, Sequence
from typing import NamedTuple, cast

import outcome
import pytest
import trio
import trio.testing
from hypothesis import settings

from sessionmgr.otp import OtpError, StartFailed
from sessionmgr.testing.seeded_schedule import run_scheduled
from tests.otp.fault_injection import (
    FaultInjector,
    HangError,
    InjectedCrashError,
    StepFault,
    StepFaultKind,
)
from tests.otp.scenario_trace import CrashLogHandler, ScenarioTrace
from tests.otp.supervisor_scenarios import SCENARIOS, SupervisorScenario

INTERRUPTS = {StepFaultKind.INTERRUPT, StepFaultKind.SIGNAL}

PAIRS = [
    (StepFaultKind.CANCEL, StepFaultKind.SIGNAL),
    (StepFaultKind.CANCEL, StepFaultKind.INTERRUPT),
    (StepFaultKind.INTERRUPT, StepFaultKind.CANCEL),
    (StepFaultKind.INTERRUPT, StepFaultKind.INTERRUPT),
    (StepFaultKind.SIGNAL, StepFaultKind.SIGNAL),
    (StepFaultKind.CRASH, StepFaultKind.CANCEL),
    (StepFaultKind.CRASH, StepFaultKind.INTERRUPT),
    (StepFaultKind.CRASH, StepFaultKind.CRASH),
]

# What is left of a run that hangs cannot be closed in good order, so it is kept.
HUNG: list[object] = []


class ScenarioEnd(NamedTuple):
    """How one run of a scenario ended."""

    scenario: SupervisorScenario
    trace: ScenarioTrace
    injector: FaultInjector
    error: BaseException | None
    tasks_left: int


def play(scenario: SupervisorScenario, faults: Sequence[StepFault], seed: int) -> ScenarioEnd:
    """Run `scenario` once, with `faults`."""
    trace = ScenarioTrace()
    clock = trio.testing.MockClock(autojump_threshold=0)
    injector = FaultInjector(faults, clock, lambda: trace.up and not trace.left)
    error: BaseException | None = None
    left = 0

    async def main() -> None:
        nonlocal left
        with injector.begin():
            await trio.lowlevel.checkpoint()
            try:
                await scenario.run(trace)
            finally:
                left = len(injector.tasks) - 1

    with CrashLogHandler(trace):
        ended = outcome.capture(run_scheduled, main, seed, clock=clock)
    if isinstance(ended, outcome.Error):
        error = ended.error
    if injector.hang is not None:
        HUNG.append((injector, error))
        error = HangError(injector.hang)
    return ScenarioEnd(scenario, trace, injector, error, left)


def complaints(ending: ScenarioEnd) -> Iterator[str]:
    """Give each law that a run broke."""
    yield from ending.trace.broken_laws()
    if ending.tasks_left:
        yield f"P1: {ending.tasks_left} tasks outlived the block"
    if not says_farewell_rightly(ending):
        yield f"P4: farewells of {ending.trace.farewells}"
    if not leaves_rightly(ending):
        yield f"what leaves is {ending.error!r}"


def says_farewell_rightly(ending: ScenarioEnd) -> bool:
    """Say whether actors said farewell in the right order, and all who should."""
    trace, injector = ending.trace, ending.injector
    struck = [fault.kind for fault in injector.struck]
    if not ending.scenario.farewells or StepFaultKind.CRASH in struck:
        return True
    order = [key for key in ending.scenario.farewells if key in trace.ready]
    if struck in ([], [StepFaultKind.CANCEL]):
        return trace.farewells == order
    if struck == [StepFaultKind.INTERRUPT] and injector.victim and injector.saw:
        return trace.farewells == [key for key in order if key != injector.victim]
    # A Ctrl-C while they stop ends all patience.
    return trace.farewells == [key for key in order if key in trace.farewells]


def leaves_rightly(ending: ScenarioEnd) -> bool:
    """Say whether exactly what should leaves the scenario."""
    error, injector = ending.error, ending.injector
    struck = [fault.kind for fault in injector.struck]
    interrupts = sum(kind in INTERRUPTS for kind in struck)
    if interrupts == 1:
        return type(error) is KeyboardInterrupt
    if interrupts:
        return error is not None and set(map(type, leaves(error))) == {KeyboardInterrupt}
    if struck == [StepFaultKind.CRASH] and injector.unborn and not ending.trace.up:
        return type(error) is StartFailed and isinstance(root_cause(error), InjectedCrashError)
    if struck.count(StepFaultKind.CRASH) and len(struck) > 1:
        # Who was first decides whether the crash is still seen.
        return error is None or (
            isinstance(error, OtpError) and isinstance(root_cause(error), InjectedCrashError)
        )
    return error is None


def leaves(error: BaseException) -> list[BaseException]:
    """Give what is in the group, or the exception that is none."""
    if isinstance(error, BaseExceptionGroup):
        group = cast("BaseExceptionGroup[BaseException]", error)
        return [leaf for part in group.exceptions for leaf in leaves(part)]
    return [error]


def root_cause(error: BaseException) -> BaseException:
    """Follow the causes to the first one."""
    return error if error.__cause__ is None else root_cause(error.__cause__)


def effort(little: int, much: int) -> int:
    """Choose by the profile of hypothesis how far to search."""
    return much if settings().max_examples > 1000 else little


# How far it is from a step that is tried to the next one.
STRIDE = 4 if settings().max_examples < 100 else 1


def every_step(scenario: SupervisorScenario, kind: StepFaultKind, seed: int) -> int:
    """Try the fault at every step; give how many there were."""
    for step in itertools.count(1, STRIDE):
        ending = play(scenario, [StepFault(kind, step)], seed)
        wrong = list(complaints(ending))
        assert not wrong, f"{scenario.name}, seed {seed}, {kind.name} at step {step}: {wrong}"
        if not ending.injector.struck:
            return step - 1
    raise AssertionError


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda s: s.name)
def test_without_a_fault_a_scenario_says_what_is_written_beside_it(
    scenario: SupervisorScenario,
) -> None:
    for seed in range(10):
        ending = play(scenario, [], seed)
        assert list(complaints(ending)) == []
        assert sorted(ending.trace.said) == sorted(scenario.says.split(", "))
        assert ending.trace.up


@pytest.mark.parametrize("kind", StepFaultKind, ids=lambda kind: kind.name.lower())
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda s: s.name)
def test_p27_a_fault_at_any_step_breaks_no_law(
    scenario: SupervisorScenario, kind: StepFaultKind
) -> None:
    for seed in range(effort(1, 100)):
        steps = every_step(scenario, kind, seed)
        assert steps >= (5 if kind is StepFaultKind.CRASH else 20)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda s: s.name)
def test_p27_a_second_fault_at_any_later_step_breaks_no_law_either(
    scenario: SupervisorScenario,
) -> None:
    draw = random.Random(scenario.name)
    for _ in range(effort(1, 50)):
        for step in itertools.count(1, STRIDE):
            first, second = draw.choice(PAIRS)
            faults = [StepFault(first, step), StepFault(second, step + draw.randint(1, 20))]
            seed = draw.randrange(1000)
            ending = play(scenario, faults, seed)
            wrong = list(complaints(ending))
            assert not wrong, (
                f"{scenario.name}, seed {seed}, {', '.join(map(str, faults))}: {wrong}"
            )
            if step > 20 and not ending.injector.struck:
                break


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_run_in_which_nothing_can_happen_any_more_is_stopped_and_shown() -> None:
    async def waits(_: ScenarioTrace) -> None:
        await trio.sleep_forever()

    hang = hang_of(SupervisorScenario(waits, ""))
    assert "everybody waits" in hang
    assert "in waits" in hang


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_run_without_end_is_stopped_and_shown() -> None:
    async def spins(_trace: ScenarioTrace) -> None:
        for _ in itertools.count():
            await trio.lowlevel.checkpoint()

    hang = hang_of(SupervisorScenario(spins, ""))
    assert "not at an end" in hang
    assert "in spins" in hang


def hang_of(scenario: SupervisorScenario) -> str:
    """Run what hangs, clear away what is left of it, and give what was shown."""
    ending = play(scenario, [], 0)
    assert isinstance(ending.error, HangError)
    said = str(ending.error)
    del ending
    HUNG.clear()
    gc.collect()
    return said


def test_a_seed_stands_for_one_order_of_turns() -> None:
    def order(seed: int) -> list[int]:
        turns: list[int] = []

        async def turn(n: int) -> None:
            turns.append(n)

        async def main() -> None:
            async with trio.open_nursery() as nursery:
                for n in range(10):
                    nursery.start_soon(turn, n)

        run_scheduled(main, seed)
        return turns

    assert order(1) == order(1)
    assert order(1) != order(2)
