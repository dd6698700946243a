"""Runs on `codex exec`: one process per run, which prints lines of JSON."""

from sessionmgr_adapters.codex.exec.driver import ExecRun as ExecRun
from sessionmgr_adapters.codex.exec.launch import make_exec_spec as make_exec_spec
from sessionmgr_adapters.codex.exec.normalise import ThreadMeters as ThreadMeters
