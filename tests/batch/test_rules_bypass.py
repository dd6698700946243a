"""No known way around rules works: denied commands stay denied, allowed ones allow no more."""

import pytest
from hypothesis import given, strategies as st

from sessionmgr.adapter import Allow, ApprovalRequest
from sessionmgr.batch.approval_commands import may_begin_with
from sessionmgr.batch.rules import Rule, Rules
from sessionmgr.model import Json

GIT_STATUS = Rules((Rule(decision="allow", tool="Bash", command="git status"),))
NO_RM = Rules(
    (
        Rule(decision="deny", command="rm"),
        Rule(decision="deny", command="git push"),
        Rule(decision="allow", tool="Bash"),
    )
)


def bash(command: Json, **more: Json) -> ApprovalRequest:
    return ApprovalRequest(
        tool_name="Bash", tool_input={"command": command, **more}, effect="command", cwd="/work"
    )


def allows(rules: Rules, asked: ApprovalRequest) -> bool:
    return isinstance(rules.decide(asked), Allow)


NOT_ALLOWED = [
    "git status\ngit status", 'git status "a\nb"',
    "git status; rm x", "git status\nrm x", "git status && rm x", "git status || rm x",
    "git status | sh", "git status & rm x", "git status |& sh", "git status `rm x`",
    "git status $(rm x)", 'git status "$(rm x)"', 'git status "`rm x`"', "git status $X",
    "git status > x", "git status >> x", "git status >| x", "git status 2> x", "git status &> x",
    "git status >& x", "git status < x", "git status <> x", "git status <<E\nrm\nE",
    "git status <<< x", "git status <(rm x)", "git status >(rm x)", "git status {fd}> x",
    "X=1 git status", "GIT_PAGER='rm x' git status", "PATH=. git status", "X+=1 git status",
    "env git status", "nice git status", "/tmp/git status", "./git status", "../git status",
    "sh -c 'git status'", "bash -lc 'git status; rm x'", "\\git status", "'git' status",
    "g'i't status", "git'' status", 'g""it status', "gi\\t status", "{git,status}",
    "git* status", "g?t status", "[g]it status", "~/git status", "git ~/status", "git status *",
    "git status ?", "git status [a]", "git status {a,b}", "git status ~/x", "! git status",
    "time git status", "(git status)", "{ git status; }", "if git status; then rm x; fi",
    "while git status; do x; done", "git status # x", "git status #\nrm x", "#\nrm x",
    "git status\\\n; rm x", "git status;;rm x", "git status;& rm x", "git status &; rm x",
    "git status 'unclosed; rm x", 'git status "unclosed; rm x', "git status\x00rm x",
    "git\rstatus\rrm", "git status\x0brm x", "git status\x0crm x", "git status\x1b[2K",
    "git status\u2028rm x", "git status\xa0x", "git status\u3000x", "git status \x85 rm",
    "git\xa0status", "\uff47it status", "git\u200b status", "g\u0456t status",
    "git -c alias.status='!rm x' status", "git --exec-path=. status", "git", "gitstatus",
    "git statusx", "git -C . status", "function git { rm x; }; git status",
    "git() { rm x; }; git status", "alias git=rm; git status", "exec git status",
    "coproc git status", "command git status", "builtin git status", "eval git status",
    ". git status", "$'git' status", "$(echo git) status", "`echo git` status",
    "[[ x ]] && git status", "case x in x) git status;; esac", "for x in a; do git status; done",
    "select x in a; do git status; done", "=git status", "", " ", "\n", ";",
    "git status $'\\x3b' rm", "git status ((1))", "-git status",
]  # fmt: skip


@pytest.mark.parametrize("line", NOT_ALLOWED, ids=ascii)
def test_a_rule_that_allows_a_command_allows_nothing_else(line: str) -> None:
    assert not allows(GIT_STATUS, bash(line))


AS_WRITTEN = [
    "git status", "git  status", "git\tstatus", " git status ", "git status\n",
    "git status 'a;b'", 'git status "a b"', "git status a\\;b", "git status --short src/a.py",
    "git status && git status", "git status; git status -s", "git status | git status",
]  # fmt: skip


@pytest.mark.parametrize("line", AS_WRITTEN, ids=ascii)
def test_a_command_written_as_in_a_rule_is_allowed(line: str) -> None:
    assert allows(GIT_STATUS, bash(line))


