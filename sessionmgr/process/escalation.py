"""How a tree is brought to its end: politely, then TERM, then KILL, each with its grace."""

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
    """Asks a child to end in its own language; that it does is waited for elsewhere."""

log: Final = logging.getLogger("sessionmgr.process")


class Escalation(msgspec.Struct, frozen=True, kw_only=True):
    """How many seconds each step has, before the next one."""

    polite: float = 5.0
    """For the program to end, once it is asked to in its own language."""
    term: float = 5.0
    """For the program to end after SIGTERM."""
    linger: float = 0.5
    """For what it started to end, once the program has."""
    kill: float = 10.0
    """For the tree to be empty after SIGKILL; only what hangs in the kernel needs it."""


DEFAULT: Final = Escalation()


@enable_ki_protection
async def end_tree(
    tree: ChildTree, ladder: Escalation = DEFAULT, polite: Polite | None = None
) -> ExitReport:
    """End a tree, whatever it takes, and return how it ended.

    It is shielded from cancellation, and bounded by the sum of the ladder's times.
    """
    facts: ExitReport | None = None
    with trio.CancelScope(shield=True):
        facts = await _end_tree(tree, ladder, polite)
    assert facts is not None
    return facts


@enable_ki_protection
async def _end_tree(tree: ChildTree, ladder: Escalation, polite: Polite | None) -> ExitReport:
    if tree.is_over:  # as most are when their owner is done with them
        return await tree.wait_empty()
    facts: ExitReport | None = None
    try:
        ended = await _ended_politely(tree, ladder, polite) or await _ended_by_term(tree, ladder)
        with trio.move_on_after(ladder.linger if ended else 0):
            facts = await tree.wait_empty()
    finally:
        tree.kill()
    with trio.move_on_after(ladder.kill):  # noqa: ASYNC912  # it may be over
        facts = facts or await tree.wait_empty()
    return facts or await tree.abandon()


async def _ended_politely(tree: ChildTree, ladder: Escalation, polite: Polite | None) -> bool:
    if polite is None:
        return False
    with trio.move_on_after(ladder.polite):
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
        # A child that is just ending may well refuse to be asked: it has its grace still.
        log.warning("polite_end_failed tree=%s pid=%d", tree.id, tree.pid, exc_info=True)


async def _ended_by_term(tree: ChildTree, ladder: Escalation) -> bool:
    tree.signal(signal.SIGTERM)
    with trio.move_on_after(ladder.term):
        await tree.wait_exit()
        return True
    return False


@asynccontextmanager
async def open_tree(
    launcher: Launcher,
    command: Command,
    *,
    ladder: Escalation = DEFAULT,
    polite: Polite | None = None,
) -> AsyncGenerator[ChildTree, None]:
    """Start a child and own its tree: leaving the block walks it down the ladder.

    What became of it is `await tree.wait_empty()`, within the block and after it.

    Raises:
        SpawnFailed: it could not be started; see `Launcher.spawn` for that and more.
    """
    tree = await launcher.spawn(command)
    try:
        yield tree
    finally:
        with trio.CancelScope(shield=True):
            await _end_tree(tree, ladder, polite)  # bounded
            await tree.aclose()
