"""Prose on a terminal."""

import pytest

from podstatus.cli.render.message import wrap_message

IN_USE = (
    "podstatus: /srv/node is in use by another agent (pid 7); to see its state: "
    ".venv/bin/podstatus status --root-dir /srv/node; to stop it: "
    ".venv/bin/podstatus stop --root-dir /srv/node"
)


def test_a_message_is_wrapped_between_words_and_around_commands() -> None:
    assert wrap_message(IN_USE, 80).splitlines() == [
        "podstatus: /srv/node is in use by another agent (pid 7); to see its state:",
        "  .venv/bin/podstatus status --root-dir /srv/node; to stop it:",
        "  .venv/bin/podstatus stop --root-dir /srv/node",
    ]


def test_a_root_directory_after_the_name_of_the_program_is_not_a_command() -> None:
    message = f"podstatus: /srv/.podstatus is in use by {'many ' * 12}agents"
    assert wrap_message(message, 60).splitlines()[0] == (
        "podstatus: /srv/.podstatus is in use by many many many many"
    )


@pytest.mark.parametrize(
    "command",
    [
        "kubectl --kubeconfig .podstatus/kubeconfig apply -f FILE",
        "make run PODSTATUS_ROOT_DIR=PATH",
        "'../a b/podstatus' get pods -A",
        "/usr/bin/python3 -P -m podstatus.cli get pods -A",
    ],
)
def test_a_command_is_not_broken(command: str) -> None:
    wrapped = wrap_message(f"no such pod in this namespace; see: {command}, or try again", 60)
    assert any(command in line for line in wrapped.splitlines())


def test_a_word_that_is_wider_than_the_terminal_stays_whole() -> None:
    path = "/" + "long/" * 20
    assert wrap_message(f"cannot read {path} at all", 40).splitlines() == [
        "cannot read",
        f"  {path}",
        "  at all",
    ]


def test_a_line_that_fits_is_not_changed() -> None:
    assert wrap_message("two  spaces", 40) == "two  spaces"
