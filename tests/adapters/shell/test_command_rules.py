"""The lists of commands cannot be bypassed by any known way."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from sessionmgr.adapter.kit.command_line import split_argv
from sessionmgr_adapters.shell.command_rules import CommandRefusedError, CommandRules

PATH = os.defpath.lstrip(":") + ":/usr/sbin:/sbin"


def rules(
    cwd: Path, allowed: list[str] | None = None, denied: list[str] | None = None
) -> CommandRules:
    return CommandRules(allowed, denied or [], path=PATH, cwd=str(cwd))


def program(name: str) -> str:
    found = shutil.which(name, path=PATH)
    assert found is not None
    return found


@pytest.fixture
def cwd(tmp_path: Path) -> Path:
    """A directory with links to `id` and `env`, and an `echo` that is another program."""
    (tmp_path / "linked").symlink_to(program("id"))
    (tmp_path / "twice").symlink_to("linked")
    (tmp_path / "environ").symlink_to(program("env"))
    (tmp_path / "bin").symlink_to(Path(program("id")).parent)
    false = tmp_path / "echo"
    false.write_text("#!/bin/sh\nid\n")
    false.chmod(0o755)
    (tmp_path / "{}").symlink_to(program("id"))
    return tmp_path


ROUND_A_DENIAL = [
    "id",
    "id -u",
    "/usr/bin/id",
    "/usr/bin/../bin/id",
    "./linked",
    "./twice -u",
    "./bin/id",
    "env id",
    "env -i id",
    "env -u HOME id",
    "env PATH=. linked",
    "env -S id",
    "env -S 'id -u'",
    "env env id",
    "./environ id",
    "/usr/bin/env /usr/bin/id",
    "env ./linked",
    "sh -c id",
    "sh -ec 'id -u'",
    "sh -c 'echo ok; id'",
    'sh -c "$0" id',
    "sh -c 'i\"\"d'",
    "sh -c 'sh -c id'",
    "sh -c 'eval id'",
    "sh -c 'exec id'",
    "sh -c 'command id'",
    "sh -c '. ./echo'",
    "sh -c 'echo $(id)'",
    "sh ./echo",
    "sh -s",
    "dash -c id",
    "bash -c id",
    "bash -lc id",
    "bash -O extglob -c id",
    "nice id",
    "nice -n 5 id",
    "nice -5 id",
    "nice --adjustment=5 id",
    "nice env id",
    "timeout 5 id",
    "timeout -k 1 5 id",
    "timeout --signal=TERM 5 id",
    "timeout 5 env id",
    "xargs id",
    "xargs -n 1 id",
    "xargs -I x x",
    "xargs env",
    "xargs sh -c",
    "nohup id",
    "setsid -w id",
    "stdbuf -oL id",
    "stdbuf -o L id",
    "time -p id",
    "find . -exec id ;",
    "find . -maxdepth 0 -exec id {} +",
    "find . -name linked -exec {} ;",
    "find . -exec env {} ;",
    "find . -exec sh -c {} ;",
    "find \"';id;'\" -maxdepth 0 -exec sh -c 'echo {}' ;",
    "find . -exec true ; -exec id ;",
    "sudo id",
    "busybox id",
    "unshare id",
    "watch id",
    "script -c id",
    "/lib64/ld-linux-x86-64.so.2 /usr/bin/id",
    "choom -n 0 -- id",
    "choom -n 0 id",
    "ssh-agent id",
    "uclampset -m 0 id",
    "pipesz id",
    "scriptlive x",
    "ip netns exec a id",
    "ip net e a id",
    "ip -batch x",
    "dpkg-architecture -c id",
    "aa-exec id",
    "run-parts --arg=x d",
    "systemd-inhibit id",
    "systemd-socket-activate -l 1 id",
    "logsave x id",
    "ccache id",
    "caffeinate id",
    "arch -arm64 id",
    "flatpak-spawn --host id",
    "sort --compress-program=id x",
    "sort --compress-program id x",
    "sort --comp id x",
    "split --filter=id x",
    "split --fil id x",
    "install --strip-program=id -s a b",
    "tar -xf x --to-command=id",
    "tar -xf x -I id",
    "tar xIf id x",
    "tar -cf x --checkpoint=1 --checkpoint-action=exec=id y",
    "rsync -e id a b:c",
    "rsync -ave id a b:c",
    "xargs sort",
]


@pytest.mark.parametrize("prompt", ROUND_A_DENIAL)
def test_a_denied_command_is_denied_however_it_is_called(cwd: Path, prompt: str) -> None:
    with pytest.raises(CommandRefusedError):
        rules(cwd, denied=["id"]).check_argv(split_argv(prompt))


def test_a_program_that_may_be_one_of_two_that_start_others_is_neither(cwd: Path) -> None:
    (cwd / "nice").symlink_to(program("nohup"))
    with pytest.raises(CommandRefusedError, match="which of nice, nohup nice is"):
        rules(cwd, denied=["id"]).check_argv(["./nice", "echo"])


@pytest.mark.parametrize(
    "prompt",
    ["sort -r x", "sort --check x", "split -l 5 x", "tar -czf x.tgz IMAGE", "ip addr show"],
)
def test_a_program_that_starts_others_by_an_option_runs_without_it(cwd: Path, prompt: str) -> None:
    assert rules(cwd, denied=["id"]).check_argv(split_argv(prompt))[1:] == split_argv(prompt)[1:]


@pytest.mark.parametrize("listed", ["id", "/usr/bin/id", "./linked"])
def test_a_denial_by_path_or_link_is_about_the_file(cwd: Path, listed: str) -> None:
    for prompt in ("id", "./twice", "/usr/bin/id", "env id"):
        with pytest.raises(CommandRefusedError):
            rules(cwd, denied=[listed]).check_argv([*split_argv(prompt)])


def test_a_second_name_of_the_same_file_is_the_same_command(cwd: Path, tmp_path: Path) -> None:
    original = tmp_path / "original"
    original.write_text("#!/bin/sh\n")
    original.chmod(0o755)
    (tmp_path / "other").hardlink_to(original)
    with pytest.raises(CommandRefusedError, match="is denied"):
        rules(cwd, denied=["./original"]).check_argv(["./other"])


@pytest.mark.parametrize(
    "prompt",
    [
        "id",
        "./echo",
        "./linked",
        "env echo",
        "sh -c 'echo x'",
        "nice echo",
        "timeout 5 echo",
        "xargs echo",
        "echo2",
    ],
)
def test_what_is_not_allowed_is_refused_and_so_is_what_would_start_it(
    cwd: Path, prompt: str
) -> None:
    with pytest.raises(CommandRefusedError, match="is not allowed; allowed: echo"):
        rules(cwd, allowed=["echo"]).check_argv(split_argv(prompt))


@pytest.mark.parametrize("prompt", ["env id", "sh -c id", "sh -c 'echo; id'", "timeout 1 id"])
def test_that_a_wrapper_is_allowed_does_not_allow_what_it_starts(cwd: Path, prompt: str) -> None:
    with pytest.raises(CommandRefusedError, match="id is not allowed"):
        rules(cwd, allowed=["env", "sh", "timeout", "echo"]).check_argv(split_argv(prompt))


@pytest.mark.parametrize(
    "prompt",
    [
        "echo id",
        "echo ok; id -u",
        "/bin/echo id",
        "env echo id",
        "env -i echo id",
        "nice -n 5 echo id",
        "timeout 5 nice echo id",
        "sh -c 'echo a; echo id | cat'",
        "find . -name id",
        "find . -exec echo id {} +",
        "env",
        "xargs -n1 echo id",
    ],
)
def test_what_is_allowed_runs_as_it_would_without_a_list(cwd: Path, prompt: str) -> None:
    allowed = ["echo", "cat", "env", "nice", "timeout", "sh", "find", "xargs"]
    argv = rules(cwd, allowed=allowed).check_argv(split_argv(prompt))
    assert outcome(argv, cwd) == outcome(split_argv(prompt), cwd)


def outcome(argv: list[str], cwd: Path) -> tuple[int, bytes]:
    env = {"PATH": PATH}
    found = subprocess.run(
        argv, cwd=cwd, env=env, capture_output=True, check=False, stdin=subprocess.DEVNULL
    )
    return found.returncode, found.stdout


@pytest.mark.parametrize(
    "script",
    [
        "echo ok; id -u",
        "echo ok\nid",
        "echo ok && id",
        "echo ok || id",
        "echo ok | id",
        "echo ok & id",
        "> x id",
        "echo 'id' | sh",
        "echo id | xargs env",
        "echo id | xargs -I{} {}",
        "echo id | xargs nice",
        "'id'",
        "i\\d",
        "env i''d",
        "cd /usr/bin; ./id",
        "exec id",
        "eval id",
        "command id",
        "builtin id",
        ". ./echo",
        "trap id EXIT",
        "alias echo=id\necho",
        "export PATH=.; linked",
        "hash -p /usr/bin/id echo; echo",
        "echo $(id)",
        "echo `id`",
        "X=$(id)",
        "PATH=. linked",
        "time id",
        "coproc id",
        "{ id; }",
        "(id)",
        "./l*",
        "env ./l*",
        "find . -exec ./l* ;",
        "function echo { id; }\necho",
        "sort *",
        "sort [-]*",
        "nice -n * echo",  # in a directory with files called 5 and id
    ],
)
def test_a_script_does_not_get_round_a_denial(cwd: Path, script: str) -> None:
    with pytest.raises(CommandRefusedError):
        rules(cwd, denied=["id"]).check_script(script)
    allowed = ["echo", "env", "xargs", "nice", "cd", "printf", "find", "true", "sort"]
    with pytest.raises(CommandRefusedError):
        rules(cwd, allowed=allowed).check_script(script)


@pytest.mark.parametrize(
    "script",
    [
        "echo a; echo b",
        "echo 'a  b' | cat > out && cat out 2>&1",
        "echo a || echo b\necho c",
        "ls *.txt 'a b'*",
        "ls *x*; echo '*x*' *.none",
        "cd sub && echo moved > out; cat sub/out",
        "echo a &\n",
        "exit 3",
    ],
)
def test_a_plain_script_does_what_it_would_do_without_a_list(cwd: Path, script: str) -> None:
    (cwd / "sub").mkdir()
    for name in ("x.txt", "y.txt", "a b1"):
        (cwd / name).write_text(name)
    listed = rules(cwd, allowed=["echo", "cat", "ls", "cd", "exit"])
    if "'a b'*" in script:
        with pytest.raises(CommandRefusedError, match="pattern with quotes"):
            listed.check_script(script)
        return
    checked = listed.check_script(script)
    assert outcome(["/bin/sh", "-c", checked], cwd) == outcome(["/bin/sh", "-c", script], cwd)


def test_a_script_may_call_a_program_by_a_relative_path_unless_it_moves(cwd: Path) -> None:
    listed = rules(cwd, allowed=["./echo", "cd"])
    assert listed.check_script("> out\n./echo hi").endswith("/echo hi")
    with pytest.raises(CommandRefusedError, match="is after a cd"):
        listed.check_script("cd bin; ./echo hi")


def test_the_commands_of_the_shell_itself_give_way_to_programs(cwd: Path) -> None:
    checked = rules(cwd, denied=["id"]).check_script("printf -v 'a[$(id)]' x")
    assert checked.split()[0] == program("printf")
    shell = "bash" if shutil.which("bash", path=PATH) else "sh"
    assert b"uid" not in outcome([shell, "-c", checked], cwd)[1]


def test_an_own_program_of_an_allowed_name_is_not_allowed(cwd: Path) -> None:
    with pytest.raises(CommandRefusedError, match=r"\./echo is not allowed"):
        rules(cwd, allowed=["echo"]).check_argv(["./echo"])
    assert rules(cwd, allowed=["./echo"]).check_argv(["./echo"])[0].endswith("/echo")


def test_a_relative_directory_on_path_is_refused(cwd: Path) -> None:
    with pytest.raises(CommandRefusedError, match=r"PATH contains '\.'"):
        CommandRules(["echo"], [], path=".:/usr/bin", cwd=str(cwd))


def test_one_file_for_many_programs_is_not_all_of_them(tmp_path: Path) -> None:
    many = tmp_path / "bin" / "busybox"
    many.parent.mkdir()
    many.write_text("#!/bin/sh\n")
    many.chmod(0o755)
    for name in ("list", "show", "sh"):
        (many.parent / name).symlink_to("busybox")
    on_path = str(many.parent)
    denying = CommandRules(None, ["show"], path=on_path, cwd=str(tmp_path))
    assert denying.check_argv(["list"]) == [f"{on_path}/list"]
    for argv in (["show"], ["busybox", "show"], ["sh", "-c", "show"]):
        with pytest.raises(CommandRefusedError):
            denying.check_argv(argv)
    allowing = CommandRules(["list"], [], path=on_path, cwd=str(tmp_path))
    assert allowing.check_argv(["list"]) == [f"{on_path}/list"]
    with pytest.raises(CommandRefusedError):
        allowing.check_argv(["show"])


def test_the_refusal_says_what_and_how_to_do_better(cwd: Path) -> None:
    with pytest.raises(CommandRefusedError) as caught:
        rules(cwd, denied=["id"]).check_script("echo $HOME")
    assert "put it in single quotes" in str(caught.value)
    assert "write plain commands" in str(caught.value)
