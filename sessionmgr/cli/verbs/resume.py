"""The verb `resume`: continue a paused run, or follow up a finished one."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from sessionmgr.cli.capture_flag import capturing_launcher
from sessionmgr.cli.config.paths import make_private
from sessionmgr.cli.config.provider_defaults import add_set_flag
from sessionmgr.cli.config.setting_flags import add_setting_flags
from sessionmgr.cli.errors import CommandLineInvalid
from sessionmgr.cli.follow_up import (
    arguments_from_settings,
    choose_approver,
    find_follow_up_target,
    start_follow_up,
)
from sessionmgr.cli.inputs import read_env, read_options
from sessionmgr.cli.job_flags import ENV, ENV_FILE, naming_budget_source
from sessionmgr.cli.lookup import add_batch_flag
from sessionmgr.cli.queries import open_existing_store
from sessionmgr.cli.terminal.follow_run import follow_runs
from sessionmgr.cli.terminal.signals import run_verb
from sessionmgr.cli.terminal.store_wait import StoreWaitReporter, run_reporting_waits
from sessionmgr.manager import CONTINUE, open_manager

if TYPE_CHECKING:
    import argparse

    from sessionmgr.cli.config.configuration import Configuration
    from sessionmgr.cli.follow_up import FollowUpTarget
    from sessionmgr.manager import RunArguments

HELP: Final = """\
Continue a run in its agent's own session, and show it as sessionmgr run does. ID is a
snapshot, a run, a session or a batch job; a session or a job stands for its last run.
However that run ended, the new one keeps its directory, model, permission mode, tools,
options and limits, unless flags override them; deadline and budget start anew.

  sessionmgr resume run_7hq2
  sessionmgr resume ses_3k9w "now write the changelog"
  sessionmgr resume core-11 "the test still fails: fix it" --batch runs/night"""

SETTINGS: Final = (
    "model", "effort", "permission_mode", "tools_allowed", "tools_denied", "max_turns", "deadline",
    "budget_usd", "clocks",
)  # fmt: skip


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the id and the message."""
    parser.add_argument("id", metavar="ID", help="snapshot, run, session or job")
    parser.add_argument(
        "message", nargs="?", metavar="MESSAGE", help=f"message to send (default: {CONTINUE})"
    )
    add_batch_flag(parser)
    add_setting_flags(parser, *SETTINGS, default="that of the run")
    add_set_flag(parser)
    parser.add_argument("--env", action="append", metavar="K=V", help=ENV)
    parser.add_argument("--env-file", metavar="FILE", help=ENV_FILE)
    parser.add_argument(
        "--option",
        action="append",
        metavar="K=V",
        help="option of the provider; may be repeated (default: that of the run; options with "
        "secrets are not stored and come from here or from the settings)",
    )


def run(args: argparse.Namespace) -> int:
    """Resume the run and return the exit code."""
    return run_verb(_main, args)


async def _main(args: argparse.Namespace) -> int:
    wait = StoreWaitReporter(args.configuration.store)
    return await run_reporting_waits(wait, partial(_resume, args, wait))


async def _resume(args: argparse.Namespace, wait: StoreWaitReporter) -> int:
    configuration: Configuration = args.configuration
    async with open_existing_store(configuration) as store:
        followed = await find_follow_up_target(store, args.id, args.batch, configuration)
    _require_message(followed, args.message)
    make_private(configuration.store)
    async with (
        capturing_launcher(configuration.capture) as launcher,
        open_manager(
            store=configuration.store, agents=configuration.agents, launcher=launcher
        ) as manager,
    ):
        wait.attach(manager)
        with naming_budget_source(configuration):
            arguments = _arguments(args, followed.run.provider)
            handle = await start_follow_up(manager, followed, args.message, arguments)
        return await follow_runs(handle, args)


def _require_message(followed: FollowUpTarget, message: str | None) -> None:
    run = followed.run
    if run.status == "completed" and message is None:
        raise CommandLineInvalid(
            f"MESSAGE is missing: {run.id} has completed; give the next task: "
            f"sessionmgr resume {run.id} MESSAGE"
        )
    if message is not None and not message.strip():
        raise CommandLineInvalid(f"MESSAGE: {message!r} is empty; write what the agent should do")


def _arguments(args: argparse.Namespace, provider: str) -> RunArguments:
    arguments = arguments_from_settings(args.configuration, provider)
    if env := read_env(args.env or (), args.env_file):
        arguments["env"] = env
    if options := read_options("--option", args.option or ()):
        arguments["options"] = options
    approve = choose_approver(args.configuration)
    if approve is not None:
        arguments["approve"] = approve
    return arguments
