"""Structured output is present and valid, or the run reports that it was not validated."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest
from msgspec import UNSET

from sessionmgr.adapter.kit import structured_output
from sessionmgr.adapter.kit.structured_output import schema_fault, validate_output
from sessionmgr.model import ErrorOccurred, Failure, FailureKind, Json

PERSON: Json = {
    "type": "object",
    "properties": {"age": {"type": "integer"}},
    "required": ["age"],
}


@pytest.fixture
def _installed() -> None:
    pytest.importorskip("jsonschema_rs", reason="the extra `schema` is not installed")


@pytest.fixture
def _not_installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setitem(sys.modules, "jsonschema_rs", None)
    structured_output.find_validator_factory.cache_clear()
    yield
    structured_output.find_validator_factory.cache_clear()


def test_where_nothing_was_asked_for_nothing_is_judged() -> None:
    assert validate_output(None, UNSET) is None
    assert validate_output(None, 1) is None
    assert schema_fault(None) is None


def test_what_is_missing_is_a_failure() -> None:
    failure = validate_output(PERSON, UNSET)
    assert isinstance(failure, Failure)
    assert failure.kind is FailureKind.STRUCTURED_INVALID
    assert (failure.provider_code, failure.resumable) == ("missing_structured_output", True)


@pytest.mark.usefixtures("_installed")
def test_what_is_valid_is_well_and_nothing_is_said_of_it() -> None:
    assert validate_output(PERSON, {"age": 3}) is None


@pytest.mark.usefixtures("_installed")
def test_what_is_not_valid_is_told_by_its_place_and_without_its_value() -> None:
    failure = validate_output(PERSON, {"age": "a secret"})
    assert isinstance(failure, Failure)
    assert failure.kind is FailureKind.STRUCTURED_INVALID
    assert "/age" in failure.message
    assert "integer" in failure.message
    assert "secret" not in failure.message


@pytest.mark.usefixtures("_installed")
@pytest.mark.parametrize("schema", [{"type": "nonsense"}, {"$ref": "http://127.0.0.1:9/x"}])
def test_a_schema_that_is_none_is_known_beforehand_and_nothing_is_fetched(schema: Json) -> None:
    assert "not a valid JSON Schema" in str(schema_fault(schema))
    assert isinstance(validate_output(schema, 1), ErrorOccurred)


@pytest.mark.usefixtures("_not_installed")
def test_without_the_extra_it_is_said_that_validity_is_not_known() -> None:
    warning = validate_output(PERSON, {"age": "three"})
    assert isinstance(warning, ErrorOccurred)
    assert warning.severity == "warning"
    assert "not installed" in warning.failure.message
    assert schema_fault({"type": "nonsense"}) is None
    assert schema_fault([]) == "it is not an object"
