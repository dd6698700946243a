"""A batch that is killed is none the worse for it."""

from tests.batch.killing import kill


def test_a_batch_killed_at_random_moments_does_every_job_exactly_once() -> None:
    figures, broken = kill(times=5, seed=7)
    assert broken == []
    assert figures["results"] == figures["jobs"]
    assert figures["kills_at_work"] > 0
    assert figures["interrupted_in_a_tool"] > 0
