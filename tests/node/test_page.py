"""docs/reference/node.md lists all settings, conditions and signals."""

from pathlib import Path

import pytest
from msgspec import structs

from podstatus.eviction.decide.model import PRESSURE_CONDITIONS
from podstatus.kube.scalars.time import Time
from podstatus.node.decide.conditions import update_conditions
from podstatus.node.settings import NodeSettings

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "node.md").read_text()


@pytest.mark.parametrize("field", [info.name for info in structs.fields(NodeSettings)])
def test_every_setting_is_on_the_page(field: str) -> None:
    assert f"`{field}`" in PAGE


@pytest.mark.parametrize("under", [True, False])
def test_every_condition_is_on_the_page_with_its_words(under: bool) -> None:
    pressures = PRESSURE_CONDITIONS if under else ()
    updated = update_conditions("n", (), pressures=pressures, problems=(), now=Time())
    for condition in updated.items:
        assert f" {condition.status} | {condition.reason} | {condition.message} | " in PAGE
    for event in updated.events:
        assert f"| {event.reason} |" in PAGE
