"""The paths in an approval request: where they lead, and which patterns they match."""

from __future__ import annotations

import os.path
import re
from typing import TYPE_CHECKING, NamedTuple

from sessionmgr.adapter.kit import resolve_within

if TYPE_CHECKING:
    from sessionmgr.adapter import ApprovalRequest


class PathForms(NamedTuple):
    """A path as written, without `.` and `..`, and its target."""

    written: str
    leads_to: tuple[str, ...]
    """All files that the path may name. After a link, `..` is ambiguous: the kernel follows the
    link first, and programs that shorten the path first do not.
    """


def path_forms(asked: ApprovalRequest, path: str) -> PathForms | None:
    """Return the possible readings of a request's path; None if they are unknown.

    Only the provider can expand a leading `~`, and a path in /proc leads elsewhere for each
    process.
    """
    if not path or path.startswith("~") or "\0" in path:
        return None
    whole = os.path.join(asked.cwd, asked.tool_cwd, path)  # noqa: PTH118
    if not os.path.isabs(whole):  # noqa: PTH117
        return None
    written = os.path.normpath(whole)
    if f"{written}/".replace("//", "/", 1).startswith("/proc/"):
        return None
    leads_to = (resolve_within((asked.cwd,), each) for each in (whole, written))
    return PathForms(written, tuple(dict.fromkeys(leads_to)))


def is_inside(directory: str, other: str) -> bool:
    """Return whether `directory` is `other` or below it, judging by the paths as written."""
    inner, outer = os.path.normpath(directory), os.path.normpath(other)
    return inner == outer or inner.startswith(outer.rstrip("/") + "/")


def matches(path: str, pattern: str, within: str) -> bool:
    """Return whether a path matches a pattern.

    `*` stays within one name, and `**` spans any number of them. A relative pattern starts at the
    directory `within`; one that begins with `**` matches anywhere.
    """
    path = os.path.normpath(os.path.join(within, path))  # noqa: PTH118  # no links are looked up
    pattern = os.path.join("/" if pattern.startswith("**") else within, pattern)  # noqa: PTH118
    return _compile_pattern(pattern).fullmatch(path) is not None


def resolve_pattern(pattern: str, within: str) -> str:
    """Return a pattern with the symbolic links of its literal directories resolved."""
    if pattern.startswith("**"):
        return pattern
    named = os.path.join(within, pattern)  # noqa: PTH118
    parts = named.split("/")
    whole = next((at for at, part in enumerate(parts) if set(part) & set("*?")), len(parts))
    real = os.path.realpath("/".join(parts[:whole]) or "/")
    return "/".join([real.rstrip("/"), *parts[whole:]]) if whole < len(parts) else real


def _compile_pattern(pattern: str) -> re.Pattern[str]:
    made = ""
    for part in re.split(r"(/\*\*/|/\*\*$|\*\*|\*|\?)", pattern):
        match part:
            case "/**/":
                made += "/(?:.*/)?"
            case "/**":
                made += "(?:/.*)?"
            case "**":
                made += ".*"
            case "*":
                made += "[^/]*"
            case "?":
                made += "[^/]"
            case _:
                made += re.escape(part)
    return re.compile(made, re.DOTALL)
