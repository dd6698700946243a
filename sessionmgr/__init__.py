"""Sessions with AI coding agents as supervised actors, on trio.

`open_manager` runs sessions with whatever has an adapter; what happens in them is told in events,
and what became of them in results (`sessionmgr.model`). Below it lie libraries of their own:
`sessionmgr.otp` (supervisors and actors), `sessionmgr.process` (child process trees),
`sessionmgr.wire` (frames), `sessionmgr.store` (where events are kept).
"""

from sessionmgr.lazy_exports import __dir__ as __dir__, __getattr__ as __getattr__
