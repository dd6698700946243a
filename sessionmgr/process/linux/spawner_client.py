"""Owner's side of a spawner: its process, and the socket that requests reapers from it."""

from __future__ import annotations

import contextlib
import inspect
import os
import signal
import socket
import subprocess
import sys
from array import array
from pathlib import Path
from typing import Final

import trio

from sessionmgr.process.errors import LauncherFailed
from sessionmgr.process.linux import spawner_main
from sessionmgr.process.tree_tag import VARIABLE

READY_WITHIN: Final = 30.0
"""Seconds that a bare interpreter may take to start; on an idle machine it takes 0.1."""
TRIES: Final = 5
"""How often a spawner is started anew if a signal from the terminal kills it during its start."""
_FROM_TERMINALS: Final = {-signal.SIGINT, -signal.SIGQUIT, -signal.SIGHUP, -signal.SIGTERM}
_PROGRAM: Final = Path(spawner_main.__file__).absolute()
_PASSED_ON: Final = ("LD_LIBRARY_PATH", "PATH", VARIABLE)
"""What the spawner gets of our environment: what its interpreter may need, and our own tags."""


class SpawnerProcess:
    """Process of a spawner and our end of its control socket."""

    def __init__(self, process: trio.Process, control: socket.socket) -> None:
        self._process = process
        self._control = control
        self._sending = trio.Lock()
        self.exited = trio.Event()

    @property
    def pid(self) -> int:
        """Process id of the spawner."""
        return self._process.pid

    async def request_reaper(self, line: int) -> bool:
        """Request a reaper at the end of this socket; return False if the spawner has ended."""
        async with self._sending:
            while not self.exited.is_set():
                rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, array("i", [line]))
                try:
                    self._control.sendmsg([b"guard"], [rights])
                except BlockingIOError:
                    await trio.lowlevel.wait_writable(self._control)
                except OSError:
                    return False
                else:
                    return True
        return False

    @property
    def was_interrupted(self) -> bool:
        """Return whether it died of a signal that was meant for the terminal's foreground program.

        A process belongs to its parent's group until it has a session of its own, and receives the
        signals for that group until then.
        """
        return self._process.returncode in _FROM_TERMINALS

    async def wait(self) -> None:
        """Wait for its end."""
        await self._process.wait()
        self.exited.set()

    def shut_down(self) -> None:
        """Ask it to end after its reapers have ended."""
        with contextlib.suppress(OSError):
            self._control.shutdown(socket.SHUT_RDWR)

    def kill(self) -> None:
        """Kill it."""
        self._process.send_signal(signal.SIGKILL)

    async def kill_and_wait(self) -> None:
        """Kill and reap it."""
        self.kill()
        with trio.CancelScope(shield=True):
            await self.wait()
        self.close()

    def close(self) -> None:
        """Close the socket."""
        self._control.close()


async def start_spawner(launcher: int, open_files: int) -> SpawnerProcess:
    """Start the spawner and wait for its ready message.

    `open_files` is the soft limit that children get.

    Raises:
        LauncherFailed: It did not start.
    """
    if not sys.executable:
        raise LauncherFailed("sys.executable is empty: there is no Python to run the spawner with")
    for _ in range(TRIES):
        try:
            spawner = await _try_start(launcher, open_files)
        except OSError as error:
            raise LauncherFailed(f"the spawner did not start: {error}") from error
        if spawner is not None:
            return spawner
    raise LauncherFailed(f"the spawner did not start: signals killed it {TRIES} times")


async def _try_start(launcher: int, open_files: int) -> SpawnerProcess | None:
    """Start a spawner; return None if a signal killed it before it could ignore signals."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        ours.setblocking(False)
        owner = os.pidfd_open(os.getpid())
        try:
            process = await _start(launcher, theirs.fileno(), owner, open_files)
        except BaseException:
            ours.close()
            raise
        finally:
            os.close(owner)
    spawner = SpawnerProcess(process, ours)
    try:
        with trio.fail_after(READY_WITHIN):
            await trio.lowlevel.wait_readable(ours)
        if not ours.recv(64):
            raise ConnectionResetError
    except (ConnectionError, trio.TooSlowError) as error:
        await spawner.kill_and_wait()  # shielded  # noqa: ASYNC120
        if spawner.was_interrupted:
            return None
        raise LauncherFailed(f"the spawner did not start ({error!r})") from error
    except BaseException:
        await spawner.kill_and_wait()  # shielded, and a kill is quick  # noqa: ASYNC102
        raise
    return spawner


async def _start(*numbers: int) -> trio.Process:
    _, control, owner, _ = numbers
    return await trio.lowlevel.open_process(
        [
            *(sys.executable, "-I", "-S", "-E", "-X", "utf8", *_program()),
            *(str(_PROGRAM.parents[3]), *map(str, numbers)),
        ],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        pass_fds=(control, owner),
        start_new_session=True,
        cwd="/",
        env={name: os.environ[name] for name in _PASSED_ON if name in os.environ},
    )


def _program() -> tuple[str, ...]:
    """Return the arguments that run `spawner_main`: a file, or its text if our package is a zip."""
    if _PROGRAM.is_file():
        return (str(_PROGRAM),)
    try:
        return ("-c", inspect.getsource(spawner_main))
    except OSError as error:
        why = f"the program of the spawner is missing: {_PROGRAM}"
        raise LauncherFailed(why) from error
