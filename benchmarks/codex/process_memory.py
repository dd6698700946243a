"""Memory of processes."""

from pathlib import Path
from typing import Final

AT_ONCE: Final = 50
"""Number of threads or processes at once."""


def private_mib(pid: int) -> float:
    """Return the private memory of a process."""
    lines = Path("/proc", str(pid), "smaps_rollup").read_text().splitlines()
    return sum(int(each.split()[1]) for each in lines if each.startswith("Private_")) / 1024


def tree_mib(pid: int, named: str) -> float:
    """Return the private memory of the processes with that name below a process."""
    return sum(private_mib(each) for each in _below(pid) if _name(each) == named)


def _below(pid: int) -> list[int]:
    parents: dict[int, int] = {}
    for each in Path("/proc").iterdir():
        if each.name.isdecimal():
            try:
                fields = (each / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue  # the process has ended meanwhile
            parents[int(each.name)] = int(fields[1])
    found = [pid]
    for known in found:
        found += [child for child, parent in parents.items() if parent == known]
    return found[1:]


def _name(pid: int) -> str:
    try:
        return Path("/proc", str(pid), "comm").read_text().strip()
    except OSError:
        return ""
