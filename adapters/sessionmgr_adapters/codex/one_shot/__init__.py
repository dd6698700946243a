"""`codex exec`: one run, one process, lines of JSON. The second way to Codex, and the simpler."""

from sessionmgr_adapters.codex.one_shot.launch import OneShotSpec as OneShotSpec
from sessionmgr_adapters.codex.one_shot.play import OneShot as OneShot
from sessionmgr_adapters.codex.one_shot.spending import Meters as Meters
