"""How an app-server is started for a run, and what it is told of the run's thread."""

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
"""What a run's thread is opened by."""
DEFAULT_EXCLUDES_KEY: Final = "shell_environment_policy.ignore_default_excludes"
"""Whether commands see what looks like a secret."""
HIDDEN_VARIABLES_KEY: Final = "shell_environment_policy.exclude"
"""Which variables commands do not see."""
TMPDIR_KEY: Final = "shell_environment_policy.set.TMPDIR"
"""Where commands put what is temporary."""
NOWHERE: Final = "/"
"""Where an app-server runs: it serves threads of all directories, and keeps none of them busy."""


def declared_variables(environ: Mapping[str, str]) -> EnvironmentSpec:
    """Add to what Codex is always given the keys that the user's configuration names."""
    try:
        names = read_config(environment_home(environ)).key_variables
    except ConfigFileError:
        names = ()  # a run that needs it fails by it
    return replace(CODEX_ENVIRONMENT, names=(*CODEX_ENVIRONMENT.names, *names), secret=names)


def make_server_spec(run: RunContext, options: CodexOptions) -> ConnectionSpec:
    """Say which app-server a run needs.

    Raises:
        ProcessError: What it needs cannot be started.
    """
    if run.provider_session_id is not None:
        validate_session_id(run.provider_session_id)
    # A thread that nobody listens to is unloaded at once, and not after half an hour.
    argv = (*options.command, "app-server", "-c", "thread_unload_delay_secs=0")
    return ConnectionSpec(
        launcher=run.launcher,
        command=Command(argv=argv, cwd=NOWHERE, env=codex_environment(run, options)),
        any_directory=True,
    )


def loose_rules_file(run: RunContext, options: CodexOptions) -> Path | None:
    """Return a file of rules by which commands would get out of a run's sandbox unasked."""
    policy = POLICIES[run.permission.effective]
    if options.rules or policy.approval != "never" or policy.sandbox == FULL_ACCESS:
        return None
    return loose_rules(codex_home(run, options), Path(run.cwd))


def codex_home(run: RunContext, options: CodexOptions) -> Path:
    """Return where Codex has its configuration and its record of threads."""
    return environment_home(codex_environment(run, options))


def environment_home(environ: Mapping[str, str]) -> Path:
    """Return where Codex has its configuration in an environment."""
    return Path(environ.get("CODEX_HOME") or Path(environ.get("HOME", "/")) / ".codex")


def codex_environment(run: RunContext, options: CodexOptions) -> dict[str, str]:
    """Return the environment of a run's Codex."""
    env = dict(run.env)
    if options.home is not None:
        env["CODEX_HOME"] = os.path.join(run.cwd, options.home)  # noqa: PTH118  # pure
    return env


@contextmanager
def sandbox_bounds(run: RunContext, options: CodexOptions) -> Generator[SandboxBounds, None, None]:
    """Say how far a run's commands may go, and have a TMPDIR for them where they need one."""
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
    """Return what is to be called to begin a run's thread, or to go on with one.

    It is opened with a sandbox that lets nothing be written, and gets its own afterwards: Codex
    notes in the user's configuration that a directory is trusted where a thread may write.

    Raises:
        ConfigUnreadableError: It is not known which servers a project would have used.
    """
    params: dict[str, Json] = {
        "cwd": run.cwd,
        "approvalPolicy": POLICIES[run.permission.effective].approval,
        "approvalsReviewer": REVIEWER,
        "sandbox": READ_ONLY,
        "config": _config(run, options, limits, configured),
        # A thread remembers where it might write on the other way, and would add it to that.
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
    # What Codex has told of projects is right, unless the run itself says which it trusts.
    projects = read_project_configs(Path(run.cwd)) if "projects" in config else ()
    config = merge_overrides(config, hidden_variable_config(options, (configured, *projects)))
    if run.permission.asked is not PermissionMode.PLAN:
        return config
    return ask_for_all_tools(config, configured.mcp_server_names, projects)


def mcp_server_config(options: CodexOptions) -> dict[str, Json]:
    """Return the MCP servers of a run as configuration."""
    return {"mcp_servers": options.mcp_servers} if options.mcp_servers else {}


def hidden_variable_config(options: CodexOptions, known: Sequence[CodexConfig]) -> dict[str, Json]:
    """Say which variables commands do not see: those with keys, and whatever else was hidden."""
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
    said: dict[str, Json] = {DEFAULT_EXCLUDES_KEY: False}
    if keys:
        said[HIDDEN_VARIABLES_KEY] = list(dict.fromkeys((*hidden, *keys)))
    return said


def set_fields(**wishes: Json) -> dict[str, Json]:
    """Return those wishes of a run that it has."""
    return {name: value for name, value in wishes.items() if value is not None}


def dynamic_tool(tool: FunctionTool) -> dict[str, Json]:
    """Return what Codex is told of a function that the model may call."""
    return {"type": "function", **tool_description(tool)}


def turn_params(
    run: RunContext, thread: str, content: list[Json], message_id: str
) -> dict[str, Json]:
    """Return what begins a turn."""
    return {
        "threadId": thread,
        "input": content,
        "clientUserMessageId": message_id,
        **set_fields(effort=run.effort, outputSchema=run.schema),
    }


def prompt_content(prompt: str, images: Sequence[PromptImage]) -> list[Json]:
    """Return what is said to the model: a prompt, and the images that go with it."""
    content = [text_input(prompt)]
    for image in images:
        data = base64.b64encode(image.data).decode()
        content.append({"type": "image", "url": f"data:{image.media_type};base64,{data}"})
    return content


def text_input(text: str) -> Json:
    """Return a text as part of what is said to the model."""
    return {"type": "text", "text": text, "text_elements": []}
