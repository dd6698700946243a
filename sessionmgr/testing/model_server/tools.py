"""Which of the tools on offer a script means, and what its fields are called there.

A script may call a tool by its own name. Or it says what the tool is for, and gives the fields
names that are the same for all agents:

    shell(command)   read(path)   write(path, content)   edit(path, old, new)   agent(prompt)

Then the tool is looked for among those that the request offers, its fields are renamed to what its
schema calls them, and required fields that the script does not know are filled in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from sessionmgr.model import Json
from sessionmgr.testing.model_server.request import Offer
from sessionmgr.testing.model_server.sample import sample_of

_ROLES: Final[Mapping[str, tuple[str, ...]]] = {
    "shell": ("Bash", "exec_command", "shell_command", "shell", "run_shell_command", "Shell"),
    "read": ("Read", "read_file", "ReadFile"),
    "write": ("Write", "write_file", "WriteFile"),
    "edit": ("Edit", "replace", "StrReplaceFile"),
    "agent": ("Agent", "Task", "spawn_agent"),
    "patch": ("apply_patch",),
}

_FIELDS: Final[Mapping[str, tuple[str, ...]]] = {
    "command": ("command", "cmd"),
    "path": ("file_path", "path", "absolute_path"),
    "content": ("content", "contents"),
    "old": ("old_string", "old"),
    "new": ("new_string", "new"),
    "prompt": ("prompt", "message"),
}


class Chosen(msgspec.Struct, frozen=True):
    """A tool, and what it is called with."""

    name: str
    input: Mapping[str, Json]
    namespace: str | None = None
    takes_text: bool = False


def choose(tool: str, given: Mapping[str, Json], offers: Sequence[Offer]) -> Chosen:
    """Return what a script calls when it calls `tool`.

    One that nobody offers is called all the same. Models do that too, and some agents offer tools
    only when they are searched for.
    """
    offered = {offer.name: offer for offer in offers}
    if tool in offered:
        found = offered[tool]
        return Chosen(tool, given, found.namespace, found.schema is None)
    for name in _ROLES.get(tool, ()):
        if name in offered:
            found = offered[name]
            if found.schema is None:
                return Chosen(name, given, found.namespace, takes_text=True)
            return Chosen(name, _renamed(given, found.schema), found.namespace)
    return Chosen(tool, given)


def _renamed(given: Mapping[str, Json], schema: Mapping[str, Json]) -> dict[str, Json]:
    properties = schema.get("properties")
    known = properties if isinstance(properties, dict) else {}
    renamed: dict[str, Json] = {}
    for field, value in given.items():
        there = next((each for each in _FIELDS.get(field, ()) if each in known), field)
        renamed[there] = value
    filling = sample_of(schema)
    missing = filling if isinstance(filling, dict) else {}
    return {**{name: each for name, each in missing.items() if name not in renamed}, **renamed}
