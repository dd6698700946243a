"""Tag that every process of a tree carries.

The strategy: RLIMIT_LOCKS has had no effect since Linux 2.4, is inherited over fork, exec and
setsid, `env -i` does not change it, and every user may read it in /proc/PID/limits. Its soft value
is the tag: a random number for the launcher, then the number of the tree. A launcher inside a tree
(an agent that runs this library itself) gives its own trees other tags, so the environment variable
SESSIONMGR_TREE lists the tags of all trees around a process, the outermost first.

Also runs in the spawner: it imports little of the standard library and nothing else.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Final

VARIABLE: Final = "SESSIONMGR_TREE"
RLIMIT_LOCKS: Final = 10
TREE_BITS: Final = 22
TREES: Final = 1 << TREE_BITS
"""Count of tree numbers; 0 is the tag of the spawner and its reapers."""

_LAUNCHER_BITS: Final = 40
_LINE: Final = b"Max file locks"
_PREFIX: Final = VARIABLE.encode() + b"="


def new_launcher_number() -> int:
    """Return a random number for a launcher, never a small one."""
    return int.from_bytes(os.urandom(5), "big") | 1 << (_LAUNCHER_BITS - 1)


def make_tag(launcher: int, tree: int) -> int:
    """Return the tag of a launcher's tree."""
    return launcher << TREE_BITS | tree


def launcher_number(tag: int) -> int:
    """Return the launcher number in a tag; no launcher has the number 0."""
    return tag >> TREE_BITS if tag >> (TREE_BITS + _LAUNCHER_BITS - 1) == 1 else 0


def tree_number(tag: int) -> int:
    """Return the tree number in a tag."""
    return tag & (TREES - 1)


def format_tag(tag: int) -> str:
    """Return the text of a tag, as the environment and messages contain it."""
    return f"{tag:016x}"


def set_tag(tag: int) -> bool:
    """Set the tag of this process and its future children; return False if the system refuses."""
    import resource  # missing on some systems

    try:
        resource.setrlimit(RLIMIT_LOCKS, (tag, resource.getrlimit(RLIMIT_LOCKS)[1]))
    except (OSError, ValueError):
        return False  # the hard limit was lowered: the variable remains
    return True


def nested_value(around: str | None, tag: int) -> str:
    """Return the value of the variable for a tree whose owner has the value `around`."""
    return f"{around}:{format_tag(tag)}" if around else format_tag(tag)


def process_tags(pid: int) -> list[int]:
    """Return the tags of a process, the outermost tree's first.

    The list is empty if the process is gone or its tags are not readable.
    """
    return [*_tags_from_environment(pid), *tag_from_limit(pid)]


def nested_launchers(tags: list[int], wanted: Callable[[int], bool]) -> set[int]:
    """Return the launchers that work inside the first wanted tree of these tags."""
    for number, each in enumerate(tags):
        if wanted(each):
            around = {launcher_number(outer) for outer in tags[: number + 1]}
            return {launcher_number(inner) for inner in tags[number + 1 :]} - around
    return set()


def tag_from_limit(pid: int) -> list[int]:
    """Return the tag in the limit of a process; an empty list if the limit is no tag."""
    for line in _read_file(f"/proc/{pid}/limits").splitlines():
        if line.startswith(_LINE):
            soft = line[len(_LINE) :].split()[0]
            return [int(soft)] if soft.isdigit() and launcher_number(int(soft)) else []
    return []


def _tags_from_environment(pid: int) -> list[int]:
    for entry in _read_file(f"/proc/{pid}/environ").split(b"\0"):
        if entry.startswith(_PREFIX):
            return parse_tags(entry[len(_PREFIX) :].decode("ascii", "replace"))
    return []


def parse_tags(value: str) -> list[int]:
    """Return the tags in a value of the variable; invalid parts are ignored."""
    found: list[int] = []
    for each in value.split(":"):
        try:
            tag = int(each, 16)
        except ValueError:
            continue
        if launcher_number(tag):
            found.append(tag)
    return found


def _read_file(path: str) -> bytes:
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        pieces: list[bytes] = []
        while piece := os.read(file, 1 << 16):
            pieces.append(piece)
        return b"".join(pieces)
    except OSError:
        return b""
    finally:
        os.close(file)
