"""A toy agent and its adapter: a whole provider on a few pages, to be read and copied.

The agent, `program.py`, is a child that talks JSON lines. Its adapter has the rooms that every
adapter has, and no more in each than is needed:

| file | what is in it |
|---|---|
| `options.py` | what the user may set |
| `frames.py` | the agent's messages, and ours to it |
| `normalise.py` | a frame to events: pure, with a state |
| `sdk.py` | the connection: spawn, send, receive; what a mock replaces |
| `driver.py` | one run: its phase table, its prompt, its questions, its follow-ups |
| `adapter.py` | the actor: capabilities, permissions, the start and the end of a run |

It is not installed as a provider: `open_manager(adapters={"toy": ToyAdapter})` makes it one.
"""

from sessionmgr.testing.toy.adapter import ToyAdapter as ToyAdapter
from sessionmgr.testing.toy.frames import (
    Answer as Answer,
    Cancel as Cancel,
    Frame as Frame,
    Hello as Hello,
    More as More,
    Open as Open,
    Question as Question,
    Say as Say,
    Text as Text,
    TextDelta as TextDelta,
    Tokens as Tokens,
    Told as Told,
    Took as Took,
    ToolBegan as ToolBegan,
    ToolEnded as ToolEnded,
    TurnEnded as TurnEnded,
    Withdrawn as Withdrawn,
)
from sessionmgr.testing.toy.options import ToyOptions as ToyOptions
