"""A portal gives ordinary, blocking calls to programs that are not on trio."""

import doctest
import threading
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import sessionmgr.portal.portal
import sessionmgr.portal.run
from sessionmgr import Allow, ApprovalRequest, Decision, Deny, Job, Portal, open_portal
from sessionmgr.adapter import OptionInvalid, ProviderUnknown, StartRefused
from sessionmgr.batch import JobsInvalid
from sessionmgr.manager import ArgumentTypeInvalid, ArgumentValueInvalid
from sessionmgr.model import RunStatus
from sessionmgr.testing.scripted_provider import Ask, Fail, Flood, Hang, Hear, Say
from tests.portal.actors import SHORTLY, lawful_portal, play, types, until_started


def test_an_answer_to_a_question_is_the_result_of_its_run() -> None:
    with lawful_portal() as portal:
        result = portal.ask("actor", play(Say(text="Hello")))
    assert (result.status, result.text) == (RunStatus.COMPLETED, "Hello")


def test_a_failed_run_is_a_result_and_no_exception() -> None:
    with lawful_portal() as portal:
        assert portal.ask("actor", play(Fail(message="no"))).status is RunStatus.FAILED


def test_an_iteration_yields_every_event_once_and_in_order_as_often_as_wanted() -> None:
    with lawful_portal() as portal:
        run = portal.start("actor", play(Flood(events=1000, size=3), Say(text="done")))
        first, second = list(run), list(run)
    numbers = [event.seq for event in first]
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    assert first == second
    assert (first[0].type, first[-1].type) == ("message_sent", "run_completed")


def test_an_iteration_can_begin_after_any_event() -> None:
    with lawful_portal() as portal:
        run = portal.start("actor", play(Say(text="a b c", deltas=3)))
        events = list(run)
        for place, event in enumerate(events):
            assert list(run.events(after=event)) == events[place + 1 :]


def test_the_text_comes_in_pieces_and_each_of_them_once() -> None:
    script = play(
        Say(text="streamed ", deltas=3), Say(text="whole "), Say(text="half", deltas=2, whole=False)
    )
    with lawful_portal() as portal:
        pieces = list(portal.start("actor", script).text())
    assert "".join(pieces) == "streamed \n\nwhole \n\nhalf"
    assert len(pieces) == 3 + 1 + 2


def test_a_timeout_leaves_the_run_as_it_is() -> None:
    with lawful_portal() as portal:
        run = portal.start("actor", play(Hang()))
        until_started(run)
        with pytest.raises(TimeoutError):
            run.result(timeout=0)
        assert run.status is RunStatus.RUNNING
        run.cancel("enough")
        assert (run.result().status, run.result().detail) == (RunStatus.CANCELLED, "enough")


def test_the_block_of_a_run_ends_the_run() -> None:
    with lawful_portal() as portal:
        with portal.start("actor", play(Hang())) as run:
            until_started(run)
        assert run.status is RunStatus.CANCELLED


def test_a_message_is_taken_into_the_current_turn_or_is_the_next_run() -> None:
    with lawful_portal() as portal:
        run = portal.start("actor", play(Hear()))
        until_started(run)
        taken = run.append("now")
        assert (taken.state, taken.run) == ("accepted", run)
        assert run.result().text == "now"
        queued = run.append(play(Say(text="later")))
        assert queued.state == "queued"
        assert queued.run.id != run.id
        assert queued.run.session_id == run.session_id
        assert queued.run.result().text == "later"


WRONG: list[tuple[str, dict[str, Any], type[Exception]]] = [
    ("acter", {}, ProviderUnknown),
    ("actor", {"options": {"colour": "red"}}, OptionInvalid),
    ("actor", {"cwd": "/nowhere/at/all"}, StartRefused),
    ("actor", {"modell": "x"}, TypeError),
    ("actor", {"clocks": 60}, ArgumentTypeInvalid),
    ("actor", {"cwd": 7}, ArgumentTypeInvalid),
    ("actor", {"approve": "yes"}, ArgumentTypeInvalid),
    ("actor", {"permission_mode": "yolo"}, ArgumentValueInvalid),
]