DENIED = [
    ">x", "find . -exec", "find . -exec env {} \\;", "git -v --force push",
    "rm x", "rm", " rm x", "ls; rm x", "ls\nrm x", "ls &\nrm x", "ls &rm x", "ls&&rm x",
    "ls||rm x", "ls|rm x", "ls |& rm x", "ls;;rm x", "ls\n\n\trm x", "ls \\\n; rm x", "r\\\nm x",
    "cd /tmp\nrm x", "X=1 rm x", "X=1 Y=2 rm x", "X= rm x", "X+=1 rm x", "X[0]=1 rm x",
    "PATH=/x ls", "(rm x)", "((rm x))", "{ rm x; }", "{ rm x }", "if true; then rm x; fi",
    "if rm x; then ls; fi", "while rm x; do ls; done", "until rm x; do ls; done",
    "for f in a; do rm $f; done", "for f in *; do rm x; done", "select f in a; do rm x; done",
    "case a in a) rm x;; esac", "[[ a ]] && rm x", "[ a ] && rm x", "! rm x", "!rm x",
    "time rm x", "time -p rm x", "coproc rm x", "function f { rm x; }; f", "f() { rm x; }; f",
    "function f() rm x", "() { rm x }", "alias ls=rm; ls x", "alias ls='rm x'\nls",
    "trap 'rm x' EXIT", "trap rm 0", "/bin/rm x", "/usr/bin/rm x", "../../bin/rm x", "./rm x",
    "//bin//rm x", "/bin/./rm x", "~/rm x", "\\rm x", "r\\m x", "'rm' x", "'r'm x", 'r"m" x',
    "r''m x", '""rm x', "$'rm' x", "$'\\x72m' x", '$"rm" x', "$(echo rm) x", "`echo rm` x",
    "${X}rm x", "$X x", "$@", "echo $(rm x)", "echo `rm x`", 'echo "$(rm x)"', 'echo "`rm x`"',
    "echo ${X:-$(rm x)}", "echo $((a[$(rm x)]))", "ls <(rm x)", "ls >(rm x)",
    "cat <<E\n$(rm x)\nE", "cat <<E\nE\nrm x", "sh <<< 'rm x'", "ls #\nrm x", "# x\nrm x",
    "/b?n/rm x", "/bin/r? x", "/bin/r[m] x", "r* x", "{rm,x}", "/bin/{rm,ls} x", "r{m,} x",
    "=rm x", ">x rm y", ">>x rm y", "2>x rm y", "<x rm y", "<>x rm y", ">x 2>&1 rm y",
    "&>x rm y", "ls &> x rm y", "ls >/dev/null; rm x", "ls 'unclosed; rm x",
    'ls "unclosed; rm x', "RM x", "Rm x", "/BIN/RM x", "ls\rrm x", "ls\x00rm x", "ls\x0brm x",
    "ls\x0crm x", "ls\x85rm x", "\u200brm x", "\uff52\uff4d x", "rm\xa0x", "\xa0rm x",
    "ls\u2028rm x", "rm\tx", "\trm x", "env rm x", "env -i rm x", "env X=1 rm x",
    "env -S 'rm x'", "env -u X rm x", "env -- rm x", "/usr/bin/env rm x", "env env env rm x",
    "ENV rm x", "nice rm x", "nice -n 5 rm x", "nice -5 rm x", "nohup rm x", "setsid -f rm x",
    "stdbuf -oL rm x", "timeout 5 rm x", "timeout -k 1 5 rm x", "ionice -c3 rm x",
    "chrt -b 0 rm x", "taskset 1 rm x", "xargs rm", "ls | xargs rm", "xargs -0 rm",
    "xargs -I{} rm {}", "xargs -n1 rm", "xargs env rm", "xargs sh -c",
    "echo rm | xargs -I{} {} x", "find . -exec rm {} ;", "find . -exec rm {} +",
    "find . -execdir rm {} \\;", "find . -ok rm {} \\;", "find . -exec sh -c 'rm {}' ;",
    "find . -exec {} ;", "find . -exec true \\; -exec rm {} \\;", "sh -c 'rm x'", "sh -c rm",
    "sh -ec 'rm x'", "bash -lc 'rm x'", "bash -c 'ls; rm x'", "dash -c 'rm x'",
    "/bin/sh -c 'rm x'", 'sh -c \'sh -c "rm x"\'', 'sh -c \'r""m x\'', "sh -c '$0 x' rm",
    'sh -c \'"$@"\' x rm y', "sh x.sh", "sh -s", "sh <x", "echo rm x | sh",
    "bash --rcfile x -ic ls", "bash -O extglob -c 'rm x'", "zsh -c 'rm x'", "fish -c 'rm x'",
    "ksh -c 'rm x'", "bash.exe -c 'rm x'", "busybox rm x", "toybox rm x", "busybox-static rm x",
    "busybox sh -c 'rm x'", "eval rm x", "eval 'r''m x'", "exec rm x", "exec -a ls rm x",
    "command rm x", "command -p rm x", "builtin command rm x", "source x", ". ./x", "sudo rm x",
    "sudo -u a rm x", "doas rm x", "su -c 'rm x'", "pkexec rm x", "ssh host rm x",
    "chroot / rm x", "unshare rm x", "nsenter -t1 rm", "flock x rm y", "script -c 'rm x'",
    "watch rm x", "strace rm x", "systemd-run rm x", "parallel rm", "ssh-agent rm x",
    "choom -n 0 -- rm x", "ip netns exec a rm x", "run-parts x", "caffeinate rm x",
    "sort --compress-program=rm x", "split --filter='rm x' f", "tar -xf x --to-command='rm x'",
    "tar xIf rm x", "/lib64/ld-linux-x86-64.so.2 /bin/rm x", "noglob rm x", "nocorrect rm x",
    "repeat 2 rm x", "- rm x", "ls; and rm x", "begin; rm x; end", "not rm x",
    "emulate sh -c 'rm x'", "hash -p /bin/rm ls; ls x", "printf -v 'a[$(rm x)]' x",
    "test -v 'a[$(rm x)]'", "read 'a[`rm x`]'", "let 'a[$(rm x)]'", "export PATH=/x; ls",
    "declare -x PATH=/x; ls", "mapfile -C 'rm x' -c 1 a", "enable -f ./x x", "git push",
    "git -C . push", "git --no-pager push", "git -c x=y push", "git --git-dir=x push -f",
    "git -c alias.p=push p", "git -C . -c alias.p=push p", "git --exec-path=x x", "git-push",
    "GIT push", "/usr/lib/git-core/git-push x", "git p{us,}h", "git pus[h]", "git * x",
    "echo push | xargs git", "cd /tmp && git push --force", "git 'push'", 'git "pu"sh',
    "git \\push", "env git push", "xargs git push",
]  # fmt: skip


