"""The verb `show`: print a session, a run or a snapshot in full."""

from __future__ import annotations

import time
from itertools import chain
from typing import TYPE_CHECKING, Final

import msgspec

from sessionmgr.cli.lookup import add_batch_flag, resolve_id
from sessionmgr.cli.open_questions import expiry_of, requests_of, what_it_wants
from sessionmgr.cli.queries import (
    decode_session,
    first_prompt,
    fold_run,
    live_leases,
    observed_status,
    read_session_runs,
    with_store,
)
from sessionmgr.cli.terminal.format import format_cost, format_duration, format_tokens
from sessionmgr.cli.terminal.format_time import format_ago, format_clock
from sessionmgr.cli.terminal.render_events import end_reason
from sessionmgr.cli.terminal.safe_text import one_line, strip_controls, truncate
from sessionmgr.cli.terminal.stdout import print_json, print_line
from sessionmgr.cli.terminal.table import format_labelled, format_table, terminal_width
from sessionmgr.manager import read_costs, usage_and_cost
from sessionmgr.model import TERMINAL, Provenance

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable

    from sessionmgr.model import (
        Cost,
        Failure,
        Json,
        Permission,
        Run,
        ToolApprovalRequested,
        Usage,
    )
    from sessionmgr.store import Store, StoredRun, StoredSession

HELP: Final = """\
Show a session with its runs, or a run with its result: status, failure, permission,
tool calls, tokens, cost, and the text it ended with. With --json, a run is printed as
its result (sessionmgr schema result), a session as an object with the results of its runs.

  sessionmgr show ses_3k9w"""

