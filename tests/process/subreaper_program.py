"""Subreaper that runs a command and reaps its orphans: `subreaper_program.py COMMAND…`.

It ends when no process is left below it. So a test has a proof of its own, and a slow init, which
some machines have, does not slow the tests down.
"""

import ctypes
import os
import sys

PR_SET_CHILD_SUBREAPER = 36

if __name__ == "__main__":
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    if not os.fork():
        os.execvp(sys.argv[1], sys.argv[1:])
    os.close(0)
    os.close(1)
    while True:
        try:
            os.wait()
        except ChildProcessError:
            break
