"""A provider's name may have a variant, whose adapter class the adapter itself makes."""

import os
from pathlib import Path

import pytest

from sessionmgr.adapter import (
    AdapterBroken,
    AgentsFileInvalid,
    PermissionRefused,
    ProviderUnknown,
    VariantUnknown,
    find_adapter,
    provider_variants,
)
from sessionmgr.batch import Job, run_batch
from sessionmgr.batch.child_host import ChildHost
from sessionmgr.batch.run_request import rejected_field, start_failure
from sessionmgr.manager import ask, open_manager
from sessionmgr.model import FailureKind, PermissionMode
from tests.adapter.birds import BirdOptions, Birds, install_birds


@pytest.fixture(autouse=True)
def birds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Install the adapter with variants."""
    install_birds(tmp_path, monkeypatch)


@pytest.fixture
def agents(tmp_path: Path) -> Path:
    """A file of agents that adds `dodo`."""
    file = tmp_path / "agents.json"
    file.write_text('["dodo"]')
    return file


# --- discovery ------------------------------------------------------------------------------------


def test_the_same_name_gives_the_same_class_with_the_whole_name() -> None:
    heron = find_adapter("birds:heron")
    assert heron is find_adapter("birds:heron")
    assert (heron.name, heron.display_name) == ("birds:heron", "Heron")
    assert issubclass(heron, Birds)
    assert heron.__doc__ == "Adapter of the provider birds:heron."
    assert find_adapter("birds:heron@1.0").name == "birds:heron@1.0"
    assert find_adapter("birds") is Birds


def test_a_given_adapter_makes_its_variants_and_a_given_variant_comes_first() -> None:
    class Kept(Birds):
        pass

    heron = find_adapter("birds:heron", {"birds": Kept})
    assert issubclass(heron, Kept)
    assert find_adapter("birds:heron", {"birds:heron": Kept}) is Kept


def test_a_file_of_agents_adds_variants_until_it_changes(agents: Path) -> None:
    with pytest.raises(VariantUnknown, match=r"'birds:dodo'; known: heron, stork$") as caught:
        find_adapter("birds:dodo")
    assert caught.value.known == ("birds:heron", "birds:stork")
    dodo = find_adapter("birds:dodo", agents=agents)
    assert dodo is find_adapter("birds:dodo", agents=str(agents))
    assert provider_variants("birds", agents) == ["birds:dodo", "birds:heron", "birds:stork"]
    assert provider_variants("birds") == ["birds:heron", "birds:stork"]
    agents.write_text('["dodo", "auk"]')
    os.utime(agents, ns=(1, 1))
    assert find_adapter("birds:dodo", agents=agents) is not dodo


@pytest.mark.parametrize(
    "name", ["birds:", "birds:Heron", "birds:heron@", "birds:a b", "birds:a:b"]
)
def test_a_variant_has_the_form_of_an_id_and_a_version(name: str) -> None:
    with pytest.raises(VariantUnknown, match="expected ID or ID@VERSION after the colon") as caught:
        find_adapter(name)
    assert caught.value.name == name


def test_an_adapter_without_variants_and_an_unknown_adapter_say_so() -> None:
    with pytest.raises(VariantUnknown) as caught:
        find_adapter("shell:heron")
    assert str(caught.value) == "unknown provider 'shell:heron'; shell has no variants; use 'shell'"
    assert provider_variants("shell") == []
    with pytest.raises(VariantUnknown, match="'shell:Heron'; shell has no variants"):
        find_adapter("shell:Heron")
    with pytest.raises(ProviderUnknown, match="did you mean 'birds:heron'") as unknown:
        find_adapter("bird:heron")
    assert unknown.value.name == "bird:heron"


def test_a_hook_that_fails_is_the_adapters_fault(agents: Path) -> None:
    with pytest.raises(AdapterBroken, match=r"'birds:crash'.*: ZeroDivisionError"):
        find_adapter("birds:crash")
    with pytest.raises(AdapterBroken, match="the class of its variant is named 'birds:heron'"):
        find_adapter("birds:cuckoo")
    agents.write_text('["phoenix"]')
    with pytest.raises(AdapterBroken, match=r"'birds' .*: KeyError: 'fire'"):
        provider_variants("birds", agents)


def test_a_broken_file_of_agents_is_named(agents: Path) -> None:
    agents.write_text("no")
    with pytest.raises(AgentsFileInvalid, match=f"agents file {agents}: JSONDecodeError"):
        find_adapter("birds:dodo", agents=agents)


# --- the manager ----------------------------------------------------------------------------------


async def test_a_run_of_a_variant_has_its_whole_name_everywhere(agents: Path) -> None:
    async with open_manager(agents=agents) as manager:
        for name in ("birds:heron", "birds:dodo", "birds:heron@1.0"):
            session = await manager.open_session(name)
            async with session.start("hi") as run:
                result = await run.result()
            assert (result.status, result.provider, result.text) == ("completed", name, "hi")
        assert set(await manager.health(["birds:heron"])) == {"birds:heron"}
        assert (await manager.negotiate("birds:stork", require=["flight"])).missing == ("flight",)
        assert {"birds:heron", "birds:dodo"} <= set(manager.status().providers)
    result = await ask("birds:dodo", "hi", agents=str(agents))
    assert result.provider == "birds:dodo"


async def test_an_unknown_variant_and_a_broken_file_refuse_a_session(agents: Path) -> None:
    async with open_manager(agents=agents.with_name("none.json")) as manager:
        with pytest.raises(AgentsFileInvalid, match=r"none\.json: FileNotFoundError"):
            await manager.open_session("birds:heron")
        health = await manager.health(["birds:heron", "shell"])
        assert health["birds:heron"].state == "fail"
        assert "none.json" in health["birds:heron"].detail
    async with open_manager() as manager:
        with pytest.raises(VariantUnknown):
            await manager.open_session("birds:dodo")
    with pytest.raises(TypeError, match="agents"):
        open_manager(agents=3)  # type: ignore[arg-type]


async def test_the_permission_modes_depend_on_the_options() -> None:
    async with open_manager() as manager:
        session = await manager.open_session("birds:heron", permission_mode="full_auto")
        async with session.start("hi") as run:
            assert (await run.result()).permission is not None
        with pytest.raises(PermissionRefused, match="it supports: plan"):
            await session.submit("hi", options={"careful": True})
        run = await session.submit("hi", options={"careful": True}, permission_mode="plan")
        permission = (await run.result()).permission
        assert permission is not None
        assert permission.asked is PermissionMode.PLAN
    assert find_adapter("shell").permission_map(BirdOptions()) is find_adapter("shell").permissions


# --- batches --------------------------------------------------------------------------------------


async def test_a_batch_in_a_child_process_runs_variants(tmp_path: Path, agents: Path) -> None:
    host = ChildHost(tmp_path / "store.db", agents=agents)
    jobs = [Job(id="a", provider="birds:dodo", prompt="one"), Job(id="b", provider="birds:heron")]
    async with (
        open_manager(store=tmp_path / "store.db", agents=agents) as manager,
        run_batch(
            manager,
            jobs,
            host=host,
            out=tmp_path / "out",
            defaults=Job(id="-", prompt="two"),
            per_provider={"birds:dodo": 1},
            provider_defaults={"birds:heron": Job(id="-", model="feather")},
        ) as results,
    ):
        found = {each.job: each async for each in results}
    assert {name: each.status for name, each in found.items()} == {
        "a": "completed",
        "b": "completed",
    }
    assert found["a"].provider == "birds:dodo"


def test_a_refusal_of_a_variant_is_about_the_provider_of_a_job() -> None:
    job = Job(id="a", provider="birds:dodo")
    for error in (VariantUnknown("birds", "dodo", "why"), AgentsFileInvalid("a.json", "why")):
        assert rejected_field(error, job) == "provider"
        assert start_failure(error).kind is FailureKind.CONFIG_INVALID
