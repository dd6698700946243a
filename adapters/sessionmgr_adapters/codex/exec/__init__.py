"""`codex exec`: one run, one process, lines of JSON. The second way to Codex, and the simpler."""

from sessionmgr_adapters.codex.exec.driver import OneShot as OneShot
from sessionmgr_adapters.codex.exec.launch import make_spec as make_spec
from sessionmgr_adapters.codex.exec.normalise import Meters as Meters
