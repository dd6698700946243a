"""The command and environment of an agent's process, and what a run asks of it."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec.structs import replace

from sessionmgr.adapter import PermissionMap
from sessionmgr.adapter.kit import read_images
from sessionmgr.model import Fidelity, Json, PermissionMode, UnreadableJson, encode_json, parse_json
from sessionmgr.process import Command
from sessionmgr_adapters.acp.answers import image_block, text_block
from sessionmgr_adapters.acp.mcp import mcp_servers_of
from sessionmgr_adapters.acp.opening import AcpRunRequest
from sessionmgr_adapters.acp.quirks import FREE, AgentMode
from sessionmgr_adapters.acp.registry import program_names, start_command
from sessionmgr_adapters.acp.sdk import AcpSpec
from sessionmgr_adapters.acp.user_rules import allowing_file
from sessionmgr_adapters.acp.v1 import ClientFeatures

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sessionmgr.adapter import RunContext, RunSpec
    from sessionmgr.process import EnvironmentSpec
    from sessionmgr_adapters.acp.options import AcpOptions
    from sessionmgr_adapters.acp.quirks import AgentQuirks
    from sessionmgr_adapters.acp.registry import AgentChoice

NO_AGENT: Final = (
    "options: no agent is named; use a provider such as acp:gemini, or set options.command"
)


def agent_modes(options: AcpOptions, quirks: AgentQuirks) -> Mapping[PermissionMode, AgentMode]:
    """Return the permission modes of a run with these options.

    A mode that the caller names replaces ours, except for `plan`; see `start_fault`.
    """
    if options.mode is None:
        return quirks.modes
    modes: dict[PermissionMode, AgentMode] = {
        mode: AgentMode(
            options.mode,
            Fidelity.EMULATED if mode in FREE else Fidelity.UNVERIFIED,
            confined=None,
        )
        for mode in PermissionMode
        if mode is not PermissionMode.PLAN
    }
    return {**modes, **_same_modes(options, quirks)}


def _same_modes(options: AcpOptions, quirks: AgentQuirks) -> Mapping[PermissionMode, AgentMode]:
    """Return our modes that are mapped to the mode that the caller names."""
    return {mode: each for mode, each in quirks.modes.items() if each.id == options.mode}


def permission_map(options: AcpOptions, quirks: AgentQuirks) -> PermissionMap:
    """Return the map of these modes."""
    modes = agent_modes(options, quirks)
    return PermissionMap({mode: each.mapped for mode, each in modes.items()})


def declared_variables(
    options: AcpOptions, quirks: AgentQuirks, agent: AgentChoice | None
) -> EnvironmentSpec:
    """Return the variables that an agent receives.

    Those of an unknown agent begin with its id, or the name of its program or its first word:
    `QWEN_CODE_*` and `QWEN_*` for `qwen-code`.
    """
    if quirks.command:
        return quirks.environment
    named = [] if agent is None else [agent.id]
    if agent is not None and agent.entry is not None:
        named += program_names(agent.entry)
    named += [] if options.command is None else [Path(options.command[0]).stem]
    whole = [re.sub(r"\W", "_", each).upper() for each in named]
    prefixes = dict.fromkeys((*whole, *(each.partition("_")[0] for each in whole)))
    own = (f"{each}_*" for each in prefixes if each)
    return replace(quirks.environment, names=(*quirks.environment.names, *own))


class AcpProgram(NamedTuple):
    """The program of an agent, or why there is none."""

    argv: tuple[str, ...] = ()
    env: Mapping[str, str] = {}
    """The variables of its registry entry; those of the run precede them."""
    missing: str = ""


def agent_program(
    options: AcpOptions, quirks: AgentQuirks, agent: AgentChoice | None, env: Mapping[str, str]
) -> AcpProgram:
    """Return the program: that of the options, the usual one, or that of the registry's entry."""
    entry = None if agent is None else agent.entry
    argv = quirks.command if options.command is None else options.command
    is_usual = bool(argv) and shutil.which(argv[0], path=env.get("PATH", "")) is not None
    if options.command is not None or entry is None or is_usual:
        return AcpProgram(argv, missing="" if argv else NO_AGENT)
    found = start_command(entry, env)
    return AcpProgram(found.argv, found.env, found.missing)


