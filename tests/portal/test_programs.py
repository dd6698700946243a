"""Programs on other loops and on none hold a portal, and leave nothing running."""

import http.client
import signal
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import urlencode

import pytest

from sessionmgr.model import RunStatus
from tests.portal.child import SHORTLY, need, program, require_gone, stored_result


def test_a_program_on_asyncio(tmp_path: Path) -> None:
    with program("on_asyncio", tmp_path) as child:
        assert child.word("several") == "01234567"
        assert child.word("stream") == "message_sent run_completed"
        assert child.word("timeouts") == "every event once"
        assert child.word("cancel") == "True cancelled its future was cancelled"
        assert child.word("approval") == "allowed 0"
        assert child.word("threads") == "['MainThread']"
        assert child.end() == 0


def test_a_program_of_plain_threads(tmp_path: Path) -> None:
    with program("in_threads", tmp_path) as child:
        assert child.word("texts") == "True"
        assert child.word("asked") == "40 True"
        assert child.word("waited") == "cancelled"
        assert child.word("threads") == "['MainThread']"
        assert child.end() == 0


@pytest.mark.parametrize("way", ["block", "sleep", "closing"])
def test_ctrl_c_ends_the_block_and_everything_in_it(tmp_path: Path, way: str) -> None:
    store = tmp_path / "runs.db"
    with program("hanging", tmp_path, way, str(store)) as child:
        run_id, pid = child.word("run"), int(child.word("pid"))
        child.send(signal.SIGINT)
        if way == "closing":
            assert child.line() == "closing"
            child.send(signal.SIGINT)
        assert child.word("left") == "['MainThread']"
        require_gone(pid)
        assert child.end() == 0
    assert stored_result(store, run_id).status is RunStatus.CANCELLED


@pytest.mark.parametrize("way", ["unclosed", "after"])
def test_a_portal_that_is_never_closed_ends_with_its_program(tmp_path: Path, way: str) -> None:
    store = tmp_path / "runs.db"
    with program("hanging", tmp_path, way, str(store)) as child:
        if way == "after":
            assert child.word("text") == "hello"
        run_id, pid = child.word("run"), int(child.word("pid"))
        assert child.end() == 0
        require_gone(pid)
    assert stored_result(store, run_id).status is RunStatus.CANCELLED


@contextmanager
def get(port: int, path: str, **query: str) -> Generator[http.client.HTTPResponse]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=SHORTLY)
    with closing(connection):
        connection.request("GET", f"{path}?{urlencode(query)}")
        with connection.getresponse() as response:
            yield response


def test_a_fastapi_application_on_uvicorn_ends_cleanly_on_sigterm(tmp_path: Path) -> None:
    need("fastapi", "uvicorn")
    store = tmp_path / "runs.db"
    with program("on_fastapi", tmp_path, str(store)) as child:
        port = int(child.word("port"))
        for path in ("/ask", "/ask-in-thread"):
            with get(port, path, word="hello") as response:
                assert (response.status, response.read()) == (200, b'"hello"')
        with get(port, "/hang") as response:
            run_id = response.readline().decode().strip()
            pid = int(response.readline())
            child.send(signal.SIGTERM)
            assert child.end() == -signal.SIGTERM  # uvicorn raises it again, after its shutdown
        require_gone(pid)
    assert stored_result(store, run_id).status is RunStatus.CANCELLED


def test_the_end_of_a_request_ends_its_run(tmp_path: Path) -> None:
    need("fastapi", "uvicorn")
    with program("on_fastapi", tmp_path, str(tmp_path / "runs.db")) as child:
        port = int(child.word("port"))
        with get(port, "/hang") as response:
            run_id = response.readline().decode().strip()
            pid = int(response.readline())
        with get(port, "/result", run_id=run_id) as response:
            assert response.read() == b'"cancelled: the client has gone"'
        require_gone(pid)


def test_the_cells_of_a_notebook_keep_a_portal(tmp_path: Path) -> None:
    need("nbclient", "ipykernel")
    store = tmp_path / "runs.db"
    with program("in_notebook", tmp_path, str(store)) as child:
        assert child.word("ask") == "hello"
        assert child.word("text") == "a b c"
        assert child.word("await") == "awaited"
        assert child.word("error") == "ProviderUnknown"
        run_id, pid = child.word("run"), int(child.word("pid"))
        assert child.end() == 0
        require_gone(pid)
    assert stored_result(store, run_id).status is RunStatus.CANCELLED
