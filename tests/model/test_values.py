"""Small values: capabilities, outcomes, ids, timestamps, schemas, and the diagram of the page."""

import json
import random
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, strategies as st

import sessionmgr.model
from sessionmgr.model import (
    CAPABILITIES,
    EMULATED,
    EVENT_TYPES,
    NATIVE,
    OUTCOMES,
    TERMINAL,
    TRANSITIONS,
    UNSUPPORTED,
    Capabilities,
    EndCause,
    EndReason,
    FailureKind,
    IdKind,
    Json,
    Negotiation,
    PermissionMode,
    RunResult,
    RunStatus,
    decode_result,
    encode_json,
    event_schema,
    id_kind,
    negotiate,
    new_id,
    result_schema,
)
from sessionmgr.model.state_diagram import mermaid_diagram
from sessionmgr.model.timestamps import format_timestamp, parse_timestamp, seconds_between

OFFER = Capabilities(streaming=NATIVE, resume=EMULATED)


def test_the_capabilities_are_these() -> None:
    assert (
        tuple(
            "streaming reasoning tool_use tool_approval system_prompt interrupt steer resume fork "
            "structured_output images_in images_out mcp files command_execution web plan_mode "
            "max_turns usage cost model_choice effort".split()
        )
        == CAPABILITIES
    )


def test_what_is_required_and_not_there_is_missing() -> None:
    found = negotiate(OFFER, require=["streaming", "fork", "resume"])
    assert found.granted == {"streaming": NATIVE, "resume": EMULATED}
    assert found.missing == ("fork",)
    assert [each.name for each in found.degraded] == ["resume"]


def test_emulated_does_not_satisfy_who_wants_it_native() -> None:
    found = negotiate(OFFER, require_native=["streaming", "resume"])
    assert found.missing == ("resume",)
    assert found.granted == {"streaming": NATIVE}


def test_what_is_preferred_and_not_there_is_degraded_with_a_why() -> None:
    found = negotiate(OFFER, prefer=["fork", "resume", "flight"])
    assert found.missing == ()
    assert {each.name: each.support for each in found.degraded} == {
        "fork": UNSUPPORTED,
        "resume": EMULATED,
        "flight": UNSUPPORTED,
    }
    assert all(each.name in each.why for each in found.degraded)


def test_who_asks_nothing_is_granted_nothing_and_misses_nothing() -> None:
    assert negotiate(OFFER) == Negotiation()


def test_the_live_handshake_narrows_and_never_widens() -> None:
    live = OFFER.narrowed({"streaming": EMULATED, "resume": NATIVE, "fork": NATIVE, "x": NATIVE})
    assert live == Capabilities(streaming=EMULATED, resume=EMULATED)


def test_each_cause_of_an_end_has_its_row() -> None:
    rows = {
        (
            end.status.value,
            end.kind.value if end.kind else None,
            end.reason.value if end.reason else None,
            end.exit_code,
        )
        for end in OUTCOMES.values()
    }
    assert set(OUTCOMES) == set(EndCause)
    assert rows == {
        ("completed", None, None, 0),
        ("failed", None, None, 3),
        ("rate_limited", "rate_limited", None, 3),
        ("cancelled", None, "user", 3),
        ("cancelled", None, "shutdown", 130),
        ("cancelled", None, "superseded", 3),
        ("timed_out", "timed_out", "deadline", 3),
        ("timed_out", "stalled", "idle", 3),
        ("failed", "budget_exceeded", "budget", 3),
        ("paused", None, "pause", 0),
        ("failed", "capability_missing", None, 3),
        ("failed", "adapter_crashed", None, 3),
        ("failed", "manager_crashed", None, 3),
    }
    assert {end.status for end in OUTCOMES.values()} == TERMINAL
    assert {end.reason for end in OUTCOMES.values()} - {None} == set(EndReason)


def test_the_kinds_of_failure_are_these() -> None:
    assert [kind.value for kind in FailureKind] == (
        "config_invalid cli_not_found capability_missing permission_refused start_failed "
        "auth_failed billing quota_exhausted rate_limited overloaded model_not_found "
        "context_exceeded refused protocol_error process_exited killed_by_os stalled timed_out "
        "budget_exceeded approval_unanswered structured_invalid session_not_found session_busy "
        "adapter_crashed manager_crashed store_failed provider_error"
    ).split()


