"""Stores with something in them, and programs that look after runs in them."""

import subprocess
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import trio

from sessionmgr import RunResult, open_manager
from sessionmgr.testing.scripted import Step, scripted
from tests.cli.command import environment
from tests.manager.house import play


def fill(store: Path, *scripts: str) -> list[RunResult]:
    """Play scripts, each in a session of its own, and return what became of them."""

    async def main() -> list[RunResult]:
        async with open_manager(store=store, adapters={"actor": scripted("actor")}) as manager:
            results: list[RunResult] = []
            for script in scripts:
                session = await manager.open_session("actor")
                results.append(await (await session.submit(script)).result())
            return results

    return trio.run(main)


@dataclass
class Keeper:
    """A program that looks after one run."""

    process: "subprocess.Popen[str]"
    store: Path
    session_id: str
    run_id: str

    def until_asked(self) -> None:
        """Wait until the run has asked somebody something."""
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "asked\n"

    def ending(self) -> str:
        """Wait for the run's end; return what the program says of it."""
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()


@contextmanager
def keeping(home: Path, *steps: Step, asks: bool = False) -> Generator[Keeper]:
    """Have a child process look after a run, in a store in `home`."""
    store = home / "runs.db"
    words = [sys.executable, "-m", "tests.cli.keeper", str(store), *(["ask"] if asks else [])]
    env: Mapping[str, str] = environment(home)
    with subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8", env=env
    ) as process:
        try:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(play(*steps))
            process.stdin.close()
            session_id, run_id = process.stdout.readline().split()
            yield Keeper(process, store, session_id, run_id)
        finally:
            process.kill()
