"""Managers in several processes on one file, one of them stopped or killed."""

import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from sessionmgr.manager import SessionBusy, open_manager
from sessionmgr.model import TERMINAL, FailureKind, RunStatus
from sessionmgr.testing.scripted_provider import Say, scripted
from tests.manager.harness import run_scripted

HANGS = """
import sys, trio
from sessionmgr import open_manager
from sessionmgr.testing.scripted_provider import Hang, Say, scripted
async def main():
    actor = scripted("actor", scripts={"hang": (Say(text="x"), Hang())})
    async with open_manager(store=sys.argv[1], adapters={"actor": actor}) as manager:
        run = await (await manager.open_session("actor")).submit("hang")
        print(run.session_id, run.id, flush=True)
        await trio.sleep_forever()
trio.run(main)
"""


@contextmanager
def another(store: Path) -> Generator[tuple[subprocess.Popen[str], str, str]]:
    """Run a program in another process; yield the process, the session and the run."""
    command = [sys.executable, "-c", HANGS, str(store)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            session_id, run_id = process.stdout.readline().split()
            yield process, session_id, run_id
        finally:
            process.kill()


def strike(pid: int, number: signal.Signals) -> None:
    """Send a signal to a child and wait for its effect; a dead child is not reaped."""
    os.kill(pid, number)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WSTOPPED | os.WNOWAIT)


def stop_for_long(pid: int, store: Path) -> None:
    """Stop the process that owns all leases, and age them as if it had been stopped for long.

    The store's write lock is held meanwhile: a process that is stopped in the middle of a
    transaction locks out every other one.
    """
    with closing(sqlite3.connect(store, timeout=60)) as connection, connection:
        connection.execute("BEGIN IMMEDIATE")
        strike(pid, signal.SIGSTOP)
        connection.execute("UPDATE leases SET expires = 1")


async def test_a_session_of_a_process_that_was_killed_goes_on_at_once_though_that_is_a_zombie(
    tmp_path: Path,
) -> None:
    store = tmp_path / "x.db"
    with another(store) as (process, session_id, run_id):
        strike(process.pid, signal.SIGKILL)
        async with open_manager(store=store, adapters={"actor": scripted("actor")}) as manager:
            session = await manager.session(session_id)
            result = await (await session.submit(run_scripted(Say(text="I am back")))).result()
            assert (result.status, result.text) == (RunStatus.COMPLETED, "I am back")
            left = await manager.result(run_id)
            assert left.failure is not None
            assert left.failure.kind is FailureKind.MANAGER_CRASHED


async def test_a_process_that_is_stopped_keeps_its_session_however_late_it_renews_its_lease(
    tmp_path: Path,
) -> None:
    store = tmp_path / "x.db"
    with another(store) as (process, session_id, run_id):
        stop_for_long(process.pid, store)
        async with open_manager(store=store, adapters={"actor": scripted("actor")}) as manager:
            assert (await manager.result(run_id)).status not in TERMINAL
            session = await manager.session(session_id)
            with pytest.raises(SessionBusy, match=f"process {process.pid} on this machine"):
                await session.submit("x")
