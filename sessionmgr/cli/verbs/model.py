"""The verb `model`: serve a scripted model to agents, for anybody's tests."""

from __future__ import annotations

import argparse
import os
import shlex
import signal
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

import msgspec
import trio

from sessionmgr.cli.errors import CommandLineInvalid
from sessionmgr.cli.inputs import directory_argument, read_text_file
from sessionmgr.cli.parser import one_of
from sessionmgr.cli.terminal.signals import INTERRUPTED, run_verb
from sessionmgr.cli.terminal.stdout import print_json, print_line, print_note

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from sessionmgr.model import Json
    from sessionmgr.testing.model_server import (
        Exchange,
        IsolatedEnvironment,
        ModelScript,
        RequestLog,
    )

HELP: Final = """\
Serve a scripted model on this machine, for tests with real agents: no key, no network, no cost.

It speaks Anthropic Messages, OpenAI Responses, OpenAI Chat Completions and Gemini. A prompt may
contain the script of the model's answers and tool calls; any other prompt is repeated:

  <script>[[{"do": "say", "text": "hi"}], [{"do": "cut"}]]</script>

The addresses are printed on stdout, with the variables that lead each agent there; the requests
on stderr. Ctrl-C ends the server."""

AGENTS: Final = (
    *("claude", "claude-agent-acp", "codex", "codex-acp", "copilot", "gemini", "goose"),
    *("kimi-cli", "kimi-code", "opencode"),
)
APIS: Final = {
    "anthropic": ("Anthropic Messages", ""),
    "responses": ("OpenAI Responses", "/v1"),
    "chat": ("OpenAI Chat Completions", "/v1"),
    "gemini": ("Gemini", ""),
}
"""The name of each API, and the path of its base URL."""

HIGHEST: Final = 65535
_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb."""
    parser.add_argument(
        "--port", type=_port, default=0, metavar="N", help="port to listen on (default: a free one)"
    )
    parser.add_argument(
        "--script",
        metavar="FILE",
        help="script of prompts that contain none, as JSON (default: they are repeated)",
    )
    parser.add_argument(
        "--agent",
        type=one_of("agent", AGENTS),
        metavar="NAME",
        help="print export commands for the isolated environment of this agent (default: the "
        f"addresses, and the variables of all agents): {', '.join(AGENTS)}",
    )
    parser.add_argument(
        "--directory",
        type=directory_argument,
        metavar="DIR",
        help="homes and settings of the agents (default: a temporary directory, deleted at the "
        "end)",
    )


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > HIGHEST:
        raise argparse.ArgumentTypeError(f"expected a port from 0 to {HIGHEST}, got {text!r}")
    return int(text)


def run(args: argparse.Namespace) -> int:
    """Serve until a signal arrives, and return the exit code."""
    script = None if args.script is None else _read_script(args.script)
    if args.directory is not None:
        return run_verb(_main, args, script, Path(args.directory).absolute())
    with tempfile.TemporaryDirectory(
        prefix="sessionmgr-model-", ignore_cleanup_errors=True
    ) as directory:
        return run_verb(_main, args, script, Path(directory))


def _read_script(path: str) -> ModelScript:
    from sessionmgr.testing.model_server import parse_script

    try:
        return parse_script(read_text_file("--script", path))
    except msgspec.MsgspecError as error:
        raise CommandLineInvalid(
            f'--script: {path}: not a script: {error}; write [[{{"do": "say", "text": "hi"}}]], '
            "a list of replies, each a list of moves"
        ) from None


async def _main(args: argparse.Namespace, script: ModelScript | None, directory: Path) -> int:
    from sessionmgr.testing.model_server import IsolatedEnvironment, open_model_server

    heeded = [each for each in _SIGNALS if signal.getsignal(each) is not signal.SIG_IGN]
    with trio.open_signal_receiver(*heeded) as signals:
        try:
            async with (
                open_model_server(default=script, port=args.port) as server,
                trio.open_nursery() as nursery,
            ):
                path = os.environ.get("PATH", os.defpath)
                isolated = IsolatedEnvironment(directory, server.url, path=path)
                _print_addresses(args, isolated)
                nursery.start_soon(_print_requests, server.log)
                await anext(signals)
                nursery.cancel_scope.cancel()
        except* OSError as errors:
            raise _not_listening(args.port, errors) from errors
    return INTERRUPTED


def _not_listening(port: int, errors: BaseExceptionGroup[OSError]) -> CommandLineInvalid:
    error: OSError | BaseExceptionGroup[OSError] = errors
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return CommandLineInvalid(
        f"--port: {port}: {error.strerror}; choose another port, or leave it out"
    )


def _print_addresses(args: argparse.Namespace, isolated: IsolatedEnvironment) -> None:
    names = AGENTS if args.agent is None else (args.agent,)
    environments = {name: _environment(isolated, name) for name in names}
    if args.json:
        apis = {name: f"{isolated.url}{path}" for name, (_, path) in APIS.items()}
        agents: dict[str, Json] = {name: {**each} for name, each in environments.items()}
        print_json({"url": isolated.url, "apis": {**apis}, "agents": agents})
        return
    if args.agent is not None:
        for name, value in environments[args.agent].items():
            print_line(f"export {name}={shlex.quote(value)}")
        return
    for label, path in APIS.values():
        print_line(f"{label:<25}{isolated.url}{path}")
    print_line("")
    everywhere = list(environments.values())
    shared = {name for name in everywhere[0] if all(name in each for each in everywhere)}
    for agent, variables in environments.items():
        own = {name: value for name, value in variables.items() if name not in shared}
        words = (f"{name}={shlex.quote(value)}" for name, value in own.items())
        print_line(f"{agent:<18}{' '.join(words)}")


def _environment(isolated: IsolatedEnvironment, agent: str) -> Mapping[str, str]:
    method = cast("Callable[[], Mapping[str, str]]", getattr(isolated, agent.replace("-", "_")))
    return method()


async def _print_requests(log: RequestLog) -> None:
    """Print a line for each request as soon as its answer has ended."""
    printed: set[int] = set()
    while True:
        kept = list(log)
        for exchange in kept:
            if exchange.ending != "open" and exchange.number not in printed:
                printed.add(exchange.number)
                print_note(_line(exchange))
        printed.intersection_update(each.number for each in kept)
        await log.wait_for_change()


def _line(exchange: Exchange) -> str:
    line = f"{exchange.http.method} {exchange.http.target} {exchange.status or '-'}"
    if not exchange.known:
        return f"{line} unknown target"
    if exchange.asked is not None:
        line += f" {exchange.asked.purpose}, reply {exchange.reply}"
    return line if exchange.ending == "whole" else f"{line}, {exchange.ending}"
