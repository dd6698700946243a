"""The verb `run`: run one prompt and print its output as it streams."""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING, Final

import msgspec

from sessionmgr.batch import run_request_for_job
from sessionmgr.cli.capture_flag import capturing_launcher
from sessionmgr.cli.config.paths import make_private
from sessionmgr.cli.errors import CommandLineInvalid
from sessionmgr.cli.follow_up import (
    arguments_from_flags,
    arguments_from_settings,
    choose_approver,
    find_follow_up_target,
    start_follow_up,
)
from sessionmgr.cli.inputs import read_options, read_prompt
from sessionmgr.cli.job_flags import add_job_flags, job_from_flags, naming_budget_source
from sessionmgr.cli.lookup import add_batch_flag
from sessionmgr.cli.queries import open_existing_store
from sessionmgr.cli.terminal.follow_run import follow_runs
from sessionmgr.cli.terminal.signals import run_verb
from sessionmgr.cli.terminal.store_wait import StoreWaitReporter, run_reporting_waits
from sessionmgr.manager import Clocks, RunBlock, open_manager

if TYPE_CHECKING:
    import argparse

    from sessionmgr.cli.config.configuration import Configuration
    from sessionmgr.cli.follow_up import FollowUpTarget
    from sessionmgr.manager import Manager, RunArguments, RunRequest, SessionHandle

HELP: Final = """\
Run one prompt and show what happens: the agent's text on stdout, everything else on stderr.

Approval requests of the agent appear on the terminal and wait 2 min for an answer (--clock
approval=DURATION). Without a terminal, the rules of the settings (approve = "rules.toml") answer
them; without rules, every request is denied.
Ctrl-C stops the run and prints the command that resumes it; press it again to kill the run."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb."""
    parser.add_argument(
        "prompt",
        nargs="?",
        metavar="PROMPT",
        help="prompt; - reads it from stdin (default: that of --prompt-file)",
    )
    parser.add_argument(
        "--prompt-file", metavar="FILE", help="read the prompt from a file (default: none)"
    )
    parser.add_argument(
        "--resume",
        metavar="ID",
        help="continue this run, session or batch job (see sessionmgr resume; default: none, "
        "start a new session)",
    )
    add_batch_flag(parser)
    add_job_flags(parser)


def run(args: argparse.Namespace) -> int:
    """Run the prompt and return the exit code."""
    configuration: Configuration = args.configuration
    if args.resume is None:  # a follow-up has the provider of its run
        configuration = args.configuration = configuration.of_provider(configuration.provider)
    prompt = read_prompt(args.prompt, args.prompt_file, sys.stdin)
    request = run_request_for_job(job_from_flags(args, prompt))
    request = msgspec.structs.replace(request, approve=choose_approver(configuration))
    return run_verb(_main, args, request)


async def _main(args: argparse.Namespace, request: RunRequest) -> int:
    wait = StoreWaitReporter(args.configuration.store)
    start = _start if args.resume is None else _follow_up
    return await run_reporting_waits(wait, partial(start, args, request, wait))


async def _start(args: argparse.Namespace, request: RunRequest, wait: StoreWaitReporter) -> int:
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
        wait.attach(manager)
        session = await _new_session(manager, args)
        with naming_budget_source(configuration):
            session.check(request)
            async with RunBlock(session, request) as handle:
                return await follow_runs(handle, args)


async def _new_session(manager: Manager, args: argparse.Namespace) -> SessionHandle:
    provider: str | None = args.configuration.provider
    if provider is None:
        raise CommandLineInvalid(
            "--provider: no provider is chosen; add -p PROVIDER (see sessionmgr adapters)"
        )
    return await manager.open_session(provider, cwd=args.cwd or ".")


# --- follow-ups ----------------------------------------------------------------------------------


async def _follow_up(args: argparse.Namespace, request: RunRequest, wait: StoreWaitReporter) -> int:
    configuration: Configuration = args.configuration
    if args.cwd is not None:
        raise CommandLineInvalid(
            f"--cwd: a continued session stays in its directory; it cannot move to {args.cwd!r}"
        )
    async with open_existing_store(configuration) as store:
        followed = await find_follow_up_target(store, args.resume, args.batch, configuration)
    _require_provider(followed, configuration)
    make_private(configuration.store)
    async with (
        capturing_launcher(configuration.capture) as launcher,
        open_manager(
            store=configuration.store, agents=configuration.agents, launcher=launcher
        ) as manager,
    ):
        wait.attach(manager)
        with naming_budget_source(configuration):
            arguments = _arguments(args, request, followed.run.provider)
            handle = await start_follow_up(manager, followed, request.prompt, arguments)
        return await follow_runs(handle, args)


def _require_provider(followed: FollowUpTarget, configuration: Configuration) -> None:
    is_flag = configuration.sources.get("provider", "").startswith("-")
    run = followed.run
    if is_flag and configuration.provider != run.provider:
        raise CommandLineInvalid(
            f"--provider: session {run.session_id} belongs to {run.provider}, "
            f"not {configuration.provider}"
        )


def _arguments(args: argparse.Namespace, request: RunRequest, provider: str) -> RunArguments:
    """Return the arguments that flags set; all others stay as recorded."""
    arguments = arguments_from_settings(args.configuration, provider)
    said = {
        "system_prompt": args.system_prompt or args.system_prompt_file,
        "images": args.image,
        "require": args.require,
        "prefer": args.prefer,
        "schema": args.schema,
        "env": args.env or args.env_file,
        "metadata": args.metadata,
        "approve": request.approve,
    }
    arguments.update(arguments_from_flags(request, {name for name, value in said.items() if value}))
    if args.option:
        arguments["options"] = read_options("--option", args.option)
    return arguments
