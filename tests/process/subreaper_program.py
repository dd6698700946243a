"""Runs a command and reaps its orphans until none is left: `subreaper_program.py COMMAND…`.

So a test has a proof of its own that nothing lives, and an init that is slow to bury its many
dead (there are such) slows nobody down.
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
