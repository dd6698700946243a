"""Launch of Claude Code for a run: its argv, its environment, its private files.

Nothing here waits. Settings that can change while the process runs (model, effort, most permission
modes) do not affect whether it fits another run of its session.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from sessionmgr.adapter.kit import schema_fault
from sessionmgr.model import Json, PermissionMode, encode_json
from sessionmgr.process import (
    LARGEST_ARGUMENT,
    Command,
    ConditionalNames,
    EnvironmentSpec,
    validate_session_id,
)
from sessionmgr_adapters.claude.functions import ClaudeFunctions
from sessionmgr_adapters.claude.tool_access import (
    FUNCTION_PREFIX,
    FUNCTION_SERVER,
    mcp_server_prefix,
    read_workspace_permissions,
    tool_access_of,
    unknown_tool_fault,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from sessionmgr.adapter import RunContext, RunSpec
    from sessionmgr.process import Launcher, PrivateFiles
    from sessionmgr_adapters.claude.options import ClaudeOptions
    from sessionmgr_adapters.claude.tool_access import WorkspacePermissions

BYPASS: Final = "bypassPermissions"

CLAUDE_ENVIRONMENT: Final = EnvironmentSpec(
    names=(
        *("ANTHROPIC_*", "CLAUDE_CODE_*", "CLAUDE_CONFIG_DIR", "CLAUDE_AUTOCOMPACT_PCT_OVERRIDE"),
        *("API_TIMEOUT_MS", "API_FORCE_IDLE_TIMEOUT", "BASH_*_TIMEOUT_MS"),
        *("BASH_MAX_OUTPUT_LENGTH", "MAX_THINKING_TOKENS", "MAX_MCP_OUTPUT_TOKENS"),
        *("MCP_TIMEOUT", "MCP_TOOL_TIMEOUT"),
        *("DISABLE_*", "USE_BUILTIN_RIPGREP", "ENABLE_TOOL_SEARCH", "IS_SANDBOX"),
    ),
    when=(
        ConditionalNames(("CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_MANTLE"), ("AWS_*",)),
        ConditionalNames(
            ("CLAUDE_CODE_USE_VERTEX",),
            ("GOOGLE_*", "GCLOUD_*", "CLOUDSDK_*", "CLOUD_ML_REGION", "VERTEX_*"),
        ),
        ConditionalNames(("CLAUDE_CODE_USE_FOUNDRY",), ("AZURE_*",)),
    ),
    secret=("ANTHROPIC_CUSTOM_HEADERS",),
)

STREAMING_FLAGS: Final = (
    *("--print", "--output-format=stream-json", "--input-format=stream-json", "--verbose"),
    *("--replay-user-messages", "--permission-prompt-tool=stdio"),
)
# Tools that ask, schedule or notify outside of sessionmgr.
DISALLOWED_TOOLS: Final = (
    *("CronCreate", "CronDelete", "CronList", "ScheduleWakeup"),
    *("RemoteTrigger", "PushNotification"),
)
ASK_USER_TOOL: Final = "AskUserQuestion"
EFFORTS: Final = ("low", "medium", "high", "xhigh", "max")
"""The levels of effort; a model that lacks one uses the next level below it."""


def start_fault(run: RunContext | RunSpec, options: ClaudeOptions) -> str | None:
    """Return why a run cannot start, as `field: reason`; None if it can."""
    schema = schema_fault(run.schema)
    if schema is not None:
        return f"schema: {schema}"
    if options.allow_rules and run.permission.asked is PermissionMode.PLAN:
        return "options.allow_rules: rules cannot allow calls in plan mode"
    if run.effort is not None and run.effort not in EFFORTS:
        return f"effort: unknown level {run.effort!r}; known: {', '.join(EFFORTS)}"
    if options.tools and mcp_server_prefix(FUNCTION_SERVER) in map(
        mcp_server_prefix, options.mcp_servers
    ):
        return (
            f"options.mcp_servers: {FUNCTION_SERVER!r} is reserved for the server of options.tools"
        )
    return unknown_tool_fault(run.tools_allowed, run.tools_denied, options)


class ClaudeSpec(msgspec.Struct, frozen=True, kw_only=True):
    """Specification of a process: there is one for each session of Claude Code."""

    launcher: Launcher
    command: Command
    """The command, without the session and without the private files."""
    session: str
    resumes: str | None = None
    """The session that it resumes; for a fork, this is another session."""
    files: tuple[tuple[str, str], ...] = ()
    """Options whose values are passed in private files."""
    model: str | None = None
    effort: str | None = None
    mode: str = "default"
    functions: ClaudeFunctions = ClaudeFunctions()
    """The caller's functions."""
    schema: Json = None
    """The output schema, if it is too long for a command line."""

    @property
    def key(self) -> str:
        """The session: two processes never serve the same one."""
        return self.session

    def full_command(self, files: PrivateFiles) -> Command:
        """Write the private files, and return the complete command."""
        paths = {flag: str(files.write(flag.strip("-"), text)) for flag, text in self.files}
        return msgspec.structs.replace(self.command, argv=self.argv(paths))

    def argv(self, paths: dict[str, str]) -> tuple[str, ...]:
        """Return the complete command line; `paths` are those of the files."""
        values = (
            ("--permission-mode", self.mode),
            *((flag, paths[flag]) for flag, _ in self.files),
            ("--model", self.model),
            ("--effort", self.effort),
            ("--resume", self.resumes),
            ("--session-id", None if self.resumes == self.session else self.session),
        )
        fork = ["--fork-session"] if self.is_fork else []
        return (*self.command.argv, *_flags(values), *fork)

    def serves(self, other: ClaudeSpec) -> bool:
        """Whether a process with this spec can be configured for `other`."""
        return (
            self._unchangeable == other._unchangeable
            # A process that was started without permission requests may omit them in plan mode,
            # too.
            and (other.mode == BYPASS) == (self.mode == BYPASS)
            and not other.is_fork
        )

    @property
    def _unchangeable(self) -> tuple[object, ...]:
        command = self.command
        return (command.argv, command.cwd, command.env, self.files, self.functions, self.schema)

    @property
    def introduction(self) -> dict[str, Json]:
        """The contents of its initialize request."""
        request = self.functions.introduction
        return request if self.schema is None else {**request, "jsonSchema": self.schema}

    @property
    def is_fork(self) -> bool:
        """Whether it leaves the session that it resumes unchanged."""
        return self.resumes is not None and self.resumes != self.session


