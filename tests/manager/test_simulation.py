"""Whole simulations: the laws hold for each seed, and a seed is reproducible."""

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import settings

from tests.simulation import SimulationReport, simulate
from tests.simulation.__main__ import main

ROOT = Path(__file__).parents[2]
GROUPS = 10
AT_ONCE = min(20, settings().max_examples // 5)

ASK = """
import sys
from tests.simulation import simulate
for seed in map(int, sys.argv[1:]):
    report = simulate(seed)
    print(seed, report.runs, report.events, report.seconds, report.log)
"""


def complaint(report: SimulationReport) -> str:
    return "\n    ".join([report.command, *report.broken])


@pytest.mark.parametrize("first", range(0, GROUPS * AT_ONCE, AT_ONCE))
def test_the_laws_hold_for_every_seed(first: int) -> None:
    reports = [simulate(seed) for seed in range(first, first + AT_ONCE)]
    broken = [complaint(report) for report in reports if report.broken]
    assert not broken, "\n".join(broken)
    assert sum(report.runs for report in reports) > 10 * AT_ONCE


def test_one_seed_gives_one_log_in_three_processes() -> None:
    seeds = [str(seed) for seed in range(3)]
    logs = [
        subprocess.run(
            [sys.executable, "-c", ASK, *seeds],
            cwd=ROOT,
            env={"PYTHONHASHSEED": str(n), "PATH": ""},
            capture_output=True,
            check=True,
        ).stdout
        for n in range(3)
    ]
    assert logs[0].count(b"\n") == len(seeds)
    assert logs[1:] == logs[:2]


def test_different_seeds_give_different_logs() -> None:
    assert len({simulate(seed).log for seed in range(5)}) == 5


def test_thousands_of_sessions_keep_the_laws_too() -> None:
    report = simulate(7, sessions=200)
    assert not report.broken, complaint(report)
    assert report.runs > 200


def test_the_command_that_a_report_names_runs_the_same_again(
    capsys: pytest.CaptureFixture[str],
) -> None:
    report = simulate(3, sessions=5)
    arguments = report.command.split()
    assert arguments[:3] == ["python", "-m", "tests.simulation"]
    assert main(arguments[3:]) == 0
    said = capsys.readouterr().out
    assert f"{report.runs} runs, {report.events} events" in said
