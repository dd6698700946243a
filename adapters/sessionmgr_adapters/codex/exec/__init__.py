"""`codex exec`: one run, one process, lines of JSON. The second way to Codex, and the simpler."""

from sessionmgr_adapters.codex.exec.driver import ExecRun as ExecRun
from sessionmgr_adapters.codex.exec.launch import make_exec_spec as make_exec_spec
from sessionmgr_adapters.codex.exec.normalise import ThreadMeters as ThreadMeters
