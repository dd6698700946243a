"""Toy agent with its adapter: a complete provider on a few pages, to read and copy.

The agent, `program.py`, is a child that speaks JSON lines. Its adapter has the files that every
adapter has. `sessionmgr/adapter/README.md` walks through them. It is not installed as a provider:
`open_manager(adapters={"toy": ToyAdapter})` registers it.
"""

from sessionmgr.testing.toy.adapter import ToyAdapter as ToyAdapter
from sessionmgr.testing.toy.options import ToyOptions as ToyOptions
