"""Ids are unique, in whichever thread or process they are made."""

import os
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

from sessionmgr.model import IdKind, new_id


def test_ids_made_at_once_in_threads_are_different() -> None:
    with ThreadPoolExecutor(8) as threads:
        made = list(threads.map(new_id, [IdKind.RUN] * 5000))
    assert len(Counter(made)) == 5000


def test_a_forked_process_makes_other_ids() -> None:
    new_id(IdKind.RUN)  # now numbers are at hand, which the child would have, too
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.write(writing, "\n".join(new_id(IdKind.RUN) for _ in range(64)).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as theirs:
        made = theirs.read().split("\n")
    os.waitpid(child, 0)
    assert len(made) == 64
    assert not {new_id(IdKind.RUN) for _ in range(64)}.intersection(made)
