"""The verb `batch`: run many jobs."""

from __future__ import annotations

import os
import shlex
import sys
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import trio

from sessionmgr.batch import (
    BatchOptions,
    JobsInvalid,
    dry_run,
    require_unlocked,
    run_batch,
    spool_jobs,
)
from sessionmgr.cli.capture_flag import capturing_launcher
from sessionmgr.cli.config.approval_rules import load_approver
from sessionmgr.cli.config.paths import make_private
from sessionmgr.cli.config.setting_flags import add_concurrency_flag, add_setting_flags
from sessionmgr.cli.error_messages import print_error
from sessionmgr.cli.errors import CommandLineInvalid
from sessionmgr.cli.inputs import directory_argument, read_text_file
from sessionmgr.cli.job_flags import NO_PROVIDER, add_job_flags, job_from_flags, provider_jobs
from sessionmgr.cli.rehearsal_mark import refuse_rehearsal
from sessionmgr.cli.selection_flags import add_selection_flags
from sessionmgr.cli.suggested_command import without_flags
from sessionmgr.cli.terminal.batch_plan import show_plan
from sessionmgr.cli.terminal.batch_report import CONTINUE_HINT
from sessionmgr.cli.terminal.follow_batch import BatchFollower
from sessionmgr.cli.terminal.signals import run_verb
from sessionmgr.cli.terminal.store_wait import StoreWaitReporter, run_reporting_waits
from sessionmgr.manager import Clocks, open_manager

if TYPE_CHECKING:
    import argparse

    from sessionmgr.adapter import Approve
    from sessionmgr.batch import Job
    from sessionmgr.cli.config.configuration import Configuration

HELP: Final = """\
Run many jobs concurrently. JOBS has one JSON object per line (see sessionmgr schema job).

Repeat the command to continue: it runs the jobs that are left. The directory --out contains
the batch.
A job that was interrupted or failed after its agent made a tool call is resumed in its
session; it starts over only with --retry-from fresh. A command of the provider shell that
ended by itself with an error runs again; an interrupted one does not.
Limits such as --deadline may be raised then. A result is kept until its job has run again.
A field of a job overrides the default of its provider (--set), which overrides the general flag;
a warning names the limits, permission modes and tools that jobs override.
Ctrl-C stops the running jobs and prints the command that continues; press it again to kill them."""

