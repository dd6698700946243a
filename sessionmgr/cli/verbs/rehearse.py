"""The verb `rehearse`: run a batch with real agents and a scripted model."""

from __future__ import annotations

import os
import shlex
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from sessionmgr.batch import JobsInvalid, run_batch
from sessionmgr.cli.capture_flag import capturing_launcher
from sessionmgr.cli.config.setting_flags import add_concurrency_flag
from sessionmgr.cli.error_messages import print_error
from sessionmgr.cli.errors import CommandLineInvalid
from sessionmgr.cli.inputs import directory_argument
from sessionmgr.cli.job_flags import NO_PROVIDER, add_job_flags, job_from_flags, provider_jobs
from sessionmgr.cli.rehearsal_mark import mark_rehearsal
from sessionmgr.cli.selection_flags import add_selection_flags
from sessionmgr.cli.terminal.batch_report import CONTINUE_HINT
from sessionmgr.cli.terminal.follow_batch import BatchFollower
from sessionmgr.cli.terminal.signals import run_verb
from sessionmgr.cli.terminal.stdout import print_note
from sessionmgr.manager import Clocks, open_manager
from sessionmgr.testing import (
    RehearsalHost,
    agent_environment,
    refused_hosts_message,
    unrehearsable_jobs,
)
from sessionmgr.testing.model_server import IsolatedEnvironment, ModelServer, open_model_server

if TYPE_CHECKING:
    import argparse

    from sessionmgr.batch import Job
    from sessionmgr.cli.config.configuration import Configuration

HELP: Final = """\
Run a batch with the real agents at no cost: a local server plays a scripted model.

The agents start as in a real batch, in the jobs' directories and with the jobs' prompts. The model
repeats the prompt, or returns a value that matches the schema; a prompt may contain a script
(<script>[[{"do": "say", "text": "hi"}]]</script>) of the model's answers and tool calls.
Credentials, proxies, homes and settings files of the jobs are ignored. Nothing is stored without
--out."""

MISTAKEN: Final = 1
SHOWN: Final = 25


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb."""
    parser.add_argument("jobs", metavar="JOBS", help="jobs file, one JSON object per line")
    add_concurrency_flag(parser)
    parser.add_argument(
        "-o",
        "--out",
        type=directory_argument,
        metavar="DIR",
        help="directory of the results (default: none, nothing is stored)",
    )
    add_selection_flags(parser)
    add_job_flags(parser)


def run(args: argparse.Namespace) -> int:
    """Run the rehearsal and return the exit code."""
    configuration: Configuration = args.configuration
    if args.option and configuration.provider is None:
        raise CommandLineInvalid(NO_PROVIDER)
    with tempfile.TemporaryDirectory(prefix="sessionmgr-rehearsal-") as root:
        return run_verb(_main, args, job_from_flags(args), Path(root))


async def _main(args: argparse.Namespace, defaults: Job, root: Path) -> int:
    try:
        problems = [str(each) for each in unrehearsable_jobs(args.jobs, defaults)]
        if problems:
            raise JobsInvalid(problems[:SHOWN], len(problems[SHOWN:]))
        async with open_model_server() as server:
            code = await _run_batch(args, defaults, server, root)
            return _print_requests(args, server, code)
    except OSError as error:
        why = error.strerror or error
        if isinstance(error, FileNotFoundError):
            why = "no such file; give a file with one JSON object per line"
        raise CommandLineInvalid(f"{args.jobs}: {why}") from error
    except JobsInvalid as error:
        for problem in str(error).splitlines():
            print_error(problem)
        return MISTAKEN


async def _run_batch(
    args: argparse.Namespace, defaults: Job, server: ModelServer, root: Path
) -> int:
    configuration: Configuration = args.configuration
    hermitage = IsolatedEnvironment(root, server.url, path=os.environ.get("PATH", os.defpath))
    async with (
        capturing_launcher(configuration.capture) as launcher,
        open_manager(
            agents=configuration.agents,
            clocks=Clocks(**configuration.clocks),
            launcher=launcher,
            environ=agent_environment(hermitage),
        ) as manager,
    ):
        out = None if args.out is None else Path(args.out)
        if out is not None:
            mark_rehearsal(out)
        batch = run_batch(
            manager,
            args.jobs,
            host=RehearsalHost(manager),
            concurrency=configuration.concurrency if configuration.is_set("concurrency") else None,
            per_provider=configuration.per_provider,
            retries=0,
            out=out,
            force=True,
            limit=args.limit,
            only=args.only or (),
            skip=args.skip or (),
            defaults=defaults,
            provider_defaults=provider_jobs(configuration),
            options=configuration.options,
        )
        hints = {CONTINUE_HINT: shlex.join(["sessionmgr", *args.typed])}
        if out is not None:
            hints["results"] = str(out / "results.jsonl")
        return await BatchFollower(args, hints=hints, stored=False).follow(batch)


def _print_requests(args: argparse.Namespace, server: ModelServer, code: int) -> int:
    """Report the requests to the model, and any to other hosts."""
    if not args.quiet:
        print_note(f"the scripted model answered {len(server.log.asked)} requests at no cost")
    said = refused_hosts_message(server.log.strangers)
    if said is None:
        return code
    print_note(f"warning: {said}")
    return code
