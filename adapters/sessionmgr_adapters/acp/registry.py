"""Registry files of agents, in the form of the registry of the Agent Client Protocol.

A file is a whole registry (`version`, `agents`) or the entry of one agent. It says which agents
there are and how to start them. The sentences of its errors name the file, the agent, the field and
the value. Nothing is downloaded here: a program that is installed is preferred, and `npx` or `uvx`,
which may download a package, starts an agent only if its entry says so.
"""

from __future__ import annotations

import platform
import re
import shutil
import sys
from difflib import get_close_matches
from typing import TYPE_CHECKING, Annotated, Final, TypeVar, cast

import msgspec

from sessionmgr.adapter import AgentsFileInvalid, VariantUnknown
from sessionmgr.model import describe_value

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from pathlib import Path

T = TypeVar("T", bound=msgspec.Struct)

_ID: Final = "^[a-z][a-z0-9-]*$"
_PATH: Final = re.compile(r" - at `\$\.?(?P<path>.*)`$")
_REMEDY: Final = "correct the entry or remove it"
_FORM: Final = 'a registry is {"version": …, "agents": […]}, an agent {"id": …, "version": …, …}'


class BinaryTarget(msgspec.Struct, frozen=True, kw_only=True):
    """Program of an agent on one platform, from an archive."""

    cmd: Annotated[str, msgspec.Meta(min_length=1)]
    """Its path in the archive; here it is looked up by its name on PATH."""
    archive: str = ""
    args: tuple[str, ...] = ()
    env: dict[str, str] = {}


class PackageTarget(msgspec.Struct, frozen=True, kw_only=True):
    """Package of npm or PyPI that holds an agent."""

    package: Annotated[str, msgspec.Meta(min_length=1)]
    """Its name, perhaps with a version."""
    cmd: Annotated[str, msgspec.Meta(min_length=1)] | None = None
    """The program in it, if it is not named as the package."""
    args: tuple[str, ...] = ()
    env: dict[str, str] = {}


class AgentDistribution(msgspec.Struct, frozen=True, kw_only=True):
    """The ways to get an agent."""

    binary: dict[str, BinaryTarget] = {}
    """By platform, such as `linux-x86_64`."""
    npx: PackageTarget | None = None
    uvx: PackageTarget | None = None


class RegistryAgent(msgspec.Struct, frozen=True, kw_only=True):
    """Entry of one agent; fields that say nothing about its start are left out."""

    id: Annotated[str, msgspec.Meta(pattern=_ID)]
    version: Annotated[str, msgspec.Meta(min_length=1)]
    distribution: AgentDistribution
    name: str = ""


class AgentChoice(msgspec.Struct, frozen=True, kw_only=True):
    """The agent that a provider's name means."""

    id: str
    version: str | None = None
    """The version that the name demands."""
    entry: RegistryAgent | None = None
    """Its entry in the registry file; None for an agent that is not in it."""


def read_registry(file: Path) -> dict[str, RegistryAgent]:
    """Return the agents of a registry file, by id.

    Raises:
        AgentsFileInvalid: The file is missing, or is no registry.
    """
    try:
        if file.exists() and not file.is_file():
            raise AgentsFileInvalid(str(file), "is not a file; name a registry.json or agent.json")
        data = file.read_bytes()
    except (OSError, ValueError) as error:
        if isinstance(error, AgentsFileInvalid):
            raise
        why = "no such file" if isinstance(error, FileNotFoundError) else str(error)
        raise AgentsFileInvalid(str(file), f"{why}; name a registry.json or agent.json") from None
    return decode_registry(data, str(file))


def decode_registry(data: bytes, file: str) -> dict[str, RegistryAgent]:
    """Return the agents of a registry, or of the entry of one agent, by id.

    Args:
        data: The content of the file.
        file: The name of the file, for errors.

    Raises:
        AgentsFileInvalid: The content is no registry.
    """
    try:
        content: object = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise AgentsFileInvalid(file, f"invalid JSON: {error}; {_FORM}") from None
    if not isinstance(content, dict) or not {"agents", "id"} & content.keys():
        raise AgentsFileInvalid(file, f"expected a registry or an agent; {_FORM}")
    fields = cast("dict[str, object]", content)
    if "agents" not in fields:
        entries: list[object] = [fields]
    elif isinstance(agents := fields["agents"], list):
        entries = cast("list[object]", agents)
    else:
        raise AgentsFileInvalid(file, f"agents: expected a list, got {describe_value(agents)}")
    found: dict[str, RegistryAgent] = {}
    for place, entry in enumerate(entries):
        agent = _agent(entry, file, place)
        if agent.id in found:
            raise AgentsFileInvalid(file, f"agent {agent.id!r}: id: listed twice; remove one entry")
        found[agent.id] = agent
    return found


