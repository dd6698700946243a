"""The command line and private files of a run's `codex exec`.

Nothing here waits. The permissions are passed to a resumed thread as to a new one, because a thread
remembers its earlier permissions. The sandbox is passed as a flag, which must stand before
`resume`: a setting would yield to `default_permissions` in the user's configuration.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from sessionmgr.model import Json, PermissionMode, encode_json
from sessionmgr.process import Command, validate_session_id
from sessionmgr_adapters.codex import launch
from sessionmgr_adapters.codex.config import (
    SYSTEM_CONFIG_DIR,
    ask_for_all_tools,
    merge_overrides,
    read_config,
    read_project_configs,
)
from sessionmgr_adapters.codex.exec.profile import require_no_user_profile, split_secrets
from sessionmgr_adapters.codex.permissions import POLICIES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sessionmgr.adapter import RunContext
    from sessionmgr_adapters.codex.config import CodexConfig
    from sessionmgr_adapters.codex.options import CodexOptions
    from sessionmgr_adapters.codex.permissions import SandboxBounds

SCHEMA: Final = "schema.json"
ANSWER: Final = "answer"
INSTRUCTIONS: Final = "instructions"
PROFILE: Final = "profile.toml"
WORKSPACE: Final = "sandbox_workspace_write"

# There are no questions in `codex exec`, and it must send no analytics.
FIXED_SETTINGS: Final[tuple[tuple[str, Json], ...]] = (
    ("approval_policy", "never"),
    ("analytics.enabled", False),
)


class ExecSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A `codex exec` to start."""

    program: tuple[str, ...]
    cwd: str
    env: dict[str, str]
    sandbox: str
    """`read-only`, `workspace-write` or `danger-full-access`."""
    settings: tuple[tuple[str, Json], ...] = ()
    """Overrides of its configuration, dotted; later ones win."""
    secrets: dict[str, Json] = msgspec.field(default_factory=dict[str, Json])
    """Settings that must not appear on the command line, as tables."""
    home: Path = Path("/nonexistent")
    """Codex's home with its configuration."""
    thread: str | None = None
    """The thread to resume."""
    is_fork: bool = False
    is_ruled: bool = True
    """Whether the user's rules apply, by which commands may leave the sandbox."""
    images: tuple[str, ...] = ()
    schema: Json = None
    instructions: str | None = None
    """Instructions that replace Codex's own."""

    @property
    def files(self) -> dict[str, str]:
        """The private files that it reads, and the one to which it writes its answer."""
        files = {ANSWER: ""}
        if self.schema is not None:
            files[SCHEMA] = encode_json(self.schema).decode()
        if self.instructions is not None:
            files[INSTRUCTIONS] = self.instructions
        if self.secrets:
            lines = [
                f"{_quote(name)} = {encode_toml(value)}\n" for name, value in self.secrets.items()
            ]
            files[PROFILE] = "".join(lines)
        return files

    @property
    def links(self) -> dict[str, str]:
        """The links to its images beside them: Codex splits a file name at its commas."""
        return {f"image{n}": str(Path(self.cwd, each)) for n, each in enumerate(self.images)}

    def command(self, paths: Mapping[str, str], profile: str | None = None) -> Command:
        """Return the command, with its files and links at `paths`.

        The prompt goes to stdin: every user of the machine can read a command line.
        """
        argv = [*self.program, "exec", f"--sandbox={self.sandbox}"]
        argv += [] if profile is None else [f"--profile={profile}"]
        argv += [] if self.is_ruled else ["--ignore-rules"]
        instructions = ("model_instructions_file", paths.get(INSTRUCTIONS))
        for name, value in (instructions, *self.settings, *FIXED_SETTINGS):
            if value is not None:
                argv += ["-c", f"{name}={encode_toml(value)}"]
        if self.thread is not None:
            argv.append("fork" if self.is_fork else "resume")
        # A flag must follow the images, or they consume the positional arguments.
        argv += [f"--image={paths[each]}" for each in self.links]
        argv += ["--json", "--skip-git-repo-check", f"--output-last-message={paths[ANSWER]}"]
        if SCHEMA in paths:
            argv.append(f"--output-schema={paths[SCHEMA]}")
        if self.thread is not None:
            argv.append(self.thread)
        argv.append("-")
        return Command(argv=tuple(argv), cwd=self.cwd, env=self.env)


