"""The benchmarks' own logic, and smoke runs of every suite. No bound is judged here."""

import io
import json
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest
import trio
import trio.testing
from hypothesis import given, strategies as st

from benchmarks.agent_setup import WithAgent, program as newest
from benchmarks.claude.suite import CLAUDE
from benchmarks.codex.suite import CODEX
from benchmarks.command import SUITES, main
from benchmarks.contestant import Contestant, OtherPython, ThisPython
from benchmarks.fleet.pieces import BenchFleet, lateness
from benchmarks.fleet.suite import FLEET
from benchmarks.goal import (
    Curve,
    Figure,
    GoalResult,
    Ratio,
    Samples,
    Verdict,
    Weight,
    deviation,
    exit_code,
    figure,
    judge,
)
from benchmarks.manager.suite import MANAGER
from benchmarks.otp.suite import OTP
from benchmarks.process.suite import PROCESS, ExcessGoal
from benchmarks.report import as_json, table, verdicts
from benchmarks.rounds import Rounds
from benchmarks.shipped import ours as shipped
from benchmarks.shipped.frames import DIALECTS, BenchDialect
from benchmarks.shipped.suite import SHIPPED
from benchmarks.shipped.transcript import PIECES
from benchmarks.suite import Suite, UnknownNameError, choose, contestants_of
from benchmarks.wire.suite import WIRE
from sessionmgr.adapter import ProviderAdapter
from sessionmgr.model import AnyEvent, MessageReceived, MessageStreamed

OURS = figure("ours/cost")
THEIRS = figure("theirs/cost")
GOAL = Ratio("G-1", "a thing", OURS, (THEIRS,), 0.9)
COSTS = st.floats(0.01, 1e6)


def rounds(*pairs: tuple[float, float]) -> list[Samples]:
    return [{OURS: ours, THEIRS: theirs} for ours, theirs in pairs]


def test_a_ratio_is_taken_in_each_round_and_the_median_of_them_is_judged() -> None:
    # The medians of the figures alone give 4 / 4: one round was slow for both.
    result = judge(GOAL, rounds((1.0, 2.0), (4.0, 4.0), (40.0, 80.0)))
    assert result.ratios == (0.5, 1.0, 0.5)
    assert result.score is not None
    assert result.score.ratio == 0.5
    assert result.verdict is Verdict.HOLDS


def test_one_wild_round_in_three_changes_nothing() -> None:
    assert judge(GOAL, rounds((1, 2), (99, 2), (1, 2))).verdict is Verdict.HOLDS


@given(ours=COSTS, theirs=COSTS)
def test_a_bound_is_broken_exactly_when_the_ratio_exceeds_it(ours: float, theirs: float) -> None:
    verdict = judge(GOAL, rounds((ours, theirs))).verdict
    assert verdict is (Verdict.BROKEN if ours / theirs > 0.9 else Verdict.HOLDS)


def test_a_ceiling_is_for_our_own_figure() -> None:
    heavy = Ratio("G-M", "memory", OURS, (THEIRS,), 1.6, ceiling=4.5, unit="KiB")
    assert judge(heavy, rounds((4.4, 4.0))).verdict is Verdict.HOLDS
    assert judge(heavy, rounds((4.6, 4.0))).verdict is Verdict.BROKEN


def test_a_weight_is_compared_with_what_it_may_be() -> None:
    heavy = Weight("G-M", "memory", OURS, 18.0)
    assert judge(heavy, [{OURS: 17.9}]).verdict is Verdict.HOLDS
    assert judge(heavy, [{OURS: 18.1}]).verdict is Verdict.BROKEN


def test_several_anchors_are_added_up() -> None:
    other = figure("theirs/more")
    goal = Ratio("G-2", "a thing", OURS, (THEIRS, other), 1.3)
    assert goal.score({OURS: 6.0, THEIRS: 1.0, other: 2.0}).ratio == 2.0