def _agent(entry: object, file: str, place: int) -> RegistryAgent:
    fields = _members(entry)
    id, ways = fields.get("id"), fields.get("distribution")
    whose = f"agent {id!r}" if isinstance(id, str) else f"agents[{place}]"
    # One by one, so that an error can name the platform.
    for platform_, target in _members(_members(ways).get("binary")).items():
        _convert(target, BinaryTarget, file, whose, f"distribution.binary.{platform_}")
    agent = _convert(entry, RegistryAgent, file, whose)
    if agent.distribution == AgentDistribution():
        why = "distribution: expected binary, npx or uvx, got "
        raise AgentsFileInvalid(file, f"{whose}: {why}{describe_value(ways)}; {_REMEDY}")
    return agent


def _members(value: object) -> dict[str, object]:
    """Return the members of an object in JSON; none of any other value."""
    return cast("dict[str, object]", value) if isinstance(value, dict) else {}


def _convert(value: object, of: type[T], file: str, whose: str, within: str = "") -> T:
    try:
        return msgspec.convert(value, of)
    except msgspec.ValidationError as error:
        found = _PATH.search(str(error))
        path, wrong = _wrong_part(value, found["path"] if found else "")
        what = _PATH.sub("", str(error)).replace("`", "")
        # Variables may be secrets: of those, the message gives the type only.
        if "missing" not in what and not path.endswith("env"):
            what = f"{what.partition(', got ')[0]}, got {describe_value(wrong)}"
        where = ": ".join(filter(None, (whose, ".".join(filter(None, (within, path))))))
        what = f"{what[:1].lower()}{what[1:]}"
        raise AgentsFileInvalid(file, f"{where}: {what}; {_REMEDY}") from None


def _wrong_part(value: object, path: str) -> tuple[str, object]:
    """Return the wrong part of a value, and its path: that of msgspec omits the names in a dict."""
    for name, index in re.findall(r"(\w+)|\[(\d+)\]", path):
        if index:
            value = cast("list[object]", value)[int(index)]
        else:
            value = cast("dict[str, object]", value)[name]
    if path.endswith("[...]"):
        members = cast("dict[str, object]", value)
        name = next(name for name, each in members.items() if not isinstance(each, str))
        return f"{path.removesuffix('[...]')}.{name}", members[name]
    return path, value


# --- the agent that a name means ------------------------------------------------------------------


def agent_ids(agents: Path | None, bundled: Collection[str]) -> list[str]:
    """Return the ids of all agents: the bundled ones, and those of the registry file.

    Raises:
        AgentsFileInvalid: The file is missing, or is no registry.
    """
    return sorted({*bundled, *(read_registry(agents) if agents else ())})


def find_agent(
    provider: str, variant: str, agents: Path | None, bundled: Collection[str]
) -> AgentChoice:
    """Return the agent that `ID` or `ID@VERSION` means.

    Args:
        provider: The name of the provider, for errors.
        variant: What follows the colon in the full name of the provider.
        agents: The registry file, whose entries precede the bundled agents.
        bundled: The ids of the bundled agents.

    Raises:
        VariantUnknown: There is no such agent, or the registry has another version of it.
        AgentsFileInvalid: The file is missing, or is no registry.
    """
    id, _, version = variant.partition("@")
    entries = read_registry(agents) if agents else {}
    entry = entries.get(id)
    if entry is not None:
        if version and version != entry.version:
            why = f"{agents} has version {entry.version} of {id}, not {version}"
            remedy = (
                f"use {provider}:{id}@{entry.version}, or a file with {version} (--agents FILE)"
            )
            raise VariantUnknown(provider, variant, f"{why}; {remedy}", known=sorted(entries))
        return AgentChoice(id=id, version=version or None, entry=entry)
    if id not in bundled:
        known = sorted({*bundled, *entries})
        nearest = get_close_matches(id, known, n=1)
        hint = f"did you mean {f'{provider}:{nearest[0]}'!r}? " if nearest else ""
        source = f"add it to {agents}" if agents else "name a registry file with it (--agents FILE)"
        raise VariantUnknown(
            provider, variant, f"{hint}known agents: {', '.join(known)}; or {source}", known=known
        )
    if version:
        why = f"only a registry file fixes the version of an agent, and there is none with {id}"
        remedy = f"name one (--agents FILE), or use {provider}:{id}"
        raise VariantUnknown(provider, variant, f"{why}; {remedy}", known=sorted(bundled))
    return AgentChoice(id=id)


