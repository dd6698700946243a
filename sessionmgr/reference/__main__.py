"""Print the reference page; with `--write`, store it as `sessionmgr/REFERENCE.md`."""

import argparse
import sys

from sessionmgr.reference.page import PATH, render


def main() -> None:
    """Print or write the page."""
    parser = argparse.ArgumentParser(prog="python -m sessionmgr.reference", description=__doc__)
    parser.add_argument("--write", action="store_true", help=f"write it to {PATH}")
    if parser.parse_args().write:
        PATH.write_text(render(), encoding="utf-8")
    else:
        sys.stdout.write(render())


if __name__ == "__main__":
    main()