INDENT: Final = 14
LONGEST_END: Final = 200


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the id."""
    parser.add_argument("id", metavar="ID", help="session, run, snapshot or job")
    add_batch_flag(parser)


def run(args: argparse.Namespace) -> int:
    """Show the record and return the exit code."""
    return with_store(args, _show)


async def _show(args: argparse.Namespace, store: Store) -> int:
    kind, id = await resolve_id(store, args.id, "session", "run", "snapshot", batch=args.batch)
    if kind == "snapshot":
        await _show_snapshot(store, id, as_json=args.json)
    elif kind == "run":
        await _show_run(store, await store.run(id), as_json=args.json)
    else:
        await _show_session(store, await store.session(id), as_json=args.json)
    return 0


# --- a run ---------------------------------------------------------------------------------------


async def _show_run(store: Store, stored: StoredRun, *, as_json: bool) -> None:
    run = await fold_run(store, stored)
    if as_json:
        print_json(run.result())
        return
    held = stored.session_id in await live_leases(store, stored.session_id)
    prompt = await first_prompt(store, stored.session_id, run_id=stored.run_id)
    questions = await requests_of(store, run)
    status = observed_status(run.status, held=held, asks=bool(run.open_approvals))
    for line in run_lines(run, status=status, now=time.time(), questions=questions):
        print_line(line)
    if prompt:
        print_line(_line("prompt", prompt))
    if run.text:
        print_line("")
        print_line(strip_controls(run.text).rstrip())


def run_lines(
    run: Run, *, status: str, now: float, questions: Iterable[ToolApprovalRequested] = ()
) -> list[str]:
    """Return the description of a run, one fact per line."""
    return [
        _line("run", run.id),
        _line("session", run.session_id),
        _line("provider", " ".join(filter(None, (run.provider, run.model, run.cli_version)))),
        _line("status", _status(run, status)),
        *_failure(run.failure),
        *_format_times(run.started_at, run.ended_at, now),
        *_line_if("took", _format_elapsed(run)),
        *_line_if("directory", run.cwd),
        *_line_if("permission", _permission(run.permission)),
        *(
            _line("denied", f"{each.tool_name}{f': {each.reason}' if each.reason else ''}")
            for each in run.permission_denials
        ),
        *chain.from_iterable(_question(each, now) for each in questions),
        *_line_if("tools", _tools(run)),
        *_line_if("turns", str(run.turns) if run.turns else ""),
        *_format_usage(run.usage, run.cost),
        *_line_if("exit code", "" if run.exit_code is None else str(run.exit_code)),
        *_line_if("left running", ", ".join(run.left_running)),
        *_line_if("resumed from", run.resumed_from),
        *_line_if("their id", run.provider_session_id),
        *(
            _line("image", f"{each.media_type}, {each.bytes} bytes, {each.blob}")
            for each in run.images
        ),
        *_line_if("structured", _json(run.structured)),
        *_line_if("metadata", _json(run.metadata) if run.metadata else ""),
        _line("events", f"{run.first_seq} to {run.last_seq}"),
    ]


def _question(event: ToolApprovalRequested, now: float) -> list[str]:
    """Describe an open question: the tool and its input, the reason, the time limit, the answer."""
    why = f" ({event.reason})" if event.reason else ""
    until = expiry_of(event)
    when = "" if until is None else f"denied at {format_clock(until, now)} without an answer"
    return [
        _line("wants", what_it_wants(event) + why),
        *_line_if("until", when),
        _line("asks", f"sessionmgr approve {event.approval_id} allow|deny"),
    ]


def _status(run: Run, status: str) -> str:
    said = [status, run.reason, run.detail]
    if run.stop_reason and run.stop_reason != run.status:
        said.append(f"stop reason {run.stop_reason}")
    return ", ".join(filter(None, said))


def _failure(failure: Failure | None) -> list[str]:
    if failure is None:
        return []
    can = [word for word in ("retryable", "resumable") if getattr(failure, word)]
    lines = [_line("failure", f"{failure.kind}: {failure.message}")]
    more = [*can, *(f"{word} {getattr(failure, word)}" for word in ("phase",) if failure.phase)]
    if failure.provider_code:
        more.append(f"the provider's code {failure.provider_code}")
    if failure.retry_at:
        more.append(f"not before {failure.retry_at}")
    if more:
        lines.append(_line("", ", ".join(more)))
    if failure.stderr_tail:
        lines.append(_line("stderr", failure.stderr_tail))
    return lines


def _permission(permission: Permission | None) -> str:
    if permission is None:
        return ""
    confined = {True: ", confined", False: ", not confined", None: ""}[permission.confined]
    native = f"the provider's {permission.effective}"
    return f"{permission.asked} ({native}, {permission.fidelity}{confined})"


def _tools(run: Run) -> str:
    calls = run.tool_calls
    if not calls.count:
        return ""
    counted = ", ".join(f"{name} {number}" for name, number in sorted(calls.count.items()))
    return f"{counted} ({calls.failed} failed, {calls.denied} denied)"


# --- a session -----------------------------------------------------------------------------------


async def _show_session(store: Store, stored: StoredSession, *, as_json: bool) -> None:
    session = decode_session(stored.body)
    runs = [
        await fold_run(store, each) for each in await read_session_runs(store, stored.session_id)
    ]
    snapshots = await store.snapshots(stored.session_id)
    held = (await live_leases(store, stored.session_id)).get(stored.session_id)
    if as_json:
        record = msgspec.to_builtins(session)
        record["last_seq"] = stored.last_seq
        record["pid"] = held.owner.pid if held else None
        record["runs"] = [msgspec.to_builtins(each.result()) for each in runs]
        record["snapshots"] = [each.snapshot_id for each in snapshots]
        print_json(record)
        return
    now = time.time()
    costs = (await read_costs(store, [stored.session_id])).get(stored.session_id)
    lines = [
        _line("session", session.id),
        _line("provider", " ".join(filter(None, (session.provider, session.model)))),
        _line("state", f"{stored.state}{f', owned by process {held.owner.pid}' if held else ''}"),
        *_format_times(session.created_at, session.closed_at, now),
        _line("directory", session.cwd),
        _line("permission", session.permission_mode),
        *_line_if("their id", session.provider_session_id),
        *_line_if("metadata", _json(session.metadata) if session.metadata else ""),
        *(_format_usage(usage_and_cost(costs).usage, usage_and_cost(costs).cost) if costs else ()),
        _line("events", f"1 to {stored.last_seq}"),
        *(_line("snapshot", f"sessionmgr resume {each.snapshot_id}") for each in snapshots),
    ]
    for line in lines:
        print_line(line)
    print_line("")
    for line in _runs_table(runs, is_held=held is not None, now=now):
        print_line(line)
    for line in _reasons(runs):
        print_line(line)


def _runs_table(runs: Iterable[Run], *, is_held: bool, now: float) -> list[str]:
    rows = [
        [
            each.id,
            observed_status(each.status, held=is_held, asks=bool(each.open_approvals)),
            "" if each.started_at is None else format_ago(each.started_at, now),
            _format_elapsed(each),
            format_cost(each.cost.usd, each.cost.provenance),
            _end(each),
        ]
        for each in runs
    ]
    titles = ["RUN", "STATUS", "STARTED", "TOOK", "COST", "END"]
    return format_table(titles, rows, width=terminal_width(), right="TOOK COST")


def _end(run: Run) -> str:
    """Return the outcome of a run: why it did not complete, or else its text."""
    why = end_reason(run) if run.status in TERMINAL and run.status != "completed" else ""
    return truncate(one_line(why or run.text), LONGEST_END)


def _reasons(runs: Iterable[Run]) -> list[str]:
    """Return in full why runs did not complete; the table may have truncated it."""
    if terminal_width() is None:
        return []
    return [
        "\n".join(
            format_labelled(
                f"{each.id}:", f"{each.status}: {why}", indent=2, width=terminal_width()
            )
        )
        for each in runs
        if each.status in TERMINAL and each.status != "completed" and (why := end_reason(each))
    ]


async def _show_snapshot(store: Store, snapshot_id: str, *, as_json: bool) -> None:
    stored = await store.snapshot(snapshot_id)
    record: dict[str, Json] = msgspec.json.decode(stored.body)
    if as_json:
        print_json(record)
        return
    for name, value in record.items():
        if value is not None:
            print_line(
                _line(name.replace("_", " "), value if isinstance(value, str) else _json(value))
            )
    print_line(_line("to continue", f"sessionmgr resume {snapshot_id}"))


# --- lines ---------------------------------------------------------------------------------------


def _line(label: str, value: str) -> str:
    return "\n".join(format_labelled(label, value, indent=INDENT, width=terminal_width()))


def _line_if(label: str, value: str | None) -> list[str]:
    return [_line(label, value)] if value else []


def _format_times(started: str | None, ended: str | None, now: float) -> list[str]:
    return [
        _line(label, f"{at} ({format_ago(at, now)})")
        for label, at in (("started", started), ("ended", ended))
        if at
    ]


def _format_elapsed(run: Run) -> str:
    return "" if run.duration is None else format_duration(run.duration)


def _format_usage(usage: Usage, cost: Cost) -> list[str]:
    lines = [_line("tokens", format_tokens(usage))]
    if cost.usd is not None:
        said = format_cost(cost.usd, cost.provenance)
        if cost.provenance is not Provenance.PARTIAL:  # `format_cost` marks partial costs itself
            said += f" ({cost.provenance})"
        lines.append(_line("cost", said))
    return lines


def _json(value: Json) -> str:
    return "" if value is None else msgspec.json.encode(value).decode()
