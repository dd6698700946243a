"""The command line and environment of an app-server, and the parameters of a run's thread."""

from __future__ import annotations

import base64
import os
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from sessionmgr.adapter import ConnectionSpec
from sessionmgr.adapter.kit import tool_description
from sessionmgr.model import Json, PermissionMode
from sessionmgr.process import Command, EnvironmentSpec, PrivateFiles, validate_session_id
from sessionmgr_adapters.codex.config import (
    ConfigFileError,
    ask_for_all_tools,
    config_hidden_variables,
    config_key_variables,
    merge_overrides,
    read_config,
    read_project_configs,
)
from sessionmgr_adapters.codex.exec_rules import loose_rules
from sessionmgr_adapters.codex.permissions import (
    FULL_ACCESS,
    POLICIES,
    READ_ONLY,
    REVIEWER,
    SandboxBounds,
)

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping, Sequence

    from sessionmgr.adapter import RunContext
    from sessionmgr.adapter.kit import FunctionTool, PromptImage
    from sessionmgr_adapters.codex.config import CodexConfig
    from sessionmgr_adapters.codex.options import CodexOptions

CODEX_ENVIRONMENT: Final = EnvironmentSpec(names=("CODEX_*", "OPENAI_*", "RUST_LOG"))
OPENING_METHODS: Final = frozenset({"thread/start", "thread/resume", "thread/fork"})
"""The methods that open a run's thread."""
DEFAULT_EXCLUDES_KEY: Final = "shell_environment_policy.ignore_default_excludes"
"""Setting: whether commands see variables whose names look secret."""
HIDDEN_VARIABLES_KEY: Final = "shell_environment_policy.exclude"
"""Setting: the variables that commands do not see."""
TMPDIR_KEY: Final = "shell_environment_policy.set.TMPDIR"
"""Setting: the directory for commands' temporary files."""
NOWHERE: Final = "/"
"""An app-server's working directory: it serves threads of all directories, and blocks none."""


def declared_variables(environ: Mapping[str, str]) -> EnvironmentSpec:
    """Return Codex's usual variables, and those with keys that the user's configuration names."""
    try:
        names = read_config(environment_home(environ)).key_variables
    except ConfigFileError:
        names = ()  # a run that needs the configuration reports the error
    return replace(CODEX_ENVIRONMENT, names=(*CODEX_ENVIRONMENT.names, *names), secret=names)


def make_server_spec(run: RunContext, options: CodexOptions) -> ConnectionSpec:
    """Return the app-server that a run needs.

    Raises:
        ProcessError: The program or its environment is not usable.
    """
    if run.provider_session_id is not None:
        validate_session_id(run.provider_session_id)
    # Unload a thread without subscribers at once, instead of after half an hour.
    argv = (*options.command, "app-server", "-c", "thread_unload_delay_secs=0")
    return ConnectionSpec(
        launcher=run.launcher,
        command=Command(argv=argv, cwd=NOWHERE, env=codex_environment(run, options)),
        any_directory=True,
    )


def loose_rules_file(run: RunContext, options: CodexOptions) -> Path | None:
    """Return a rules file that would let commands out of a run's sandbox without a question."""
    policy = POLICIES[run.permission.effective]
    if options.rules or policy.approval != "never" or policy.sandbox == FULL_ACCESS:
        return None
    return loose_rules(codex_home(run, options), Path(run.cwd))


def codex_home(run: RunContext, options: CodexOptions) -> Path:
    """Return Codex's home: its configuration and its records of threads."""
    return environment_home(codex_environment(run, options))


def environment_home(environ: Mapping[str, str]) -> Path:
    """Return Codex's home in an environment."""
    return Path(environ.get("CODEX_HOME") or Path(environ.get("HOME", "/")) / ".codex")


def codex_environment(run: RunContext, options: CodexOptions) -> dict[str, str]:
    """Return the environment of a run's Codex."""
    env = dict(run.env)
    if options.home is not None:
        env["CODEX_HOME"] = os.path.join(run.cwd, options.home)  # noqa: PTH118  # pure
    return env


@contextmanager
def sandbox_bounds(run: RunContext, options: CodexOptions) -> Generator[SandboxBounds, None, None]:
    """Yield the bounds of a run's commands, with a TMPDIR of their own where they need one."""
    policy, temporary = POLICIES[run.permission.effective], options.temporary
    if temporary is None:
        temporary = policy.shares_temporary
    found = SandboxBounds(directories=run.directories, network=options.network, temporary=temporary)
    if temporary or not policy.is_confined:
        yield found
        return
    with PrivateFiles(name=f"sessionmgr-{run.session_id}") as files:
        place = str(files.directory)
        yield replace(found, directories=(*run.directories, place), scratch=place)


