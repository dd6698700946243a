"""Escalation that ends a tree: a polite request, SIGTERM, then SIGKILL, each with a grace period.

The order is fixed: each step is skipped once the program has ended, and `kill` always follows,
also when the wait is cancelled, because descendants may outlive the program.
"""

from __future__ import annotations

import logging
import signal
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec
import trio
from trio.lowlevel import enable_ki_protection

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

    from sessionmgr.process.command import Command
    from sessionmgr.process.exit_report import ExitReport
    from sessionmgr.process.launcher import ChildTree, Launcher

    Polite: TypeAlias = Callable[[ChildTree], Awaitable[None]]
    """Asks a child to end by its own protocol; `end_tree` waits for the end."""

log: Final = logging.getLogger("sessionmgr.process")


class Escalation(msgspec.Struct, frozen=True, kw_only=True):
    """Grace periods of the steps, in seconds."""

    polite: float = 5.0
    """Time for the program to end after the polite request."""
    term: float = 5.0
    """Time for the program to end after SIGTERM."""
    linger: float = 0.5
    """Time for its descendants to end after the program has."""
    kill: float = 10.0
    """Time for the tree to become empty after SIGKILL; only a process in the kernel needs it."""


DEFAULT: Final = Escalation()


@enable_ki_protection
async def end_tree(
    tree: ChildTree, escalation: Escalation = DEFAULT, polite: Polite | None = None
) -> ExitReport:
    """End a tree and return how it ended.

    The call is shielded from cancellation, and bounded by the sum of the grace periods.

    Args:
        tree: The tree to end; a tree that is over already is only reported.
        escalation: The grace period of each step.
        polite: Asks the program to end by its own protocol; without it, SIGTERM is the first step.
    """
    report: ExitReport | None = None
    with trio.CancelScope(shield=True):
        report = await _end_tree(tree, escalation, polite)
    assert report is not None
    return report


@enable_ki_protection
async def _end_tree(tree: ChildTree, escalation: Escalation, polite: Polite | None) -> ExitReport:
    if tree.is_over:  # usual: most trees have ended by themselves
        return await tree.wait_empty()
    report: ExitReport | None = None
    try:
        ended = await _ended_politely(tree, escalation, polite) or await _ended_by_term(
            tree, escalation
        )
        with trio.move_on_after(escalation.linger if ended else 0):
            report = await tree.wait_empty()
    finally:
        tree.kill()
    with trio.move_on_after(escalation.kill):  # noqa: ASYNC912  # it may be over
        report = report or await tree.wait_empty()
    return report or await tree.abandon()


async def _ended_politely(tree: ChildTree, escalation: Escalation, polite: Polite | None) -> bool:
    if polite is None:
        return False
    with trio.move_on_after(escalation.polite):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_request_end, polite, tree)
            await tree.wait_exit()
            nursery.cancel_scope.cancel()
        return True
    return False


async def _request_end(polite: Polite, tree: ChildTree) -> None:
    try:
        await polite(tree)
    except Exception:
        # A child that is ending may refuse the request; its grace period still applies.
        log.warning(
            "The polite request to end failed. tree=%s pid=%d", tree.id, tree.pid, exc_info=True
        )


async def _ended_by_term(tree: ChildTree, escalation: Escalation) -> bool:
    tree.signal(signal.SIGTERM)
    with trio.move_on_after(escalation.term):
        await tree.wait_exit()
        return True
    return False


@asynccontextmanager
async def open_tree(
    launcher: Launcher,
    command: Command,
    *,
    escalation: Escalation = DEFAULT,
    polite: Polite | None = None,
) -> AsyncGenerator[ChildTree, None]:
    """Start a child and own its tree: leaving the block ends the tree by escalation.

    `await tree.wait_empty()` returns the exit report, within the block and after it.

    Raises:
        SpawnFailed: The program could not be started; see `Launcher.spawn` for other errors.
    """
    tree = await launcher.spawn(command)
    try:
        yield tree
    finally:
        with trio.CancelScope(shield=True):
            await _end_tree(tree, escalation, polite)  # bounded
            await tree.aclose()
