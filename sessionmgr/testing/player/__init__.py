"""Players: a real child that plays a recording of an agent, or does what agents should not do.

A playbook is what the child does, step after step. It is made from a recording (`Recording`), or
by hand, or it is one of the table `CHAOS`. `command_of(playbook, file)` is the argv of a child that
plays it, which an adapter is given in the place of its agent's program:

    options={"command": command_of(Recording.read(path).playbook(), tmp_path / "playbook.json")}

A recording is made by `recorder_of(file, argv)`: the argv of a child that stands between an
adapter and its agent, and writes down what both say.
"""

from sessionmgr.testing.player.chaos import (
    CHAOS as CHAOS,
    Chaos as Chaos,
    Dialect as Dialect,
)
from sessionmgr.testing.player.playbook import (
    Close as Close,
    Dribble as Dribble,
    Exit as Exit,
    Expect as Expect,
    Grow as Grow,
    Hang as Hang,
    Ignore as Ignore,
    Leak as Leak,
    Repeat as Repeat,
    Step as Step,
    UntilClosed as UntilClosed,
    Write as Write,
    command_of as command_of,
    line as line,
)
from sessionmgr.testing.player.recording import (
    Entry as Entry,
    Recording as Recording,
    recorder_of as recorder_of,
)

__all__ = [
    "CHAOS",
    "Chaos",
    "Close",
    "Dialect",
    "Dribble",
    "Entry",
    "Exit",
    "Expect",
    "Grow",
    "Hang",
    "Ignore",
    "Leak",
    "Recording",
    "Repeat",
    "Step",
    "UntilClosed",
    "Write",
    "command_of",
    "line",
    "recorder_of",
]