@pytest.mark.parametrize("line", DENIED, ids=ascii)
def test_a_command_that_is_denied_is_denied_however_it_is_written(line: str) -> None:
    assert not allows(NO_RM, bash(line))


@pytest.mark.parametrize(
    ("words", "may"),
    [
        ("git -C . -c alias.p=push p", True),
        ("git --exec-path=x p", True),
        ("git --no-pager -c alias.p=push p", True),
        ("git -C -c status", False),
        ("git -C . stash push", True),  # after an option, any later word may be it
        ("git stash push", False),
    ],
)
def test_a_configuration_before_the_command_of_git_may_make_it_any(words: str, may: bool) -> None:
    assert may_begin_with(tuple(words.split()), ("git", "push")) is may


READABLE = [
    "ls", "ls rm", "echo rm x", "ls; echo 'rm x'", "ls\nls", "ls 2>&1 >/dev/null", "rmdir x",
    "arm x", "git status", "git stash push", "git log --oneline", "git commit -m 'rm push'",
    "cd x && ls *.py", "env ls", "timeout 5 make rm", "xargs ls", "find . -name rm",
    "find . -exec ls {} +", "g++ x.c", "bash -lc 'ls; pwd'", "git -C . status", "set -e\nls",
    "./build.sh && make -j4", "python3 x.py", "sort x", "tar -czf x.tgz src",
    "printf '%s\\n' 'a[1]'", "git switch -c new",
]  # fmt: skip


@pytest.mark.parametrize("line", READABLE, ids=ascii)
def test_an_understood_command_that_is_not_denied_is_allowed(line: str) -> None:
    assert allows(NO_RM, bash(line))


