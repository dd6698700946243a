"""Codex's configuration: as an app-server reports it, and as its files contain it.

An app-server reports the effective configuration of a directory. `codex exec` reports nothing, so
the adapter reads the files. Codex reads a project's file only if the user's configuration or an
override trusts the project. The adapter does not work out that trust, and counts every file.
"""

from __future__ import annotations

import os
import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from sessionmgr.adapter.kit import (
    FilesState,
    directory_and_parents,
    directory_states,
    file_state,
    files_state,
)
from sessionmgr.model import Json
from sessionmgr_adapters.codex.bounded_dict import BoundedDict
from sessionmgr_adapters.codex.decode import decode_result

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence


def merge_overrides(*overrides: Mapping[str, Json]) -> dict[str, Json]:
    """Merge overrides into one table; later ones win, and names may be dotted."""
    table: dict[str, Json] = {}
    for each in overrides:
        for name, value in each.items():
            _merge_into(table, _nest(name.split("."), value))
    return table


def value_at_path(table: Json, *path: str) -> Json:
    """Return the value at a path, or None."""
    for name in path:
        table = table.get(name) if isinstance(table, dict) else None
    return table


def _nest(path: Sequence[str], value: Json) -> Json:
    return value if not path else {path[0]: _nest(path[1:], value)}


def _merge_into(table: dict[str, Json], more: Json) -> None:
    """Merge one table into another, with all tables in it."""
    for name, value in more.items() if isinstance(more, dict) else ():
        if isinstance(value, dict):
            inner = table.get(name)
            if not isinstance(inner, dict):
                inner = table[name] = {}
            _merge_into(inner, value)
        else:
            table[name] = value


SYSTEM_CONFIG_DIR: Final = Path("/etc/codex")
CONFIG_FILE: Final = "config.toml"
PROJECT: Final = ".codex"
# The names of variables that contain keys: for models, and for MCP servers.
_KEY: Final = re.compile(
    r"(model_providers|mcp_servers)\..+\."
    r"(env_key|bearer_token_env_var|env_http_headers\..+)\.",
    re.DOTALL,
)


class ConfigFileError(Exception):
    """A configuration file cannot be parsed; the message names the file and the reason."""


class CodexConfig(msgspec.Struct, frozen=True):
    """The parts of a configuration that the adapter needs, in any form Codex accepts."""

    mcp_servers: Json = None
    model_providers: Json = None
    shell_environment_policy: Json = None
    project_root_markers: Json = None

    @property
    def key_variables(self) -> tuple[str, ...]:
        """The variables that contain keys."""
        tables = {"model_providers": self.model_providers, "mcp_servers": self.mcp_servers}
        return config_key_variables(tables)

    @property
    def hidden_variables(self) -> tuple[str, ...] | None:
        """The variables that commands do not see; None if the configuration does not say."""
        return config_hidden_variables({"shell_environment_policy": self.shell_environment_policy})

    @property
    def mcp_server_names(self) -> dict[str, tuple[str, ...]]:
        """The MCP servers, each with its tools that have a configuration of their own."""
        found = self.mcp_servers.items() if isinstance(self.mcp_servers, dict) else ()
        return {name: tuple(server_tools(server)) for name, server in found}


class _ConfigRead(msgspec.Struct):
    config: CodexConfig


def decode_config_reply(answer: bytes) -> CodexConfig | None:
    """Return the configuration in an app-server's answer; None if its form is unknown."""
    read = decode_result(answer, _ConfigRead)
    return None if read is None else read.config


def read_config(directory: Path) -> CodexConfig:
    """Return the configuration in a directory of Codex's: the user's home, SYSTEM, a project's.

    Raises:
        ConfigFileError: The file cannot be parsed.
    """
    file = directory / CONFIG_FILE
    try:
        found = tomllib.loads(file.read_bytes().decode())
        return msgspec.convert(found, CodexConfig)
    except OSError:
        return CodexConfig()  # no such file, or Codex cannot read it either
    except (ValueError, RecursionError) as error:
        raise ConfigFileError(f"cannot parse {file}: {error}") from None


def read_project_configs(cwd: Path) -> tuple[CodexConfig, ...]:
    """Return the configurations of a directory and of its parents, the nearest first.

    Raises:
        ConfigFileError: One of the files cannot be parsed.
    """
    return tuple(read_config(each / PROJECT) for each in (cwd, *cwd.parents))


def config_key_variables(overrides: Mapping[str, Json]) -> tuple[str, ...]:
    """Return the variables with keys that a configuration names, dotted or not."""
    found = overrides.items()
    return tuple(key for name, value in found for key in _keys(f"{name}.", value))


def config_hidden_variables(config: Json) -> tuple[str, ...] | None:
    """Return the variables that a configuration hides from commands; None if it does not say."""
    hidden = value_at_path(config, "shell_environment_policy", "exclude")
    return tuple(map(str, hidden)) if isinstance(hidden, list) else None


def _keys(name: str, value: Json) -> Iterator[str]:
    if isinstance(value, dict):
        for inner, each in value.items():
            yield from _keys(f"{name}{inner}.", each)
    elif isinstance(value, str) and _KEY.fullmatch(name):
        yield value