@given(costs=st.lists(COSTS, min_size=1, max_size=5))
def test_every_cost_is_within_the_deviation_of_some_cost(costs: list[float]) -> None:
    middle = (max(costs) + min(costs)) / 2
    allowed = (deviation(costs) + 1e-9) * middle
    assert all(abs(each - middle) <= allowed for each in costs)


def test_a_curve_is_judged_by_our_deviation_alone() -> None:
    small, large = figure("ours/1"), figure("ours/2")
    goal = Curve("G-lin", "a curve", (small, large), (THEIRS,), 0.3)
    flat: Samples = {small: 1.0, large: 1.5, THEIRS: 1.0}
    steep: Samples = {small: 1.0, large: 2.0, THEIRS: 1.0}
    assert judge(goal, [flat]).verdict is Verdict.HOLDS
    assert judge(goal, [steep]).verdict is Verdict.BROKEN


def test_without_a_bound_a_figure_is_information_and_a_smoke_judges_nothing() -> None:
    bare = Ratio("other", "a thing", OURS, (THEIRS,), None)
    assert judge(bare, rounds((9, 1))).verdict is Verdict.NO_BOUND
    assert judge(GOAL, rounds((9, 1)), smoke=True).verdict is Verdict.SMOKE


@pytest.mark.parametrize(
    ("verdict", "code"),
    [
        (Verdict.HOLDS, 0),
        (Verdict.NO_BOUND, 0),
        (Verdict.SMOKE, 0),
        (Verdict.MISSING, 0),
        (Verdict.BROKEN, 1),
        (Verdict.FAILED, 1),
    ],
)
def test_the_exit_code_is_1_for_a_broken_bound_or_a_failure_only(
    verdict: Verdict, code: int
) -> None:
    assert exit_code([GoalResult(GOAL, Verdict.HOLDS), GoalResult(GOAL, verdict)]) == code


def test_the_table_has_figures_bound_and_verdict_and_says_what_is_missing() -> None:
    missing = Ratio("G-2", "another", OURS, (THEIRS,), None)
    results = [
        judge(GOAL, rounds((2.0, 1.0))),
        GoalResult(missing, Verdict.MISSING, why="pip install it"),
    ]
    head, _, first, second, _, reason = table(results).splitlines()
    assert head.split() == ["goal", "what", "ours", "anchor", "ratio", "bound", "verdict"]
    assert " ".join(first.split()) == "G-1 a thing 2.00 µs 1.00 µs 2.00 ≤ 0.90 BROKEN"
    assert " ".join(second.split()) == "G-2 another not measured"
    assert reason == "not measured: pip install it"
    assert verdicts(results) == "1 BROKEN, 1 not measured: G-1"


