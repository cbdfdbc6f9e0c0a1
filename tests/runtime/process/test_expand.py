import pytest

from podstatus.runtime.process.expand import expand, expand_strictly

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
