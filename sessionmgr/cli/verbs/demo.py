"""The verb `demo`: run a batch of scripted agents and shell commands, some of which fail."""

from __future__ import annotations

import logging
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec
import trio

from sessionmgr.adapter import Allow, Deny
from sessionmgr.batch import run_batch
from sessionmgr.cli.config.paths import make_private
from sessionmgr.cli.demo_jobs import AGENT, CANCELLED, INTRODUCTION, JOBS, script_for
from sessionmgr.cli.suggested_command import suggested_command
from sessionmgr.cli.terminal.follow_batch import BatchFollower
from sessionmgr.cli.terminal.follow_run import COMPLETED, NOT_COMPLETED
from sessionmgr.cli.terminal.signals import INTERRUPTED, run_verb
from sessionmgr.manager import open_manager
from sessionmgr.testing import scripted

if TYPE_CHECKING:
    import argparse

    from sessionmgr.adapter import ApprovalRequest, Decision
    from sessionmgr.batch import Batch, Job
    from sessionmgr.cli.config.configuration import Configuration
    from sessionmgr.manager import Manager
    from sessionmgr.testing import ScriptedProvider

HELP: Final = """\
Run a batch of scripted agents and shell commands to show how runs are supervised.

It takes about ten seconds and needs no agent, key or network. One of the agents crashes and is
retried, one hangs and is stopped, one is denied a tool, one is cancelled. The sessions stay in a
directory of their own for inspection, unless --store names a file."""

AT_ONCE: Final = 8
CANCEL_AFTER: Final = 2.0
AS_PLANNED: Final = {"completed": len(JOBS) - 2, "timed_out": 1, "cancelled": 1}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add no arguments: the verb has none."""
    del parser


def run(args: argparse.Namespace) -> int:
    """Run the demo and return the exit code."""
    return run_verb(_main, args)


async def _main(args: argparse.Namespace) -> int:
    configuration: Configuration = args.configuration
    place = await trio.to_thread.run_sync(lambda: tempfile.mkdtemp(prefix="sessionmgr-demo-"))
    named = configuration.sources.get("store") == "--store"
    store = configuration.store if named else Path(place) / "demo.db"
    make_private(store)
    if not args.verbose:  # the crash is part of the demo, and the batch reports it
        logging.getLogger("sessionmgr.otp").setLevel(logging.CRITICAL)
    agent = scripted(AGENT, scripts=script_for)
    async with open_manager(store=store, adapters={AGENT: agent}) as manager:
        batch = run_batch(
            manager,
            [_in_own_directory(job, Path(place)) for job in JOBS],
            concurrency=AT_ONCE,
            retry_on=["adapter_crashed"],
            approve=_approve,
            out=Path(place),
        )
        configuration = msgspec.structs.replace(
            configuration, store=store, sources={**configuration.sources, "store": "--store"}
        )
        args.configuration = configuration
        show = BatchFollower(args, hints=_hints(configuration))
        if not args.quiet:
            show.print_above(INTRODUCTION)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_cancel_one, manager, agent)
            code = await show.follow(batch)
            nursery.cancel_scope.cancel()
    if code == INTERRUPTED:
        return INTERRUPTED
    return COMPLETED if _require_expected_results(batch) else NOT_COMPLETED


def _in_own_directory(job: Job, place: Path) -> Job:
    directory = place / "work" / job.id
    directory.mkdir(parents=True)
    return msgspec.structs.replace(job, cwd=str(directory))


def _require_expected_results(batch: Batch) -> bool:
    """Return whether the jobs have ended as the demo intends."""
    return batch.summary().statuses == AS_PLANNED


async def _approve(request: ApprovalRequest) -> Decision:
    """Answer as rules or a user would."""
    await trio.lowlevel.checkpoint()
    if "rm -rf" in str(request.tool_input):
        return Deny(reason="nothing is deleted here", by="rules")
    return Allow(by="rules")


async def _cancel_one(manager: Manager, agent: type[ScriptedProvider]) -> None:
    """Cancel a job, as a user at another terminal would."""
    while True:
        await trio.sleep(CANCEL_AFTER / 10)
        for entry in agent.log:
            if entry.text == CANCELLED and trio.current_time() - entry.at > CANCEL_AFTER:
                await manager.cancel(entry.run_id, detail="sessionmgr cancel, by the demo")
                return


def _hints(configuration: Configuration) -> dict[str, str]:
    return {
        "sessions": suggested_command(configuration, "sessions"),
        "agents": "sessionmgr adapters",
        "one run": "sessionmgr run -p shell 'echo hello'",
        "a batch": "sessionmgr batch jobs.jsonl",
    }
