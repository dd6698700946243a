"""Requests for runs that resume a paused or interrupted run, or follow up a finished one.

The new run has the directory, model, permission mode, tools, options and limits of the old one,
unless the caller overrides them. A notice tells the agent what was interrupted.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from sessionmgr.manager.errors import NotResumable
from sessionmgr.manager.resume_spec import ResumeSpec, read_resume_spec, restore_options
from sessionmgr.manager.run_plan import RunRequest
from sessionmgr.model import (
    TERMINAL,
    FailureKind,
    RunStarted,
    RunStatus,
    Snapshot,
    Usage,
    decode_event,
    without_unknown,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from sessionmgr.manager.run_plan import RunArguments
    from sessionmgr.model import Json, Run
    from sessionmgr.store import Store


CONTINUE: Final = "continue"
MOST_DENIED: Final = 5
"""The number of denied calls that a notice names."""


def decode_snapshot(body: bytes) -> Snapshot:
    """Decode a stored snapshot."""
    return msgspec.convert(without_unknown(msgspec.json.decode(body), Snapshot), Snapshot)


def resume_request(
    snapshot: Snapshot,
    run: Run,
    message: str | None,
    wishes: RunArguments,
    known: Mapping[str, Json],
) -> RunRequest:
    """Return the request of a resumed run: that of the paused run, overridden by `wishes`.

    `known` supplies secret options, which are not stored.

    Raises:
        NotResumable: A precondition does not hold.
    """
    _require_resumable(snapshot, run)
    asked = read_resume_spec(snapshot.asked)
    given = wishes.get("options", {})
    if not isinstance(given, msgspec.Struct):
        restored = restore_options(asked.options, asked.withheld, known)
        wishes = {**wishes, "options": {**restored, **given}}
    wish = RunRequest(
        prompt=resume_message([run], message or snapshot.message),
        permission_mode=snapshot.permission.asked if snapshot.permission else None,
        provider_session_id=snapshot.provider_session_id,
        resumed_from=snapshot.run_id,
        metadata=run.metadata,
    )
    return msgspec.structs.replace(wish, **asked.merged_arguments(run.id, wishes))


def _require_resumable(snapshot: Snapshot, run: Run) -> None:
    if snapshot.provider_session_id is None:
        raise NotResumable(run.id, "the provider's session is not known")
    if not Path(snapshot.cwd).is_dir():
        raise NotResumable(run.id, f"its directory {snapshot.cwd} does not exist any more")


def resume_message(runs: Iterable[Run], message: str | None = None) -> str:
    """Return the message to an agent whose session is resumed after these runs, newest first.

    An agent that was cut inside a tool call must not assume that it succeeded or failed. One that
    was denied a call is asked to try again, because the answer may now be different.
    """
    runs = list(runs)
    cut, denied = _interrupted_tools(runs), _denied_calls(runs[:1])
    notices: list[str] = []
    if cut:
        notices.append(
            f"You were interrupted while a tool call was running ({', '.join(cut)}). Its outcome"
            " is unknown: it may have completed, in part or in full, or not at all. Check what it"
            " has done before you repeat it."
        )
    if denied and message is None:
        notices.append(
            f"You were denied what you wanted to do ({', '.join(denied)}). If it is still needed,"
            " try again: it may be allowed now."
        )
    if not notices:
        return message or CONTINUE
    return " ".join([*notices, "Then continue." if message is None else message])


def was_interrupted_unanswered(run: Run) -> bool:
    """Return whether a run was interrupted before its agent did anything."""
    is_answered = run.text or run.partial or run.tool_calls.count or run.usage != Usage()
    is_dead = run.failure is not None and run.failure.kind is FailureKind.MANAGER_CRASHED
    return not is_answered and (is_dead or run.status is RunStatus.CANCELLED)


def _denied_calls(runs: Iterable[Run]) -> list[str]:
    """Return the calls that these runs were denied, except by their own permission mode."""
    denials = [each for run in runs for each in run.permission_denials if each.by != "mode"]
    said = [
        f"{each.tool_name}: {each.summary}" if each.summary else each.tool_name for each in denials
    ]
    return list(dict.fromkeys(said))[:MOST_DENIED]


def _interrupted_tools(runs: Iterable[Run]) -> list[str]:
    """Return the tools whose calls were cut, unless the agent has worked since."""
    for run in runs:
        if run.open_tools or run.interrupted_tools:
            return list(dict.fromkeys([*run.open_tools.values(), *run.interrupted_tools]))
        if run.turns or run.text or run.tool_calls.count:
            return []
    return []


FOLLOWS: Final = "follow_up_of"
"""The metadata key under which a follow-up stores the id of the followed run."""


async def recorded_resume_spec(store: Store, run: Run) -> ResumeSpec | None:
    """Return a run's recorded request; None if an older version has recorded the run."""
    page = await store.events(run.session_id, run_id=run.id, types=["run_started"], limit=1)
    for row in page.rows:
        event = decode_event(row.body)
        if isinstance(event, RunStarted) and isinstance(event.asked, dict):
            return read_resume_spec(event.asked)
    return None


def follow_up_request(
    run: Run, asked: ResumeSpec | None, message: str | None, wishes: RunArguments
) -> RunRequest:
    """Return the request of a follow-up; `asked` is that of the followed run.

    Raises:
        NotResumable: A precondition does not hold; the error names it.
    """
    if run.status not in TERMINAL:
        raise NotResumable(run.id, f"it is {run.status}: wait for its end, or append to it")
    if run.provider_session_id is None:
        raise NotResumable(run.id, "the provider's session is not known")
    asked = asked or ResumeSpec()
    wish = RunRequest(
        prompt=resume_message([run], message),
        permission_mode=run.permission.asked if run.permission else None,
        provider_session_id=run.provider_session_id,
        resumed_from=run.id,
        metadata=run.metadata,
    )
    wish = msgspec.structs.replace(wish, **asked.merged_arguments(run.id, wishes))
    return msgspec.structs.replace(wish, metadata={**wish.metadata, FOLLOWS: run.id})