def test_the_permission_modes_are_these() -> None:
    assert [mode.value for mode in PermissionMode] == [
        "default",
        "accept_edits",
        "plan",
        "full_auto",
        "dangerously_skip_permissions",
    ]


def test_the_result_has_these_fields_and_no_others() -> None:
    result = RunResult(id="run_1", session_id="ses_1", provider="echo")
    assert (
        list(json.loads(encode_json(result)))
        == (
            "id session_id provider status reason detail text structured stop_reason tool_calls "
            "usage cost failure provider_session_id negotiation permission permission_denials "
            "images first_seq last_seq started_at ended_at duration turns exit_code resumed_from "
            "metadata"
        ).split()
    )


def test_a_result_of_a_later_version_is_read_without_what_is_new() -> None:
    result = RunResult(id="run_1", session_id="ses_1", provider="echo", text="hi")
    newer: dict[str, Json] = {**json.loads(encode_json(result)), "mood": "calm"}
    newer["usage"] = {"input": 3, "dreams": 4}
    read_back = decode_result(encode_json(newer))
    assert (read_back.text, read_back.usage.input) == ("hi", 3)


@pytest.mark.parametrize("line", [b"", b"[]", b'{"id":3}'])
def test_what_is_no_result_is_refused(line: bytes) -> None:
    with pytest.raises(msgspec.ValidationError):
        decode_result(line)


@pytest.mark.parametrize("kind", IdKind)
def test_an_id_says_what_it_names(kind: IdKind) -> None:
    made = new_id(kind)
    assert made.startswith(f"{kind}_")
    assert id_kind(made) is kind
    assert made != new_id(kind)


def test_an_id_is_made_of_the_bits_it_is_given() -> None:
    twice = [new_id(IdKind.RUN, random.Random(7).getrandbits) for _ in range(2)]
    assert twice[0] == twice[1]
    assert id_kind("something_else") is None
    assert id_kind("run_") is None


@given(st.integers(0, 4 * 10**12))
def test_a_moment_is_read_as_it_was_written(milliseconds: int) -> None:
    text = format_timestamp(milliseconds / 1000)
    assert text.endswith("Z")
    assert len(text) == len("2026-01-01T00:00:00.000Z")
    assert abs(parse_timestamp(text) * 1000 - milliseconds) <= 1


@given(st.floats(-6e10, 2.5e11) | st.integers(0, 4 * 10**15).map(lambda micros: micros / 1e6))
def test_a_moment_is_written_as_the_calendar_has_it(seconds: float) -> None:
    there = datetime.fromtimestamp(seconds, UTC)
    assert format_timestamp(seconds) == there.isoformat(timespec="milliseconds")[:-6] + "Z"


def test_a_moment_without_a_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="time zone"):
        parse_timestamp("2026-01-01T00:00:00")
    assert seconds_between("2026-01-01T00:00:00Z", "2026-01-01T01:00:00+01:00") == 0


def test_the_schema_of_events_names_every_type_and_takes_newer_fields() -> None:
    schema = event_schema()
    definitions = schema["$defs"]
    assert isinstance(definitions, dict)
    text = json.dumps(schema)
    assert all(f'"enum": ["{name}"]' in text for name in EVENT_TYPES)
    assert "additionalProperties" not in json.dumps(definitions["RunFailed"])
    assert "~source" not in text


def test_the_schema_of_results_has_their_fields() -> None:
    definitions = result_schema()["$defs"]
    assert isinstance(definitions, dict)
    result = definitions["RunResult"]
    assert isinstance(result, dict)
    properties = result["properties"]
    assert isinstance(properties, dict)
    assert tuple(properties) == RunResult.__struct_fields__


def test_the_diagram_of_the_page_is_that_of_the_table() -> None:
    page = Path(sessionmgr.model.__file__).with_name("README.md").read_text(encoding="utf-8")
    assert f"```mermaid\n{mermaid_diagram(TRANSITIONS)}\n```" in page
    assert mermaid_diagram(TRANSITIONS).count("--> [*]") == len(TERMINAL)
    assert all(status.value in mermaid_diagram(TRANSITIONS) for status in RunStatus)
