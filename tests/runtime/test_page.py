"""The pages about the runtime port and its simulation are complete, and their scripts are valid."""

import re
from pathlib import Path

import pytest
import yaml

from podstatus.apiserver.strategies.by_resource import STRATEGIES
from podstatus.kube.encoding.codec import from_document
from podstatus.kube.objects.pod import Pod
from podstatus.runtime.port import Runtime
from podstatus.runtime.simulated.model.script import (
    CONTAINER_PREFIX,
    FIELDS,
    POD_ANNOTATION,
    Script,
    parse_script,
    script_for,
)

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "reference" / "simulated-runtime.md").read_text()
PORT = (ROOT / "docs" / "reference" / "runtime-port.md").read_text()
SCRIPTS = re.findall(r"^\| [^`|]+ \| `([^`]*=[^`]*)` \|$", PAGE, re.MULTILINE)


@pytest.mark.parametrize("key", FIELDS)
def test_the_page_has_every_word_with_values_that_can_be_read(key: str) -> None:
    row = re.search(rf"^\| `{key}` \| ([^|]+) \|", PAGE, re.MULTILINE)
    assert row, f"{key} is not on the page"
    values = re.findall(r"`([^`]+)`", row[1])
    assert values
    for value in values:
        assert parse_script(f"{key}={value}")


def test_the_page_has_no_word_that_there_is_not() -> None:
    table = PAGE.partition("| key |")[2].partition("\n\n")[0]
    assert re.findall(r"^\| `([a-z-]+)` \|", table, re.MULTILINE) == list(FIELDS)


def test_the_scripts_on_the_page_can_be_read() -> None:
    assert len(SCRIPTS) > 12
    for script in SCRIPTS:
        assert parse_script(script) != (Script(),)


def test_the_page_names_the_annotations() -> None:
    assert f"`{POD_ANNOTATION}`" in PAGE
    assert f"`{CONTAINER_PREFIX}<container>`" in PAGE


def test_the_page_about_the_port_names_every_method() -> None:
    methods = [name for name in vars(Runtime) if not name.startswith("_")]
    assert [name for name in methods if f"`{name}" not in PORT] == []


MANIFESTS = re.findall(r"^```yaml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def test_the_pods_on_the_page_have_the_probes_that_their_scripts_speak_of() -> None:
    assert MANIFESTS
    for text in MANIFESTS:
        document = yaml.safe_load(text)
        document["metadata"]["namespace"] = "default"
        pod, rules = from_document(document, Pod), STRATEGIES["pods"]
        assert rules.validate_create(rules.prepare_create(document)) == []
        for container in pod.spec.containers or ():
            script, silent = script_for(pod, container.name, 0), Script()
            assert script != silent
            assert (container.readiness_probe is not None) == (script.ready != silent.ready)
            assert (container.startup_probe is not None) == (script.started != silent.started)
            assert (container.liveness_probe is not None) == (script.alive != silent.alive)


@pytest.mark.parametrize(
    ("key", "probe"),
    [("ready", "readinessProbe"), ("started", "startupProbe"), ("alive", "livenessProbe")],
)
def test_the_page_says_which_words_need_a_probe(key: str, probe: str) -> None:
    row = re.search(rf"^\| `{key}` \|.*$", PAGE, re.MULTILINE)
    assert row
    assert f"`{probe}`" in row[0]
