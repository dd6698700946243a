"""Shapes of process trees, for a bare interpreter: `tree_shapes_program.py NOTES NAME…`.

Each process that is to be found dead later notes its own number and start in the file NOTES.
Those that fork without end do not: they are found by what the kernel tells of them.
"""

import os
import signal
import sys
import time

NOTES = sys.argv[1]


def note() -> None:
    stat = os.open("/proc/self/stat", os.O_RDONLY)
    started = os.read(stat, 4096).rsplit(b")", 1)[1].split()[19]
    os.close(stat)
    line = b"%d %s\n" % (os.getpid(), started)
    file = os.open(NOTES, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
    os.write(file, line)
    os.close(file)


def stay() -> None:
    note()
    while True:
        time.sleep(1000)


def plain() -> None:
    stay()


def own_session() -> None:
    os.setsid()
    stay()


def own_group() -> None:
    os.setpgid(0, 0)
    stay()


def daemon() -> None:
    """Double-forked, its parents gone."""
    if os.fork():
        os._exit(0)
    os.setsid()
    if os.fork():
        os._exit(0)
    stay()


def bare_environment() -> None:
    os.setsid()
    os.execve(sys.executable, [sys.executable, "-I", "-S", __file__, NOTES, "plain"], {})


def deaf() -> None:
    for each in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(each, signal.SIG_IGN)
    stay()


def deep() -> None:
    """Each the child of the one before, each in a session of its own."""
    for _ in range(10):
        if os.fork():
            stay()
        os.setsid()
    stay()


def namespaced() -> None:
    """The first process of a PID namespace, and one below it, both in sessions of their own."""
    flags = ["-pf"] if os.getuid() == 0 else ["-Urpf"]
    inner = "setsid sleep 1000 & exec sleep 1000"
    note()
    os.execvp("unshare", ["unshare", *flags, "sh", "-c", inner])


def nested() -> None:
    """An owner of trees itself."""
    note()
    os.chdir(__file__.rpartition("/tests/")[0])
    shapes = ["own_session,daemon", "bare_environment,plain"]
    program = [
        sys.executable,
        "-m",
        "tests.process.owner_program",
        f"{NOTES}.inner",
        NOTES,
        *shapes,
    ]
    os.execv(sys.executable, program)


def another_user() -> None:
    """Becomes root, by a program of root's that is set up for it."""
    become = NOTES.rpartition("/")[0] + "/become"
    os.execv(become, [become, "--reuid=0", "--regid=0", "--clear-groups", "sleep", "1000"])


def forking() -> None:
    """Forks and leaves, without end."""
    while True:
        if os.fork():
            os._exit(0)


def forking_sessions() -> None:
    """Forks, sets up a session and leaves, without end."""
    while True:
        if os.fork():
            os._exit(0)
        os.setsid()


def brood() -> None:
    """Begets children without end, which beget one each and leave it behind."""
    while True:
        if not os.fork():
            os.setsid()
            if os.fork():
                os._exit(0)
            time.sleep(0.05)
            os._exit(0)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            pass
        time.sleep(0.001)


def start(name: str) -> None:
    if not os.fork():
        try:
            globals()[name]()
        finally:
            os._exit(1)


if __name__ == "__main__":
    names = sys.argv[2:]
    for each in names[:-1]:
        start(each)
    globals()[names[-1]]()
