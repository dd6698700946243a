from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from sessionmgr.errors import PendingFull, WireError
from sessionmgr.wire.json_rpc import ErrorResponse, Id, Response
from sessionmgr.wire.pending import Asked, Pending, Stray


def answer(id_: Id | None) -> Response:
    return Response(id_, b"{}")


def test_an_answer_finds_its_request_whatever_the_order() -> None:
    table: Pending[str] = Pending()
    ids = [table.open(f"m{n}", f"t{n}") for n in range(3)]
    assert len(set(ids)) == 3
    for n in (2, 0, 1):
        assert table.settle(answer(ids[n])) == Asked(ids[n], f"m{n}", f"t{n}")
    assert len(table) == 0


def test_an_error_settles_a_request_too() -> None:
    table: Pending[None] = Pending()
    id_ = table.open("m", None)
    assert table.settle(ErrorResponse(id_, -32600, "no")) == Asked(id_, "m", None)


@pytest.mark.parametrize("prefix", [None, "c"])
def test_a_second_answer_and_one_never_asked_for_are_values(prefix: str | None) -> None:
    table: Pending[None] = Pending(prefix=prefix)
    id_ = table.open("m", None)
    table.settle(answer(id_))
    assert table.settle(answer(id_)) == Stray(id_, asked_once=True)
    table.open("n", None)
    for stranger in (0, -1, 3, "1", "2", "c0", "c3", "c01", "c", "c²", "c" + "9" * 5000, "", None):
        assert table.settle(answer(stranger)) == Stray(stranger, asked_once=False)
    assert len(table) == 1


def test_a_number_and_its_text_are_different_ids() -> None:
    numbers: Pending[None] = Pending()
    assert numbers.open("m", None) == 1
    assert numbers.settle(answer("1")) == Stray("1", asked_once=False)
    texts: Pending[None] = Pending(prefix="")
    assert texts.open("m", None) == "1"
    assert texts.settle(answer(1)) == Stray(1, asked_once=False)


def test_a_request_that_was_withdrawn_is_not_settled_by_its_late_answer() -> None:
    table: Pending[str] = Pending()
    id_ = table.open("m", "t")
    assert table.withdraw(id_) == Asked(id_, "m", "t")
    assert table.withdraw(id_) is None
    assert table.settle(answer(id_)) == Stray(id_, asked_once=True)


def test_a_full_table_says_so_and_notes_nothing() -> None:
    table: Pending[None] = Pending(limit=2)
    first = table.open("old", None)
    table.open("m", None)
    with pytest.raises(PendingFull, match="2 await their answers, the oldest a 'old'") as caught:
        table.open("new", None)
    assert (caught.value.method, caught.value.limit) == ("new", 2)
    assert isinstance(caught.value, WireError)
    assert (len(table), table.room) == (2, 0)
    table.settle(answer(first))
    assert table.open("new", None) == 3


def test_all_that_is_open_can_be_given_up_at_once() -> None:
    table: Pending[str] = Pending(prefix="c")
    ids = [table.open("m", ticket) for ticket in "abc"]
    table.settle(answer(ids[1]))
    assert [asked.ticket for asked in table.drain()] == ["a", "c"]
    assert table.drain() == []
    assert table.settle(answer(ids[0])) == Stray(ids[0], asked_once=True)


@given(st.lists(st.tuples(st.sampled_from(["open", "settle", "withdraw"]), st.integers(-1, 12))))
def test_the_table_agrees_with_a_list_of_what_is_open(steps: list[tuple[str, int]]) -> None:
    table: Pending[int] = Pending(limit=4)
    asked: list[Id] = []
    open_: list[Id] = []
    for step, n in steps:
        if step == "open" and len(open_) < 4:
            asked.append(table.open("m", n))
            open_.append(asked[-1])
        elif step == "open":
            with pytest.raises(PendingFull):
                table.open("m", n)
        elif step == "settle":
            found = table.settle(answer(n))
            assert isinstance(found, Asked) == (n in open_)
            assert found == Stray(n, n in asked) or n in open_
            open_ = [id_ for id_ in open_ if id_ != n]
        else:
            assert (table.withdraw(n) is not None) == (n in open_)
            open_ = [id_ for id_ in open_ if id_ != n]
        assert [each.id for each in table.drain()] == open_ if n == 12 else len(table) == len(open_)
        open_ = [] if n == 12 else open_
