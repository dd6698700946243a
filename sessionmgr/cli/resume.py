"""The verb `resume`: continue a paused run, or follow up a finished one."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from sessionmgr.cli.capturing import capturing
from sessionmgr.cli.configuration import add_setting_flags
from sessionmgr.cli.follow_up import approver, find_followed, start_follow_up, wishes_of
from sessionmgr.cli.given import read_env, read_options
from sessionmgr.cli.job_flags import ENV, ENV_FILE, budget_named
from sessionmgr.cli.lookup import add_batch_flag
from sessionmgr.cli.place import make_private
from sessionmgr.cli.provider_defaults import add_set_flag
from sessionmgr.cli.showing import show_runs
from sessionmgr.cli.stopping import run_verb
from sessionmgr.cli.store_wait import StoreWait, explained
from sessionmgr.cli.stored import open_stored
from sessionmgr.errors import CommandLineInvalid
from sessionmgr.manager import open_manager
from sessionmgr.manager.resume import CONTINUE

if TYPE_CHECKING:
    import argparse

    from sessionmgr.cli.configuration import Configuration
    from sessionmgr.cli.follow_up import Followed
    from sessionmgr.manager.run_plan import RunArguments

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
    """Take an id and a message."""
    parser.add_argument("id", metavar="ID", help="snapshot, run, session or job")
    parser.add_argument(
        "message", nargs="?", metavar="MESSAGE", help=f"the message to send (default: {CONTINUE})"
    )
    add_batch_flag(parser)
    add_setting_flags(parser, *SETTINGS)
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
    """Do it, and return the exit code."""
    return run_verb(_main, args)


async def _main(args: argparse.Namespace) -> int:
    wait = StoreWait(args.configuration.store)
    return await explained(wait, partial(_resume, args, wait))


async def _resume(args: argparse.Namespace, wait: StoreWait) -> int:
    configuration: Configuration = args.configuration
    async with open_stored(configuration) as store:
        followed = await find_followed(store, args.id, args.batch, configuration)
    _require_message(followed, args.message)
    make_private(configuration.store)
    async with (
        capturing(configuration.capture) as launcher,
        open_manager(store=configuration.store, launcher=launcher) as manager,
    ):
        wait.opened(manager)
        with budget_named(configuration):
            wishes = _wishes(args, followed.run.provider)
            handle = await start_follow_up(manager, followed, args.message, wishes)
        return await show_runs(handle, args)


def _require_message(followed: Followed, message: str | None) -> None:
    run = followed.run
    if run.status == "completed" and message is None:
        raise CommandLineInvalid(
            f"MESSAGE is missing: {run.id} has completed; give the next task: "
            f"sessionmgr resume {run.id} MESSAGE"
        )
    if message is not None and not message.strip():
        raise CommandLineInvalid(f"MESSAGE: {message!r} is empty; write what the agent should do")


def _wishes(args: argparse.Namespace, provider: str) -> RunArguments:
    wishes = wishes_of(args.configuration, provider)
    if env := read_env(args.env or (), args.env_file):
        wishes["env"] = env
    if options := read_options("--option", args.option or ()):
        wishes["options"] = options
    approve = approver(args.configuration)
    if approve is not None:
        wishes["approve"] = approve
    return wishes
