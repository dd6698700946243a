"""No secret is stored, whatever it looks like in JSON, and JSON stays JSON."""

import json
from typing import cast

import msgspec
import pytest
from hypothesis import assume, given, strategies as st

from sessionmgr.store.redaction import (
    REDACTED,
    Redactor,
    is_secret,
)

KEYS = [
    "sk-ant-api03-AbCdEf0123456789_-AbCdEf",
    "sk-proj-0123456789abcdefghij",
    "sk-0123456789abcdefABCDEF",
    "ghp_0123456789abcdefghijABCDEFGHIJ012345",
    "gho_0123456789abcdefghijABCDEFGHIJ012345",
    "github_pat_11ABCDEFG0abcdefghijkl_mnopqrstuvwxyz",
    "AKIAIOSFODNN7EXAMPLE",
    "xoxb-123456789012-abcdefghij",
    "AIzaSyA1234567890abcdefghijklmnopqrstuv",
    "-----BEGIN RSA PRIVATE KEY-----\nMIIE/x+y==\nabc\n-----END RSA PRIVATE KEY-----",
    "-----BEGIN PRIVATE KEY-----\nMIIE/x+y==\nand then it was cut",
]
HARMLESS = [
    "task-management-system-for-2-teams and risk-assessment-in-the-year-2026",
    "sk-is-the-language-code-of-slovak-in-most-lists",
    "the bearer authentication-mechanism-of-choice is described elsewhere",
    "ghp_ is a prefix, AKIA too, and so is xoxb-",
    "-----BEGIN CERTIFICATE-----\nabc\n-----END CERTIFICATE-----",
]
SECRETS = ["hunter2-hunter2", 'quo"ted\\slash/é\n', "1234567890123456", "пароль-пароль-1"]


def stored(text: str, secrets: list[str] = SECRETS) -> str:
    found = json.loads(Redactor(secrets).redact(msgspec.json.encode({"text": text})))
    assert isinstance(found["text"], str)
    return found["text"]


@pytest.mark.parametrize("key", KEYS)
def test_a_well_known_key_is_redacted_without_being_declared(key: str) -> None:
    assert stored(f"before {key}", []) == f"before {REDACTED}"
    if "cut" not in key:
        assert stored(f"line\n{key}\nafter, {key}.", []) == f"line\n{REDACTED}\nafter, {REDACTED}."


def test_of_a_bearer_token_the_word_is_kept() -> None:
    token = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.a-b_c/d+e=="
    assert stored(f"Authorization: Bearer {token}") == f"Authorization: Bearer {REDACTED}"


@pytest.mark.parametrize("text", HARMLESS)
def test_what_only_resembles_a_key_is_left_alone(text: str) -> None:
    assert stored(text) == text


@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize("ascii_only", [True, False])
@pytest.mark.parametrize("depth", [1, 2])
def test_a_secret_is_found_in_each_of_its_json_forms(
    secret: str, ascii_only: bool, depth: int
) -> None:
    text = f"it is {secret}!"
    for _ in range(depth):
        text = json.dumps(text, ensure_ascii=ascii_only)
    escaped = text.replace("/", "\\/")
    for body in (text.encode(), escaped.encode()):
        redacted = Redactor([secret]).redact(body)
        assert REDACTED.encode() in redacted
        value = redacted.decode()
        for _ in range(depth):
            value = json.loads(value)
        assert value == f"it is {REDACTED}!"


def test_a_record_without_secrets_is_the_same_object() -> None:
    body = b'{"type" : "odd",  "type":"twice"}'
    assert Redactor(SECRETS).redact(body) is body


def test_a_secret_that_is_a_number_leaves_json() -> None:
    body = b'{"n":[1234567890123456,1.5,true,null],"1234567890123456":"x"}'
    redacted = Redactor(SECRETS).redact(body)
    assert json.loads(redacted) == {"n": [REDACTED, 1.5, True, None], REDACTED: "x"}


def test_what_is_no_json_is_redacted_as_text() -> None:
    assert Redactor(SECRETS).redact(b"\xff hunter2-hunter2 {") == b"\xff [redacted] {"


@pytest.mark.parametrize(
    "value",
    ["", "short-1", "aaaaaaaaaaaa", "abababababab", "development", "localhost", "20261118"],
)
def test_what_is_short_or_everyday_is_no_secret(value: str) -> None:
    assert not is_secret(value)
    assert stored(f"on {value} it is", [value]) == f"on {value} it is"


@pytest.mark.parametrize("value", ["hunter2!", "correcthorsebattery", "123456789012"])
def test_what_is_long_or_odd_enough_is_a_secret(value: str) -> None:
    assert is_secret(value)
    assert value not in stored(f"on {value} it is", [value])


def test_a_secret_does_not_hide_the_rest_of_a_longer_one() -> None:
    assert stored("abcdefg-1-and-more", ["abcdefg-1", "abcdefg-1-and-more"]) == REDACTED


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)
SECRET = st.text(min_size=8, max_size=20).filter(is_secret)


def strings(value: object) -> list[str]:
    """Return all strings of a value, keys and numbers as written included."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, list):
        return [text for each in cast("list[object]", value) for text in strings(each)]
    if isinstance(value, dict):
        members = cast("dict[str, object]", value)
        return [*members, *(text for each in members.values() for text in strings(each))]
    return [json.dumps(value)]


@given(value=JSON, secret=SECRET, around=st.text(max_size=10), ascii_only=st.booleans())
def test_json_stays_json_and_no_string_holds_the_secret(
    value: object, secret: str, around: str, ascii_only: bool
) -> None:
    assume(secret not in REDACTED)
    whole = [value, {around: f"{around}{secret}{around}", f"{secret}{around}": value}]
    body = json.dumps(whole, ensure_ascii=ascii_only).encode(errors="surrogatepass")
    assume(b"\xed" not in body or not any("\ud800" <= c <= "\udfff" for c in secret + around))
    found = json.loads(Redactor([secret]).redact(body))
    assert not [text for text in strings(found) if secret in text]


@given(body=st.binary(max_size=200))
def test_any_bytes_can_be_redacted(body: bytes) -> None:
    assert Redactor([]).redact(Redactor([]).redact(body)) == Redactor([]).redact(body)


@given(bodies=st.lists(st.binary(max_size=40), max_size=4), secret=st.sampled_from(SECRETS))
def test_a_block_of_records_is_clean_only_if_each_of_them_is(
    bodies: list[bytes], secret: str
) -> None:
    redactor = Redactor([secret])
    holds = [*bodies, json.dumps(f"key: {secret}").encode()]
    assert not redactor.is_clean(b"\n".join(holds))
    if redactor.is_clean(b"\n".join(bodies)):
        assert all(redactor.redact(body) is body for body in bodies)
