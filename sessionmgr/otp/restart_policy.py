"""Restart policies, as pure functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from sessionmgr.otp.exit_reason import ExitReason, Normal, Shutdown

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sessionmgr.otp.child_spec import RestartPolicy

Strategy = Literal["one_for_one", "one_for_all", "rest_for_one"]
AutoShutdown = Literal["never", "any_significant", "all_significant"]


def is_normal_exit(reason: ExitReason) -> bool:
    """Return whether `reason` is a regular end."""
    return isinstance(reason, Normal | Shutdown)


def wants_restart(restart: RestartPolicy, reason: ExitReason) -> bool:
    """Return whether a child that ended by itself for `reason` is restarted."""
    match restart:
        case "permanent":
            return True
        case "transient":
            return not is_normal_exit(reason)
        case "temporary":
            return False


def restarted_with(strategy: Strategy, ids: Sequence[str], failed: str) -> Sequence[str]:
    """Return, in start order, the children that are restarted because `failed` ended."""
    match strategy:
        case "one_for_one":
            return [failed]
        case "one_for_all":
            return ids
        case "rest_for_one":
            return ids[ids.index(failed) :]


def ends_supervisor(rule: AutoShutdown, significant_left: Iterable[object]) -> bool:
    """Return whether the end of a significant child ends its supervisor.

    `significant_left` are the significant children that still run.
    """
    match rule:
        case "never":
            return False
        case "any_significant":
            return True
        case "all_significant":
            return not list(significant_left)
