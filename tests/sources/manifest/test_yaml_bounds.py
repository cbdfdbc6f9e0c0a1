"""YAML size limits are checked before any object is built."""

import pytest
import yaml

from podstatus.agent.settings.schema.parse_kubelet_config import parse_config
from podstatus.alerts.rules.yaml_reader import YamlReader
from podstatus.sources.manifest.yaml_bounds import BoundsError, YamlBounds, check_bounds

BOUNDS = YamlBounds(max_depth=5, max_nodes=100, max_characters=1000)


def check(text: str) -> None:
    check_bounds(yaml.parse(text), BOUNDS)


def alias_bomb(levels: int, first: str = "[x, x, x, x, x, x, x, x, x]") -> str:
    """Nine aliases of the level below per level: 9 ** levels values in 40 bytes per level."""
    lines = [f"a0: &a0 {first}"]
    for level in range(1, levels):
        items = ", ".join([f"*a{level - 1}"] * 9)
        lines.append(f"a{level}: &a{level} [{items}]")
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a",
        "[[[[[]]]]]",
        "[" + "a," * 99 + "]",
        "[" + "a," * 98 + "]",
        "a: &a {b: c}\nd: *a\ne:\n  <<: *a",
        "[&a [[[]]], *a]",
        "x" * 1000,
        "[*unknown]",
        "--- [" + "a," * 60 + "]\n--- [" + "a," * 60 + "]",
    ],
)
def test_what_is_within_the_bounds_passes(text: str) -> None:
    check(text)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[[[[[[]]]]]]", "nested too deeply"),
        ("[&a [[[]]], [[*a]]]", "nested too deeply"),
        ("[" + "a," * 100 + "]", "too many values"),
        ("x" * 1001, "too long"),
        (f"[&a {'x' * 300}, *a, *a, *a]", "aliases expand to too much data"),
        (f"{{&a {'x' * 300} : 1, b: *a, c: *a, d: *a}}", "aliases expand to too much data"),
        (alias_bomb(3), "aliases expand to too much data"),
        ("a: &a {b: &b [1, 2]}\nc: &a [*a, *a, *a]", "refers to itself"),
        ("&a [*a]", "refers to itself"),
        ("&a {b: {c: *a}}", "refers to itself"),
    ],
)
def test_what_is_beyond_the_bounds_is_refused(text: str, why: str) -> None:
    with pytest.raises(BoundsError, match=why):
        check(text)


def test_an_anchor_that_is_given_twice_stands_for_the_last_one() -> None:
    check("[&a x, *a, &a [x, x], *a]")


def test_a_configuration_file_cannot_explode() -> None:
    header = "kind: KubeletConfiguration\napiVersion: kubelet.config.k8s.io/v1beta1\n"
    found = parse_config(f"{header}{alias_bomb(30)}maxPods: *a29\n", "node.yaml")
    assert found.errors == ("node.yaml: aliases expand to too much data; write the values out",)


def test_a_configuration_file_may_have_aliases() -> None:
    header = "kind: KubeletConfiguration\napiVersion: kubelet.config.k8s.io/v1beta1\n"
    found = parse_config(f"{header}maxPods: &most 12\npodsPerCore: *most\n", "node.yaml")
    assert found.values["max_pods"].value == 12


def test_a_file_of_rules_cannot_explode() -> None:
    reader = YamlReader(alias_bomb(30))
    assert reader.root() is None
    (mistake,) = reader.errors
    assert mistake.message == "aliases expand to too much data; write the values out"