@pytest.mark.parametrize(("provider", "wishes", "error"), WRONG, ids=str)
def test_wrong_use_raises_and_starts_nothing(
    provider: str, wishes: dict[str, Any], error: type[Exception]
) -> None:
    ways: list[Callable[[Portal], object]] = [
        lambda portal: portal.ask(provider, "x", **wishes),
        lambda portal: portal.start(provider, "x", **wishes),
        lambda portal: portal.submit(provider, "x", **wishes).result(),
        lambda portal: portal.submit_start(provider, "x", **wishes).result(),
    ]
    with lawful_portal() as portal:
        for way in ways:
            with pytest.raises(error):
                way(portal)
        assert portal.call(lambda manager: manager.sessions()) == []


def test_everything_that_a_manager_can_do_is_called_in_its_loop(tmp_path: Path) -> None:
    with open_portal(store=tmp_path / "runs.db") as portal:
        run_id = portal.ask("shell", "printf hello").id
    with open_portal(store=tmp_path / "runs.db") as portal:
        assert portal.call(lambda manager: manager.result(run_id)).text == "hello"
        assert portal.submit_call(lambda manager: manager.result(run_id)).result().id == run_id


# --- batches -----------------------------------------------------------------------------------


def test_a_batch_yields_the_result_of_each_job_and_has_a_summary() -> None:
    jobs = [Job(id=f"j{n}", prompt=play(Say(text=f"{n}")), provider="actor") for n in range(5)]
    with lawful_portal() as portal:
        with portal.run_batch(jobs, concurrency=2) as results:
            assert sorted(result.text for result in results) == ["0", "1", "2", "3", "4"]
            assert len(list(results)) == 5
        assert results.summary.statuses == {"completed": 5}


def test_leaving_the_block_of_a_batch_cancels_its_jobs() -> None:
    quick = Job(id="quick", prompt=play(Say(text="x")), provider="actor")
    slow = Job(id="slow", prompt=play(Hang()), provider="actor")
    with lawful_portal() as portal:
        with portal.run_batch([quick, slow], concurrency=2) as results:
            assert next(iter(results)).job == "quick"
        assert results.summary.statuses == {"completed": 1, "cancelled": 1}
        assert list(results) == []


def test_a_thread_that_reads_a_batch_ends_with_its_block() -> None:
    jobs = [Job(id=f"j{n}", prompt=play(Hang()), provider="actor") for n in range(3)]
    seen: list[str] = []
    with lawful_portal() as portal:
        with portal.run_batch(jobs) as results:
            reader = threading.Thread(target=lambda: seen.extend(each.job for each in results))
            reader.start()
        reader.join()
        assert set(seen) <= {job.id for job in jobs}


def test_a_batch_with_invalid_jobs_starts_nothing() -> None:
    job = Job(id="one", prompt="x", provider="acter")
    with lawful_portal() as portal:
        with pytest.raises(JobsInvalid), portal.run_batch([job]):
            pytest.fail("it was started")
        with pytest.raises(TypeError, match="concurrency"):
            portal.run_batch([job], concurency=2)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]


# --- approve functions -------------------------------------------------------------------------

ASKING = play(Ask(tool="Bash", input="ls"), Say(text="done"))


class Approver:
    """A plain approve function that notes its threads."""

    def __init__(self, decision: Decision | None = None) -> None:
        self.threads: list[threading.Thread] = []
        self._decision = decision or Allow()

    def __call__(self, request: ApprovalRequest) -> Decision:
        assert request.tool_name == "Bash"
        self.threads.append(threading.current_thread())
        return self._decision


