"""Run request of a job, and the job's field that a refusal is about."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sessionmgr.adapter import (
    AdapterBroken,
    AgentsFileInvalid,
    Budget,
    CapabilityMissing,
    OptionInvalid,
    PermissionRefused,
    ProviderUnknown,
    VariantUnknown,
)
from sessionmgr.manager import (
    BudgetExhausted,
    Clocks,
    DirectoryMissing,
    ManagerClosing,
    ProviderDown,
    RunRequest,
    RunRequestInvalid,
    RunRequestUnsupported,
    SessionBusy,
)
from sessionmgr.model import Failure, FailureKind, PermissionMode
from sessionmgr.process import EnvironmentVariableInvalid
from sessionmgr.store import LeaseHeld, StoreError, UnknownId

if TYPE_CHECKING:
    from sessionmgr.adapter import Approve
    from sessionmgr.batch.job import Job

# Fields that require a capability as soon as they are set.
_FIELD_OF_CAPABILITY: Final = {
    "system_prompt": "system_prompt",
    "images_in": "images",
    "structured_output": "schema",
    "max_turns": "max_turns",
    "model_choice": "model",
    "effort": "effort",
    "cost": "budget_usd",
}
_FIELDS: Final[dict[type[Exception], str]] = {
    ProviderUnknown: "provider",
    VariantUnknown: "provider",
    AgentsFileInvalid: "provider",
    AdapterBroken: "provider",
    PermissionRefused: "permission_mode",
    OptionInvalid: "options",
    DirectoryMissing: "cwd",
    EnvironmentVariableInvalid: "env",
}


def run_request_for_job(job: Job, *, approve: Approve | None = None) -> RunRequest:
    """Return a job's request to the manager.

    Args:
        job: The job.
        approve: The async function that answers the agent's requests.
    """
    return RunRequest(
        prompt=job.prompt or "",
        system_prompt=job.system_prompt,
        images=job.images or (),
        model=job.model,
        effort=job.effort,
        permission_mode=job.permission_mode or PermissionMode.DEFAULT,
        tools_allowed=job.tools_allowed,
        tools_denied=job.tools_denied or (),
        options=job.options or {},
        require=job.require or (),
        prefer=job.prefer or (),
        schema=job.schema,
        max_turns=job.max_turns,
        budget=Budget(usd=job.budget_usd),
        clocks=Clocks(deadline=job.deadline),
        env=job.env or {},
        approve=approve,
        metadata=job.metadata or {},
    )


def rejected_field(error: Exception, job: Job) -> str:
    """Return the field of a job that caused a refusal."""
    if isinstance(error, CapabilityMissing):
        for name in error.negotiation.missing:
            if name not in (job.require or ()) and name in _FIELD_OF_CAPABILITY:
                return _FIELD_OF_CAPABILITY[name]
        return "require"
    if isinstance(error, RunRequestUnsupported | RunRequestInvalid):
        return error.field
    return _FIELDS.get(type(error), "")


_KINDS: Final[dict[type[Exception], FailureKind]] = {
    ProviderUnknown: FailureKind.CONFIG_INVALID,
    VariantUnknown: FailureKind.CONFIG_INVALID,
    AgentsFileInvalid: FailureKind.CONFIG_INVALID,
    AdapterBroken: FailureKind.START_FAILED,
    CapabilityMissing: FailureKind.CAPABILITY_MISSING,
    PermissionRefused: FailureKind.PERMISSION_REFUSED,
    BudgetExhausted: FailureKind.BUDGET_EXCEEDED,
    ProviderDown: FailureKind.ADAPTER_CRASHED,
    ManagerClosing: FailureKind.MANAGER_CRASHED,
    SessionBusy: FailureKind.SESSION_BUSY,
    LeaseHeld: FailureKind.SESSION_BUSY,
    UnknownId: FailureKind.SESSION_NOT_FOUND,
}


def start_failure(error: Exception) -> Failure:
    """Return the error of a failed start as a failure."""
    kind = _KINDS.get(type(error))
    if kind is None and isinstance(error, StoreError):
        kind = FailureKind.STORE_FAILED
    return Failure(
        kind=kind or FailureKind.CONFIG_INVALID,
        message=str(error),
        retryable=isinstance(error, ProviderDown | SessionBusy | StoreError)
        and not isinstance(error, UnknownId),
        phase="start",
    )
