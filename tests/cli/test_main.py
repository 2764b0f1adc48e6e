"""The command line without the extras, and after typing errors."""

import errno
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

import rowtide
from rowtide._version import __version__, commit
from rowtide.cli import COMMANDS, main
from rowtide.connector.config.catalogue import PROPERTIES
from rowtide.connector.kafka_producer.batches.native import implementation as batches
from rowtide.connector.protocol.native import usual_events
from rowtide.connector.rows.native import implementation


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(main, arguments)
    return result.exit_code, result.output


def without(package: str, *arguments: str) -> tuple[int, str]:
    """Run the command line in a process that cannot import a package."""
    absent = f"import sys; sys.modules[{package!r}] = None"
    code = f"{absent}; from rowtide.cli import main; main({list(arguments)!r}, 'rowtide')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def test_help_lists_every_command_with_what_it_does() -> None:
    status, text = run("--help")
    assert status == 0
    for name, command in COMMANDS.items():
        assert f"{name} " in text
        assert command.summary in text


def test_help_imports_no_command() -> None:
    code = (
        "import sys; from rowtide.cli import main\n"
        "try: main(['--help'], 'rowtide')\n"
        "except SystemExit: pass\n"
        "print({name for name in sys.modules if name.startswith('rowtide.')} - {'rowtide.cli', 'rowtide._version'})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("set()\n")


@pytest.mark.parametrize(("pid", "status"), [(1, 128 + signal.SIGTERM), (2, -signal.SIGTERM)])
def test_sigterm_ends_a_command_that_does_not_handle_it_yet(pid: int, status: int) -> None:
    """The kernel ignores it in the first process of a container, unless there is a handler."""
    code = (
        f"import os, signal; os.getpid = lambda: {pid}\n"
        "from rowtide.cli import main\n"
        "main.command('begin')(lambda: signal.raise_signal(signal.SIGTERM))\n"
        "main(['begin'], 'rowtide')"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == status


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_and_option_has_a_help_text(name: str) -> None:
    command = main.get_command(click.Context(main), name)
    assert command is not None
    assert command.help
    assert all(parameter.help for parameter in command.params if isinstance(parameter, click.Option))
    status, text = run(name, "--help")
    assert status == 0
    assert "Usage:" in text
    parts = command.commands if isinstance(command, click.Group) else {}
    for shown in (text, *(run(name, part, "--help")[1] for part in parts)):
        assert "\\b" not in shown, "Click's mark of a paragraph is a backspace, not two characters"


def options(name: str, group: click.Group = main) -> Iterator[click.Parameter]:
    """An option of all commands that have it."""
    context = click.Context(group)
    for command in (group.get_command(context, one) for one in group.list_commands(context)):
        assert command is not None
        yield from (param for param in command.params if name in param.opts)
        if isinstance(command, click.Group):
            yield from options(name, command)


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("--web-bind", " ", "0.0.0.0 for all interfaces"),
        ("--registry", "nosuch", "http://host:port"),
        ("--registry", "ftp://host:1", "http://host:port"),
    ],
)
def test_wrong_addresses_are_refused_by_every_command(name: str, value: str, text: str) -> None:
    found = list(options(name))
    assert len(found) > 2
    for option in found:
        with pytest.raises(click.BadParameter, match=text):
            option.type_cast_value(click.Context(main), value)


def test_a_misspelt_command_suggests_the_nearest() -> None:
    status, text = run("chek")
    assert status == 2
    assert "Did you mean 'check'?" in text


def test_the_error_for_a_missing_package_names_the_extra(tmp_path: Path) -> None:
    config = tmp_path / "c.properties"
    config.write_text("name=x\n")
    status, text = without("pymysql", "check", str(config))
    assert status == 1
    assert "'rowtide check' needs the package pymysql" in text
    assert "pip install 'rowtide[connector]'" in text
    assert without("pymysql", "--help")[0] == 0


def test_properties_can_be_looked_up_without_the_extras() -> None:
    status, text = without("pymysql", "properties", "snapshot.mode")
    assert status == 0
    assert "never is refused" in text


@pytest.mark.parametrize(
    ("words", "completions"),
    [
        ("rowtide pro", ["properties"]),
        ("rowtide run --log-l", ["--log-level"]),
        ("rowtide properties snapshot.mode.", [n for n in PROPERTIES if n.startswith("snapshot.mode.")]),
    ],
)
def test_words_are_completed(words: str, completions: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(len(words.split()) - 1))
    result = CliRunner().invoke(main, prog_name="rowtide", env={"_ROWTIDE_COMPLETE": "bash_complete"})
    assert result.output.splitlines() == [f"plain,{completion}" for completion in completions]