def test_json_has_every_rounds_ratio() -> None:
    found = json.loads(as_json([judge(GOAL, rounds((1, 2), (3, 4)))], ["a note"], 2))
    assert found["notes"] == ["a note"]
    (goal,) = found["goals"]
    assert goal["ratios"] == [0.5, 0.75]
    assert goal["verdict"] == "holds"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["opt"], "no benchmark is named 'opt'; there are: otp"),
        (["otp", "--only", "G-A9"], "no goal is named 'G-A9'; there are: G-A1, G-A2,"),
        (["--rounds", "0"], "at least one round is needed"),
    ],
)
def test_an_unknown_name_is_refused_with_those_there_are(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as exited:
        main(arguments)
    assert exited.value.code == 2
    assert said in capsys.readouterr().err


def test_a_list_of_goals_has_each_suite_and_bound_and_measures_nothing(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["--list"]) == 0
    said = capsys.readouterr()
    assert not said.err
    head, _, *lines = said.out.splitlines()
    assert head.split() == ["suite", "goal", "bound", "what"]
    found = [tuple(line.split()[:2]) for line in lines]
    assert found == [(suite.name, goal.id) for suite in SUITES for goal in suite.goals]


@pytest.mark.parametrize(
    ("suite", "goal", "bound"),
    [
        ("fleet", "G-F1", "≤ 1.20"),
        ("fleet", "G-F3", "≤ 30 ms"),
        ("process", "G-P1", "≤ 2 ms"),
        ("otp", "G-M1", "≤ 1.60, ≤ 4.5 KiB"),
        ("otp", "pykka", "-"),
    ],
)
def test_a_bound_is_listed_as_a_factor_or_with_its_unit(
    suite: str, goal: str, bound: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([suite, "--list", "--only", goal]) == 0
    line = " ".join(capsys.readouterr().out.splitlines()[2].split())
    assert line.startswith(f"{suite} {goal} {bound} ")


def test_help_says_how_to_measure_one_goal(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    said = capsys.readouterr().out
    assert "python -m benchmarks fleet --only G-F1 " in said
    assert "python -m benchmarks --list " in said


def test_no_name_means_all() -> None:
    assert choose([], [OTP]) == [OTP]
    with pytest.raises(UnknownNameError):
        choose(["otp", "no"], [OTP])


def test_only_the_contestants_of_a_chosen_goal_run() -> None:
    assert [each.name for each in OTP.only(["G-A1"]).needed_contestants()] == [
        "ours.call",
        "trio.call",
    ]


def test_every_goal_of_otp_has_a_contestant_for_each_figure() -> None:
    names = {each.name for each in OTP.contestants}
    assert len(names) == len(OTP.contestants)
    for goal in OTP.goals:
        assert {each.contestant for each in goal.figures()} <= names
    assert {each.name for each in OTP.needed_contestants()} == names
    wanted = [*(f"G-A{n}" for n in range(1, 7)), *(f"G-S{n}" for n in range(1, 8))]
    assert {*wanted, "G-M1", "G-lin"} <= {each.id for each in OTP.goals}


def test_every_goal_of_wire_has_a_contestant_for_each_figure() -> None:
    names = {each.name for each in WIRE.contestants}
    assert len(names) == len(WIRE.contestants)
    assert {each.name for each in WIRE.needed_contestants()} == names
    assert {"G-E1", "G-E2", "G-E4", "G-E9"} <= {each.id for each in WIRE.goals}


def test_every_goal_of_process_has_a_contestant_for_each_figure() -> None:
    names = {each.name for each in PROCESS.contestants}
    assert len(names) == len(PROCESS.contestants)
    assert {each.name for each in PROCESS.needed_contestants()} == names
    assert {"G-P1", "G-M3"} <= {each.id for each in PROCESS.goals}


def test_an_excess_is_judged_by_the_difference() -> None:
    excess = ExcessGoal("G-P", "a thing", OURS, THEIRS, 2.0)
    assert judge(excess, rounds((3.0, 1.5))).verdict is Verdict.HOLDS
    assert judge(excess, rounds((3.6, 1.5))).verdict is Verdict.BROKEN


def test_every_goal_of_the_manager_has_a_contestant_for_each_figure() -> None:
    names = {each.name for each in MANAGER.contestants}
    assert len(names) == len(MANAGER.contestants)
    assert {each.name for each in MANAGER.needed_contestants()} == names
    wanted = {
        "G-E3",
        "G-E4",
        "G-E5",
        "G-E7",
        "G-E8",
        "G-E10",
        "floor",
        "G-M2",
        "G-lin",
        "G-R",
        "run",
    }
    assert wanted <= {each.id for each in MANAGER.goals}


def test_every_goal_of_the_shipped_adapters_has_a_contestant_for_each_figure() -> None:
    assert {each.name for each in SHIPPED.needed_contestants()} == {
        each.name for each in SHIPPED.contestants
    }
    assert {"G-E1s", "G-E2s", "G-E6s", "floor"} == {each.id for each in SHIPPED.goals}


def said(events: Iterable[object]) -> list[tuple[str, str]]:
    return [
        ("piece", event.delta) if isinstance(event, MessageStreamed) else ("whole", event.content)
        for event in events
        if isinstance(event, MessageStreamed | MessageReceived)
    ]


@pytest.mark.parametrize("agent", DIALECTS, ids=lambda agent: agent.name)
def test_messages_are_played_whole_with_as_many_pieces_as_are_wanted(agent: BenchDialect) -> None:
    lines = list(agent.lines(PIECES + 10))
    assert len(set(lines)) == len(lines)
    found = said(map(agent.normalise, lines))
    kinds = [kind for kind, _ in found]
    assert kinds == [*PIECES * ["piece"], "whole", *10 * ["piece"], "whole"]
    texts = [text for _, text in found]
    assert "".join(texts[:PIECES]) == texts[PIECES]
    assert "".join(texts[PIECES + 1 : -1]) == texts[-1]


@pytest.mark.parametrize("dialect", range(len(DIALECTS)))
async def test_the_least_makes_the_events_of_the_adapter_that_ships(dialect: int) -> None:
    agent = DIALECTS[dialect]
    with agent.write_lines(PIECES + 10) as path:
        found = await played(shipped.ADAPTERS[dialect], dialect, path)
    assert said(found) == said(map(agent.normalise, agent.lines(PIECES + 10)))


@pytest.mark.parametrize("dialect", range(len(DIALECTS)))
async def test_a_counted_piece_is_taken_from_an_inbox_and_goes_no_further(dialect: int) -> None:
    shipped.FrontInbox.pieces = shipped.PieceCounter(40)
    with DIALECTS[dialect].write_lines(40) as path:
        found = await played(shipped.COUNTED[dialect], dialect, path)
    assert shipped.FrontInbox.pieces.left == 0
    assert not said(found)
    assert {"run_started", "run_completed"} <= {event.type for event in found}


async def played(adapter: type[ProviderAdapter], dialect: int, path: str) -> list[AnyEvent]:
    async with shipped.open_bench_manager(adapter, sqlite=False) as manager:
        session = await manager.open_session(adapter.name, permission_mode=shipped.MODES[dialect])
        run = await shipped.play(manager, dialect, path, session)
        return [event async for event in run]


def test_every_goal_of_the_fleet_has_a_contestant_for_each_figure() -> None:
    names = {each.name for each in FLEET.contestants}
    assert {each.name for each in FLEET.needed_contestants()} == names
    assert {"G-F1", "G-F2", "G-F3", "floor"} == {each.id for each in FLEET.goals}


async def test_a_fleet_is_over_when_every_piece_of_every_session_was_heard(
    autojump_clock: trio.testing.MockClock,
) -> None:
    measured = BenchFleet(sessions=3, pieces=4)
    sent: list[str] = []

    def tell(piece: str) -> None:
        sent.append(piece)
        assert not measured.over.is_set()
        measured.receive(piece)

    async with trio.open_nursery() as nursery:
        for number in range(measured.sessions):
            nursery.start_soon(measured.source, number, tell)
            measured.ready()
    assert len(sent) == 3 * 4
    assert measured.figures().keys() == {"event", "p50", "p99"}


def test_lateness_has_the_median_and_what_one_in_a_hundred_exceeds() -> None:
    found = lateness([float(each) for each in range(1, 101)])
    assert found["p50"] == 50.5
    assert 99 <= found["p99"] <= 100


def test_nobody_is_measured_in_the_place_of_another() -> None:
    names = [each.name for each in contestants_of(SUITES)]
    assert sorted(names) == sorted(
        {each.name for suite in SUITES for each in suite.needed_contestants()}
    )
    others = Suite("others", (GOAL,), (Contestant("ours", "m:f"), Contestant("theirs", "m:f")))
    assert contestants_of([others, others]) == list(others.contestants)
    false = Suite("false", (GOAL,), (Contestant("ours", "m:g"), Contestant("theirs", "m:f")))
    with pytest.raises(ValueError, match="two contestants are called ours"):
        contestants_of([others, false])


@pytest.mark.parametrize("suite", [CLAUDE, CODEX], ids=lambda suite: suite.name)
def test_every_goal_of_an_agent_has_a_contestant_for_each_figure(suite: Suite) -> None:
    names = {each.name for each in suite.contestants}
    assert len(names) == len(suite.contestants)
    assert {each.name for each in suite.needed_contestants()} == names


@pytest.mark.parametrize("suite", [CLAUDE, CODEX], ids=lambda suite: suite.name)
def test_without_an_agent_it_is_said_that_it_is_missing(
    suite: Suite,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("SESSIONMGR_AGENTS", str(tmp_path))
    assert main([suite.name, "--smoke"]) == 0
    said = capsys.readouterr().out
    assert f"{len(suite.goals)} not measured" in said
    assert f"there is no {suite.name}: .ci/agents installs it" in said


def test_the_newest_claude_code_is_taken(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for version in ("2.1.99", "2.1.327", "2.1.200"):
        program = tmp_path / f"claude-{version}" / "bin" / "claude"
        program.parent.mkdir(parents=True)
        program.touch()
    monkeypatch.setenv("SESSIONMGR_AGENTS", str(tmp_path))
    assert "2.1.327" in str(newest("claude"))
    with_claude = WithAgent("claude", ThisPython("no_such_package"))
    assert "no_such_package" in (with_claude.absence() or "")
    assert with_claude.command("m:f", ())[0] == "env"


def test_what_is_not_installed_is_said_with_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("SOME_PYTHON", raising=False)
    other = OtherPython("SOME_PYTHON", "no_such_package", "make a venv")
    assert other.absence() == "no_such_package is looked for where SOME_PYTHON points: make a venv"
    monkeypatch.setenv("SOME_PYTHON", sys.executable)
    assert "cannot import no_such_package: make a venv" in (other.absence() or "")
    assert "-m pip install no_such_package" in (ThisPython("no_such_package").absence() or "")
    assert ThisPython("trio").absence() is None


async def test_each_round_runs_everybody_and_every_other_one_backwards() -> None:
    said = io.StringIO()
    both = [Contestant(name, f"benchmarks.otp.raw_trio:{name}") for name in ("nursery", "cancel")]
    # A smoke run for its clean-up alone; the order matters here, so one at a time.
    stage = Rounds(both, rounds=2, smoke=True, progress=said, at_once=1)
    await stage.run()
    order = [line.split()[-1] for line in said.getvalue().splitlines() if "done" not in line]
    assert order == ["nursery", "cancel", "cancel", "nursery"]
    assert [samples.keys() for samples in stage.measured] == 2 * [
        {Figure("nursery", "one_child"), Figure("cancel", "one_child")}
    ]


async def test_a_contestant_that_fails_fails_its_goals_and_no_others() -> None:
    both = [Contestant("ours", "benchmarks:no_such"), Contestant("theirs", "benchmarks:no_such")]
    stage = Rounds(both[:1], rounds=1, smoke=True, progress=io.StringIO())
    await stage.run()
    (result,) = stage.results([GOAL])
    assert result.verdict is Verdict.FAILED
    assert "AttributeError" in result.why


@pytest.mark.parametrize(
    ("suite", "goal", "contestant"),
    [
        ("otp", "G-A1", "ours.call"),
        ("wire", "G-E2", "ours.pipe"),
        ("shipped", "G-E6s", "claude.whole"),
        ("fleet", "G-F1", "trio.fleet_200"),
    ],
)
def test_a_tiny_smoke_runs_and_exits_with_0(
    suite: str, goal: str, contestant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([suite, "--smoke", "--only", goal]) == 0
    said = capsys.readouterr()
    assert goal in said.out
    assert contestant in said.err
