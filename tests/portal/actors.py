"""A portal on a scripted provider, and what a test waits for in it."""

from collections.abc import Generator
from contextlib import contextmanager

from sessionmgr import Portal, PortalRun, open_portal
from sessionmgr.model import AnyEvent
from sessionmgr.portal import CallApprove
from sessionmgr.store import MemoryStore, Store
from sessionmgr.testing.invariants import broken_laws
from sessionmgr.testing.scripted_provider import Script, Step, scripted, write_script

SHORTLY = 240.0
"""More seconds than any call here takes on a busy machine."""


def play(*steps: Step, **how: object) -> str:
    return write_script(Script(steps=steps, **how))  # type: ignore[arg-type]


@contextmanager
def lawful_portal(
    *, store: Store | None = None, call_approve: CallApprove | None = None
) -> Generator[Portal]:
    """Open a portal with the provider `actor`; afterwards its record obeys all laws."""
    store = MemoryStore() if store is None else store
    adapters = {"actor": scripted("actor")}
    with open_portal(store=store, adapters=adapters, call_approve=call_approve) as portal:
        yield portal
    with open_portal() as other:
        assert other.call(lambda manager: broken_laws(store)) == []


def until_started(run: PortalRun) -> AnyEvent:
    """Wait until the agent works."""
    for event in run:
        if event.type == "run_started":
            return event
    raise AssertionError("the run never started")


def types(run: PortalRun) -> list[str]:
    return [event.type for event in run]
