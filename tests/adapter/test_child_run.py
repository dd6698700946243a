"""A run that is one child process: how long the child has to exit by itself."""

import sys
from collections.abc import Sequence
from typing import ClassVar

import pytest

from sessionmgr.adapter import Options, RunContext
from sessionmgr.adapter.kit.child_run import ChildRun
from sessionmgr.adapter.kit.run_adapter import RunAdapter
from sessionmgr.adapter.kit.run_end import exit_failure
from sessionmgr.manager import open_manager
from sessionmgr.process import Command
from sessionmgr.process.ladder import Ladder
from sessionmgr.wire import Line

CLOSES_AND_EXITS = """
import os, time
os.close(1)
time.sleep(0.2)
os._exit(7)
"""
SAYS_BYE_AND_STAYS = """
import time
print("bye", flush=True)
time.sleep(1000)
"""


class SoonRun(ChildRun):
    """Ends its child at once when its time to exit is over."""

    def __init__(self, run: RunContext, lingers: float) -> None:
        super().__init__(run, ladder=Ladder(polite=0.0, term=10.0))
        self.lingers = lingers

    def take(self, lines: Sequence[Line]) -> None:
        if b"bye" in lines:
            self.done()


class SoonOptions(Options, frozen=True, kw_only=True):
    lingers: float = 0.0


class Soon(RunAdapter[SoonRun]):
    name = "soon"
    options: ClassVar[type[Options]] = SoonOptions

    async def run(self, run: RunContext) -> None:
        child = SoonRun(run, SoonOptions.of(run.options).lingers)
        argv = (sys.executable, "-I", "-S", "-c", run.prompt)
        with self.playing(run, child):
            facts = await child.play(Command(argv=argv, cwd=run.cwd, env=dict(run.env)))
        await run.fail(exit_failure(facts, child.tail))


@pytest.mark.parametrize(
    ("script", "lingers", "end"),
    [
        (CLOSES_AND_EXITS, 20.0, "it ended with exit code 7"),
        (SAYS_BYE_AND_STAYS, 0.1, "it was ended by SIGTERM"),
    ],
)
async def test_a_child_has_some_time_to_exit_after_its_last_output(
    script: str, lingers: float, end: str
) -> None:
    async with open_manager(adapters={"soon": Soon}) as manager:
        session = await manager.open_session("soon")
        async with session.start(script, options={"lingers": lingers}) as run:
            result = await run.result()
    assert result.failure is not None
    assert result.failure.message == end
