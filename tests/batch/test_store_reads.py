"""A store with transient read failures: attempts keep their state and are not repeated."""

from hashlib import sha256
from pathlib import Path
from typing import Any

from trio.testing import MockClock

from sessionmgr import run_batch
from sessionmgr.model import FailureKind, ImageReceived, RunStatus
from sessionmgr.store import StoreUnusable
from sessionmgr.testing.faulty_store import FaultyStore, InjectedError
from sessionmgr.testing.scripted_provider import Emit, Fail, Say, Tool
from tests.batch.open_batch import collect, job, open_batch_setup
from tests.batch.test_interrupted import NOTICE, then

IMAGE = Emit(
    event=ImageReceived(media_type="image/png", blob=sha256(b"an image").hexdigest(), bytes=8),
    blobs=(b"an image",),
)

OVERLOADED = Fail(kind=FailureKind.OVERLOADED, retryable=True, resumable=True)


class UnreadableStore(FaultyStore):
    """Reads of these kinds fail, each once."""

    def __init__(self) -> None:
        super().__init__()
        self.refuses: list[str] = []

    def _look(self, kind: str) -> None:
        if kind in self.refuses:
            self.refuses.remove(kind)
            raise StoreUnusable("the store", "as planned")

    async def runs(self, *args: Any, **kwargs: Any) -> Any:
        self._look("runs")
        return await super().runs(*args, **kwargs)

    async def events(self, *args: Any, **kwargs: Any) -> Any:
        self._look("events")
        return await super().events(*args, **kwargs)

    async def blob(self, sha256: str) -> bytes:
        self._look("blob")
        return await super().blob(sha256)


async def test_tools_are_not_called_again_if_the_store_cannot_be_read_when_an_attempt_ends(
    autojump_clock: MockClock, tmp_path: Path
) -> None:
    store = UnreadableStore()
    first = (Tool(name="Bash", takes=1), OVERLOADED)
    async with open_batch_setup(store=store, scripts=then(first)) as setup:
        store.refuses = ["runs"]
        (result,) = await collect(run_batch(setup.manager, [job("a")], out=tmp_path))
        assert not store.refuses
        assert (result.status, result.text, result.attempt) == (RunStatus.COMPLETED, "well", 2)
        assert setup.prompts() == ["a", "continue"]


async def test_tools_are_not_called_again_if_the_store_cannot_be_read_while_an_attempt_is_on(
    autojump_clock: MockClock, tmp_path: Path
) -> None:
    store = UnreadableStore()
    cut = (Tool(name="Bash", takes=1), Say(text="never said"))
    async with open_batch_setup(store=store, scripts=then(cut)) as setup:
        store.raises.append(("message_received", InjectedError("its keeper crashes")))
        store.refuses = ["events"]
        (result,) = await collect(run_batch(setup.manager, [job("a")], out=tmp_path))
        assert not store.refuses
        assert (result.status, result.text, result.attempt) == (RunStatus.COMPLETED, "well", 2)
        first, second = setup.prompts()
        assert first == "a"
        assert NOTICE in second


async def test_a_job_is_done_although_its_images_cannot_be_read(
    autojump_clock: MockClock, tmp_path: Path
) -> None:
    store = UnreadableStore()
    async with open_batch_setup(store=store) as setup:
        store.refuses = ["blob"]
        (result,) = await collect(run_batch(setup.manager, [job("a", IMAGE)], out=tmp_path))
        assert not store.refuses
        assert (result.status, result.attempt) == (RunStatus.COMPLETED, 1)