ARGVS: list[Json] = [
    ["rm", "x"],
    ["/bin/rm", "x"],
    ["bash", "-lc", "rm x"],
    ["/bin/sh", "-c", "git push"],
    ["env", "rm", "x"],
    ["bash", "-c", "ls\nrm x"],
    ["rm x"],
    ["sh", "x.sh"],
    ["sudo", "rm"],
    ["git", "-C", ".", "push"],
    ["xargs", "git"],
    [],
    [1, 2],
    5,
    True,
    {"a": "rm"},
    ["", "rm"],
]


@pytest.mark.parametrize("argv", ARGVS, ids=ascii)
def test_neither_a_list_nor_a_non_command_bypasses_rules(argv: Json) -> None:
    assert not allows(NO_RM, bash(argv))


def test_a_list_of_one_word_is_a_command_unless_it_may_be_a_line_for_a_shell() -> None:
    assert allows(Rules((Rule(decision="allow", command="make"),)), bash(["make"]))
    quoted = Rules((Rule(decision="allow", command="'make all'"),))
    assert allows(quoted, bash(["make all", "x"]))
    assert not allows(quoted, bash(["make all"]))


@pytest.mark.parametrize(
    "given",
    [
        {"command": "rm", "args": ["x"]},
        {"command": "git", "args": ["push"]},
        {"command": "env", "args": ["rm", "x"]},
        {"command": "ls; rm", "args": ["x"]},
        {"command": "ls", "args": [1]},
        {"command": "ls", "cmd": "rm x"},
        {"cmd": "rm x"},
        {"script": "rm x"},
        {"argv": ["rm", "x"]},
        {"input": "rm x"},
        {},
        None,
        "rm x",
        ["rm", "x"],
    ],
    ids=ascii,
)
def test_a_command_is_found_wherever_a_tool_has_it(given: Json) -> None:
    asked = ApprovalRequest(tool_name="Bash", tool_input=given, effect="command", cwd="/work")
    assert not allows(NO_RM, asked)


def test_a_line_for_another_shell_fits_every_denial() -> None:
    asked = ApprovalRequest(tool_name="PowerShell", tool_input={"command": "ls"}, effect="command")
    rules = Rules((Rule(decision="deny", command="rm"), Rule(decision="allow", tool="*")))
    assert not allows(rules, asked)


def test_a_started_command_is_denied_although_its_runner_is_allowed() -> None:
    rules = Rules((Rule(decision="allow", command="env"), Rule(decision="deny", command="rm")))
    assert allows(rules, bash("env ls"))
    assert not allows(rules, bash("env rm x"))


def test_the_reason_names_the_uncertainty() -> None:
    decision = NO_RM.decide(bash("echo $X"))
    assert decision.reason == "rule 1; it contains a $ to expand; put it in single quotes"
    decision = GIT_STATUS.decide(bash("echo $X"))
    assert str(decision.reason).startswith("no rule allows it; it contains a $")


@pytest.mark.parametrize("command", [" ", "", "'unclosed"])
def test_a_command_without_words_allows_nothing_and_denies_all(command: str) -> None:
    assert not allows(Rules((Rule(decision="allow", command=command),)), bash("rm -rf x"))
    denying = Rules((Rule(decision="deny", command=command), Rule(decision="allow", tool="*")))
    assert not allows(denying, bash("ls")) or command == ""


# --- properties ----------------------------------------------------------------------------------

PREFIXES = [
    "env ", "nice -n 5 ", "nohup ", "timeout 5 ", "setsid ", "xargs ", "sudo ", "command ",
    "exec ", "X=1 ", "! ", "ls; ", "ls && ", "ls | ", "ls\n", "( ", "{ ", ">x ", '\\', "/bin/",
    "find . -exec ", "stdbuf -oL ", "builtin ", "eval ", "if ", "time ", "echo $(", "`",
    "busybox ", "ssh h ", "$Y ",
]  # fmt: skip
SUFFIXES = ["", " x", "; ls", " | ls", " &", "\n", " > y", " $X", " {} ;", " )", "; }", " *", "`"]


@given(
    prefixes=st.lists(st.sampled_from(PREFIXES), max_size=4),
    command=st.sampled_from(["rm", "rm -rf", "git push", "git -C . push"]),
    suffix=st.sampled_from(SUFFIXES),
)
def test_nothing_before_or_after_a_denied_command_has_it_allowed(
    prefixes: list[str], command: str, suffix: str
) -> None:
    assert not allows(NO_RM, bash("".join(prefixes) + command + suffix))


