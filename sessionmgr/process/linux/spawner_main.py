"""Where the warden begins: this file is run by a bare interpreter, not imported.

    python -I -S -E standalone.py ROOT LAUNCHER CONTROL OWNER FILES

ROOT is the directory, or the zip, that our packages are in.

It must not import our packages as everybody does, for their first lines import trio and more.
So they are empty boxes here, with the right path; the modules in them are the real ones.
"""

from __future__ import annotations

import os
import sys
from types import ModuleType


def create_stub_packages(root: str) -> None:
    """Let `sessionmgr.process.x` be imported without `sessionmgr` and `sessionmgr.process`."""
    for name in ("sessionmgr", "sessionmgr.process", "sessionmgr.process.linux"):
        box = ModuleType(name)
        box.__path__ = [os.path.join(root, *name.split("."))]
        sys.modules[name] = box


def main(launcher: str, control: str, owner: str, open_files: str) -> None:
    """Be the warden."""
    import socket

    from sessionmgr.process.linux.spawner import run_spawner

    for each in (control, owner):
        os.set_inheritable(int(each), False)
    run_spawner(int(launcher), socket.socket(fileno=int(control)), int(owner), int(open_files))


if __name__ == "__main__":
    create_stub_packages(sys.argv[1])
    main(*sys.argv[2:])
