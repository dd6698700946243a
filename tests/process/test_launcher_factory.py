"""Opening and closing a launcher, with an interruption at each step."""

import os
import signal
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest
import trio

from sessionmgr.process import Command, LauncherKind, open_launcher, procfs
from sessionmgr.testing.step_trigger import StepTrigger


async def opened(kind: LauncherKind, directory: Path, number: int) -> bool:
    """Cancel at a step; return whether it was still opening."""
    with trio.CancelScope() as scope:
        instrument = StepTrigger(number, scope.cancel)
        trio.lowlevel.add_instrument(instrument)
        with trio.fail_after(30):
            async with open_launcher(state_dir=directory, kind=kind):
                trio.lowlevel.remove_instrument(instrument)
                return instrument.is_done
    return True


class NotInterruptedError(Exception):
    """The launcher was open before the step came."""


async def interrupted(kind: LauncherKind, directory: Path, number: int) -> None:
    """Interrupt at a step."""
    instrument = StepTrigger(number, partial(signal.raise_signal, signal.SIGINT))
    trio.lowlevel.add_instrument(instrument)
    with trio.fail_after(30):
        async with open_launcher(state_dir=directory, kind=kind):
            trio.lowlevel.remove_instrument(instrument)
            if not instrument.is_done:
                raise NotInterruptedError
            await trio.lowlevel.checkpoint()


@pytest.mark.parametrize("kind", [LauncherKind.SPAWNER, LauncherKind.DIRECT])
def test_a_cancel_at_any_step_ends_the_opening(kind: LauncherKind, tmp_path: Path) -> None:
    number = 0
    while trio.run(opened, kind, tmp_path, number):
        number += 1
        assert procfs.children(os.getpid()) == []
    assert number > 3


@pytest.mark.parametrize("kind", [LauncherKind.SPAWNER, LauncherKind.DIRECT])
def test_ctrl_c_at_any_step_ends_the_opening(kind: LauncherKind, tmp_path: Path) -> None:
    number = 0
    with suppress(NotInterruptedError):
        while True:
            with pytest.raises(KeyboardInterrupt):
                trio.run(interrupted, kind, tmp_path, number)
            assert procfs.children(os.getpid()) == []
            number += 1
    assert number > 3


async def left(kind: LauncherKind, directory: Path, number: int) -> None:
    """Interrupt at a step of the closing, with a child alive."""
    instrument = StepTrigger(number, partial(signal.raise_signal, signal.SIGINT))
    with trio.fail_after(30):
        async with open_launcher(state_dir=directory, kind=kind) as launcher:
            await launcher.spawn(Command(argv=("sleep", "600"), cwd="/", env={"PATH": os.defpath}))
            trio.lowlevel.add_instrument(instrument)
    trio.lowlevel.remove_instrument(instrument)
    if not instrument.is_done:
        raise NotInterruptedError
    await trio.lowlevel.checkpoint()


@pytest.mark.parametrize("kind", [LauncherKind.SPAWNER, LauncherKind.DIRECT])
def test_ctrl_c_at_any_step_lets_the_closing_end(kind: LauncherKind, tmp_path: Path) -> None:
    number = 0
    with suppress(NotInterruptedError):
        while True:
            with pytest.raises(KeyboardInterrupt):
                trio.run(left, kind, tmp_path, number)
            assert procfs.children(os.getpid()) == []
            number += 1
    assert number > 3