def server_tools(server: Json) -> Iterable[str]:
    """Return the tools of a server that have a configuration of their own."""
    tools = server.get("tools") if isinstance(server, dict) else None
    return tools if isinstance(tools, dict) else ()


MCP_TABLE: Final = "mcp_servers"
ASK_MODE: Final = "prompt"
TRANSPORTS: Final = ("command", "url")
"""Keys that make a table a server; Codex rejects a server without one, even a disabled one."""


def ask_for_all_tools(
    config: Mapping[str, Json],
    known: Mapping[str, Sequence[str]],
    projects: Iterable[CodexConfig] = (),
) -> dict[str, Json]:
    """Return a configuration in which every tool call needs an approval.

    Args:
        config: The configuration of the run.
        known: The servers configured elsewhere, with their tools that have a configuration.
        projects: The configurations of the projects, the nearest first. It is unknown whether
            Codex reads them, so servers that only they contain are disabled.
    """
    whole = merge_overrides(config)
    elsewhere: dict[str, Json] = {name: _with_tools({}, tools) for name, tools in known.items()}
    servers = _merge(elsewhere, whole.pop(MCP_TABLE, None))
    doubtful = _merge(*(each.mcp_servers for each in reversed([*projects])))
    for name, server in doubtful.items():
        if name in servers:
            servers[name] = _with_tools(servers[name], server_tools(server))
    for server in servers.values():
        _with_approval(server)
    for name, server in doubtful.items():
        if name not in servers and isinstance(server, dict):
            by = next((each for each in TRANSPORTS if each in server), None)
            if by is not None:  # otherwise Codex ignores the table
                servers[name] = {by: server[by], "enabled": False}
    return {**whole, MCP_TABLE: servers} if servers else whole


def _with_tools(server: Json, tools: Iterable[str]) -> Json:
    named: Json = {tool: {} for tool in tools}
    return (
        merge_overrides({"tools": named}, server) if named and isinstance(server, dict) else server
    )


def _merge(*tables: Json) -> dict[str, Json]:
    found = merge_overrides(
        {MCP_TABLE: {}}, *({MCP_TABLE: each} for each in tables if isinstance(each, dict))
    )
    servers = found[MCP_TABLE]
    assert isinstance(servers, dict)
    return servers


def _with_approval(server: Json) -> None:
    if not isinstance(server, dict):
        return
    server["default_tools_approval_mode"] = ASK_MODE
    tools = server.get("tools")
    for tool in tools.values() if isinstance(tools, dict) else ():
        if isinstance(tool, dict):
            tool["approval_mode"] = ASK_MODE


# --- what an app-server has reported --------------------------------------------------------------

DIRECTORIES: Final = 64
"""Maximum number of directories whose answer is remembered."""
MARKERS: Final = (".git",)
"""Names that mark the root of a project, unless the configuration sets others."""


class ConfigCache:
    """The answers of one app-server to `config/read`, each valid until a file changes.

    A call costs a tenth of a short turn, and the user may change the configuration between two
    turns. Its sources are the files of the machine, of the user, and of the directory and its
    parents. The markers of a project's root count too, because Codex looks for files up to there.
    """

    def __init__(self) -> None:
        self._known: Final = BoundedDict[str, tuple[FilesState, CodexConfig]](DIRECTORIES)
        self._markers: tuple[str, ...] = MARKERS

    def state(self, home: Path, cwd: str) -> FilesState:
        """Return the state of the files; take it before you send `config/read`."""
        return config_state(str(home), cwd, self._markers)

    def get(self, cwd: str, files: FilesState) -> CodexConfig | None:
        """Return the remembered answer, unless a file has changed since."""
        before, configured = self._known.get(cwd, (None, None))
        return configured if before == files else None

    def store(self, cwd: str, files: FilesState, configured: CodexConfig) -> None:
        """Remember an answer to a call that was sent when the files were in this state."""
        self._known.pop(cwd, None)
        named = configured.project_root_markers
        markers = tuple(map(str, named)) if isinstance(named, list) else MARKERS
        if markers != self._markers:
            self._markers = markers  # `files` was the state for other markers
        elif not files.is_recent:
            self._known[cwd] = (files, configured)


def config_state(home: str, cwd: str, markers: Sequence[str] = MARKERS) -> FilesState:
    """Return the state of all files that configure Codex in a directory."""
    files = [
        *directory_states(home, _is_config),
        *directory_states(str(SYSTEM_CONFIG_DIR), _is_config),
    ]
    for each in dict.fromkeys(
        (*directory_and_parents(cwd), *directory_and_parents(os.path.realpath(cwd)))
    ):
        files += directory_states(f"{each}/{PROJECT}", _is_config)
        for name in markers:
            files += file_state(f"{each}/{name}")
    return files_state(files)


def _is_config(name: str) -> bool:
    """Whether a file is a configuration, or Codex's cache of its cloud configuration."""
    return name.endswith(".toml") or name.startswith("cloud-")
