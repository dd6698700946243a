"""Players: real child processes that replay a recording of an agent, or misbehave.

A playbook is the list of the child's steps. It comes from a recording (`Recording`), from a test,
or from the table `CHAOS`. `command_of(playbook, file)` returns the argv of a child that plays it,
which replaces the agent's program in an adapter's options:

    options={"command": command_of(Recording.read(path).playbook(), tmp_path / "playbook.json")}

`recorder_of(file, argv)` makes a recording: it returns the argv of a child that runs between an
adapter and its agent, and records the traffic of both.
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
