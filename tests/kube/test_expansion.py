import pytest

from podstatus.kube.expansion import (
    MAX_STRING_BYTES,
    ArgumentListTooLongError,
    ExecBudget,
    expand,
    expand_command,
    expand_strictly,
)

VALUES = {"A": "1", "EMPTY": "", "R": "$(A)", "with space": "s"}


@pytest.mark.parametrize(
    ("text", "expanded"),
    [
        ("$(A)", "1"),
        ("x$(A)y$(A)", "x1y1"),
        ("$(NONE)", "$(NONE)"),
        ("$$(A)", "$(A)"),
        ("$$$(A)", "$1"),
        ("$$$$(A)", "$$(A)"),
        ("$(R)", "$(A)"),
        ("$(EMPTY)", ""),
        ("$()", "$()"),
        ("$(with space)", "s"),
        ("$(A", "$(A"),
        ("$A ${A} `date` $(date)", "$A ${A} `date` $(date)"),
        ("$", "$"),
        ("a$", "a$"),
        ("$$", "$"),
        ("$(A$(A))", "$(A$(A))"),
        ("$é$(A)", "$é1"),
        ("$x$(A)", "$x1"),
        ("line\n'\"$(A)", "line\n'\"1"),
    ],
)
def test_references_are_read_as_the_kubelet_reads_them(text: str, expanded: str) -> None:
    assert expand(text, VALUES) == expanded


def test_a_sub_path_needs_a_value_for_each_reference() -> None:
    assert expand_strictly("$(A)/x", VALUES) == ("1/x", [])
    assert expand_strictly("$(Z)/$(EMPTY)/$(A)", VALUES)[1] == ["EMPTY", "Z"]


@pytest.mark.parametrize(
    ("text", "expanded"),
    [("$(A)$$ $(A", "1$ $(A"), (")$$", ")$"), ("$(A)$", "1$"), ("$$(A) $(", "$(A) $(")],
)
def test_what_follows_the_last_reference_is_text(text: str, expanded: str) -> None:
    assert expand(text, VALUES) == expanded


@pytest.mark.parametrize("text", ["$(" * 500_000, "$$(" * 300_000, "$(A" * 300_000 + ")"])
def test_references_without_an_end_take_linear_time(text: str) -> None:
    """In quadratic time it would take an hour, and the timeout of the suite would end it."""
    with pytest.raises(ArgumentListTooLongError):
        expand(text, VALUES)


def test_nothing_longer_is_built_than_a_process_can_be_given() -> None:
    class Huge(str):
        """A string that reports a length beyond any memory."""

        __slots__ = ()

        def __len__(self) -> int:
            return 2**40

    with pytest.raises(ArgumentListTooLongError, match=f"more than {MAX_STRING_BYTES} bytes"):
        expand("$(A)$(A)", {"A": Huge("x")})


def test_bytes_count_not_characters() -> None:
    budget = ExecBudget()
    assert budget.expand("$(A)", {"A": "é" * (MAX_STRING_BYTES // 2 - 1)})
    with pytest.raises(ArgumentListTooLongError):
        budget.expand("$(A)", {"A": "é" * (MAX_STRING_BYTES // 2)})


def test_all_words_together_are_bounded() -> None:
    with pytest.raises(ArgumentListTooLongError, match="the limit for a process"):
        expand_command(["$(A)"] * 1000, {"A": "x" * 100_000})