def test_commands_are_completed_without_the_extras() -> None:
    code = "import sys; sys.modules['pymysql'] = None; from rowtide.cli import main; main(prog_name='rowtide')"
    environment = {**os.environ, "_ROWTIDE_COMPLETE": "zsh_complete", "COMP_WORDS": "rowtide ", "COMP_CWORD": "1"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert done.stdout.splitlines()[1::3] == list(COMMANDS)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_completion_script(shell: str) -> None:
    status, script = run("completion", shell)
    assert status == 0
    assert f"_ROWTIDE_COMPLETE={shell}_complete" in script


def test_the_version() -> None:
    compiled = f"events: {usual_events.NAME}, rows: {implementation.NAME}, native Kafka producer: {batches.NAME}"
    found = commit()
    version = __version__ if found is None else f"{__version__} ({found})"
    assert run("--version") == (0, f"rowtide, version {version}, {compiled}\n")


def test_the_commit_is_that_of_the_checkout_or_of_pip(monkeypatch: pytest.MonkeyPatch) -> None:
    folder = Path(rowtide.__file__).resolve().parents[1]
    if (folder / ".git").exists():
        command = ["git", "-C", str(folder), "log", "-1", "--format=%H"]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        assert done.stdout.startswith(str(commit()))
    url = {"url": "https://example.com/rowtide.git", "vcs_info": {"vcs": "git", "commit_id": "0123456789abcdef"}}
    for text, wanted in ((json.dumps(url), "0123456789ab"), ('{"dir_info": {}}', None), (None, None)):
        monkeypatch.setattr(Path, "exists", lambda _path: False)
        monkeypatch.setattr("importlib.metadata.distribution", lambda _name, text=text: Distribution(text))
        assert commit() == wanted


class Distribution:
    """An installed package with a text in its ``direct_url.json``."""

    def __init__(self, text: str | None) -> None:
        self.read_text = lambda _name: text


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("max.queue.size",), "default: 8192"),
        (("topic.prefix",), "it is required"),
        (("heartbeat",), "heartbeat.action.query"),
        (("transforms.*",), "transforms.<name>.*"),
        (("HEARTBEAT.?CTION.*",), "heartbeat.action.query"),
        (("topic.creation.x.partitions",), "topic.creation.<group>.*"),
        ((), "What to capture"),
        (("--markdown",), "### Snapshots"),
    ],
)
def test_properties(arguments: tuple[str, ...], text: str) -> None:
    status, output = run("properties", *arguments)
    assert status == 0
    assert text in output


def test_a_pattern_lists_all_properties_that_match_it() -> None:
    status, text = run("properties", "heartbeat.*")
    assert status == 0
    names = [line for line in text.splitlines() if line and not line.startswith(" ")]
    assert names == [name for name in PROPERTIES if name.startswith("heartbeat.")]
    assert len(names) > 1
    assert run("properties", "heartbeat*r")[0] == 1


def test_an_unknown_property_suggests_others() -> None:
    status, text = run("properties", "snapshotmode")
    assert status == 1
    assert "did you mean snapshot.mode" in text


def test_all_errors_of_a_configuration_are_reported(tmp_path: Path) -> None:
    config = tmp_path / "c.properties"
    config.write_text("database.hostnme=x\nsnapshot.mode=never\n")
    status, text = run("check", str(config))
    assert status == 1
    assert "did you mean database.hostname" in text
    assert "use no_data" in text
    assert "topic.prefix: is required" in text


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (MemoryError(), "no memory is left"),
        (OSError(errno.EMFILE, "Too many open files"), "too many files are open in this process"),
        (OSError(errno.ENOSPC, "No space left on device", "/x"), "/x: no space is left on the disk"),
        (RuntimeError("can't start new thread"), "no thread can be started"),
    ],
)
def test_what_is_used_up_is_one_line(error: Exception, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise error

    monkeypatch.setitem(main.commands, "fails", click.Command("fails", callback=fail))
    status, output = run("fails")
    assert status == 1
    assert output.startswith(f"Error: {text}")
    assert output.count("\n") == 1


def test_another_error_keeps_its_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise RuntimeError("an error in rowtide")

    monkeypatch.setitem(main.commands, "fails", click.Command("fails", callback=fail))
    result = CliRunner().invoke(main, ["fails"])
    assert str(result.exception) == "an error in rowtide"


def test_closed_standard_streams_become_the_null_device() -> None:
    """A connection would get descriptor 1 or 2, and librdkafka or Java print there."""
    code = (
        "import os, sys\n"
        "from rowtide.cli import main\n"
        "def begin():\n"
        "    print('lost', file=sys.stderr)\n"
        "    same = {os.fstat(number).st_rdev for number in range(3)} == {os.stat(os.devnull).st_rdev}\n"
        "    os._exit(0 if same and all(map(os.get_inheritable, range(3))) else 7)\n"
        "main.command('begin')(begin)\n"
        "main(['begin'], 'rowtide')"
    )
    closed = ["sh", "-c", 'exec "$@" 0<&- 1>&- 2>&-', "sh", sys.executable, "-c", code]
    assert subprocess.run(closed, check=False).returncode == 0


def test_records_are_not_written_to_a_closed_standard_output(tmp_path: Path) -> None:
    properties = tmp_path / "shop.properties"
    properties.touch()
    arguments = [sys.executable, "-m", "rowtide", "replay", str(properties), "--binlog", str(tmp_path)]
    done = subprocess.run(["sh", "-c", 'exec "$@" 1>&-', "sh", *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "standard output is closed" in done.stderr
