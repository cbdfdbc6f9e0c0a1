"""docs/reference/node.md lists all settings, conditions and signals."""

from pathlib import Path

import pytest
from msgspec import structs

from podstatus.kube.scalars.time import Time
from podstatus.node.decide.conditions import update_conditions
from podstatus.node.decide.pressure_conditions import CONDITION_BY_SIGNAL, IGNORED_SIGNALS
from podstatus.node.settings import DEFAULT_EVICTION_HARD, NodeSettings

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "node.md").read_text()


@pytest.mark.parametrize("field", [info.name for info in structs.fields(NodeSettings)])
def test_every_setting_is_on_the_page(field: str) -> None:
    assert f"`{field}`" in PAGE


@pytest.mark.parametrize("under", [True, False])
def test_every_condition_is_on_the_page_with_its_words(under: bool) -> None:
    pressures = frozenset(CONDITION_BY_SIGNAL.values()) if under else frozenset()
    updated = update_conditions("n", (), pressures=pressures, problems=(), now=Time())
    for condition in updated.items:
        assert f" {condition.status} | {condition.reason} | {condition.message} | " in PAGE
    for event in updated.events:
        assert f"| {event.reason} |" in PAGE


def test_every_signal_is_on_the_page_with_its_default() -> None:
    for signal in CONDITION_BY_SIGNAL:
        assert f"| `{signal}` | " in PAGE
    for signal, threshold in DEFAULT_EVICTION_HARD.items():
        assert f"| `{signal}` | `{threshold}` |" in PAGE
    assert all(f"`{signal.split('.')[0]}.*`" in PAGE for signal in IGNORED_SIGNALS)
