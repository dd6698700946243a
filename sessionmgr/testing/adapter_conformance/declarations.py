"""The behaviours of declarations: they are true, and anything undeclared is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from sessionmgr.adapter import CapabilityMissing, OptionInvalid, Options, PermissionRefused
from sessionmgr.model import CAPABILITIES, UNSUPPORTED, PermissionMode
from sessionmgr.testing.adapter_conformance.behaviour import AdapterBehaviourGroup

if TYPE_CHECKING:
    from sessionmgr.testing.adapter_conformance.harness import ConformanceHarness

DECLARING: Final = AdapterBehaviourGroup()


@DECLARING.register()
async def its_methods_match_its_declared_capabilities(
    stage: ConformanceHarness,
) -> None:
    adapter = stage.case.adapter
    assert adapter.name
    assert adapter.name == adapter.name.strip().lower()
    offered = adapter.capabilities
    assert adapter.can_interrupt() == (offered.interrupt != UNSUPPORTED), "interrupt"
    assert adapter.can_append() == (offered.steer != UNSUPPORTED), "steer"


@DECLARING.register()
async def its_options_are_a_frozen_struct_without_unknown_fields(
    stage: ConformanceHarness,
) -> None:
    options = stage.case.adapter.options
    assert issubclass(options, Options)
    config = options.__struct_config__
    assert config.frozen
    assert config.forbid_unknown_fields
    fields = msgspec.structs.fields(options)
    assert all(not each.required for each in fields), "each option needs a default"


@DECLARING.register()
async def an_unknown_option_is_refused_by_its_name(stage: ConformanceHarness) -> None:
    session = await stage.session()
    try:
        await session.submit("hi", options={**stage.case.answers.options, "no_such_option": 1})
    except OptionInvalid as error:
        assert "no_such_option" in str(error)  # noqa: PT017  # there may be no pytest
    else:
        raise AssertionError("an unknown option was accepted")
    assert not (await stage.store.runs()).rows, "a refused start has left a run"


@DECLARING.register()
async def a_capability_that_it_does_not_have_is_refused(stage: ConformanceHarness) -> None:
    session = await stage.session()
    for name in CAPABILITIES:
        if stage.case.adapter.capabilities.support(name) != UNSUPPORTED:
            continue
        try:
            await session.submit("hi", options=stage.case.answers.options, require=[name])
        except CapabilityMissing as error:
            assert error.negotiation.missing == (name,)  # noqa: PT017
        else:
            raise AssertionError(f"a run was started without the required capability {name}")
    assert not (await stage.store.runs()).rows


@DECLARING.register()
async def a_permission_mode_is_kept_or_refused_and_the_record_says_which(
    stage: ConformanceHarness,
) -> None:
    supported = stage.supported_modes(stage.case.answers)
    for mode in PermissionMode:
        session = await stage.session(mode)
        if mode not in supported:
            try:
                await stage.submit(stage.case.answers, session)
            except PermissionRefused as error:
                assert error.mode == mode  # noqa: PT017
                continue
            raise AssertionError(f"a run was started in the unsupported mode {mode}")
        played = await stage.run_to_end(stage.case.answers, session)
        permission = played.result.permission
        assert permission is not None
        assert permission.asked == mode
        mapped = supported[mode]
        assert permission.fidelity == mapped.fidelity
        # An adapter may add what the agent reports about the mode.
        assert permission.effective.startswith(mapped.effective)
