"""Start-up of an interpreter that does one thing and ends."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

from benchmarks.effort import Effort, Figures
from benchmarks.process.stopwatch import Laps

ROOT: Final = Path(__file__).resolve().parent.parent.parent
# Import from where this process does, not from the working directory.
_PATHS: Final = f"import sys; sys.path[:0] = {[str(ROOT), str(ROOT / 'adapters')]!r}; "


def _start(code: str) -> Callable[[Effort], Figures]:
    def starts(effort: Effort) -> Figures:
        laps = Laps()
        for _ in range(effort.repeats(15)):
            with laps.lap():
                subprocess.run(
                    [sys.executable, "-c", _PATHS + code], check=True, stdout=subprocess.DEVNULL
                )
        return {"ms": laps.median}

    return starts


_COMMAND: Final = (
    "import sys; from sessionmgr.cli.start import start; sys.argv[1:] = {argv!r}; sys.exit(start())"
)
bare = _start("pass")
anchor = _start("import trio, msgspec")
package = _start("import sessionmgr")
manager = _start("from sessionmgr import open_manager")
usage = _start(_COMMAND.format(argv=["--help"]))
version = _start(_COMMAND.format(argv=["--version"]))
