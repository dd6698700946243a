"""What the store could not take is put aside for its user alone."""

from pathlib import Path

from sessionmgr.manager.spool import Spool
from sessionmgr.model import RunCancelled


async def test_ends_that_are_put_aside_are_found_again_and_are_nobody_elses(
    tmp_path: Path,
) -> None:
    path = tmp_path / "runs.db-spool"
    spool = Spool(path)
    end = RunCancelled(session_id="ses_1", run_id="run_1", detail="secret words")
    await spool.add([end])
    assert path.stat().st_mode & 0o777 == 0o600
    assert await Spool(path).read() == {"run_1": end}
    await spool.clear()
    assert not path.exists()
