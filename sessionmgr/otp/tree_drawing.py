"""Drawing of a supervision tree as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from sessionmgr.otp.child_rows import ChildRow
    from sessionmgr.otp.statistics import SupervisorStatistics


class TreeNode(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the drawing, and the branches below it."""

    text: str
    branches: list[TreeNode]


def draw_tree(branch: TreeNode) -> str:
    """Draw `branch` and its descendants, one line each."""
    lines = [branch.text]
    for number, below in enumerate(branch.branches, 1):
        last = number == len(branch.branches)
        first, *rest = draw_tree(below).split("\n")
        lines.append(("└─ " if last else "├─ ") + first)
        lines.extend(("   " if last else "│  ") + line for line in rest)
    return "\n".join(lines)


def leaf_text(row: ChildRow) -> str:
    """Describe a child that has no children."""
    words = [row.id, row.state]
    if row.ref is not None:
        how = row.ref.statistics()
        if how.mailbox_bound:
            words.append(f"mailbox {how.mailbox}/{how.mailbox_bound}")
        words.append(f"age {format_age(how.age)}")
    if row.restarts:
        words.append(f"restarts {row.restarts}")
    return "  ".join(words)


def supervisor_text(kind: str, how: SupervisorStatistics) -> str:
    """Describe a child that has children."""
    words = [f"{how.name.rpartition('/')[2]} ({kind})", how.state]
    words.append(f"children {how.active}/{how.children}")
    words.append(f"age {format_age(how.age)}")
    if how.restarts:
        words.append(f"restarts {how.restarts} ({how.restarts_in_window} in the window)")
    return "  ".join(words)


def format_age(seconds: float) -> str:
    """Format a duration for people."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02} min" if hours else f"{minutes} min {rest:02} s"
