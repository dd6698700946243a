"""A toy agent and its adapter: a whole provider on a few pages, to be read and copied.

The agent, `program.py`, is a child that speaks JSON lines. Its adapter has the files that every
adapter has. `sessionmgr/adapter/README.md` walks through them. It is not installed as a provider:
`open_manager(adapters={"toy": ToyAdapter})` makes it one.
"""

from sessionmgr.testing.toy.adapter import ToyAdapter as ToyAdapter
from sessionmgr.testing.toy.options import ToyOptions as ToyOptions
