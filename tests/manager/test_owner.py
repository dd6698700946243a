"""Whether a lease's owner is alive, and when that is uncertain."""

import os
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager

import pytest
from msgspec.structs import replace

from sessionmgr.manager.owner import (
    ManagerOwner,
    ProcessScope,
    describe_holder as describe,
    is_lease_valid,
    is_owner_alive,
    is_owner_gone,
    owner_liveness,
    process_scope,
)
from sessionmgr.process import procfs
from sessionmgr.store import Lease, LeaseOwner

HERE = process_scope()


def of_process(pid: int) -> LeaseOwner:
    return LeaseOwner(HERE.boot_id, pid, procfs.start_time(pid), "another", HERE.namespace)


@contextmanager
def neighbour() -> Generator[LeaseOwner]:
    """Run another process, and return the owner for a manager in it."""
    with subprocess.Popen(["sleep", "1000"]) as process:
        try:
            yield of_process(process.pid)
        finally:
            process.kill()


def test_a_process_that_runs_lives_and_one_that_began_at_another_time_is_gone() -> None:
    with neighbour() as owner:
        assert is_owner_alive(owner)
        assert not is_owner_gone(owner)
        assert is_owner_gone(replace(owner, start=owner.start + 1))
    assert is_owner_gone(owner)


def test_a_process_that_is_stopped_lives() -> None:
    with neighbour() as owner:
        os.kill(owner.pid, signal.SIGSTOP)
        os.waitid(os.P_PID, owner.pid, os.WSTOPPED | os.WNOWAIT)
        assert is_owner_alive(owner)


def test_a_zombie_is_gone() -> None:
    with subprocess.Popen(["true"]) as process:
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        owner = of_process(process.pid)
        assert owner.start > 0
        assert is_owner_gone(owner)


@pytest.mark.parametrize(
    ("seen", "certain"),
    [
        (HERE, True),
        (ProcessScope(HERE.boot_id, "pid:[1]"), None),  # in another container
        (ProcessScope(HERE.boot_id, ""), None),  # /proc shows the processes of another namespace
        (ProcessScope("", ""), None),  # without /proc
        (ProcessScope("another", HERE.namespace), False),  # after a boot
    ],
)
def test_a_process_is_seen_only_where_its_number_was_given_out(
    seen: ProcessScope, certain: bool | None
) -> None:
    with neighbour() as owner:
        assert owner_liveness(owner, seen) is certain
    assert owner_liveness(owner, seen) is (certain and False)


def test_nothing_is_certain_of_an_owner_that_an_earlier_version_stored() -> None:
    with neighbour() as owner:
        assert owner_liveness(replace(owner, namespace=""), HERE) is None
    assert owner_liveness(replace(owner, namespace=""), HERE) is None


def test_nothing_is_certain_of_an_owner_whose_start_could_not_be_read() -> None:
    with neighbour() as owner:  # it had no descriptor for that, say
        assert owner_liveness(replace(owner, start=0), HERE) is None
    assert owner_liveness(replace(owner, start=0), HERE) is False


def test_a_manager_of_this_process_lives_while_its_block_does_even_without_proc() -> None:
    presence = ManagerOwner("bat_mine")
    presence.register()
    assert owner_liveness(presence.owner, ProcessScope("", "")) is True
    presence.unregister()
    assert is_owner_gone(presence.owner)


def test_a_lease_of_a_living_owner_outlasts_its_end_and_others_do_not() -> None:
    with neighbour() as owner:
        lease = Lease(name="x", owner=owner, fence=1, expires=1000)
        hidden = replace(lease, owner=replace(owner, namespace="pid:[1]"))
        assert is_lease_valid(lease, 999)
        assert is_lease_valid(lease, 1_000_000)
        assert is_lease_valid(hidden, 999)
        assert not is_lease_valid(hidden, 1000)
    assert not is_lease_valid(lease, 999)


def test_who_holds_a_lease_is_named_and_for_how_long() -> None:
    with neighbour() as owner:
        said = describe(owner, 84_000)
        assert f"process {owner.pid} on this machine" in said
        assert "84 s more" in said
        hidden = describe(replace(owner, namespace="pid:[1]"), 84_000)
        assert "cannot be seen from here" in hidden
        assert "84 s more" in hidden
    assert "has ended" in describe(owner, 84_000)


@pytest.mark.parametrize("pid", [0, -1])
def test_nothing_is_certain_of_a_number_that_no_process_has(pid: int) -> None:
    assert procfs.is_running(pid, 1) is None


def test_a_manager_does_not_live_on_in_a_forked_copy_of_its_process() -> None:
    code = """
import os
from sessionmgr.manager.owner import ManagerOwner, ProcessScope, is_owner_alive, owner_liveness
presence = ManagerOwner("bat_mine")
presence.register()
pid = os.fork()
if not pid:
    seen = (
        is_owner_alive(presence.owner)
        and owner_liveness(presence.owner, ProcessScope("", "")) is None
    )
    os._exit(0 if seen else 1)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "0\n"  # its own process sees it alive, as others do
