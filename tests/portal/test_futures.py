"""Futures of a portal: the run of a cancelled future, and futures of events."""

import random
import threading
from concurrent.futures import CancelledError, Future, as_completed, wait

import pytest
import trio

from sessionmgr import Allow, ApprovalRequest, Decision, Manager, RunResult
from sessionmgr.model import AnyEvent, RunStatus
from sessionmgr.portal import PortalDeadlock
from sessionmgr.portal.approver import AsyncApprove
from sessionmgr.testing.scripted_provider import Ask, Flood, Hang, Say
from tests.portal.actors import SHORTLY, lawful_portal, play, until_started


def test_results_are_futures_of_the_standard_library() -> None:
    with lawful_portal() as portal:
        futures = [portal.submit("actor", play(Say(text=f"{n}"))) for n in range(10)]
        texts = [future.result(SHORTLY).text for future in as_completed(futures, SHORTLY)]
    assert sorted(texts) == [f"{n}" for n in range(10)]


def test_to_cancel_a_future_cancels_its_run() -> None:
    with lawful_portal() as portal:
        run = portal.submit_start("actor", play(Hang())).result(SHORTLY)
        until_started(run)
        assert run.future is run.future
        assert run.future.cancel()
        with pytest.raises(CancelledError):
            run.future.result(SHORTLY)
        result = run.result(SHORTLY)
    assert (result.status, result.detail) == (RunStatus.CANCELLED, "its future was cancelled")


def test_a_cancelled_future_is_done_for_those_who_wait_for_several() -> None:
    with lawful_portal() as portal:
        future = portal.submit("actor", play(Hang()))
        assert future.cancel()
        assert wait([future], SHORTLY).done == {future}


def test_wherever_the_start_of_a_run_is_cancelled_no_run_is_left() -> None:
    with lawful_portal() as portal:
        for _ in range(50):
            result = portal.submit("actor", play(Hang()))
            run = portal.submit_start("actor", play(Hang()))
            for future in (result, run):
                threading.Thread(target=future.cancel).start()
            wait([result], SHORTLY)
            wait([run], SHORTLY)
            if not run.cancelled():
                run.result().cancel()
        portal.call(_until_idle)


def test_to_cancel_the_wait_for_an_event_leaves_the_run_as_it_is() -> None:
    with lawful_portal() as portal:
        run = portal.start("actor", play(Hang()))
        started = until_started(run)
        future = run.next_event(after=started)
        assert future.cancel()
        assert run.status is RunStatus.RUNNING
        run.cancel()
        *_, end = run
        assert end.type == "run_cancelled"
        assert run.next_event(after=end).result(SHORTLY) is None


@pytest.mark.parametrize("seed", range(4))
def test_no_event_is_lost_or_doubled_when_waits_are_cancelled(seed: int) -> None:
    chance = random.Random(seed)
    with lawful_portal() as portal:
        run = portal.start("actor", play(Flood(events=600, size=3), Say(text="x", deltas=1)))
        seen: list[AnyEvent] = []
        last: AnyEvent | None = None
        while True:
            future = run.next_event(after=last)
            if chance.random() < 0.3:
                future.cancel()
            wait([future], SHORTLY)
            if future.cancelled():
                continue
            event = future.result()
            if event is None:
                break
            seen.append(event)
            last = event
        assert seen == list(run)


def test_a_blocking_call_in_a_callback_is_an_error_and_no_deadlock() -> None:
    errors: list[BaseException] = []
    with lawful_portal() as portal:
        run = portal.start("actor", play(Say(text="x")))
        done = threading.Event()

        def call_back(_: Future[None]) -> None:
            for call in (
                lambda: portal.ask("actor", "x"),
                lambda: portal.start("actor", "x"),
                lambda: portal.call(lambda manager: manager.sessions()),
                lambda: portal.close(),
                lambda: run.result(),
                lambda: list(run),
                lambda: run.append("x"),
                lambda: portal.run_batch([]).__enter__(),
            ):
                try:
                    call()
                except PortalDeadlock as error:
                    errors.append(error)
            later.append(portal.submit("actor", play(Say(text="later"))))
            done.set()

        later: list[Future[RunResult]] = []
        gate = threading.Event()

        async def ring(manager: object) -> None:
            gate.wait(SHORTLY)

        future = portal.submit_call(ring)
        future.add_done_callback(call_back)
        gate.set()
        assert done.wait(SHORTLY)
        assert len(errors) == 8
        assert later[0].result(SHORTLY).text == "later"


def test_a_hook_calls_plain_and_coroutine_functions() -> None:
    def hook(function: AsyncApprove, request: ApprovalRequest) -> Future[Decision]:
        answer: Future[Decision] = Future()

        def drive() -> None:  # a loop of the program, for coroutines that never wait
            try:
                function(request).send(None)
            except StopIteration as stop:
                answer.set_result(stop.value)

        threading.Thread(target=drive, name="theirs").start()
        return answer

    threads: list[str] = []

    def plainly(request: ApprovalRequest) -> Decision:
        threads.append(threading.current_thread().name)
        return Allow()

    async def async_too(request: ApprovalRequest) -> Decision:
        return plainly(request)

    script = play(Ask(tool="Bash"), Say(text="done"))
    with lawful_portal(call_approve=hook) as portal:
        for approve in (plainly, async_too):
            result = portal.submit("actor", script, approve=approve).result(SHORTLY)
            assert result.tool_calls.denied == 0
    assert threads == ["theirs", "theirs"]


async def _until_idle(manager: Manager) -> None:
    with trio.fail_after(SHORTLY):  # noqa: ASYNC912
        while manager.status().running:  # noqa: ASYNC110  # runs that no handle is left of
            await trio.sleep(0.01)