def make_exec_spec(run: RunContext, options: CodexOptions, limits: SandboxBounds) -> ExecSpec:
    """Return the `codex exec` that a run needs.

    Raises:
        ProcessError: The program or its environment is not usable.
        ConfigFileError: The variables to hide from commands are not known.
    """
    if run.provider_session_id is not None:
        validate_session_id(run.provider_session_id)
    env = launch.codex_environment(run, options)
    known = (read_config(SYSTEM_CONFIG_DIR), read_config(launch.environment_home(env)))
    projects = read_project_configs(Path(run.cwd))
    wished, secret = split_secrets(_requested_settings(run, options, known, projects))
    if secret:
        require_no_user_profile(options.command)
    wished |= launch.set_fields(
        model=run.model,
        model_reasoning_effort=run.effort,
        developer_instructions=run.system_prompt,
    )
    wished |= _sandbox_settings(limits) | launch.hidden_variable_config(
        options, (*known, *projects)
    )
    return ExecSpec(
        program=options.command,
        cwd=run.cwd,
        env=env,
        sandbox=POLICIES[run.permission.effective].sandbox,
        settings=tuple(wished.items()),
        secrets=secret,
        home=launch.environment_home(env),
        thread=run.provider_session_id,
        is_fork=options.fork,
        is_ruled=launch.loose_rules_file(run, options) is None,
        images=run.images,
        schema=run.schema,
        instructions=options.base_instructions,
    )


def _requested_settings(
    run: RunContext,
    options: CodexOptions,
    known: Sequence[CodexConfig],
    projects: Sequence[CodexConfig],
) -> dict[str, Json]:
    """Return the settings of the run's options; in plan mode, every tool needs an approval."""
    wished = merge_overrides(
        {"model_provider": options.model_provider},
        launch.mcp_server_config(options),
        options.config,
    )
    if run.permission.asked is not PermissionMode.PLAN:
        return wished
    servers: dict[str, tuple[str, ...]] = {}
    for each in known:
        for name, tools in each.mcp_server_names.items():
            servers[name] = (*servers.get(name, ()), *tools)
    return ask_for_all_tools(wished, servers, projects)


def _sandbox_settings(limits: SandboxBounds) -> dict[str, Json]:
    """Return the settings of the sandbox, which no other setting may override."""
    return {
        f"{WORKSPACE}.network_access": limits.network,
        f"{WORKSPACE}.exclude_slash_tmp": not limits.temporary,
        f"{WORKSPACE}.exclude_tmpdir_env_var": not limits.temporary,
        f"{WORKSPACE}.writable_roots": list(limits.directories),
        launch.TMPDIR_KEY: limits.scratch,
    }


def encode_toml(value: Json) -> str:
    """Return a value as TOML on one line, as the command line accepts it; TOML has no null."""
    match value:
        case bool():
            return "true" if value else "false"
        case dict():
            known = [(key, each) for key, each in value.items() if each is not None]
            inside = ", ".join(f"{_quote(key)} = {encode_toml(each)}" for key, each in known)
            return f"{{{inside}}}"
        case list():
            return f"[{', '.join(encode_toml(each) for each in value if each is not None)}]"
        case str():
            return _quote(value)
        case _:
            return repr(value)


def _quote(text: str) -> str:
    # A JSON string is a TOML string, except that TOML requires one more character to be escaped.
    return encode_json(text).decode().replace("\x7f", "\\u007f")
