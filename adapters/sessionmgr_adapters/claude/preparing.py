"""What is settled with a Claude Code before a run's prompt is sent, and costs nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from sessionmgr.model import Failure, FailureKind
from sessionmgr_adapters.claude.literal import not_literal
from sessionmgr_adapters.claude.planning import keep_to_plan
from sessionmgr_adapters.claude.seat import (
    hello_of,
    not_as_billed,
    too_old,
    too_wide,
)
from sessionmgr_adapters.claude.version import version_of

if TYPE_CHECKING:
    from sessionmgr.adapter import RunContext
    from sessionmgr_adapters.claude.frames import Reply
    from sessionmgr_adapters.claude.options import ClaudeOptions
    from sessionmgr_adapters.claude.seat import Seat
    from sessionmgr_adapters.claude.turn import Turn


async def prepare(
    turn: Turn, run: RunContext, seat: Seat, options: ClaudeOptions
) -> Failure | None:
    """Bring a child to what a run wants; return why it must not be asked, if it must not."""
    if seat.hello is None:
        failure = await _greet(turn, run, seat, options)
    else:
        failure = not_as_billed(seat.hello, options.billing) or await _change(turn, run, seat)
    if failure is None and not options.slash_commands:
        failure = not_literal(run.prompt, seat.hello.version if seat.hello else None)
    return failure


async def _greet(turn: Turn, run: RunContext, seat: Seat, options: ClaudeOptions) -> Failure | None:
    reply = await turn.request("initialize", **seat.spec.introduction)
    if reply.subtype != "success":
        return _refused("initialize", reply)
    hello = hello_of(reply.response)
    if hello.version is None:
        spec = seat.spec
        version = await version_of(spec.launcher, options.command, spec.command)
        hello = replace(hello, version=version)
    failure = (
        too_old(hello.version or "")
        or not_as_billed(hello, options.billing)
        or too_wide(run.permission.effective, hello.mode)
    )
    if failure is None and seat.spec.functions.plans:
        failure = await keep_to_plan(turn, seat)
    if failure is None:
        seat.hello = hello
    return failure


async def _change(turn: Turn, run: RunContext, seat: Seat) -> Failure | None:
    """Change what can be changed without another child."""
    mode = run.permission.effective
    if seat.spec.functions.plans:  # they may have other rules now
        failure = await keep_to_plan(turn, seat)
        if failure is not None:
            return failure
    if mode != seat.mode:
        reply = await turn.request("set_permission_mode", mode=mode)
        if reply.subtype != "success":
            return _refused("set_permission_mode", reply, FailureKind.PERMISSION_REFUSED)
        seat.mode = mode
    if run.model != seat.model:
        reply = await turn.request("set_model", model=run.model)
        if reply.subtype != "success":
            return _refused("set_model", reply, FailureKind.MODEL_NOT_FOUND)
        seat.model = run.model
    if run.effort != seat.effort:
        reply = await turn.request("apply_flag_settings", settings={"effortLevel": run.effort})
        if reply.subtype != "success":
            return _refused("apply_flag_settings", reply)
        seat.effort = run.effort
    return None


def _refused(what: str, reply: Reply, kind: FailureKind = FailureKind.CONFIG_INVALID) -> Failure:
    return Failure(
        kind=kind,
        message=f"Claude Code refused {what}: {reply.error or 'without a reason'}",
        provider_code=reply.error_code,
        phase="start",
    )
