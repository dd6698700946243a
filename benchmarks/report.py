"""Results, as a table for people and as JSON for programs."""

import json
import platform
import sys
from collections.abc import Sequence
from importlib.metadata import version
from typing import Final

from benchmarks.effort import GC_POLICY
from benchmarks.goal import Curve, Goal, GoalResult, Ratio, Verdict, Weight
from benchmarks.suite import Suite

LIST_HEAD: Final = ("suite", "goal", "bound", "what")
HEAD: Final = ("goal", "what", "ours", "anchor", "ratio", "bound", "verdict")


def conditions(rounds: int) -> str:
    """Return the conditions of the measurement in one line."""
    python = f"{platform.python_implementation()} {platform.python_version()}"
    return (
        f"{python}, trio {version('trio')}, {platform.system()} {platform.machine()};"
        f" rounds: {rounds}, alternated, medians; each contestant in a process of its own"
    )


def table(results: Sequence[GoalResult]) -> str:
    """Return one aligned line per goal, and the reasons for missing figures."""
    lines = _aligned([HEAD, *(_row(each) for each in results)])
    reasons = dict.fromkeys(f"{each.verdict.value}: {each.why}" for each in results if each.why)
    return "\n".join([*lines, *([""] if reasons else []), *reasons])


def goal_list(suites: Sequence[Suite]) -> str:
    """Return one aligned line per goal of the suites."""
    rows = [
        (suite.name, goal.id, _limit(goal), goal.what) for suite in suites for goal in suite.goals
    ]
    return "\n".join(_aligned([LIST_HEAD, *rows]))


def verdicts(results: Sequence[GoalResult]) -> str:
    """Return the number of goals per verdict."""
    counted = {
        verdict: [each for each in results if each.verdict is verdict] for verdict in Verdict
    }
    parts = [f"{len(found)} {verdict.value}" for verdict, found in counted.items() if found]
    broken = dict.fromkeys(each.goal.id for each in counted[Verdict.BROKEN])
    return ", ".join(parts) + (f": {', '.join(broken)}" if broken else "")


def as_json(results: Sequence[GoalResult], notes: Sequence[str], rounds: int) -> str:
    """Return all results, including the ratio of each round."""
    found = {
        "conditions": conditions(rounds),
        "python": sys.version,
        "gc_policy": GC_POLICY,
        "notes": list(notes),
        "goals": [_plain(each) for each in results],
    }
    return json.dumps(found, indent=2, ensure_ascii=False)


def _plain(result: GoalResult) -> dict[str, object]:
    goal, score = result.goal, result.score
    return {
        "goal": goal.id,
        "what": goal.what,
        "unit": goal.unit,
        "ours": score and score.ours,
        "anchor": score and score.anchor,
        "ratio": score and score.ratio,
        "ratios": result.ratios,
        "bound": goal.bound,
        "ceiling": goal.ceiling,
        "verdict": result.verdict.name.lower(),
        "why": result.why,
    }


def _row(result: GoalResult) -> tuple[str, ...]:
    goal, score = result.goal, result.score
    if score is None:
        numbers = ("", "", "")
    elif isinstance(goal, Curve):
        numbers = (f"± {score.ours:.0%}", f"± {score.anchor:.0%}", f"{score.ratio:.2f}")
    else:
        ours, anchor = (f"{each:.2f} {goal.unit}" for each in (score.ours, score.anchor))
        numbers = (ours, anchor, f"{score.ratio:.2f}")
    return (goal.id, goal.what, *numbers, _bound(goal), result.verdict.value)


def _bound(goal: Goal) -> str:
    bound = "" if goal.bound is None else f"≤ {goal.bound:.2f}"
    if goal.ceiling is not None:
        bound += f", ≤ {goal.ceiling:g} {goal.unit}"
    return bound


def _limit(goal: Goal) -> str:
    """Return the bound of a goal, as a factor or with its unit."""
    if goal.bound is None:
        return "-"
    if isinstance(goal, Ratio | Curve):
        return _bound(goal)
    scale = goal.anchor if isinstance(goal, Weight) else 1
    return f"≤ {goal.bound * scale:g} {goal.unit}"


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return one line per row; the first row is the head."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [_line(row, rows[0], widths) for row in rows]
    return [lines[0], "  ".join("-" * width for width in widths), *lines[1:]]


def _line(row: Sequence[str], head: Sequence[str], widths: Sequence[int]) -> str:
    cells = [
        cell.rjust(width) if name in {"ours", "anchor", "ratio"} else cell.ljust(width)
        for cell, name, width in zip(row, head, widths, strict=True)
    ]
    return "  ".join(cells).rstrip()