COMPLETED: Final = 0
MISTAKEN: Final = 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb."""
    parser.add_argument(
        "jobs", metavar="JOBS", help="jobs file, one JSON object per line; - reads stdin"
    )
    add_concurrency_flag(parser)
    parser.add_argument(
        *("-o", "--out"),
        type=directory_argument,
        metavar="DIR",
        help="directory of the batch and its results (default: runs/NAME for the jobs file "
        "NAME.jsonl)",
    )
    add_setting_flags(
        parser,
        *("retries", "retry_on", "retry_from", "max_failures", "keep_failed"),
        *("approve", "on_denied"),
    )
    parser.add_argument(
        "--force",
        action="store_true",
        help="run completed jobs again if their work (prompt, cwd, …) has changed "
        "(default: refuse them)",
    )
    parser.add_argument(
        "--ignore-pauses",
        action="store_true",
        help="also use providers that are paused because a limit was hit (default: wait for them)",
    )
    add_selection_flags(parser)
    parser.add_argument(
        "--dry-run",
        action="store_true",
        help="check jobs, programs and logins, print the plan, and start nothing",
    )
    parser.add_argument(
        "--prompt", metavar="TEXT", help="prompt of the jobs without one (default: none)"
    )
    parser.add_argument(
        "--prompt-file", metavar="FILE", help="read that prompt from a file (default: none)"
    )
    add_job_flags(parser)


def run(args: argparse.Namespace) -> int:
    """Run the batch and return the exit code."""
    configuration: Configuration = args.configuration
    if args.option and configuration.provider is None:
        raise CommandLineInvalid(NO_PROVIDER)
    defaults = job_from_flags(args, _prompt(args))
    approve = load_approver(configuration)
    return run_verb(_main, args, defaults, approve)


async def _main(args: argparse.Namespace, defaults: Job, approve: Approve | None) -> int:
    how = _batch_options(args, defaults)
    try:
        jobs, out = await _jobs_and_out(args)
        refuse_rehearsal(out)
        if args.dry_run:
            # A dry run needs no stored state.
            async with open_manager(agents=args.configuration.agents) as manager:
                planned = dry_run(manager, jobs, out=out, approve=approve, **how)
                await show_plan(planned, as_json=args.json, quiet=args.quiet)
            return COMPLETED
        wait = StoreWaitReporter(args.configuration.store)
        return await run_reporting_waits(
            wait, partial(_run_batch, args, jobs, out, approve, how, wait)
        )
    except JobsInvalid as error:
        for problem in str(error).splitlines():
            print_error(problem)
        return MISTAKEN


async def _run_batch(
    args: argparse.Namespace,
    jobs: Path,
    out: Path,
    approve: Approve | None,
    how: BatchOptions,
    wait: StoreWaitReporter,
) -> int:
    configuration: Configuration = args.configuration
    make_private(configuration.store)
    clocks = Clocks(**configuration.clocks)
    async with (
        capturing_launcher(configuration.capture) as launcher,
        open_manager(
            store=configuration.store,
            agents=configuration.agents,
            clocks=clocks,
            launcher=launcher,
        ) as manager,
    ):
        wait.end()  # from here on the progress display reports it
        batch = run_batch(manager, jobs, out=out, approve=approve, **how)
        is_part = args.limit is not None or bool(args.only or args.skip)
        typed: list[str] = args.typed
        if (
            configuration.retry_from == "fresh"
        ):  # the answer to pending decisions was given, so no hint is needed
            typed = without_flags(typed, "--retry-from")
        again = shlex.join(["sessionmgr", *_rerun_command(typed, jobs, out)])
        hints = {"results": str(out / "results.jsonl"), CONTINUE_HINT: again}
        return await BatchFollower(args, hints=hints, partial=is_part).follow(batch)


def _batch_options(args: argparse.Namespace, defaults: Job) -> BatchOptions:
    configuration: Configuration = args.configuration
    return BatchOptions(
        concurrency=configuration.concurrency if configuration.is_set("concurrency") else None,
        per_provider=configuration.per_provider,
        retries=configuration.retries,
        retry_on=configuration.retry_on,
        retry_from=configuration.retry_from,
        max_failures=configuration.max_failures,
        keep_failed=configuration.keep_failed,
        on_denied=configuration.on_denied,
        ignore_pauses=args.ignore_pauses,
        force=args.force,
        limit=args.limit,
        only=args.only or (),
        skip=args.skip or (),
        defaults=defaults,
        provider_defaults=provider_jobs(configuration),
        sources=configuration.sources,
        options=configuration.options,
    )


async def _jobs_and_out(args: argparse.Namespace) -> tuple[Path, Path]:
    """Return the file of jobs and the directory of the batch; stdin is first stored there."""
    if args.jobs != "-":
        jobs = Path(args.jobs)
        await trio.lowlevel.checkpoint()
        return jobs, _default_out(jobs.stem) if args.out is None else Path(args.out)
    if sys.stdin is None:
        raise CommandLineInvalid("JOBS: - reads stdin, which is closed")
    # The pid makes it unique: another process may start in the same second.
    name = f"{time.strftime('stdin-%Y%m%d-%H%M%S')}-{os.getpid()}"
    out = _default_out(name) if args.out is None else Path(args.out)
    require_unlocked(out)
    async with trio.lowlevel.FdStream(sys.stdin.fileno()) as stream:
        return await spool_jobs(stream, out), out


def _default_out(name: str) -> Path:
    """Return the default directory of a batch; refuse it if a symbolic link leads elsewhere.

    Raises:
        CommandLineInvalid: Its path contains a link: a project would choose where we write.
    """
    out = Path("runs") / name
    for each in (out.parent, out):
        if each.is_symlink():
            raise CommandLineInvalid(
                f"batch: {each} is a symbolic link to {each.readlink()}: to write there, name it "
                f"with --out {out}"
            )
    return out


def _rerun_command(typed: list[str], jobs: Path, out: Path) -> list[str]:
    """Return the command that continues the batch; jobs from stdin are in a file by then."""
    if "-" not in typed:
        return typed
    again = [str(jobs) if word == "-" else word for word in typed]
    named = any(word in {"-o", "--out"} or word.startswith("--out=") for word in typed)
    return again if named else [*again, "-o", str(out)]


def _prompt(args: argparse.Namespace) -> str | None:
    if args.prompt_file is None:
        said: str | None = args.prompt
        return said
    if args.prompt is not None:
        raise CommandLineInvalid("--prompt and --prompt-file: give only one of them")
    return read_text_file("--prompt-file", args.prompt_file)