@given(depth=st.integers(1, 300), wrapper=st.sampled_from(["env ", "nohup ", "nice "]))
def test_no_depth_of_wrappers_hides_a_denied_command(depth: int, wrapper: str) -> None:
    assert not allows(NO_RM, bash(wrapper * depth + "rm x"))


@given(
    operator=st.sampled_from(
        [";", "&&", "||", "|", "&", "\n", "|&", ";;", ">", "<", "`", "$(", "("]
    ),
    before=st.text("ab -'\"\\", max_size=6),
    after=st.text("ab -/$", max_size=6),
)
def test_an_allowed_beginning_allows_no_other_command_after_an_operator(
    operator: str, before: str, after: str
) -> None:
    line = f"git status {before}{operator} rm {after}"
    allowed = allows(GIT_STATUS, bash(line))
    assert not allowed or "rm" in _one_argument_of(line)


def _one_argument_of(line: str) -> str:
    """Return the words of a line whose operators are all quoted, as /bin/sh would read it."""
    from sessionmgr.adapter.kit.command_line import tokenize

    found = tokenize(line)
    assert all(hasattr(each, "raw") for each in found)  # words only, no operator
    return " ".join(each.text for each in found)


@given(line=st.text(max_size=60))
def test_no_line_is_too_odd_to_be_decided(line: str) -> None:
    assert not allows(GIT_STATUS, bash(line)) or line.split()[:2] == ["git", "status"]
    allows(NO_RM, bash(line))


def test_a_line_of_great_length_is_decided_at_once() -> None:
    assert not allows(NO_RM, bash("ls " * 1_000_000))
    assert not allows(NO_RM, bash("sh -c '" * 5000))
    assert not allows(NO_RM, bash("env " * 20_000 + "rm"))


RUNNERS = [
    "npx {}", "npx --yes {}", "bunx {}", "pnpm dlx {}", "pnpm exec {}", "npm exec -- {}",
    "npm x {}", "yarn exec {}", "uvx {}", "uv run {}", "uv run --with x --python 3.12 {}",
    "uv --quiet run {}", "poetry run {}", "pipenv run {}", "pdm run {}", "hatch run {}",
    "conda run -n env {}",
    "bundle exec {}", "mise exec -- {}", "rbenv exec {}", "docker run -v /:/x image {}",
    "docker exec box {}", "fd -x {}", "fd . --exec {}", "nix develop -c {}", "npx npx {}",
    "git submodule foreach {}", "git bisect run {}", "npx nice {}", "uv run sh -c '{}'",
    "find . -exec npx {} ;", "env uv run {}", "/opt/bin/npx {}",
]  # fmt: skip


@pytest.mark.parametrize("denied", ["rm x", "git push", "/bin/rm x", "git -C . push"])
@pytest.mark.parametrize("runner", RUNNERS)
def test_a_command_started_by_a_runner_is_denied_as_if_started_directly(
    runner: str, denied: str
) -> None:
    assert not allows(NO_RM, bash(runner.format(denied)))


RUN = [
    "npx eslint --fix src", "npx tsc --watch", "npm run build", "npm install x", "uv run pytest",
    "uv run --with x pytest -k 'a or b'", "uv pip install x", "docker ps", "git bisect start",
    "poetry run python -m x", "fd -e py", "nix build", "npx eslint src/*.js", "bundle install",
]  # fmt: skip


@pytest.mark.parametrize("command", RUN)
def test_a_runner_may_start_a_command_that_is_not_denied(command: str) -> None:
    assert allows(NO_RM, bash(command))


def test_a_runner_with_too_many_arguments_may_start_anything() -> None:
    assert allows(NO_RM, bash("npx eslint " + "a.js " * 1000))
    assert not allows(NO_RM, bash("npx eslint " + "a.js " * 1100))
    assert not allows(NO_RM, bash("npx " + "nice npx " * 120))