@pytest.mark.parametrize("way", ["ask", "result", "events", "text", "batch", "next run"])
def test_an_approve_function_is_called_in_the_thread_that_waits(way: str) -> None:
    approve = Approver()
    with lawful_portal() as portal:
        match way:
            case "ask":
                portal.ask("actor", ASKING, approve=approve)
            case "batch":
                job = Job(id="one", prompt=ASKING, provider="actor")
                with portal.run_batch([job], approve=approve) as results:
                    assert [result.job for result in results] == ["one"]
            case "next run":
                run = portal.start("actor", play(Say(text="x")), approve=approve)
                run.append(ASKING).run.result()
            case _:
                run = portal.start("actor", ASKING, approve=approve)
                waits: Any = getattr(run, way)()
                assert waits if way == "result" else list(waits)
    assert approve.threads == [threading.current_thread()]


def test_of_several_threads_that_wait_one_answers() -> None:
    approve = Approver()
    with lawful_portal() as portal:
        run = portal.start("actor", ASKING, approve=approve)
        threads = [threading.Thread(target=run.result) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert run.result().status is RunStatus.COMPLETED
    assert len(approve.threads) == 1
    assert approve.threads[0] in threads


def test_a_denial_reaches_the_agent() -> None:
    with lawful_portal() as portal:
        result = portal.ask("actor", ASKING, approve=Approver(Deny(reason="no")))
    assert [denial.reason for denial in result.permission_denials] == ["no"]


def test_an_approve_function_that_raises_denies() -> None:
    def approve(request: ApprovalRequest) -> Decision:
        raise LookupError("the list is lost")

    with lawful_portal() as portal:
        run = portal.start("actor", ASKING, approve=approve)
        assert len(run.result().permission_denials) == 1
        assert "the list is lost" in str(list(run))


def test_an_interrupt_in_an_approve_function_reaches_its_caller_and_ends_the_run() -> None:
    def approve(request: ApprovalRequest) -> Decision:
        raise KeyboardInterrupt

    with lawful_portal() as portal:
        run = portal.start("actor", play(Ask(tool="Bash"), Hang()), approve=approve)
        with pytest.raises(KeyboardInterrupt):
            run.result()
        run.cancel()
        assert run.result().status is RunStatus.CANCELLED


async def _approve(request: ApprovalRequest) -> Decision:
    return Allow()


def test_an_approve_function_that_no_thread_could_call_is_refused() -> None:
    approve = Approver()
    with lawful_portal() as portal:
        for way in (portal.ask, portal.start, portal.submit, portal.submit_start):
            with pytest.raises(ArgumentTypeInvalid, match="call_approve="):
                way("actor", ASKING, approve=_approve)
        for submit in (portal.submit, portal.submit_start):
            with pytest.raises(ArgumentValueInvalid, match="no thread waits"):
                submit("actor", ASKING, approve=approve)
        run = portal.start("actor", ASKING, approve=approve)
        with pytest.raises(ArgumentValueInvalid, match="no thread waits"):
            _ = run.future
        with pytest.raises(ArgumentValueInvalid, match="no thread waits"):
            run.next_event()
        assert run.result(timeout=SHORTLY).status is RunStatus.COMPLETED


def test_a_hook_that_is_no_function_is_refused() -> None:
    with pytest.raises(ArgumentTypeInvalid, match="call_approve"):
        open_portal(call_approve=7)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def test_a_message_that_is_no_text_and_an_event_of_another_run_are_refused() -> None:
    wrong: Any = 7
    with lawful_portal() as portal:
        run, other = (portal.start("actor", play(Say(text="x"))) for _ in range(2))
        with pytest.raises(ArgumentTypeInvalid, match="content"):
            run.append(wrong)
        with pytest.raises(ArgumentTypeInvalid, match="detail"):
            run.cancel(wrong)
        with pytest.raises(ArgumentTypeInvalid, match="after"):
            run.next_event(after=wrong)
        with pytest.raises(ArgumentValueInvalid, match=run.id):
            run.events(after=next(iter(other)))
        assert "completed" in types(run)[-1]


@pytest.mark.parametrize("module", [sessionmgr.portal.portal, sessionmgr.portal.run])
def test_the_examples_work(module: ModuleType) -> None:
    examples = doctest.testmod(
        module, extraglobs={"open_portal": open_portal, "Job": Job}, raise_on_error=True
    )
    assert examples.attempted >= 8
