"""Sessions with AI coding agents as supervised actors, on trio.

`open_manager` runs sessions with any agent that has an adapter; events record what happens in them,
and results how they ended (`sessionmgr.model`). The packages below it can be used on their own:
`sessionmgr.otp` (supervisors and actors), `sessionmgr.process` (child process trees),
`sessionmgr.wire` (frames), `sessionmgr.store` (storage of events).
"""

from sessionmgr.lazy_exports import __dir__ as __dir__, __getattr__ as __getattr__
