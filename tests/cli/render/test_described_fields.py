"""Descriptions of objects within the width of a terminal."""

import pytest

from podstatus.cli.render.described_fields import annotation_lines, wrap_lines


@pytest.mark.parametrize(
    ("line", "lines"),
    [
        ("Name:              web", ["Name:              web"]),
        (
            "  Ready  True  3s  KubeletReady: kubelet is posting ready status",
            [
                "  Ready  True  3s  KubeletReady: kubelet is",
                "                   posting ready status",
            ],
        ),
        (
            "Message:           one two three four five six seven",
            ["Message:           one two three four five", "                   six seven"],
        ),
        ("Image ID:          sha256:e9dea529453dd0cc90021c33edc5", None),
        (
            "  a very wide column that leaves no room  for more text",
            ["  a very wide column that leaves no room  for", "      more text"],
        ),
        (
            "  Warning  BackOff  3s (x12 over 60s)  kubelet  Back-off restarting failed app",
            [
                "  Warning  BackOff  3s (x12 over 60s)  kubelet",
                "      Back-off restarting failed app",
            ],
        ),
        (
            "Message:           no sha256:e9dea529453dd0cc90021c33edc5d6f7a here",
            [
                "Message:           no",
                "    sha256:e9dea529453dd0cc90021c33edc5d6f7a",
                "    here",
            ],
        ),
        ("unseparated " * 5, ["unseparated unseparated unseparated", "unseparated unseparated"]),
    ],
)
def test_the_last_column_continues_below_itself(line: str, lines: list[str] | None) -> None:
    wrapped = wrap_lines(f"{line}\n", 45).splitlines()
    assert wrapped == (lines or [line])


def test_the_manifest_of_kubectl_apply_is_no_annotation_to_read() -> None:
    annotations = {"kubectl.kubernetes.io/last-applied-configuration": "{…}", "b": "2", "a": "1"}
    shown = [line.split() for line in annotation_lines(annotations)]
    assert shown == [["Annotations:", "a=1"], ["b=2"]]
