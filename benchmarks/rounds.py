"""Rounds of contestants, each in a fresh process.

A round measures every contestant once, so that its ratios compare runs of the same minutes. Every
other round is reversed, so that no contestant always comes first.
"""

import json
import os
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TextIO, cast

import trio

from benchmarks.contestant import Contestant
from benchmarks.goal import Figure, Goal, GoalResult, Samples, Verdict, judge

ROOT: Final = Path(__file__).resolve().parent.parent
TIME_LIMIT: Final = 300.0
"""Time limit in seconds for one measurement of a contestant."""


@dataclass(slots=True)
class Rounds:
    """All contestants, their measurements, and the reasons of those that could not run."""

    contestants: Sequence[Contestant]
    rounds: int
    smoke: bool
    progress: TextIO
    at_once: int = 1
    measured: list[Samples] = field(default_factory=list[Samples])
    absent: dict[str, str] = field(default_factory=dict[str, str])
    failed: dict[str, str] = field(default_factory=dict[str, str])

    async def run(self) -> None:
        """Run all rounds."""
        self._find_absent()
        present = [each for each in self.contestants if each.name not in self.absent]
        at_once = trio.CapacityLimiter(self.at_once)
        begin = time.monotonic()
        for number in range(self.rounds):
            samples: Samples = {}
            self.measured.append(samples)
            async with trio.open_nursery() as nursery:
                for place, each in enumerate(present if number % 2 == 0 else present[::-1], 1):
                    await at_once.acquire_on_behalf_of(each)
                    self._say(f"round {number + 1}/{self.rounds} {place}/{len(present)}", each.name)
                    nursery.start_soon(self._measure, each, samples, at_once)
            spent = time.monotonic() - begin
            left = spent / (number + 1) * (self.rounds - number - 1)
            self._say(
                f"round {number + 1}/{self.rounds}", f"done, {spent:.0f} s, {left:.0f} s to go"
            )
        if self.progress.isatty():
            self.progress.write("\r\033[K")

    def results(self, goals: Sequence[Goal]) -> list[GoalResult]:
        """Judge the goals by the measurements."""
        return [self._result(goal) for goal in goals]

    def _result(self, goal: Goal) -> GoalResult:
        names = {each.contestant for each in goal.figures()}
        for name in names & self.failed.keys():
            return GoalResult(goal, Verdict.FAILED, why=self.failed[name])
        for name in names & self.absent.keys():
            return GoalResult(goal, Verdict.MISSING, why=self.absent[name])
        return judge(goal, self.measured, smoke=self.smoke)

    def _find_absent(self) -> None:
        for each in self.contestants:
            absence = each.runtime.absence()
            if absence is not None:
                self.absent[each.name] = absence

    async def _measure(
        self, contestant: Contestant, samples: Samples, at_once: trio.CapacityLimiter
    ) -> None:
        paths = [str(ROOT), os.environ.get("PYTHONPATH", "")]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
        try:
            with trio.fail_after(TIME_LIMIT):
                done = await trio.run_process(
                    contestant.command(smoke=self.smoke),
                    capture_stdout=True,
                    capture_stderr=True,
                    check=True,
                    env=environment,
                )
            figures = cast("dict[str, float]", json.loads(done.stdout))
            samples.update({Figure(contestant.name, key): each for key, each in figures.items()})
        except subprocess.CalledProcessError as error:
            output = bytes(error.stderr).decode(errors="replace").strip()
            self._fail(contestant, output or f"exit status {error.returncode}")
        except trio.TooSlowError:
            self._fail(contestant, f"not done within {TIME_LIMIT:.0f} s")
        except (OSError, ValueError) as error:
            self._fail(contestant, repr(error))
        finally:
            at_once.release_on_behalf_of(contestant)

    def _fail(self, contestant: Contestant, why: str) -> None:
        lines = why.splitlines()
        self.failed.setdefault(contestant.name, f"{contestant.name}: {lines[-1]}")
        self._say(contestant.name, "failed:\n" + "\n".join(lines[-20:]) + "\n", keep=True)

    def _say(self, where: str, what: str, *, keep: bool = False) -> None:
        if not self.progress.isatty():
            self.progress.write(f"{where} {what}\n")
        else:
            self.progress.write(f"\r\033[K{where} {what}" + ("\n" if keep else ""))
        self.progress.flush()