# --- how to start an agent ------------------------------------------------------------------------


class StartCommand(msgspec.Struct, frozen=True, kw_only=True):
    """Command that starts an agent, as its registry entry describes it."""

    argv: tuple[str, ...]
    env: dict[str, str] = {}
    """The variables of the entry; those of a run precede them."""
    runner: str | None = None
    """`npx` or `uvx`, which stays the parent of the agent; None for an installed program."""
    missing: str = ""
    """Why the command cannot start, with the remedy; empty if its program is installed."""


def program_names(entry: RegistryAgent) -> list[str]:
    """Return the names that an agent's program may have, on any platform.

    Args:
        entry: The entry of the agent.
    """
    ways = entry.distribution
    targets = (*ways.binary.values(), ways.npx, ways.uvx)
    return [name for each in targets if each is not None for name in _program_names(entry.id, each)]


def start_command(entry: RegistryAgent, env: Mapping[str, str]) -> StartCommand:
    """Return the command that starts an agent: its installed program, else `npx` or `uvx`.

    Args:
        entry: The entry of the agent.
        env: The environment of the agent, whose PATH is searched.
    """
    path, ways = env.get("PATH", ""), entry.distribution
    targets = [*ways.binary.values()] if (here := ways.binary.get(_platform())) is None else [here]
    wanted: list[str] = []
    for target in (*targets[:1], ways.npx, ways.uvx):
        if target is None:
            continue
        for program in _program_names(entry.id, target):
            wanted.append(program)
            if shutil.which(program, path=path) is not None:
                return StartCommand(argv=(program, *target.args), env=target.env)
    for runner, package in (("npx", ways.npx), ("uvx", ways.uvx)):
        if package is not None and shutil.which(runner, path=path) is not None:
            argv = (*_runner_words(runner, package), *package.args)
            return StartCommand(argv=argv, env=package.env, runner=runner)
    return _missing_command(entry, list(dict.fromkeys(wanted)))


def _missing_command(entry: RegistryAgent, wanted: list[str]) -> StartCommand:
    ways = entry.distribution
    remedies = [
        f"{tool} {package.package}"
        for tool, package in (("npm install -g", ways.npx), ("uv tool install", ways.uvx))
        if package is not None
    ]
    if here := ways.binary.get(_platform()):
        remedies.append(f"install it from {here.archive}")
    elif not remedies:
        remedies = [f"install it; its entry has no program for {_platform()}"]
    why = f"program {' or '.join(map(repr, wanted))} not found on PATH; {', or '.join(remedies)}"
    return StartCommand(argv=(wanted[0],), missing=why)


def _program_names(id: str, target: BinaryTarget | PackageTarget) -> list[str]:
    """Return the names that the program of an agent may have.

    An archive's program is never run at its relative path: that would be a file of the directory in
    which the agent works.
    """
    if isinstance(target, BinaryTarget) or target.cmd is not None:
        program = target.cmd or id
        return [program if program.startswith("/") else program.rpartition("/")[2] or id]
    name = _PACKAGE.match(target.package)
    names = [name["name"], id] if name and name["name"] not in _GENERAL_NAMES else [id]
    return list(dict.fromkeys(names))


def _runner_words(runner: str, package: PackageTarget) -> tuple[str, ...]:
    """Return the words that run a package; `-y`, as there is no terminal for npx to ask on."""
    first = ("npx", "-y") if runner == "npx" else ("uvx",)
    if package.cmd is None:
        return (*first, package.package)
    return (*first, "--package" if runner == "npx" else "--from", package.package, package.cmd)


def _platform() -> str:
    """Return the platform's name in a registry, such as `linux-x86_64`."""
    machine = platform.machine().lower()
    return f"{sys.platform}-{_MACHINES.get(machine, machine)}"


_MACHINES: Final = {"arm64": "aarch64", "amd64": "x86_64"}
_PACKAGE: Final = re.compile(r"(@[^/]+/)?(?P<name>[\w.-]+)")
_GENERAL_NAMES: Final = frozenset({"acp", "agent", "cli", "code", "server"})
"""Names of packages within a scope under which PATH may have any other program."""
