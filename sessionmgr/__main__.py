"""`python -m sessionmgr` is the command `sessionmgr`."""

import sys

from sessionmgr.cli import start

if __name__ == "__main__":
    sys.exit(start())
