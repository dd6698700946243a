"""Log handler that reports unexpected crashes of the library's parts."""

from __future__ import annotations

import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, cast

from sessionmgr.otp import RestartIntensityExceeded
from sessionmgr.store import StoreError
from sessionmgr.testing.script_runner import ScriptedCrash
from tests.simulation.store_faults import InjectedFault

if TYPE_CHECKING:
    from collections.abc import Generator

    from tests.simulation.world import SimulatedWorld

_MEANT: Final = (InjectedFault, ScriptedCrash, StoreError, RestartIntensityExceeded)


class LogMonitor(logging.Handler):
    """Reports each crash of a part of the manager that the simulation has not caused."""

    def __init__(self, world: SimulatedWorld) -> None:
        super().__init__(logging.ERROR)
        self._world = world

    def emit(self, record: logging.LogRecord) -> None:
        """Check a log record."""
        if getattr(record, "event", "") not in {"child_crashed", "start_failed"}:
            return
        supervisor = str(getattr(record, "supervisor", ""))
        error = record.exc_info[1] if record.exc_info else None
        # The parts directly below the root must survive all faults; what they run need not.
        if supervisor == "manager" or not all(isinstance(each, _MEANT) for each in _leaves(error)):
            child = getattr(record, "child", "")
            self._world.add_violation(f"{supervisor}/{child} crashed: {error!r}{_where(error)}")


def _leaves(error: BaseException | None) -> list[BaseException | None]:
    if isinstance(error, BaseExceptionGroup):
        inner = list(cast("BaseExceptionGroup[BaseException]", error).exceptions)
        return [leaf for each in inner for leaf in _leaves(each)]
    return [error]


def _where(error: BaseException | None) -> str:
    place = ""
    trace = error.__traceback__ if error else None
    while trace is not None:
        code = trace.tb_frame.f_code
        if "sessionmgr" in code.co_filename:
            place = f" in {code.co_qualname}, line {trace.tb_lineno}"
        trace = trace.tb_next
    return place


@contextmanager
def monitoring_log(world: SimulatedWorld) -> Generator[None, None, None]:
    """Capture the library's log records, and check them."""
    log = logging.getLogger("sessionmgr")
    listener = LogMonitor(world)
    before = log.level, log.propagate
    log.setLevel(logging.ERROR)
    log.propagate = False
    log.addHandler(listener)
    try:
        yield
    finally:
        log.removeHandler(listener)
        log.level, log.propagate = before
        log.setLevel(before[0])
