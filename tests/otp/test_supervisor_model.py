"""Supervisors follow the rules of OTP: random scripts against the model of the rules."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings

from tests.otp.dynamic_supervisor_model import check_dynamic_supervisor
from tests.otp.script_runner import SupervisorScriptRunner
from tests.otp.supervisor_model import check_supervisor
from tests.otp.supervisor_scripts import SupervisorScript, scripts


@pytest.fixture(autouse=True, scope="module")
def _silence() -> Iterator[None]:
    logging.disable()
    yield
    logging.disable(logging.NOTSET)


asked_for = settings().max_examples
often = settings(
    max_examples=max(20 * min(asked_for, 100), asked_for),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@often
@given(scripts())
def test_a_supervisor_follows_the_rules(script: SupervisorScript) -> None:
    world = SupervisorScriptRunner(script)
    trace = world.run()
    check_supervisor(script, trace)
    assert world.alive == {}
    assert world.left_over == 0


@often
@given(scripts(dynamic=True))
def test_a_dynamic_supervisor_follows_the_rules(script: SupervisorScript) -> None:
    world = SupervisorScriptRunner(script, dynamic=True)
    trace = world.run()
    check_dynamic_supervisor(script, trace)
    assert world.alive == {}
    assert world.left_over == 0