def start_fault(run: RunContext | RunSpec, options: AcpOptions, quirks: AgentQuirks) -> str | None:
    """Return why a run cannot start, as `field: reason`; None if it can."""
    if options.protocol not in ("auto", *quirks.protocols):
        known = ", ".join(map(str, sorted(quirks.protocols)))
        return f"options.protocol: version {options.protocol} does not work here; known: {known}"
    if options.home is not None and quirks.home_variable is None:
        return "options.home: the directory of this agent cannot be set; use the run's env instead"
    asked = run.permission.asked
    is_own = options.mode is not None and bool(quirks.command)
    if is_own and asked not in {*FREE, *_same_modes(options, quirks)}:
        return (
            f"options.mode: {options.mode!r} may allow more than permission_mode {asked.value!r}; "
            f"leave it out, or use permission_mode {PermissionMode.FULL_AUTO.value!r}"
        )
    if options.fork and run.provider_session_id is None:
        return "options.fork: the session has nothing to copy yet; leave it out of the first run"
    try:
        for server in mcp_servers_of(options.mcp_servers):
            if server.url is None and not quirks.starts_servers:
                field = f"options.mcp_servers.{server.name}"
                return f"{field}: this agent takes only servers with a url, not with a command"
        _configuration(run, options, quirks)
    except ValueError as error:
        return str(error)
    if run.permission.asked is PermissionMode.PLAN:
        env = {**run.env, **_home(run, options, quirks)}
        file = allowing_file(quirks.rule_files, env, run.cwd)
        if file is not None:
            return f"permission_mode: not plan while {file} allows tools; remove what allows them"
    return None


def make_spec(
    run: RunContext, options: AcpOptions, quirks: AgentQuirks, program: AcpProgram
) -> AcpSpec:
    """Return the process that a run needs.

    Raises:
        ProcessError: The command or its environment is not usable.
    """
    argv = program.argv
    if quirks.model_flag is not None and run.model is not None:
        argv = (*argv, quirks.model_flag, quirks.models.get(run.model, run.model))
    env = {**quirks.defaults, **program.env, **run.env, **_configuration(run, options, quirks)}
    env |= _home(run, options, quirks)
    if quirks.default_settings is not None:
        env |= quirks.default_settings.variables(env)
    features = ClientFeatures(
        read_file=quirks.reads_files,
        write_file=quirks.writes_files,
        terminal=quirks.terminals,
        elicitation_form=run.attended,
        elicitation_url=run.attended,
    )
    return AcpSpec(
        launcher=run.launcher,
        command=Command(argv=argv, cwd=run.cwd, env=env),
        account="attended" if run.attended else "",
        features=features,
        version=2 if options.protocol != 1 and 2 in quirks.protocols else 1,
    )


def _home(run: RunContext | RunSpec, options: AcpOptions, quirks: AgentQuirks) -> dict[str, str]:
    """Return the variable for the directory of the agent's configuration, if one is set."""
    if options.home is None or quirks.home_variable is None:
        return {}
    return {quirks.home_variable: os.path.join(run.cwd, options.home)}  # noqa: PTH118  # pure


async def make_request(
    run: RunContext, options: AcpOptions, quirks: AgentQuirks, agent: AgentChoice | None
) -> AcpRunRequest:
    """Return what a run asks of its agent.

    Raises:
        ImageRefusedError: An image cannot be sent.
    """
    images = await read_images(run.images, run.cwd)
    mode = agent_modes(options, quirks)[run.permission.asked]
    return AcpRunRequest(
        options=options,
        quirks=quirks,
        mode=mode,
        meta=_merged(options.meta, mode.meta),
        content=(text_block(run.prompt), *map(image_block, images)),
        env={**run.env, **_home(run, options, quirks)},
        mcp_servers=mcp_servers_of(options.mcp_servers),
        version=None if agent is None else agent.version,
        narrows=agent is not None,
        has_images=bool(images),
    )


def _configuration(
    run: RunContext | RunSpec, options: AcpOptions, quirks: AgentQuirks
) -> dict[str, str]:
    """Return the variable with the agent's configuration: the user's, and what the mode needs.

    Raises:
        ValueError: The variable holds no JSON object.
    """
    name, mode = quirks.config_variable, agent_modes(options, quirks)[run.permission.asked]
    if name is None or not mode.config:
        return {}
    given = run.env.get(name) or "{}"
    found = parse_json(given.encode(errors="replace"))
    if isinstance(found, UnreadableJson) or not isinstance(found, dict):
        raise ValueError(f"env: {name} must hold a JSON object, not {given[:40]!r}")
    return {name: encode_json(_merged(found, mode.config)).decode()}


def _merged(given: Mapping[str, Json], added: Mapping[str, Json]) -> dict[str, Json]:
    """Return a configuration with another one put over it; what is denied stays denied."""
    merged = dict(given)
    for key, value in added.items():
        old = merged.get(key)
        if isinstance(value, dict):
            merged[key] = _merged(old if isinstance(old, dict) else {}, value)
        elif old != "deny":
            merged[key] = value
    return merged
