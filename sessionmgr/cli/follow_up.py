"""Follow-ups on the command line: the run to follow up, and the arguments of its follow-up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

import msgspec

from sessionmgr.adapter import Budget
from sessionmgr.batch import read_job_record, run_request_for_job
from sessionmgr.cli.config.approval_rules import load_approver
from sessionmgr.cli.errors import CommandLineInvalid
from sessionmgr.cli.lookup import job_of_session, resolve_id
from sessionmgr.cli.queries import (
    ALIVE,
    decode_session,
    fold_run,
    live_leases,
    owner_name,
    read_session_runs,
)
from sessionmgr.cli.terminal.approval_prompt import ApprovalPrompt, open_terminal
from sessionmgr.cli.terminal.stdout import print_note
from sessionmgr.manager import Clocks, ResumeSpec, recorded_resume_spec, restore_options
from sessionmgr.model import Json

if TYPE_CHECKING:
    from sessionmgr.adapter import Approve
    from sessionmgr.batch import JobRecord
    from sessionmgr.cli.config.configuration import Configuration
    from sessionmgr.cli.lookup import JobReference
    from sessionmgr.manager import Manager, RunArguments, RunHandle, RunRequest
    from sessionmgr.model import Run
    from sessionmgr.store import Store, StoredRun

_OF_ONE_RUN: Final = frozenset({"not_kept", "withheld", "variables"})
_ASKED: Final = tuple(name for name in ResumeSpec.__struct_fields__ if name not in _OF_ONE_RUN)


class FollowUpTarget(msgspec.Struct, frozen=True, kw_only=True):
    """The run to follow up, and the arguments that its own record does not contain."""

    run: Run
    snapshot_id: str | None = None
    arguments: RunArguments = msgspec.field(default_factory=lambda: cast("RunArguments", {}))
    secret_options: dict[str, Json] = msgspec.field(default_factory=dict[str, Json])
    """Options with secrets, which are not stored, found in the job or the settings."""


async def find_follow_up_target(
    store: Store, name: str, batch: str | None, configuration: Configuration
) -> FollowUpTarget:
    """Return the run that a name stands for; a session or a batch job stands for its last run.

    Its secret options, which are not stored, come from its job or from the settings.

    Raises:
        CommandLineInvalid: The run is still active, or its batch is not done with it.
    """
    kind, id = await resolve_id(store, name, "session", "run", "snapshot", batch=batch)
    snapshot_id = id if kind == "snapshot" else None
    if snapshot_id is not None:
        run_id = (await store.snapshot(snapshot_id)).run_id
        assert run_id is not None
        stored = await store.run(run_id)
    else:
        stored = await store.run(id) if kind == "run" else await _last_run(store, id)
    await _require_free(store, stored)
    run = await fold_run(store, stored)
    if snapshot_id is None and run.status == "paused":
        snapshots = await store.snapshots(stored.session_id)
        of_it = [each.snapshot_id for each in snapshots if each.run_id == run.id]
        snapshot_id = of_it[-1] if of_it else None
    of = job_of_session(decode_session((await store.session(stored.session_id)).body))
    record = None if of is None else _find_job_record(of, batch)
    arguments = await _unrecorded_arguments(store, run, of, record)
    sources = [configuration.options.get(run.provider, {})]
    if record is not None and record.job.options is not None:
        sources.insert(0, record.job.options)
    asked = await recorded_resume_spec(store, run) or ResumeSpec()
    secret = restore_options(asked.options, asked.withheld, *sources)
    return FollowUpTarget(
        run=run, snapshot_id=snapshot_id, arguments=arguments, secret_options=secret
    )


async def _last_run(store: Store, session_id: str) -> StoredRun:
    runs = await read_session_runs(store, session_id)
    if not runs:
        raise CommandLineInvalid(f"{session_id} has no run to follow up")
    return runs[-1]


async def _require_free(store: Store, stored: StoredRun) -> None:
    """Raise if another process owns the run."""
    lease = (await live_leases(store, stored.session_id)).get(stored.session_id)
    if lease is not None:
        how = "is on" if stored.status in ALIVE else f"is {stored.status}"
        raise CommandLineInvalid(
            f"{stored.run_id} {how}, and {owner_name(lease)} owns its session: "
            f"wait for it, or send the text there: sessionmgr append {stored.session_id} TEXT"
        )


def _find_job_record(of: JobReference, batch: str | None) -> JobRecord | None:
    """Return the batch's record of the job, if the batch's directory is known.

    Raises:
        CommandLineInvalid: The batch is running, and the job has not ended in it.
    """
    out = batch or of.out
    record = None if out is None else read_job_record(out, of.job)
    if record is not None and record.busy is not None:
        raise CommandLineInvalid(
            f"the job {of.job!r} is {record.state} in the batch {out}, which {record.busy} is "
            "running: wait until the job has ended there"
        )
    return record


async def _unrecorded_arguments(
    store: Store, run: Run, of: JobReference | None, record: JobRecord | None
) -> RunArguments:
    """Return the run's arguments that its own record does not contain.

    Raises:
        CommandLineInvalid: They are unknown, and the follow-up might be allowed more than the run.
    """
    asked = await recorded_resume_spec(store, run)
    arguments: RunArguments = {}
    if record is not None:
        request = run_request_for_job(record.job)
        arguments["env"], arguments["budget"] = request.env, request.budget
        if asked is None:
            arguments.update(
                cast("RunArguments", {name: getattr(request, name) for name in _ASKED})
            )
    elif asked is None and of is not None:
        raise CommandLineInvalid(
            f"only the batch's directory records what the job {of.job!r} was allowed: "
            "add --batch OUT"
        )
    elif asked is None:
        print_note("its tools, options and limits are not on record: set them with flags")
    elif asked.variables:
        print_note(
            f"values of its variables are not on record ({', '.join(asked.variables)}): see --env"
        )
    return arguments


async def start_follow_up(
    manager: Manager, followed: FollowUpTarget, message: str | None, arguments: RunArguments
) -> RunHandle:
    """Start a follow-up; `arguments` override the arguments of the run to follow up.

    Raises:
        NotResumable: A precondition does not hold; the error names it.
        StartRefused: The follow-up cannot start.
    """
    given = arguments.get("options", {})
    if followed.secret_options and not isinstance(given, msgspec.Struct):
        arguments = {**arguments, "options": {**followed.secret_options, **given}}
    if followed.snapshot_id is not None:  # a snapshot records all arguments except variables
        if "env" in followed.arguments:
            arguments = {"env": followed.arguments["env"], **arguments}
        return await manager.submit_resume(followed.snapshot_id, message, **arguments)
    joined = cast("RunArguments", {**followed.arguments, **arguments})
    return await manager.submit_follow_up(followed.run.id, message, **joined)


def choose_approver(configuration: Configuration) -> Approve | None:
    """Return the approver: the terminal, else the configured rules, else None."""
    terminal = open_terminal()
    if terminal is not None:
        return ApprovalPrompt(terminal, configuration.clocks.get("approval", 120.0)).approve
    return load_approver(configuration)


def arguments_from_settings(configuration: Configuration, provider: str) -> RunArguments:
    """Return the arguments that flags set, and the time limits that any source sets.

    Other settings of files and variables do not override the recorded arguments.
    """
    configuration = configuration.of_provider(provider)
    arguments: RunArguments = {}
    given = {name for name, source in configuration.sources.items() if source.startswith("-")}
    if "model" in given:
        arguments["model"] = configuration.model
    if "effort" in given:
        arguments["effort"] = configuration.effort
    if "permission_mode" in given:
        arguments["permission_mode"] = configuration.permission_mode
    if "tools_allowed" in given:
        arguments["tools_allowed"] = configuration.tools_allowed
    if "tools_denied" in given:
        arguments["tools_denied"] = configuration.tools_denied or ()
    if "max_turns" in given:
        arguments["max_turns"] = configuration.max_turns
    if "budget_usd" in given:
        arguments["budget"] = Budget(usd=configuration.budget_usd)
    clocks = Clocks(**configuration.clocks) if configuration.clocks else Clocks()
    if configuration.deadline is not None:
        clocks = msgspec.structs.replace(clocks, deadline=configuration.deadline)
    if clocks != Clocks():
        arguments["clocks"] = clocks
    return arguments


def arguments_from_flags(request: RunRequest, given: set[str]) -> RunArguments:
    """Return the fields of a request that further flags set (`given`)."""
    return cast("RunArguments", {name: getattr(request, name) for name in given})
