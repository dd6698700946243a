"""The usage of a run, computed from the usage of its thread."""

from sessionmgr.model import Usage
from sessionmgr_adapters.codex.exec.normalise import ThreadMeters
from sessionmgr_adapters.codex.frames import CodexTokenCounts


def counts(tokens: int) -> CodexTokenCounts:
    return CodexTokenCounts(input_tokens=tokens, cached_input_tokens=tokens // 2, output_tokens=1)


def begun(*threads: str, limit: int = 9) -> ThreadMeters:
    meters = ThreadMeters(limit)
    for each in threads:
        meters.begin(each)
    return meters


def test_a_new_thread_has_used_what_it_says() -> None:
    spent = begun("a").record_usage("a", counts(100))
    assert spent is not None
    assert spent.usage == Usage(input=50, cached_input=50, output=1) == spent.total


def test_the_next_run_has_used_what_came_on_top() -> None:
    meters = begun("a", "b")
    meters.record_usage("a", counts(100))
    meters.record_usage("b", counts(1000))
    spent = meters.record_usage("a", counts(160))
    assert spent is not None
    assert spent.usage == Usage(input=30, cached_input=30) == spent.total


def test_of_a_thread_that_others_have_used_nothing_is_known_at_first() -> None:
    meters = ThreadMeters()
    assert meters.record_usage("a", counts(100)) is None
    spent = meters.record_usage("a", counts(102))
    assert spent is not None
    assert spent.usage == Usage(input=1, cached_input=1)


def test_a_run_that_has_used_nothing_says_nothing() -> None:
    meters = begun("a")
    meters.record_usage("a", counts(100))
    assert meters.record_usage("a", counts(100)) is None


def test_the_thread_that_was_used_longest_ago_is_forgotten() -> None:
    meters = begun("a", "b", "c", limit=2)
    for thread in ("a", "b", "c"):
        meters.record_usage(thread, counts(100))
    assert meters.record_usage("a", counts(200)) is None
    assert meters.record_usage("c", counts(200)) is not None
