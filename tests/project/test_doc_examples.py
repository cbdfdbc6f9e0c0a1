"""The rules by which a page is compared with what its examples show."""

from pathlib import Path

import pytest

from tests.support.doc_examples import Block, Reader, Step, blocks, shows, steps

PODS = "NAME   READY   STATUS    RESTARTS     AGE\nweb    1/1     Running   1 (3s ago)   7s\n"
PROGRAM = "```python\nprint(6 * 7)\n```\n\n```text\n42\n```\n"


@pytest.mark.parametrize(
    ("shown", "page"),
    [
        (PODS, PODS.replace("7s", "3m12s").replace("1 (3s ago)", "12 (4m ago)")),
        (PODS, PODS.replace("   ", " ")),
        (PODS, "NAME …\n…\n"),
        ("at https://127.0.0.1:6443\n", "at https://127.0.0.1:40001\n"),
        ("port 80 is in use (--port); a free one is used instead\nready\n", "ready\n"),
        ("Ready for 1 min 27 s.\n", "Ready for 3 s.\n"),
        ("12:00:01.123 • Pulled\n", "13:59:59.000 • Pulled\n"),
        ("phase   ░█ Running ███\n", "phase   ░░██████████\n"),
        ("", ""),
    ],
)
def test_what_differs_from_run_to_run_may_differ(shown: str, page: str) -> None:
    assert shows(shown, page)


@pytest.mark.parametrize(
    ("shown", "page"),
    [
        (PODS, PODS.replace("Running", "Pending")),
        (PODS, PODS.replace("1/1", "0/1")),
        (PODS, PODS.replace("web", "worker")),
        (PODS, PODS + PODS),
        (PODS, ""),
        ("", PODS),
        ("12:00:01.123 • Pulled\n", "12:00:01.123 • Created\n"),
        ("phase   ░█ Running ███\n", "Ready   ░█ Running ███\n"),
        ("exit code 3\n", "exit code 4\n"),
        ("a\nb\nc\n", "a\n…\nd\n"),
    ],
)
def test_anything_else_may_not(shown: str, page: str) -> None:
    assert not shows(shown, page)


def test_a_console_block_has_commands_with_their_output() -> None:
    console = "$ cd x\n$ kubectl get \\\n    pods\nNAME\nweb\n"
    assert steps(console) == [Step("cd x", ""), Step("kubectl get \\\n    pods", "NAME\nweb\n")]


def test_a_block_below_the_name_of_a_file_is_that_file() -> None:
    page = "Save this as `a.yaml`:\n\n```yaml\nkind: Pod\n```\n\nAnd `kind` is\n```yaml\nx\n```\n"
    assert blocks(page) == [
        Block("yaml", "kind: Pod\n", "a.yaml"),
        Block("yaml", "x\n", ""),
    ]


def test_a_page_whose_examples_work_is_followed_to_its_end(tmp_path: Path) -> None:
    page = (
        "Save this as `a.txt`:\n```text\nhello\n```\n"
        "```console\n$ export WORD=hello\n$ grep $WORD a.txt\nhello\n$ touch done\n```\n"
        "```console\n$ tail -f a.txt\nhello\n^C\n```\n"
        "<!-- terminal 1 -->\n```console\n$ tail -f a.txt\nhello\n```\n"
        "<!-- terminal 1 -->\n```console\n^C\n$ tail -f a.txt\nhello\n```\n"
    )
    Reader(tmp_path, {}).follow(page + PROGRAM)
    assert (tmp_path / "done").exists()


def test_a_command_of_another_terminal_leaves_the_variables_alone(tmp_path: Path) -> None:
    page = (
        "<!-- terminal 1 -->\n```console\n$ trap : INT; echo on; sleep 100\non\n```\n"
        "```console\n$ export WORD=hello\n```\n"
        "<!-- terminal 1 -->\n```console\n^C\n```\n"
        "```console\n$ echo $WORD\nhello\n```\n"
    )
    Reader(tmp_path, {}).follow(page)


@pytest.mark.parametrize(
    "page",
    [
        "```console\n$ echo hello\nhallo\n```\n",
        "```console\n$ echo hello\n```\n",
        "```console\n$ false\n```\n",
        "```console\n$ echo hello; false\nhallo\n```\n",
        "<!-- terminal 1 -->\n```console\n$ echo hello\nhallo\n```\n",
        PROGRAM.replace("6 * 7", "6 + 7"),
        PROGRAM.replace("print(6 * 7)", "print(6 * 7); raise SystemExit(1)"),
    ],
)
def test_an_example_that_shows_something_else_is_found(page: str, tmp_path: Path) -> None:
    with pytest.raises(AssertionError):
        Reader(tmp_path, {}).follow(page)
