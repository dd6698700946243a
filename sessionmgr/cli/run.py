"""The verb `run`: one run, streamed."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec
import trio

from sessionmgr.cli.asking import Terminal, find_terminal
from sessionmgr.cli.capturing import capturing
from sessionmgr.cli.configuration import add_setting_flags
from sessionmgr.cli.given import prompt_of, read_env, read_options, read_schema, read_text
from sessionmgr.cli.place import make_private
from sessionmgr.cli.showing import show_run
from sessionmgr.cli.stored import find, open_stored
from sessionmgr.errors import CommandLineInvalid
from sessionmgr.manager import Clocks, open_manager
from sessionmgr.manager.plan import RunWish
from sessionmgr.manager.session_handle import RunBlock
from sessionmgr.provider import Budget

if TYPE_CHECKING:
    import argparse

    from sessionmgr.cli.configuration import Configuration
    from sessionmgr.manager import Manager, SessionHandle
    from sessionmgr.model import Json
    from sessionmgr.provider import Approve

HELP: Final = """\
Run one prompt and show what happens: the agent's text on stdout, everything else on stderr.

Questions of the agent are asked on the terminal; where there is none, the answer is no.
Ctrl-C ends the run politely and says how to go on; twice, at once."""

SETTINGS: Final = (
    "provider", "model", "effort", "permission_mode", "tools_allowed", "tools_denied", "max_turns",
    "deadline", "budget_usd", "clocks",
)  # fmt: skip


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Say which arguments the verb takes."""
    parser.add_argument("prompt", nargs="?", metavar="PROMPT", help="what to do; - is stdin")
    parser.add_argument("--prompt-file", metavar="FILE", help="a file that holds the prompt")
    add_setting_flags(parser, *SETTINGS)
    parser.add_argument("--cwd", metavar="DIR", help="the directory in which the agent works")
    parser.add_argument("--resume", metavar="ID", help="go on with this session, or run's session")
    parser.add_argument("--system-prompt", metavar="TEXT", help="what the agent is told first")
    parser.add_argument("--system-prompt-file", metavar="FILE", help="the same, from a file")
    parser.add_argument("--schema", metavar="FILE", help="JSON Schema of the structured output")
    parser.add_argument("--image", action="append", metavar="FILE", help="an image to look at")
    parser.add_argument("--env", action="append", metavar="K=V", help="a variable for the agent")
    parser.add_argument("--env-file", metavar="FILE", help="a file of such variables, one a line")
    parser.add_argument(
        "--option", action="append", metavar="K=V", help="an option of the provider's own"
    )


def run(args: argparse.Namespace) -> int:
    """Do it, and return the exit code."""
    configuration: Configuration = args.configuration
    wish = _wish(args)
    terminal = find_terminal()
    approve: Approve | None = None
    if terminal is not None:
        patience = configuration.clocks.get("approval", 120.0)
        approve = Terminal(terminal, patience).approve
    return trio.run(_main, args, msgspec.structs.replace(wish, approve=approve))


async def _main(args: argparse.Namespace, wish: RunWish) -> int:
    configuration: Configuration = args.configuration
    resumed: tuple[str, str | None] | None = None
    if args.resume is not None:
        resumed = await _find_session(args)
    make_private(configuration.store)
    async with (
        capturing(configuration.capture) as launcher,
        open_manager(store=configuration.store, launcher=launcher) as manager,
    ):
        if resumed is None:
            session = await _new_session(manager, args)
        else:
            session = await manager.session(resumed[0])
            if configuration.provider not in {None, session.provider}:
                raise CommandLineInvalid(
                    f"--provider: session {session.id} is with {session.provider}, "
                    f"not {configuration.provider}"
                )
            wish = msgspec.structs.replace(wish, resumed_from=resumed[1])
        wish = msgspec.structs.replace(wish, options=_options(args, session.provider))
        async with RunBlock(session, wish) as handle:
            return await show_run(handle, args)


async def _new_session(manager: Manager, args: argparse.Namespace) -> SessionHandle:
    provider: str | None = args.configuration.provider
    if provider is None:
        raise CommandLineInvalid("say who is to do it: -p PROVIDER (see sessionmgr adapters)")
    return await manager.open_session(provider, cwd=args.cwd or ".")


async def _find_session(args: argparse.Namespace) -> tuple[str, str | None]:
    """Return the id of the session to go on with, and of the run that was named, if one was."""
    if args.cwd is not None:
        raise CommandLineInvalid("--cwd: a session that goes on stays in its directory")
    async with open_stored(args.configuration) as store:
        kind, id = await find(store, args.resume, "session", "run")
        if kind == "session":
            return id, None
        return (await store.run(id)).session_id, id


def _wish(args: argparse.Namespace) -> RunWish:
    """Make a wish of the flags, less what depends on the session."""
    configuration: Configuration = args.configuration
    system_prompt: str | None = args.system_prompt
    if args.system_prompt_file is not None:
        if system_prompt is not None:
            raise CommandLineInvalid("--system-prompt and --system-prompt-file: one of them")
        system_prompt = read_text("--system-prompt-file", args.system_prompt_file)
    images = [str(Path(each).absolute()) for each in args.image or ()]
    for image in images:
        if not Path(image).is_file():
            raise CommandLineInvalid(f"--image: there is no file {image}")
    return RunWish(
        prompt=prompt_of(args.prompt, args.prompt_file, sys.stdin),
        system_prompt=system_prompt,
        images=tuple(images),
        model=configuration.model,
        effort=configuration.effort,
        permission_mode=configuration.permission_mode,
        tools_allowed=configuration.tools_allowed,
        tools_denied=configuration.tools_denied or (),
        schema=None if args.schema is None else read_schema(args.schema),
        max_turns=configuration.max_turns,
        budget=Budget(usd=configuration.budget_usd),
        clocks=_clocks(configuration),
        env=read_env(args.env or (), args.env_file),
    )


def _options(args: argparse.Namespace, provider: str) -> dict[str, Json]:
    """Return the provider's own options: what is set for it, and over that what flags say."""
    return {**args.configuration.options.get(provider, {}), **read_options(args.option or ())}


def _clocks(configuration: Configuration) -> Clocks:
    clocks = Clocks(**configuration.clocks)
    if configuration.deadline is not None:
        clocks = msgspec.structs.replace(clocks, deadline=configuration.deadline)
    return clocks
