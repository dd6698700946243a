"""Configuration of a process for one run, before its prompt. It costs no tokens.

The first run of a process initializes it, and checks its version, credential and permission mode. A
later run changes only the settings that differ from those of the run before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from sessionmgr.adapter.kit import read_version
from sessionmgr.model import FailureKind
from sessionmgr_adapters.claude.claude_process import (
    billing_failure,
    mode_failure,
    process_info_of,
    version_failure,
)
from sessionmgr_adapters.claude.outgoing import ControlRefusedError, prompt_syntax_failure
from sessionmgr_adapters.claude.plan_mode import enforce_plan_mode

if TYPE_CHECKING:
    from sessionmgr.model import Failure
    from sessionmgr_adapters.claude.claude_run import ClaudeRun


async def configure(driver: ClaudeRun) -> Failure | None:
    """Configure the process for the run; return why the prompt must not be sent, else None."""
    process, options = driver.process, driver.options
    try:
        if process.info is None:
            failure = await _initialize(driver)
        else:
            failure = billing_failure(process.info, options.billing)
            if failure is None:
                await _update_settings(driver)
    except ControlRefusedError as error:
        return error.failure
    if failure is None and not options.slash_commands:
        failure = prompt_syntax_failure(driver.run.prompt, process.version)
    return failure


async def _initialize(driver: ClaudeRun) -> Failure | None:
    process, options = driver.process, driver.options
    info = process_info_of(await driver.request("initialize", process.spec.introduction))
    if info.version is None:
        spec = process.spec
        version = await read_version(spec.launcher, options.command, spec.command)
        info = replace(info, version=version)
    failure = (
        version_failure(info.version or "")
        or billing_failure(info, options.billing)
        or mode_failure(driver.run.permission.effective, info.mode)
    )
    if failure is None:
        if process.spec.functions.plans:
            await enforce_plan_mode(driver)
        process.info = info
    return failure


async def _update_settings(driver: ClaudeRun) -> None:
    """Change the settings that a running process can change."""
    run, process = driver.run, driver.process
    mode = run.permission.effective
    if process.spec.functions.plans:  # the user's settings may have changed since
        await enforce_plan_mode(driver)
    if mode != process.mode:
        refused = FailureKind.PERMISSION_REFUSED
        await driver.request("set_permission_mode", {"mode": mode}, refused)
        process.mode = mode
    if run.model != process.model:
        await driver.request("set_model", {"model": run.model}, FailureKind.MODEL_NOT_FOUND)
        process.model = run.model
    if run.effort != process.effort:
        await driver.request("apply_flag_settings", {"settings": {"effortLevel": run.effort}})
        process.effort = run.effort
