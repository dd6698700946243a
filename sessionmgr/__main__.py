"""`python -m sessionmgr` is the command `sessionmgr`."""

import sys

from sessionmgr.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
