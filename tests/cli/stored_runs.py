"""Stores with runs in them, and programs that own runs in them."""

import signal
import sqlite3
import subprocess
import sys
from collections.abc import Generator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import trio

from sessionmgr import RunResult, open_manager
from sessionmgr.testing.scripted_provider import Step, scripted
from tests.cli.command import environment
from tests.cli.pseudo_terminal import stop
from tests.manager.harness import run_scripted


def store_runs(store: Path, *scripts: str, provider: str = "actor") -> list[RunResult]:
    """Run scripts, each in its own session, and return the results."""

    async def main() -> list[RunResult]:
        async with open_manager(store=store, adapters={provider: scripted(provider)}) as manager:
            results: list[RunResult] = []
            for script in scripts:
                session = await manager.open_session(provider)
                results.append(await (await session.submit(script)).result())
            return results

    return trio.run(main)


@contextmanager
def block_store_writes(store: Path, patience: float = 60) -> Generator[None]:
    """Block all writes to a store, as a hanging disk would; no other process may use it before."""
    with closing(sqlite3.connect(store, timeout=patience, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        try:
            yield
        finally:
            other.execute("ROLLBACK")


@dataclass
class RunOwner:
    """A program that owns one run."""

    process: "subprocess.Popen[str]"
    store: Path
    session_id: str
    run_id: str

    def wait_for_question(self) -> None:
        """Wait until the run has an open question."""
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "asked\n"

    def suspend(self) -> None:
        """Stop the program while it does not write to the store: it would hold the lock."""
        while True:
            stop(self.process.pid)
            try:
                with block_store_writes(self.store, patience=0.1):
                    return
            except sqlite3.OperationalError:
                self.process.send_signal(signal.SIGCONT)

    def wait_for_end(self) -> str:
        """Wait for the run's end; return the outcome that the program prints."""
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()


@contextmanager
def open_run_owner(home: Path, *steps: Step, asks: bool = False) -> Generator[RunOwner]:
    """Start a child process that owns a run, in a store in `home`."""
    store = home / "runs.db"
    words = [sys.executable, "-m", "tests.cli.run_owner", str(store), *(["ask"] if asks else [])]
    env: Mapping[str, str] = environment(home)
    with subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8", env=env
    ) as process:
        try:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(run_scripted(*steps))
            process.stdin.close()
            session_id, run_id = process.stdout.readline().split()
            yield RunOwner(process, store, session_id, run_id)
        finally:
            process.kill()
