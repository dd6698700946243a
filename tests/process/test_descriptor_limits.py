"""Each test runs in a process of its own, because limits are a process's."""

from __future__ import annotations

import resource
import subprocess
import sys
import textwrap

import pytest

from sessionmgr.process import DescriptorsExhausted, ProcessError
from sessionmgr.process.descriptor_limits import DescriptorBudget, count_descriptors

START = """
import os, resource, sys
from sessionmgr.process import DescriptorsExhausted
from sessionmgr.process.descriptor_limits import *
def limit(soft, hard):
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
def now():
    return resource.getrlimit(resource.RLIMIT_NOFILE)
"""


def run(script: str) -> None:
    whole = START + textwrap.dedent(script)
    done = subprocess.run([sys.executable, "-c", whole], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()


def test_the_soft_limit_is_raised_to_the_hard_one() -> None:
    run("""
        limit(200, 300)
        assert raise_limit() == LimitChange(200, 300)
        assert now() == (300, 300)
        assert raise_limit() == LimitChange(300, 300)
    """)


def test_the_soft_limit_is_raised_no_further_than_the_cap_and_never_lowered() -> None:
    run("""
        limit(200, 400)
        assert raise_limit(cap=250) == LimitChange(200, 250)
        assert now() == (250, 400)
        assert raise_limit(cap=100) == LimitChange(250, 250)
        assert now() == (250, 400)
    """)


def test_a_refusal_of_the_cap_falls_back_to_what_mac_os_grants() -> None:
    run("""
        limit(200, 300)
        asked = []
        def refuse(which, limits):
            asked.append(limits)
            raise ValueError("current limit exceeds maximum limit")
        resource.getrlimit = lambda which: (200, resource.RLIM_INFINITY)
        resource.setrlimit = refuse
        assert raise_limit() == LimitChange(200, 200)
        assert [soft for soft, _ in asked] == [65_536, 10_240], asked
    """)


def test_a_child_that_would_exhaust_the_limit_is_refused_by_name() -> None:
    run("""
        limit(100, 100)
        room = DescriptorBudget(reserve=10)
        files = []
        try:
            while True:
                room.ensure_room(4)
                files.append(os.open("/dev/null", os.O_RDONLY))
        except DescriptorsExhausted as error:
            refused = error
        assert (refused.limit, refused.needed, refused.reserve) == (100, 4, 10)
        assert refused.in_use == count_descriptors(100) == 87
        assert "87 of 100 are in use, it needs 4, and 10 are kept free" in str(refused)
        assert "ulimit -n" in str(refused)
        os.close(files.pop())
        room.ensure_room(4)
    """)


def test_starts_under_way_count() -> None:
    run("""
        limit(100, 100)
        room = DescriptorBudget(reserve=0)
        free = 100 - count_descriptors(100)
        with room.reserve(free - 4):
            room.ensure_room(4)
            try:
                with room.reserve(5):
                    raise AssertionError
            except DescriptorsExhausted as error:
                assert error.in_use == 96
        room.ensure_room(free)
    """)


def test_a_process_without_a_single_one_left_is_refused_too() -> None:
    run("""
        limit(64, 64)
        try:
            while True:
                os.open("/dev/null", os.O_RDONLY)
        except OSError:
            pass
        try:
            DescriptorBudget().ensure_room()
        except DescriptorsExhausted as error:
            assert error.in_use == 64
        else:
            raise AssertionError
        sys.platform = "darwin"  # where a listing is the only way, and cannot be opened
        assert count_descriptors(64) == 64
    """)


def test_the_count_is_that_of_a_listing() -> None:
    run("""
        before = count_descriptors(0)
        files = [os.open("/dev/null", os.O_RDONLY) for _ in range(20)]
        assert count_descriptors(0) == before + 20
        assert before + 20 == len(os.listdir("/proc/self/fd")) - 1
        sys.platform = "darwin"
        assert count_descriptors(0) == before + 20
    """)


def test_a_refusal_is_a_process_error() -> None:
    with pytest.raises(DescriptorsExhausted) as caught:
        DescriptorBudget().ensure_room(10**12)
    assert isinstance(caught.value, ProcessError)
    assert caught.value.in_use == count_descriptors(resource.getrlimit(resource.RLIMIT_NOFILE)[0])
