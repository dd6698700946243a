"""Launch of Amp for a run: its argv, its private files, and what must be there before."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from sessionmgr.adapter import Health
from sessionmgr.adapter.kit import config_failure, missing_program_reason
from sessionmgr.model import Failure, FailureKind, encode_json
from sessionmgr.process import Command, EnvironmentSpec, Launcher, validate_session_id
from sessionmgr_adapters.amp.options import AmpOptions
from sessionmgr_adapters.amp.settings import BYPASS, run_settings, settings_fault

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sessionmgr.adapter import RunContext, RunSpec
    from sessionmgr.process import PrivateFiles

KEY: Final = "AMP_API_KEY"
# Others would change the directory (AMP_PWD) or nest the thread in another (AMP_THREAD_ID).
AMP_ENVIRONMENT: Final = EnvironmentSpec(
    names=(KEY, "AMP_URL", "AMP_HOME", "AMP_SETTINGS_FILE", "AMP_LOG_FILE", "AMP_LOG_LEVEL")
)
MAX_IMAGES: Final = 4
"""Maximum number of images that Amp accepts in a message."""
INSTALL: Final = "install Amp (npm install -g @ampcode/cli), or set command in [options.amp]"
NO_KEY: Final = (
    f"{KEY} is not set, and without it Amp would wait for a login; create an access token at "
    "https://ampcode.com/settings/security and set the variable"
)
FLAGS: Final = (
    *("--execute", "--stream-json", "--stream-json-thinking", "--stream-json-input"),
    # An archived thread cannot be continued; an open editor must not add to the prompt.
    *("--no-archive-after-execute", "--no-ide", "--no-notifications"),
)


class AmpSpec(msgspec.Struct, frozen=True, kw_only=True):
    """Specification of a process, which serves one run."""

    launcher: Launcher
    command: Command
    """The command without the private files."""
    run_id: str
    files: tuple[tuple[str, str], ...] = ()
    """Flags whose values are passed in private files."""

    @property
    def key(self) -> str:
        """The run: no other uses its process."""
        return self.run_id

    def full_command(self, files: PrivateFiles) -> Command:
        """Write the private files, and return the complete command."""
        argv = list(self.command.argv)
        for flag, text in self.files:
            argv += [flag, str(files.write(f"{flag.strip('-')}.json", text))]
        return msgspec.structs.replace(self.command, argv=tuple(argv))


def make_amp_spec(run: RunContext) -> AmpSpec:
    """Return the spec of a run's process.

    Raises:
        ProcessError: The command cannot be started.
        FileRefusedError: The user's settings cannot be read.
    """
    options, thread = AmpOptions.of(run.options), run.provider_session_id
    settings = run_settings(run)
    argv = [*options.command]
    if thread is not None:
        argv += ["threads", "continue", validate_session_id(thread)]
    argv += FLAGS
    if run.permission.effective == BYPASS:
        argv.append("--dangerously-allow-all")
    named = {"--mode": options.mode, "--visibility": options.visibility}
    if settings is None:
        named["--settings-file"] = options.settings_file
    for flag, value in named.items():
        argv += [] if value is None else [flag, value]
    servers = encode_json(options.mcp_servers).decode() if options.mcp_servers else None
    texts = (("--settings-file", settings), ("--mcp-config", servers))
    return AmpSpec(
        launcher=run.launcher,
        command=Command(argv=tuple(argv), cwd=run.cwd, env=dict(run.env)),
        run_id=run.run_id,
        files=tuple((flag, text) for flag, text in texts if text is not None),
    )


def start_fault(run: RunContext | RunSpec) -> str | None:
    """Return why a run cannot start, as `field: reason`; None if it can."""
    if len(run.images) > MAX_IMAGES:
        return f"images: {len(run.images)} images; Amp accepts at most {MAX_IMAGES}: remove some"
    return settings_fault(run)


def start_failure_of(run: RunContext) -> Failure | None:
    """Return why a run cannot start: nothing is started then."""
    if not run.env.get(KEY):
        return Failure(kind=FailureKind.AUTH_FAILED, message=NO_KEY, phase="start")
    fault = start_fault(run)
    return None if fault is None else config_failure(fault)


def amp_health(options: AmpOptions, env: Mapping[str, str], cwd: str) -> Health:
    """Report whether Amp is installed and has a key; only its server knows if that is valid."""
    missing = missing_program_reason(options.command, env, cwd, INSTALL)
    if missing is not None:
        return missing
    if not env.get(KEY):
        return Health(state="fail", detail=NO_KEY)
    return Health(detail=f"Amp is installed and {KEY} is set")