def thread_opening(
    run: RunContext, options: CodexOptions, limits: SandboxBounds, configured: CodexConfig
) -> tuple[str, dict[str, Json]]:
    """Return the call that starts or resumes a run's thread.

    The thread is opened with a read-only sandbox and gets its own afterwards: where a thread may
    write, Codex marks the directory as trusted in the user's configuration.

    Raises:
        ConfigFileError: A project's configuration, and so its MCP servers, cannot be read.
    """
    params: dict[str, Json] = {
        "cwd": run.cwd,
        "approvalPolicy": POLICIES[run.permission.effective].approval,
        "approvalsReviewer": REVIEWER,
        "sandbox": READ_ONLY,
        "config": _config(run, options, limits, configured),
        # A thread remembers the writable directories of its sandbox, and would add them to these.
        "runtimeWorkspaceRoots": [run.cwd],
    }
    params |= set_fields(
        model=run.model,
        modelProvider=options.model_provider,
        developerInstructions=run.system_prompt,
        baseInstructions=options.base_instructions,
    )
    if run.provider_session_id is None:
        if options.tools:
            params["dynamicTools"] = [dynamic_tool(each) for each in options.tools]
        return "thread/start", params
    params |= {"threadId": run.provider_session_id, "excludeTurns": True}
    return "thread/fork" if options.fork else "thread/resume", params


def _config(
    run: RunContext, options: CodexOptions, limits: SandboxBounds, configured: CodexConfig
) -> dict[str, Json]:
    config = merge_overrides(
        mcp_server_config(options),
        options.config,
        {"features.instant_interrupt": options.follow_up == "now"},
        {} if limits.scratch is None else {TMPDIR_KEY: limits.scratch},
    )
    # The app-server has already decided which projects it trusts, unless the run overrides it.
    projects = read_project_configs(Path(run.cwd)) if "projects" in config else ()
    config = merge_overrides(config, hidden_variable_config(options, (configured, *projects)))
    if run.permission.asked is not PermissionMode.PLAN:
        return config
    return ask_for_all_tools(config, configured.mcp_server_names, projects)


def mcp_server_config(options: CodexOptions) -> dict[str, Json]:
    """Return the MCP servers of a run as configuration."""
    return {"mcp_servers": options.mcp_servers} if options.mcp_servers else {}


def hidden_variable_config(options: CodexOptions, known: Sequence[CodexConfig]) -> dict[str, Json]:
    """Return the variables to hide from commands: those with keys, and those already hidden."""
    if options.secrets:
        return {}
    keys = [key for each in known for key in each.key_variables]
    keys += (
        *config_key_variables(mcp_server_config(options)),
        *config_key_variables(options.config),
    )
    hidden = config_hidden_variables(merge_overrides(options.config))
    if hidden is None:
        hidden = tuple(name for each in known for name in each.hidden_variables or ())
    settings: dict[str, Json] = {DEFAULT_EXCLUDES_KEY: False}
    if keys:
        settings[HIDDEN_VARIABLES_KEY] = list(dict.fromkeys((*hidden, *keys)))
    return settings


def set_fields(**fields: Json) -> dict[str, Json]:
    """Return the fields that are not None."""
    return {name: value for name, value in fields.items() if value is not None}


def dynamic_tool(tool: FunctionTool) -> dict[str, Json]:
    """Return the declaration of a function that the model may call."""
    return {"type": "function", **tool_description(tool)}


def turn_params(
    run: RunContext, thread: str, content: list[Json], message_id: str
) -> dict[str, Json]:
    """Return the parameters of `turn/start`."""
    return {
        "threadId": thread,
        "input": content,
        "clientUserMessageId": message_id,
        **set_fields(effort=run.effort, outputSchema=run.schema),
    }


def prompt_content(prompt: str, images: Sequence[PromptImage]) -> list[Json]:
    """Return a prompt and its images as input of a turn."""
    content = [text_input(prompt)]
    for image in images:
        data = base64.b64encode(image.data).decode()
        content.append({"type": "image", "url": f"data:{image.media_type};base64,{data}"})
    return content


def text_input(text: str) -> Json:
    """Return a text as input of a turn."""
    return {"type": "text", "text": text, "text_elements": []}
