"""The verb `run`: one run, streamed."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

import msgspec

from sessionmgr.batch import read_rules, wish_of
from sessionmgr.cli.asking import Terminal, find_terminal
from sessionmgr.cli.capturing import capturing
from sessionmgr.cli.given import prompt_of
from sessionmgr.cli.job_flags import add_job_flags, budget_named, job_of, options_of
from sessionmgr.cli.place import make_private
from sessionmgr.cli.showing import show_runs
from sessionmgr.cli.stopping import run_verb
from sessionmgr.cli.stored import find, open_stored
from sessionmgr.errors import CommandLineInvalid
from sessionmgr.manager import Clocks, open_manager
from sessionmgr.manager.session_handle import RunBlock

if TYPE_CHECKING:
    import argparse

    from sessionmgr.cli.configuration import Configuration
    from sessionmgr.manager import Manager, RunWish, SessionHandle

HELP: Final = """\
Run one prompt and show what happens: the agent's text on stdout, everything else on stderr.

Questions of the agent are asked on the terminal; where there is none, rules of the settings
(approve = "rules.toml") answer them, or the answer is no.
Ctrl-C ends the run politely and says how to go on; twice, at once."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Say which arguments the verb takes."""
    parser.add_argument(
        "prompt", nargs="?", metavar="PROMPT", help="the prompt; - reads it from stdin"
    )
    parser.add_argument("--prompt-file", metavar="FILE", help="read the prompt from a file")
    parser.add_argument("--resume", metavar="ID", help="go on with this session, or run's session")
    add_job_flags(parser)


def run(args: argparse.Namespace) -> int:
    """Do it, and return the exit code."""
    configuration: Configuration = args.configuration
    prompt = prompt_of(args.prompt, args.prompt_file, sys.stdin)
    wish = wish_of(job_of(args, prompt))
    terminal = find_terminal()
    if terminal is not None:
        patience = configuration.clocks.get("approval", 120.0)
        wish = msgspec.structs.replace(wish, approve=Terminal(terminal, patience).approve)
    elif configuration.approve is not None:
        wish = msgspec.structs.replace(wish, approve=read_rules(configuration.approve))
    return run_verb(_main, args, wish)


async def _main(args: argparse.Namespace, wish: RunWish) -> int:
    configuration: Configuration = args.configuration
    resumed: tuple[str, str | None] | None = None
    if args.resume is not None:
        resumed = await _find_session(args)
    make_private(configuration.store)
    clocks = Clocks(**configuration.clocks)
    async with (
        capturing(configuration.capture) as launcher,
        open_manager(store=configuration.store, clocks=clocks, launcher=launcher) as manager,
    ):
        if resumed is None:
            session = await _new_session(manager, args)
        else:
            session = await _taken_up(manager, configuration.provider, resumed[0])
            wish = msgspec.structs.replace(
                wish,
                resumed_from=resumed[1],
                permission_mode=configuration.permission_mode,
                options=options_of(args, session.provider),
            )
        with budget_named(configuration):
            session.check(wish)
            async with RunBlock(session, wish) as handle:
                return await show_runs(handle, args)


async def _new_session(manager: Manager, args: argparse.Namespace) -> SessionHandle:
    provider: str | None = args.configuration.provider
    if provider is None:
        raise CommandLineInvalid("say who is to do it: -p PROVIDER (see sessionmgr adapters)")
    return await manager.open_session(provider, cwd=args.cwd or ".")


async def _taken_up(manager: Manager, provider: str | None, session_id: str) -> SessionHandle:
    session = await manager.session(session_id)
    if provider not in {None, session.provider}:
        raise CommandLineInvalid(
            f"--provider: session {session.id} is with {session.provider}, not {provider}"
        )
    return session


async def _find_session(args: argparse.Namespace) -> tuple[str, str | None]:
    """Return the id of the session to go on with, and of the run that was named, if one was."""
    if args.cwd is not None:
        raise CommandLineInvalid("--cwd: a session that goes on stays in its directory")
    async with open_stored(args.configuration) as store:
        kind, id = await find(store, args.resume, "session", "run")
        if kind == "session":
            return id, None
        return (await store.run(id)).session_id, id
