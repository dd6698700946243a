"""Start of Kimi: the reasons to refuse a run, and the process that serves a session."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import msgspec

from sessionmgr.adapter.kit import FunctionTools
from sessionmgr.model import Failure, FailureKind, Json, PermissionMode
from sessionmgr.process import Command, EnvironmentSpec, validate_session_id
from sessionmgr_adapters.kimi.installation import is_stored, program_fault, widening_fault
from sessionmgr_adapters.kimi.options import KimiOptions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sessionmgr.adapter import RunContext, RunSpec
    from sessionmgr.process import Launcher

KIMI_ENVIRONMENT: Final = EnvironmentSpec(names=("KIMI_*", "OPENAI_API_KEY", "OPENAI_BASE_URL"))
YOLO: Final = "yolo"
_COMMAND: Final = re.compile(r"\s*/[\w-]+(:[\w-]+)*(\s|$)")


def is_command(prompt: str) -> bool:
    """Whether Kimi would execute a prompt itself, such as `/yolo`."""
    return _COMMAND.match(prompt) is not None


class KimiSpec(msgspec.Struct, frozen=True, kw_only=True):
    """Specification of a process: there is one for each session."""

    launcher: Launcher
    command: Command
    session: str
    introduction: dict[str, Json]
    """The params of its initialize request."""
    functions: FunctionTools

    @property
    def key(self) -> str:
        """The session: two processes never serve the same one."""
        return self.session


def start_failure_of(run: RunContext | RunSpec) -> Failure | None:
    """Return why a run must not start."""
    options, session, kind = KimiOptions.of(run.options), run.provider_session_id, None
    env = kimi_environment(run)
    why = program_fault(options.program, env, run.cwd)
    for name in ("fork", "mcp_servers"):
        if getattr(options, name):
            why = f"options.{name}: kimi-cli cannot do that; kimi-code can, with options.code"
    if why is None and is_command(run.prompt):
        word = run.prompt.split()[0]
        why = f"prompt: Kimi would execute {word!r} as a command of its own; begin with other text"
    if why is None and run.permission.effective != YOLO:
        kind, why = FailureKind.PERMISSION_REFUSED, widening_fault(env, run.cwd, session)
    if why is None:
        return None
    return Failure(kind=kind or FailureKind.CONFIG_INVALID, message=why, phase="start")


def missing_session_failure(run: RunContext) -> Failure | None:
    """Return the failure of a run whose session Kimi does not have."""
    session = run.provider_session_id
    if session is None or is_stored(kimi_environment(run), run.cwd, session):
        return None
    message = f"Kimi has no session {session!r} for the directory {run.cwd}"
    return Failure(kind=FailureKind.SESSION_NOT_FOUND, message=message, phase="start")


def kimi_environment(run: RunContext | RunSpec) -> dict[str, str]:
    """Return the environment of a run's process."""
    home = KimiOptions.of(run.options).home
    share = {} if home is None else {"KIMI_SHARE_DIR": home}
    return {**run.env, "KIMI_CLI_NO_AUTO_UPDATE": "1", **share}


def make_kimi_spec(run: RunContext, session: str) -> KimiSpec:
    """Return the spec for a run; `session` is the id of a new session, if it starts one.

    Raises:
        ProcessError: The id of the session is invalid.
    """
    options = KimiOptions.of(run.options)
    session = validate_session_id(run.provider_session_id or session)
    capabilities: dict[str, Json] = {
        "supports_question": options.questions and run.attended,
        "supports_plan_mode": run.permission.asked is PermissionMode.PLAN,
    }
    introduction: dict[str, Json] = {
        "protocol_version": "1.10",
        "client": {"name": "sessionmgr", "version": "1"},
        "capabilities": capabilities,
    }
    if options.tools:
        introduction["external_tools"] = [
            {"name": each.name, "description": each.description, "parameters": dict(each.schema)}
            for each in options.tools
        ]
    argv = (*options.program, "--wire", "--session", session, *_flags(run, options))
    return KimiSpec(
        launcher=run.launcher,
        command=Command(argv=argv, cwd=run.cwd, env=kimi_environment(run)),
        session=session,
        introduction=introduction,
        functions=FunctionTools(options.tools),
    )


def _flags(run: RunContext, options: KimiOptions) -> Iterator[str]:
    if run.permission.effective == YOLO:
        yield "--yolo"
    if options.thinking is not None:
        yield "--thinking" if options.thinking else "--no-thinking"
    if run.model is not None:
        yield f"--model={run.model}"
    if run.max_turns is not None:
        yield f"--max-steps-per-turn={run.max_turns}"
    for each in run.directories:
        yield f"--add-dir={each}"
