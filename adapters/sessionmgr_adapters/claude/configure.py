"""Configuration of a process before a run's prompt is sent; it costs no tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from sessionmgr.adapter.kit.version import version_of
from sessionmgr.model import Failure, FailureKind
from sessionmgr_adapters.claude.claude_process import (
    billing_failure,
    info_of,
    mode_failure,
    version_failure,
)
from sessionmgr_adapters.claude.outgoing import literal_failure
from sessionmgr_adapters.claude.plan_mode import keep_to_plan

if TYPE_CHECKING:
    from sessionmgr_adapters.claude.driver import ClaudeDriver
    from sessionmgr_adapters.claude.frames import Reply


async def configure(driver: ClaudeDriver) -> Failure | None:
    """Bring the process to what the run needs; return why the prompt must not be sent, if so."""
    process, options = driver.process, driver.options
    if process.info is None:
        failure = await _initialize(driver)
    else:
        failure = billing_failure(process.info, options.billing) or await _change(driver)
    if failure is None and not options.slash_commands:
        version = process.info.version if process.info else None
        failure = literal_failure(driver.run.prompt, version)
    return failure


async def _initialize(driver: ClaudeDriver) -> Failure | None:
    process, options = driver.process, driver.options
    reply = await driver.request("initialize", **process.spec.introduction)
    if reply.subtype != "success":
        return _refused("initialize", reply)
    info = info_of(reply.response)
    if info.version is None:
        spec = process.spec
        version = await version_of(spec.launcher, options.command, spec.command)
        info = replace(info, version=version)
    failure = (
        version_failure(info.version or "")
        or billing_failure(info, options.billing)
        or mode_failure(driver.run.permission.effective, info.mode)
    )
    if failure is None and process.spec.functions.plans:
        failure = await keep_to_plan(driver)
    if failure is None:
        process.info = info
    return failure


async def _change(driver: ClaudeDriver) -> Failure | None:
    """Change what can be changed without another process."""
    run, process = driver.run, driver.process
    mode = run.permission.effective
    if process.spec.functions.plans:  # the user's settings may have other rules now
        failure = await keep_to_plan(driver)
        if failure is not None:
            return failure
    if mode != process.mode:
        reply = await driver.request("set_permission_mode", mode=mode)
        if reply.subtype != "success":
            return _refused("set_permission_mode", reply, FailureKind.PERMISSION_REFUSED)
        process.mode = mode
    if run.model != process.model:
        reply = await driver.request("set_model", model=run.model)
        if reply.subtype != "success":
            return _refused("set_model", reply, FailureKind.MODEL_NOT_FOUND)
        process.model = run.model
    if run.effort != process.effort:
        reply = await driver.request("apply_flag_settings", settings={"effortLevel": run.effort})
        if reply.subtype != "success":
            return _refused("apply_flag_settings", reply)
        process.effort = run.effort
    return None


def _refused(what: str, reply: Reply, kind: FailureKind = FailureKind.CONFIG_INVALID) -> Failure:
    return Failure(
        kind=kind,
        message=f"Claude Code refused {what}: {reply.error or 'without a reason'}",
        provider_code=reply.error_code,
        phase="start",
    )
