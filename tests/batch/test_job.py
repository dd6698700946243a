from pathlib import Path
from types import MappingProxyType

import msgspec
import pytest

from sessionmgr import PermissionMode
from sessionmgr.batch.job import Job, job_digests, work_fingerprint


def print_of(job: Job) -> str:
    return work_fingerprint(job_digests(job))


def test_a_default_replaces_an_omitted_field() -> None:
    job = Job(id="a", prompt="go", model="big").with_defaults(
        Job(id="-", model="small", provider="codex")
    )
    assert (job.id, job.prompt, job.model, job.provider) == ("a", "go", "big", "codex")


def test_variables_are_joined_name_by_name() -> None:
    job = Job(id="a", env={"A": "1"}).with_defaults(Job(id="-", env={"A": "0", "B": "2"}))
    assert job.env == {"A": "1", "B": "2"}


def test_default_options_are_for_the_default_provider_alone() -> None:
    defaults = Job(id="-", provider="shell", options={"timeout": 3})
    assert Job(id="a", provider="codex").with_defaults(defaults).options is None
    assert Job(id="a", options={"shell": True}).with_defaults(defaults).options == {
        "timeout": 3,
        "shell": True,
    }


def test_a_prompt_takes_the_place_of_a_default_file() -> None:
    job = Job(id="a", prompt="go").with_defaults(Job(id="-", prompt_file="p.txt"))
    assert (job.prompt, job.prompt_file) == ("go", None)


def test_no_defaults_change_nothing() -> None:
    job = Job(id="a", prompt="go")
    assert job.with_defaults(None) is job


@pytest.mark.parametrize(
    "other",
    [
        Job(id="a", prompt="go", cwd="."),
        Job(id="a", prompt="go", cwd=str(Path.cwd())),
        Job(id="other", prompt="go"),
        Job(id="a", prompt="go", permission_mode=PermissionMode.DEFAULT),
        Job(id="a", prompt="go", env={}, images=(), require=()),
    ],
)
def test_equivalent_spellings_are_equal_work(other: Job) -> None:
    assert print_of(other) == print_of(Job(id="a", prompt="go"))


def test_names_of_tools_mean_the_same_in_any_order() -> None:
    one = Job(id="a", tools_denied=("Bash", "Edit"))
    assert job_digests(one) == job_digests(Job(id="a", tools_denied=("Edit", "Bash", "Edit")))


@pytest.mark.parametrize(
    "other",
    [
        Job(id="a", prompt="went"),
        Job(id="a", prompt="go", provider="codex"),
        Job(id="a", prompt="go", model="big"),
        Job(id="a", prompt="go", effort="high"),
        Job(id="a", prompt="go", cwd="/"),
        Job(id="a", prompt="go", system_prompt="be brief"),
        Job(id="a", prompt="go", schema={"type": "object"}),
        Job(id="a", prompt="go", env={"A": "1"}),
        Job(id="a", prompt="go", options={"shell": True}),
        Job(id="a", prompt="go", permission_mode=PermissionMode.PLAN),
    ],
)
def test_different_work_is_distinguished(other: Job) -> None:
    assert print_of(other) != print_of(Job(id="a", prompt="go"))


@pytest.mark.parametrize(
    "other",
    [
        Job(id="a", prompt="go", deadline=3),
        Job(id="a", prompt="go", budget_usd=3),
        Job(id="a", prompt="go", max_turns=3),
        Job(id="a", prompt="go", metadata={"k": 1}),
        Job(id="a", prompt="go", permission_mode=PermissionMode.FULL_AUTO),
        Job(id="a", prompt="go", tools_allowed=()),
        Job(id="a", prompt="go", tools_denied=("Bash",)),
        Job(id="a", prompt="go", require=("steer",)),
        Job(id="a", prompt="go", prefer=("steer",)),
    ],
)
def test_limits_and_labels_make_no_other_work(other: Job) -> None:
    assert print_of(other) == print_of(Job(id="a", prompt="go"))


def test_a_prompt_means_the_same_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "prompt"
    path.write_text("go")
    job = Job(id="a", prompt_file=str(path))
    assert print_of(job) == print_of(Job(id="a", prompt="go"))
    path.write_text("went")
    assert print_of(job) == print_of(Job(id="a", prompt="went"))


def test_an_image_counts_by_its_contents(tmp_path: Path) -> None:
    path = tmp_path / "image.png"
    path.write_bytes(b"one")
    job = Job(id="a", images=(str(path),))
    before = print_of(job)
    path.write_bytes(b"two")
    assert print_of(job) != before


def test_a_field_that_there_is_not_is_refused() -> None:
    with pytest.raises(msgspec.ValidationError, match="promt"):
        msgspec.json.decode(b'{"id": "a", "promt": "go"}', type=Job)


def test_a_job_stores_paths_collections_mappings_and_modes_as_its_fields_types() -> None:
    job = Job(
        id="a",
        cwd=Path("x"),
        prompt_file=Path("p"),
        permission_mode="plan",
        tools_allowed=["Read"],
        require={"resume"},
        images=[Path("a.png"), "b.png"],
        schema=MappingProxyType({"type": "object"}),
        env=MappingProxyType({"A": "1"}),
    )
    assert job == Job(
        id="a",
        cwd="x",
        prompt_file="p",
        permission_mode=PermissionMode.PLAN,
        tools_allowed=("Read",),
        require=("resume",),
        images=("a.png", "b.png"),
        schema={"type": "object"},
        env={"A": "1"},
    )
    assert type(job.permission_mode) is PermissionMode
    assert msgspec.json.decode(msgspec.json.encode(job), type=Job) == job
