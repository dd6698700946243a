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
    Dialect as Dialect,
    Misbehaviour as Misbehaviour,
)
from sessionmgr.testing.player.playbook import (
    CloseStep as CloseStep,
    DribbleStep as DribbleStep,
    ExitStep as ExitStep,
    ExpectStep as ExpectStep,
    GrowStep as GrowStep,
    HangStep as HangStep,
    IgnoreStep as IgnoreStep,
    LeakStep as LeakStep,
    RepeatStep as RepeatStep,
    Step as Step,
    UntilClosedStep as UntilClosedStep,
    WriteStep as WriteStep,
    command_of as command_of,
    line as line,
)
from sessionmgr.testing.player.recording import (
    RecordedLine as RecordedLine,
    Recording as Recording,
    recorder_of as recorder_of,
)

__all__ = [
    "CHAOS",
    "CloseStep",
    "Dialect",
    "DribbleStep",
    "ExitStep",
    "ExpectStep",
    "GrowStep",
    "HangStep",
    "IgnoreStep",
    "LeakStep",
    "Misbehaviour",
    "RecordedLine",
    "Recording",
    "RepeatStep",
    "Step",
    "UntilClosedStep",
    "WriteStep",
    "command_of",
    "line",
    "recorder_of",
]
