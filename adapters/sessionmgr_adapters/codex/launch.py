"""How an app-server is started for a run, and what it is told of the run's thread."""

from __future__ import annotations

import base64
import os
import tomllib
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec.structs import replace

from sessionmgr.model import Json, PermissionMode
from sessionmgr.process import Command, Declared, PrivateFiles, checked_resume_id
from sessionmgr.provider.connection import ConnectionSpec
from sessionmgr_adapters.codex.functions import described
from sessionmgr_adapters.codex.hello import Configured, keys_in
from sessionmgr_adapters.codex.one_shot.launch import OneShotSpec, make_spec as one_shot
from sessionmgr_adapters.codex.policy import FULL, POLICIES, READ_ONLY, REVIEWER, Bounds
from sessionmgr_adapters.codex.rules import loose_rules
from sessionmgr_adapters.codex.servers import all_asked

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping, Sequence

    from sessionmgr.provider import RunContext
    from sessionmgr.provider.images import ReadImage
    from sessionmgr_adapters.codex.frames import Hello
    from sessionmgr_adapters.codex.options import CodexOptions

ENVIRONMENT: Final = Declared(names=("CODEX_*", "OPENAI_*", "RUST_LOG"))
OPENING: Final = frozenset({"thread/start", "thread/resume", "thread/fork"})
"""What a run's thread is opened by."""
EXCLUDES: Final = "shell_environment_policy.ignore_default_excludes"
"""Whether commands see what looks like a secret."""
HIDDEN: Final = "shell_environment_policy.exclude"
"""Which variables commands do not see."""
NOWHERE: Final = "/"
"""Where an app-server runs: it serves threads of all directories, and keeps none of them busy."""


def declared(environ: Mapping[str, str]) -> Declared:
    """Add to what Codex is always given the keys to models that its configuration names."""
    names = _configured(environ).keys
    return replace(ENVIRONMENT, names=(*ENVIRONMENT.names, *names), secret=names)


def _configured(environ: Mapping[str, str]) -> Configured:
    try:
        text = (_home(environ) / "config.toml").read_text(encoding="utf-8")
        return msgspec.convert(tomllib.loads(text), Configured)
    except (OSError, ValueError):
        return Configured()  # there is none, or Codex itself says what is wrong with it


def make_spec(run: RunContext, options: CodexOptions) -> ConnectionSpec:
    """Say which app-server a run needs.

    Raises:
        ProcessError: What it needs cannot be started.
    """
    if run.provider_session_id is not None:
        checked_resume_id(run.provider_session_id)
    # A thread that nobody listens to is unloaded at once, and not after half an hour.
    argv = (*options.command, "app-server", "-c", "thread_unload_delay_secs=0")
    return ConnectionSpec(
        launcher=run.launcher,
        command=Command(argv=argv, cwd=NOWHERE, env=_env(run, options)),
        any_directory=True,
    )


def one_shot_spec(run: RunContext, options: CodexOptions, limits: Bounds) -> OneShotSpec:
    """Say what a run needs that has a `codex exec` of its own.

    Raises:
        ProcessError: What it needs cannot be started.
    """
    settings: dict[str, Json] = {
        "model_provider": options.model_provider,
        **{f"mcp_servers.{name}": server for name, server in options.mcp_servers.items()},
        **options.config,
    }
    configured = _configured(_env(run, options))
    if run.permission.asked is PermissionMode.PLAN:
        settings = all_asked(settings, configured.servers)
    bounds: dict[str, Json] = {
        "sandbox_workspace_write.network_access": limits.network,
        "sandbox_workspace_write.exclude_slash_tmp": not limits.temporary,
        "sandbox_workspace_write.exclude_tmpdir_env_var": not limits.temporary,
        "shell_environment_policy.set.TMPDIR": limits.scratch,
    }
    bounds |= _secrecy(options, configured)
    spec = one_shot(
        run,
        program=options.command,
        sandbox=POLICIES[run.permission.effective].sandbox,
        settings=settings,
        bounds=bounds,
        instructions=options.base_instructions,
        is_fork=options.fork,
        is_ruled=loose(run, options) is None,
    )
    roots = ("sandbox_workspace_write.writable_roots", list(limits.directories))
    return replace(spec, settings=(*spec.settings, roots), env=_env(run, options))


def loose(run: RunContext, options: CodexOptions) -> Path | None:
    """Return a file of rules by which commands would get out of a run's sandbox unasked."""
    policy = POLICIES[run.permission.effective]
    if options.rules or policy.approval != "never" or policy.sandbox == FULL:
        return None
    return loose_rules(_home(_env(run, options)), Path(run.cwd))


