"""Shapes of process trees, for a bare interpreter: `tree_shapes_program.py NOTES NAME…`.

Each process whose end a test checks writes its number and start time to the file NOTES. Processes
that fork without end do not: the test finds them by their tags.
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
    """Fork twice, so that the parents are gone."""
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
    """Make ten generations, each in a session of its own."""
    for _ in range(10):
        if os.fork():
            stay()
        os.setsid()
    stay()


def namespaced() -> None:
    """Run the first process of a PID namespace and one below it, in sessions of their own."""
    flags = ["-pf"] if os.getuid() == 0 else ["-Urpf"]
    inner = "setsid sleep 1000 & exec sleep 1000"
    note()
    os.execvp("unshare", ["unshare", *flags, "sh", "-c", inner])


def nested() -> None:
    """Run an owner of trees."""
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
    """Become root, by a setuid program."""
    become = NOTES.rpartition("/")[0] + "/become"
    os.execv(become, [become, "--reuid=0", "--regid=0", "--clear-groups", "sleep", "1000"])


def forking() -> None:
    """Fork and exit, without end."""
    while True:
        if os.fork():
            os._exit(0)


def forking_sessions() -> None:
    """Fork, create a session and exit, without end."""
    while True:
        if os.fork():
            os._exit(0)
        os.setsid()


def brood() -> None:
    """Start children without end, each of which leaves one child behind."""
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
