"""The verb `acp`: serve a provider as an agent of the Agent Client Protocol on stdin and stdout."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec
import trio

from sessionmgr.batch import run_request_for_job
from sessionmgr.cli.capture_flag import capturing_launcher
from sessionmgr.cli.config.paths import make_private
from sessionmgr.cli.errors import CommandLineInvalid
from sessionmgr.cli.job_flags import add_session_flags, job_from_flags
from sessionmgr.cli.terminal.signals import INTERRUPTED, SignalWatcher, run_verb, signal_label
from sessionmgr.cli.terminal.stdout import print_note
from sessionmgr.cli.terminal.store_wait import StoreWaitReporter, run_reporting_waits
from sessionmgr.manager import Clocks, open_manager

if TYPE_CHECKING:
    import argparse

    from sessionmgr.cli.config.configuration import Configuration
    from sessionmgr.manager import RunRequest

HELP: Final = """\
Serve a provider as an agent of the Agent Client Protocol (ACP) on stdin and stdout, for editors and
other clients.

The client's permission dialogs answer the agent's requests. A request waits 30 min for an answer
(--clock approval=DURATION). When the client closes its side, all runs end, and then the server."""

APPROVAL: Final = 1800.0
"""Seconds that a request waits for the client's user, unless a setting says otherwise."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb."""
    add_session_flags(
        parser, "directory of sessions whose client names none (default: the current one)"
    )
    parser.add_argument(
        "--models",
        metavar="NAME,…",
        help="models from which clients may choose, beside the default one (default: none)",
    )


def run(args: argparse.Namespace) -> int:
    """Serve until the client closes its side, and return the exit code."""
    configuration: Configuration = args.configuration
    configuration = args.configuration = configuration.of_provider(configuration.provider)
    if configuration.provider is None:
        raise CommandLineInvalid(
            "--provider: no provider is chosen; add -p PROVIDER (see sessionmgr adapters)"
        )
    job = job_from_flags(args, "the client's prompt")
    request = run_request_for_job(job)
    return run_verb(_main, args, configuration.provider, request)


async def _main(args: argparse.Namespace, provider: str, request: RunRequest) -> int:
    wait = StoreWaitReporter(args.configuration.store)
    return await run_reporting_waits(wait, partial(_serve, args, provider, request, wait))


async def _serve(
    args: argparse.Namespace, provider: str, request: RunRequest, wait: StoreWaitReporter
) -> int:
    from sessionmgr.acp_server import AcpServer, probe_offer, protocol_streams

    configuration: Configuration = args.configuration
    make_private(configuration.store)
    clocks = Clocks(**{"approval": APPROVAL, **configuration.clocks})
    request = msgspec.structs.replace(request, clocks=clocks.over(request.clocks))
    models = [name.strip() for name in (args.models or "").split(",") if name.strip()]
    cwd = str(Path(args.cwd or ".").absolute())  # noqa: ASYNC240  # reads no file
    async with (
        capturing_launcher(configuration.capture) as launcher,
        open_manager(
            store=configuration.store,
            clocks=clocks,
            launcher=launcher,
            agents=configuration.agents,
        ) as manager,
    ):
        wait.attach(manager)
        if models and not manager.supports(provider, "model_choice"):
            raise CommandLineInvalid(
                f"--models: {provider} does not support the choice of a model, got "
                f"{args.models!r}; remove it"
            )
        offer = probe_offer(manager, provider, request, models=models, cwd=cwd)
        if sys.stdin is not None and sys.stdin.isatty():
            print_note("stdin is a terminal; this command speaks to a program, such as an editor")
        async with protocol_streams() as (source, sink), trio.open_nursery() as nursery:
            server = AcpServer(manager, offer, source, sink)

            def stop(signal_name: str) -> None:
                print_note(f"{signal_label(signal_name)}: ending all sessions")
                server.stop()

            stopping = SignalWatcher(stop, lambda: "\nsessionmgr: stopped at once\n")
            await nursery.start(stopping.watch)
            await server.run()
            nursery.cancel_scope.cancel()
    return 0 if stopping.asked_by is None else INTERRUPTED
