"""The verb `resume`: go on with what was paused, or has ended half way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from sessionmgr.cli.asking import Terminal, find_terminal
from sessionmgr.cli.capturing import capturing
from sessionmgr.cli.configuration import add_setting_flags
from sessionmgr.cli.job_flags import budget_named
from sessionmgr.cli.place import make_private
from sessionmgr.cli.showing import show_runs
from sessionmgr.cli.stopping import run_verb
from sessionmgr.cli.stored import ALIVE, all_runs, find, fold, held_sessions, open_stored
from sessionmgr.errors import CommandLineInvalid, NotResumable
from sessionmgr.manager import Clocks, open_manager
from sessionmgr.manager.plan import RunWish
from sessionmgr.manager.resuming import CONTINUE, message_to_resume
from sessionmgr.provider import Budget

if TYPE_CHECKING:
    import argparse

    from sessionmgr.cli.configuration import Configuration
    from sessionmgr.manager import Manager, RunHandle
    from sessionmgr.manager.plan import Wishes
    from sessionmgr.model import Run
    from sessionmgr.store import Store, StoredRun

HELP: Final = """\
Go on with a run, and show it as sessionmgr run does. ID is that of a snapshot, of a
run, or of a session, whose last run is meant. What was paused is asked for as it was;
what ended otherwise keeps its session, directory, model and permission mode, and is to
be given its limits and tools again.

  sessionmgr resume run_7hq2
  sessionmgr resume ses_3k9w "now write the changelog\""""

SETTINGS: Final = (
    "model", "effort", "permission_mode", "tools_allowed", "tools_denied", "max_turns", "deadline",
    "budget_usd", "clocks",
)  # fmt: skip


class Plan(msgspec.Struct, frozen=True):
    """From where it goes on: a snapshot, or else the end of a run."""

    snapshot_id: str | None
    run: Run


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Take an id and a message."""
    parser.add_argument("id", metavar="ID", help="of a snapshot, a run or a session")
    parser.add_argument(
        "message", nargs="?", metavar="MESSAGE", help=f"what to say (default: {CONTINUE})"
    )
    add_setting_flags(parser, *SETTINGS)


def run(args: argparse.Namespace) -> int:
    """Do it, and return the exit code."""
    return run_verb(_main, args)


async def _main(args: argparse.Namespace) -> int:
    configuration: Configuration = args.configuration
    async with open_stored(configuration) as store:
        plan = await _plan(args, store)
    make_private(configuration.store)
    async with (
        capturing(configuration.capture) as launcher,
        open_manager(store=configuration.store, launcher=launcher) as manager,
    ):
        with budget_named(configuration):
            handle = await _start(manager, plan, args)
        return await show_runs(handle, args)


async def _plan(args: argparse.Namespace, store: Store) -> Plan:
    kind, id = await find(store, args.id, "snapshot", "session", "run")
    if kind == "snapshot":
        snapshot = await store.snapshot(id)
        assert snapshot.run_id is not None
        stored = await store.run(snapshot.run_id)
        await _require_free(store, stored)
        return Plan(id, await fold(store, stored))
    stored = await store.run(id) if kind == "run" else await _last(store, id)
    await _require_free(store, stored)
    run = await fold(store, stored)
    if run.status == "paused":
        for snapshot in reversed(await store.snapshots(stored.session_id)):
            if snapshot.run_id == run.id:
                return Plan(snapshot.snapshot_id, run)
    _require_resumable(run, args.message)
    return Plan(None, run)


async def _last(store: Store, session_id: str) -> StoredRun:
    runs = await all_runs(store, session_id)
    if not runs:
        raise CommandLineInvalid(f"{session_id} has no run to go on with")
    return runs[-1]


async def _require_free(store: Store, stored: StoredRun) -> None:
    """Refuse what another program looks after now."""
    lease = (await held_sessions(store, stored.session_id)).get(stored.session_id)
    if lease is not None:
        how = "is on" if stored.status in ALIVE else f"is {stored.status}"
        raise CommandLineInvalid(
            f"{stored.run_id} {how}, and process {lease.owner.pid} looks after its session: "
            f"wait for it, or say it there: sessionmgr append {stored.session_id} TEXT"
        )


def _require_resumable(run: Run, message: str | None) -> None:
    if run.provider_session_id is None:
        raise NotResumable(run.id, "the provider's session is not known")
    if run.status == "completed" and message is None:
        raise CommandLineInvalid(
            f"{run.id} has completed: say what more there is to do: "
            f"sessionmgr resume {run.id} MESSAGE"
        )


async def _start(manager: Manager, plan: Plan, args: argparse.Namespace) -> RunHandle:
    wishes = wishes_of(args.configuration)
    terminal = find_terminal()
    if terminal is not None:
        patience = args.configuration.clocks.get("approval", 120.0)
        wishes["approve"] = Terminal(terminal, patience).approve
    if plan.snapshot_id is not None:
        return await manager.submit_resume(plan.snapshot_id, args.message, **wishes)
    run = plan.run
    wishes.setdefault("model", run.model)
    wishes.setdefault("permission_mode", run.permission.asked if run.permission else None)
    session = await manager.session(run.session_id)
    message = message_to_resume([run], args.message)
    return await session.admit(RunWish(prompt=message, resumed_from=run.id, **wishes))


def wishes_of(configuration: Configuration) -> Wishes:
    """Return what flags ask for; files and variables do not change what was asked before."""
    wishes: Wishes = {}
    given = {name for name, source in configuration.sources.items() if source.startswith("-")}
    if "model" in given:
        wishes["model"] = configuration.model
    if "effort" in given:
        wishes["effort"] = configuration.effort
    if "permission_mode" in given:
        wishes["permission_mode"] = configuration.permission_mode
    if "tools_allowed" in given:
        wishes["tools_allowed"] = configuration.tools_allowed
    if "tools_denied" in given:
        wishes["tools_denied"] = configuration.tools_denied or ()
    if "max_turns" in given:
        wishes["max_turns"] = configuration.max_turns
    if "budget_usd" in given:
        wishes["budget"] = Budget(usd=configuration.budget_usd)
    clocks = Clocks(**configuration.clocks) if configuration.clocks else Clocks()
    if configuration.deadline is not None:
        clocks = msgspec.structs.replace(clocks, deadline=configuration.deadline)
    if clocks != Clocks():
        wishes["clocks"] = clocks
    return wishes
