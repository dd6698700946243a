"""The same commands, run by `xargs` alone."""

import subprocess
from typing import Final

from benchmarks.effort import Effort, Figures, Stopwatch, wall

JOBS: Final = 640
AT_ONCE: Final = 16
COMMAND: Final = "sleep 0.05"


def xargs(effort: Effort) -> Figures:
    """Run a trivial command many times, so many at once."""
    count = effort.population(JOBS)
    lines = "".join(f"{n}\n" for n in range(count)).encode()
    watch = Stopwatch(wall)
    with watch:
        command = ["xargs", "-P", str(AT_ONCE), "-I", "{}", *COMMAND.split()]
        subprocess.run(command, input=lines, check=True)
    return {"job": watch.micros / count}
