"""Entry point of the spawner: a bare interpreter runs this file, no module imports it.

    python -I -S -E spawner_main.py ROOT LAUNCHER CONTROL OWNER FILES

ROOT is the directory, or the zip, that contains our packages.

A normal import of our packages would import trio and more, so this program replaces the packages
by empty modules with the right path; the modules inside them are the real ones.
"""

from __future__ import annotations

import os
import sys
from types import ModuleType


def create_stub_packages(root: str) -> None:
    """Let `sessionmgr.process.x` be imported without running the packages' `__init__` modules."""
    for name in ("sessionmgr", "sessionmgr.process", "sessionmgr.process.linux"):
        box = ModuleType(name)
        box.__path__ = [os.path.join(root, *name.split("."))]
        sys.modules[name] = box


def main(launcher: str, control: str, owner: str, open_files: str) -> None:
    """Run the spawner."""
    import socket

    from sessionmgr.process.linux.spawner import run_spawner

    for each in (control, owner):
        os.set_inheritable(int(each), False)
    run_spawner(int(launcher), socket.socket(fileno=int(control)), int(owner), int(open_files))


if __name__ == "__main__":
    create_stub_packages(sys.argv[1])
    main(*sys.argv[2:])
