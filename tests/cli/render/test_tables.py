"""The colours of table cells."""

import pytest

from podstatus.cli.render.tables import cell_style


@pytest.mark.parametrize(
    ("heading", "text", "style"),
    [
        ("STATUS", "Running", "green"),
        ("STATUS", "Init:0/1", "yellow"),
        ("STATUS", "CrashLoopBackOff", "red"),
        ("TYPE", "Warning", "yellow"),
        ("HEALTH", "healthy", "green"),
        ("HEALTH", "starting", "yellow"),
        ("HEALTH", "stuck", "red"),
        ("SEVERITY", "critical", "red"),
        ("SEVERITY", "warning", "yellow"),
        ("SEVERITY", "info", ""),
        ("NAME", "Running", ""),
    ],
)
def test_colours_tell_how_things_are(heading: str, text: str, style: str) -> None:
    assert cell_style(heading, text) == style
