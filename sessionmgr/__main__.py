"""`python -m sessionmgr` is the command `sessionmgr`."""

import sys

from sessionmgr.cli.start import start

if __name__ == "__main__":
    sys.exit(start())