CODE = [
    "git rebase -x 'rm x' HEAD~2", "git rebase --exec='rm x' main", "git rebase --ex 'rm x'",
    "git rebase -ix rm", "git -C . rebase -x rm", "git filter-branch --tree-filter 'rm x'",
    "git difftool -x rm", "git grep -Orm x", "git fetch --upload-pack='rm x' ./r",
    "git -c alias.x='!rm x' x", "git -c core.pager='rm x' log", "git -ccore.pager='rm x' log",
    "git -c core.sshCommand='rm x' fetch", "git --config-env=core.pager=X log",
    "git --exec-path=. status", "git config alias.x '!rm x'", "git config --global core.pager rm",
    "git submodule foreach 'rm x'", "git bisect run rm x",
    "python -c 'x'", "python3 -c x", "python3.12 -Ic x", "/usr/bin/python3 -W ignore -c x",
    "python -X dev -c x", "python -", "echo x | python3", "python -u", "pypy3 -c x",
    "node -e x", "node --eval=x", "node -pe x", "node -r ./a.js -e x", "node -", "echo x | node",
    "perl -e x", "perl -ne x", "perl -pi -e x f", "perl -lane x", "perl -0777ne x", "perl -Mx -E x",
    "perl -i.bak -pe x f", "ruby -e x", "ruby -rjson -ne x", "php -r x", "php8.2 -d a=b -r x",
    "lua -e x", "Rscript -e x", "bun -e x", "deno eval x", "julia -E x",
    "awk 'BEGIN { system(\"rm x\") }'", "gawk '{ print | \"rm x\" }' f",
    "awk '{ printf \"%s\", $1 | c }'", "awk 'BEGIN { \"rm x\" | getline }'",
    "env python -c x", "nice perl -e x", "timeout 5 node -e x", "xargs python -c x",
    "find . -exec perl -e x {} ;", "uv run python -c x", "npx node -e x", "sh -c 'python -c x'",
    "sh -c 'awk \"{ system(1) }\"'",
    "X && python -c x", "ls | perl -ne x",
]  # fmt: skip
NO_RM_AT_ALL = Rules((Rule(decision="deny", command="rm"), Rule(decision="allow", tool="Bash")))


@pytest.mark.parametrize("line", CODE, ids=ascii)
def test_code_in_arguments_may_start_a_denied_command(line: str) -> None:
    assert not allows(NO_RM_AT_ALL, bash(line))
    decision = NO_RM_AT_ALL.decide(bash(line))
    assert str(decision.reason).startswith("rule 1")
    assert allows(Rules((Rule(decision="allow", tool="Bash"),)), bash(line))


NO_CODE = [
    "git rebase main", "git rebase --onto a b", "git rebase -Xtheirs x", "git rebase --continue",
    "git -c user.name=x commit", "git -c core.pager=cat log", "git -c core.pager= diff",
    "git -c core.quotepath=off status", "git -c color.ui=never log", "git --no-pager log",
    "git config user.email x", "git config core.pager", "git config --get alias.x",
    "git config core.autocrlf input", "git grep -n x", "git log --oneline -- -x", "git push -u o x",
    "git fetch -u", "git commit -m 'git rebase -x'", "git checkout -b x", "git clone -b x y",
    "python x.py -c a", "python -m pytest -c x", "python3 --version", "python -V", "python -u x.py",
    "python3 -X dev x.py -c y", "node x.js -e a", "node --test", "node --version",
    "node --max-old-space-size=4096 x.js", "node -r ./a.js b.js", "perl x.pl -e", "perl -v",
    "perl -c x.pl", "perl -Ilib x.pl", "ruby x.rb", "ruby -S rspec", "ruby --version",
    "php x.php", "php -l x.php", "php -S localhost:80", "php -v", "bun run x", "bun install",
    "deno run x.ts", "deno test", "Rscript x.R", "awk '{ print $1 }' f", "awk -F'|' '{ print $2 }'",
    "awk '/a|b/' f", "awk '$1 || $2 { n++ } END { print n }' f", "awk '{ print $1 || $2 }' f",
    "awk -f x.awk f", "sed -i s/a/b/ f", "npm run python", "docker run --rm python",
    "uv run --python python3 pytest", "env python x.py", "ls *.py | xargs python", "python *.py",
]  # fmt: skip


@pytest.mark.parametrize("line", NO_CODE, ids=ascii)
def test_a_line_without_code_is_denied_only_by_its_own_rule(line: str) -> None:
    assert allows(NO_RM_AT_ALL, bash(line))


def test_code_is_allowed_by_a_rule_that_comes_first() -> None:
    first = Rule(decision="allow", command="python -c")
    rules = Rules((first, Rule(decision="deny", command="rm")))
    assert allows(rules, bash("python -c 'print(1)'"))
    assert not allows(rules, bash("python -c 'print(1)' && rm x"))
