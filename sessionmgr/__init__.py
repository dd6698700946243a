"""Sessions with AI coding agents as supervised actors, on trio.

`open_manager` opens a session manager, `ask` runs one prompt, `run_batch` runs many jobs, and
`open_portal` serves programs that do not run on trio. Events and results are values of
`sessionmgr.model`. The packages below are libraries of their own: `sessionmgr.otp` (supervisors and
actors), `sessionmgr.process` (child process trees), `sessionmgr.wire` (frames) and
`sessionmgr.store` (the event store).
"""

from sessionmgr.lazy_exports import __dir__ as __dir__, __getattr__ as __getattr__
