"""What agents over ACP do in each permission mode, as the tests with the real agents found it.

`pytest tests/real/acp/test_permissions.py --record` writes the file, and `python -m tests.pages
--write` prints the table of the adapter's page from it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final, Literal, TypeAlias

import msgspec

from sessionmgr.model import PermissionMode

FILE: Final = Path(__file__).parent / "golden" / "acp" / "permissions.json"
EFFECTS: Final = (
    *("read inside", "read outside"),
    *("edit inside", "write inside", "write .vscode", "write outside", "write by a link"),
    *("command inside", "command outside", "command by a link", "connect by a command"),
    "MCP tool",
)
"""What the model tries: files by the agent's tools, commands by its shell, a server's tool."""
READS: Final = frozenset({"read inside", "read outside"})
EDITS: Final = frozenset({"edit inside", "write inside"})

Outcome: TypeAlias = Literal["done", "granted", "asked", "denied", "refused"]
"""`done` without a question; `granted` or `denied` by the mode; `asked` of the caller and done if
allowed; `refused` by the agent itself, or by its client although it was allowed.
"""


class ProbedMode(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What an agent does in one of our modes."""

    mode: str
    """The agent's own mode, as the run reported it."""
    fidelity: str
    confined: bool | None = None
    effects: dict[str, Outcome]


class ProbedAgent(msgspec.Struct, frozen=True, kw_only=True):
    """What one version of an agent does in each mode that it has."""

    version: str
    modes: dict[PermissionMode, ProbedMode]


def read_file() -> dict[str, ProbedAgent]:
    """Return the contents of the file, by agent."""
    return msgspec.json.decode(FILE.read_bytes(), type=dict[str, ProbedAgent])


def write_agent(name: str, agent: ProbedAgent) -> None:
    """Replace an agent in the file."""
    agents = read_file() if FILE.exists() else {}
    agents[name] = agent
    data = msgspec.json.encode({each: agents[each] for each in sorted(agents)})
    FILE.write_bytes(msgspec.json.format(data, indent=1) + b"\n")


def table() -> str:
    """Return the table of the page: a row for each mode of each agent."""
    head = ("agent", "mode", "agent's mode", "fidelity", *_HEADS.values())
    rows = [head, ["---"] * len(head)]
    for name, agent in read_file().items():
        for modes in _equal_modes(agent):
            row = [f"{name} {agent.version}", ", ".join(modes)]
            probed = agent.modes.get(modes[0])
            if probed is None:
                row += ["", "refused", *[""] * len(_HEADS)]
            else:
                confined = ", confined" if probed.confined else ""
                row += [probed.mode.rpartition("#")[2], probed.fidelity + confined, *_cells(probed)]
            rows.append(row)
    return "\n".join(
        "|".join(["", *(f" {each} " if each else " " for each in row), ""]) for row in rows
    )


_HEADS: Final[dict[Outcome, str]] = {
    "done": "done unasked",
    "granted": "asked, granted by the mode",
    "asked": "asked, by `approve`",
    "denied": "asked, denied by the mode",
    "refused": "not done",
}


def _equal_modes(agent: ProbedAgent) -> list[list[PermissionMode]]:
    """Return the modes, those together that are one to the agent."""
    groups: list[list[PermissionMode]] = []
    for mode in PermissionMode:
        probed = agent.modes.get(mode)
        if probed is not None and groups and agent.modes.get(groups[-1][0]) == probed:
            groups[-1].append(mode)
        else:
            groups.append([mode])
    return groups


def _cells(probed: ProbedMode) -> list[str]:
    """Return the effects by outcome; those of the most frequent outcome are the rest."""
    found = {
        outcome: [each for each in EFFECTS if probed.effects.get(each) == outcome]
        for outcome in _HEADS
    }
    most = max(found, key=lambda each: len(found[each]))
    rest = "all" if len(found[most]) == len(probed.effects) else "the rest"
    return [rest if outcome == most else _grouped(effects) for outcome, effects in found.items()]


def _grouped(effects: list[str]) -> str:
    """Return effects, those with the same first word together."""
    groups: dict[str, list[str]] = {}
    for each in effects:
        verb, _, where = each.partition(" ")
        groups.setdefault(verb, []).append(where)
    return "; ".join(f"{verb} {', '.join(places)}" for verb, places in groups.items())