def _home(environ: Mapping[str, str]) -> Path:
    return Path(environ.get("CODEX_HOME") or Path(environ.get("HOME", "/")) / ".codex")


def _env(run: RunContext, options: CodexOptions) -> dict[str, str]:
    env = dict(run.env)
    if options.home is not None:
        env["CODEX_HOME"] = os.path.join(run.cwd, options.home)  # noqa: PTH118  # pure
    return env


@contextmanager
def bounds(run: RunContext, options: CodexOptions) -> Generator[Bounds, None, None]:
    """Say how far a run's commands may go, and have a TMPDIR for them where they need one."""
    policy, temporary = POLICIES[run.permission.effective], options.temporary
    if temporary is None:
        temporary = policy.shares_temporary
    found = Bounds(directories=run.directories, network=options.network, temporary=temporary)
    if temporary or not policy.is_confined:
        yield found
        return
    with PrivateFiles(name=f"sessionmgr-{run.session_id}") as files:
        place = str(files.directory)
        yield replace(found, directories=(*run.directories, place), scratch=place)


def opening(
    run: RunContext, options: CodexOptions, limits: Bounds, hello: Hello
) -> tuple[str, dict[str, Json]]:
    """Return what is to be called to begin a run's thread, or to go on with one.

    It is opened with a sandbox that lets nothing be written, and gets its own afterwards: Codex
    notes in the user's configuration that a directory is trusted where a thread may write.
    """
    params: dict[str, Json] = {
        "cwd": run.cwd,
        "approvalPolicy": POLICIES[run.permission.effective].approval,
        "approvalsReviewer": REVIEWER,
        "sandbox": READ_ONLY,
        "config": _config(run, options, limits, hello),
        # A thread remembers where it might write on the other way, and would add it to that.
        "runtimeWorkspaceRoots": [run.cwd],
    }
    said = {
        "model": run.model,
        "modelProvider": options.model_provider,
        "developerInstructions": run.system_prompt,
        "baseInstructions": options.base_instructions,
    }
    params |= {name: value for name, value in said.items() if value is not None}
    if run.provider_session_id is None:
        if options.tools:
            params["dynamicTools"] = [described(each) for each in options.tools]
        return "thread/start", params
    params |= {"threadId": run.provider_session_id, "excludeTurns": True}
    return "thread/fork" if options.fork else "thread/resume", params


def _config(
    run: RunContext, options: CodexOptions, limits: Bounds, hello: Hello
) -> dict[str, Json]:
    config: dict[str, Json] = {"features.instant_interrupt": options.follow_up == "now"}
    config |= _secrecy(options, hello)
    if limits.scratch is not None:
        config["shell_environment_policy.set.TMPDIR"] = limits.scratch
    for name, server in options.mcp_servers.items():
        config[f"mcp_servers.{name}"] = server
    config |= options.config
    return (
        all_asked(config, hello.servers) if run.permission.asked is PermissionMode.PLAN else config
    )


def _secrecy(options: CodexOptions, known: Hello | Configured) -> dict[str, Json]:
    """Say which variables commands do not see: those with keys, and whatever else was hidden."""
    if options.secrets:
        return {}
    secrecy: dict[str, Json] = {EXCLUDES: False}
    keys = (*known.keys, *keys_in(options.config))
    if keys:
        secrecy[HIDDEN] = list(dict.fromkeys((*known.hidden, *keys)))
    return secrecy


def turn_params(
    run: RunContext, thread: str, content: list[Json], message_id: str
) -> dict[str, Json]:
    """Return what begins a turn."""
    params: dict[str, Json] = {
        "threadId": thread,
        "input": content,
        "clientUserMessageId": message_id,
    }
    if run.effort is not None:
        params["effort"] = run.effort
    if run.schema is not None:
        params["outputSchema"] = run.schema
    return params


def content_of(prompt: str, images: Sequence[ReadImage]) -> list[Json]:
    """Return what is said to the model: a prompt, and the images that go with it."""
    content = [text_input(prompt)]
    for image in images:
        data = base64.b64encode(image.data).decode()
        content.append({"type": "image", "url": f"data:{image.media_type};base64,{data}"})
    return content


def text_input(text: str) -> Json:
    """Return a text as part of what is said to the model."""
    return {"type": "text", "text": text, "text_elements": []}