def make_claude_spec(run: RunContext, options: ClaudeOptions, session: str) -> ClaudeSpec:
    """Return the spec for a run; `session` is the id of a new session, if it starts one.

    Raises:
        ProcessError: The command cannot be started.
        WorkspaceInvalidError: The directory's `PERMISSIONS.json` is invalid.
    """
    workspace = read_workspace_permissions(run.cwd)
    resumes = run.provider_session_id
    if resumes is not None:
        validate_session_id(resumes)
        session = session if options.fork else resumes
    env = dict(run.env)
    env["CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS"] = "1"
    env.setdefault("CLAUDE_CODE_AUTO_COMPACT_WINDOW", str(options.auto_compact_window))
    if options.home is not None:
        env["CLAUDE_CONFIG_DIR"] = options.home
    if not options.background:
        env["CLAUDE_CODE_DISABLE_BACKGROUND_TASKS"] = "1"
    allowed = tool_access_of(run.tools_allowed, options)
    plans = run.permission.asked is PermissionMode.PLAN
    given = options.tools
    tools = (
        each
        for each in given
        if allowed is None or allowed.is_permitted(FUNCTION_PREFIX + each.name)
    )
    functions = ClaudeFunctions(tuple(tools), options.hooks, allowed, plans)
    return ClaudeSpec(
        launcher=run.launcher,
        command=Command(argv=_argv(run, options, workspace, functions), cwd=run.cwd, env=env),
        session=session,
        resumes=resumes,
        files=_files(run, options, workspace, functions),
        model=run.model,
        effort=run.effort,
        mode=run.permission.effective,
        functions=functions,
        schema=None if _is_short(run.schema) else run.schema,
    )


def _argv(
    run: RunContext,
    options: ClaudeOptions,
    workspace: WorkspacePermissions,
    functions: ClaudeFunctions,
) -> tuple[str, ...]:
    allowed = functions.allowed
    tools = workspace.restrict(None if allowed is None else allowed.own)
    reading = (FUNCTION_PREFIX + each.name for each in functions.tools if each.reads_only)
    rules = (*options.allow_rules, *reading)
    schema, sources = run.schema, options.setting_sources
    is_in_line = schema is not None and _is_short(schema)
    asks = options.ask_user and run.attended
    denied = [*DISALLOWED_TOOLS, *run.tools_denied, *(() if asks else (ASK_USER_TOOL,))]
    values = (
        ("--disallowedTools", ",".join(denied)),
        ("--tools", None if tools is None else ",".join(tools)),
        ("--allowedTools", ",".join(rules) or None),
        *(("--add-dir", each) for each in run.directories),
        ("--max-turns", run.max_turns),
        ("--max-budget-usd", run.budget.usd),
        ("--json-schema", encode_json(schema).decode() if is_in_line else None),
        ("--setting-sources", None if sources is None else ",".join(sources)),
        ("--fallback-model", options.fallback_model),
        ("--settings", None if _is_json(options.settings) else options.settings),
        ("--debug-file", options.debug_file),
    )
    # Other servers may have unknown tools.
    is_strict = options.strict_mcp or workspace.is_narrow or allowed is not None
    return (
        *options.command,
        *STREAMING_FLAGS,
        *(["--include-partial-messages"] if options.partial_messages else []),
        *_flags(values),
        *(["--strict-mcp-config"] if is_strict else []),
    )


def _flags(values: Iterable[tuple[str, object]]) -> Iterator[str]:
    """Yield the flags of the options that have a value."""
    return (f"{flag}={value}" for flag, value in values if value is not None)


def _is_short(schema: Json) -> bool:
    """Whether a schema fits on a command line, whose arguments are limited to 128 KiB."""
    return len(encode_json(schema)) <= LARGEST_ARGUMENT


def _is_json(settings: str | None) -> bool:
    """Whether the value is JSON, and not the path of a settings file."""
    return settings is not None and settings.lstrip().startswith("{")


def _files(
    run: RunContext,
    options: ClaudeOptions,
    workspace: WorkspacePermissions,
    functions: ClaudeFunctions,
) -> tuple[tuple[str, str], ...]:
    """Return the values that are secret, or too long, for a command line."""
    added = [each for each in (options.append_system_prompt, workspace.note) if each]
    allowed = functions.allowed
    given = options.mcp_servers.items()
    servers = {name: each for name, each in given if allowed is None or allowed.needs(name)}
    if functions.tools:
        servers[FUNCTION_SERVER] = {"type": "sdk", "name": FUNCTION_SERVER}
    texts = (
        ("--system-prompt-file", run.system_prompt),
        ("--append-system-prompt-file", "\n\n".join(added) or None),
        ("--mcp-config", encode_json({"mcpServers": servers}).decode() if servers else None),
        ("--settings", options.settings if _is_json(options.settings) else None),
        ("--agents", encode_json(options.agents).decode() if options.agents else None),
    )
    return tuple((flag, text) for flag, text in texts if text is not None)
