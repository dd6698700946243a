"""The table of names agrees with the parser, the job, the settings, the library and the results."""

import inspect

from sessionmgr.adapter import Budget
from sessionmgr.batch import Job, JobResult, run_batch
from sessionmgr.batch.open_batch import BatchOptions
from sessionmgr.cli.config.provider_defaults import of_variable
from sessionmgr.cli.config.settings import SETTINGS
from sessionmgr.cli.glossary import CONCEPTS, OF_PROVIDER, TITLES, table_rows
from sessionmgr.manager import Clocks, Manager, SessionHandle, open_manager
from sessionmgr.manager.run_plan import RunArguments
from sessionmgr.model import Cost, MessageReceived, MessageStreamed, RunResult
from tests.cli.test_help import actions

PARAMETERS: dict[str, set[str]] = {
    "submit": {*inspect.signature(SessionHandle.submit).parameters, *RunArguments.__annotations__},
    "open_session": {*inspect.signature(Manager.open_session).parameters},
    "open_manager": {*inspect.signature(open_manager).parameters},
    "run_batch": {*inspect.signature(run_batch).parameters, *BatchOptions.__annotations__},
    "Clocks": {*Clocks.__struct_fields__},
    "Budget": {*Budget.__struct_fields__},
}
TYPES = (RunResult, JobResult, MessageReceived, MessageStreamed, Cost)
FIELDS = {each.__name__: {*each.__struct_fields__} for each in TYPES}


def names_of(verb: str) -> set[str]:
    """Return the flags and arguments of a command."""
    found: set[str] = set()
    for action in actions(verb):
        found.update(action.option_strings or [str(action.metavar)])
    return found


def test_every_flag_is_one_of_the_parser() -> None:
    known = names_of("run") | names_of("batch")
    assert {each.flag for each in CONCEPTS if each.flag} <= known


def test_every_flag_of_a_batch_is_in_the_table() -> None:
    others = {
        *("-h", "--help", "-p", "-n", "-o", "-v", "-q", "--json", "--verbose", "--quiet"),
        *("--print-config", "--version", "--dry-run"),
        *("--permission", "--prompt", "--system-prompt-file", "--env-file"),  # alternative forms
    }
    assert names_of("batch") - others == {each.flag for each in CONCEPTS if each.flag} - {"PROMPT"}


def test_every_field_of_a_job_is_in_the_table() -> None:
    assert {each.field for each in CONCEPTS if each.field} == set(Job.__struct_fields__)


def test_every_setting_is_in_the_table() -> None:
    assert {each.setting for each in CONCEPTS if each.setting} == {*SETTINGS, OF_PROVIDER}


def test_every_variable_is_the_one_that_is_read() -> None:
    for each in CONCEPTS:
        if each.setting in SETTINGS and each.variable:
            assert each.variable == SETTINGS[each.setting].variable
    of_provider = next(each for each in CONCEPTS if each.setting == OF_PROVIDER)
    variable = of_provider.variable.replace("NAME_KEY", "CLAUDE_MODEL")
    assert of_variable(variable, "haiku").key == ("provider", "claude", "model")


def test_every_parameter_and_every_field_of_a_result_exists() -> None:
    for known, names in ((PARAMETERS, "python"), (FIELDS, "result")):
        for each in CONCEPTS:
            owner, _, name = getattr(each, names).partition(".")
            assert not owner or name in known[owner], each


def test_a_concept_has_one_name_but_for_the_listed_exceptions() -> None:
    differ: list[str] = []
    for each in CONCEPTS:
        flag = each.flag.removeprefix("--").replace("-", "_").lower()
        parameter = each.python.partition(".")[2]
        used = {each.field, each.setting, parameter} - {""}
        if not each.result and not used <= {flag, f"{flag}s"}:
            differ.append(each.flag)
    assert differ == ["--budget-usd", "--concurrency", "--set"]


def test_each_row_has_a_cell_for_each_title() -> None:
    assert {len(row) for row in table_rows()} == {len(TITLES)}
