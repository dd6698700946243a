"""Threads that stay loaded."""

from __future__ import annotations

from sessionmgr_adapters.codex.thread_cache import KEPT, Shelf, terms_of


def test_what_is_wanted_is_the_same_for_a_thread_that_begins_and_goes_on() -> None:
    begun = terms_of({"cwd": "/w", "sandbox": "read-only", "dynamicTools": []})
    resumed = terms_of({"threadId": "t", "excludeTurns": True, "sandbox": "read-only", "cwd": "/w"})
    assert begun == resumed
    assert begun == terms_of({"cwd": "/w", "sandbox": "workspace-write"})  # that can be changed
    assert begun != terms_of({"cwd": "/w", "model": "gpt-x"})


def test_a_shelf_has_so_many_places_and_the_oldest_goes() -> None:
    shelf = Shelf()
    scopes = [shelf.put(str(number)) for number in range(KEPT + 1)]
    assert shelf.surplus() == ["0"]
    assert shelf.take("0")
    assert not shelf.take("0")
    assert scopes[0].cancel_called
    assert shelf.surplus() == []
    assert "1" in shelf
