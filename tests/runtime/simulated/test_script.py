import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from podstatus.kube.objects.pod import Pod
from podstatus.runtime.simulated.model.probe_timeline import Timeline, TimelineStep, parse_timeline
from podstatus.runtime.simulated.model.script import (
    FIELDS,
    Script,
    ScriptError,
    parse_script,
    script_for,
)
from podstatus.testing.builders import make_pod

S = 1_000_000_000


@pytest.mark.parametrize(
    ("text", "script"),
    [
        ("", Script()),
        ("   ", Script()),
        ("start=2s", Script(start=2 * S)),
        ("start=never", Script(start=None)),
        ("fail=StartError", Script(fail="StartError")),
        ("fail=ErrImageNeverPull", Script(fail="ErrImageNeverPull")),
        ("run=500ms", Script(run=S // 2)),
        ("run=1.5m", Script(run=90 * S)),
        ("run=2h", Script(run=7200 * S)),
        ("run=forever", Script(run=None)),
        ("run=0s, exit=3", Script(run=0, exit=3)),
        ("exit=oom", Script(exit=137, oom=True)),
        ('message="one, two; three = four"', Script(message="one, two; three = four")),
        ('message=""', Script()),
        ("stop=2s, stop-exit=5", Script(stop=2 * S, stop_exit=5)),
        ("stop=never", Script(stop=None)),
        ("kill=30s", Script(kill=30 * S)),
        ("kill=never", Script(kill=None)),
        ("ready=-", Script(ready=Timeline((TimelineStep(False),)))),
        ("stop-ready=-", Script(stop_ready=Timeline((TimelineStep(False),)))),
        ("started=?4s+", Script(started=Timeline((TimelineStep(None, 4 * S), TimelineStep(True))))),
        ("alive=+3s-", Script(alive=Timeline((TimelineStep(True, 3 * S), TimelineStep(False))))),
        ("cpu=250m, memory=64Mi", Script(cpu_cores=0.25, memory_bytes=64 * 2**20)),
        ("run = 3s ,exit =  1", Script(run=3 * S, exit=1)),
        ("run=3s,", Script(run=3 * S)),
    ],
)
def test_a_script_says_what_an_attempt_does(text: str, script: Script) -> None:
    assert parse_script(text) == (script,)


def test_attempts_differ_and_the_last_is_that_of_all_later_ones() -> None:
    pod = make_pod(annotations={"podstatus.dev/simulate": "run=1s, exit=42; run=2s; exit=7"})
    attempts = [script_for(pod, "app", number) for number in range(5)]
    assert [(a.run, a.exit) for a in attempts[:3]] == [(S, 42), (2 * S, 0), (None, 7)]
    assert attempts[3:] == [attempts[2]] * 2


def test_a_container_s_own_script_counts_instead_of_its_pod_s() -> None:
    pod = make_pod(
        containers=("a", "b"),
        annotations={
            "podstatus.dev/simulate": "exit=1, run=1s",
            "simulate.podstatus.dev/b": "run=2s",
        },
    )
    assert script_for(pod, "a", 0) == Script(exit=1, run=S)
    assert script_for(pod, "b", 0) == Script(run=2 * S)
    assert script_for(make_pod(), "b", 0) == Script()


@pytest.mark.parametrize(
    ("text", "quoted", "allowed"),
    [
        ("runs=3s", "unknown key 'runs'", "valid keys are start, fail, post-start, "),
        ("run=3", "invalid value run=3", "500ms, 3s, 2m or 1h, or forever"),
        ("run=never", "invalid value run=never", "or forever"),
        ("run=1234567s", "invalid value run=1234567s", "a duration"),
        ("run=٣s", "invalid value run=٣s", "a duration"),
        ("exit=256", "invalid value exit=256", "0 to 255, or oom"),
        ("exit=-1", "invalid value exit=-1", "0 to 255"),
        ("stop-exit=oom", "invalid value stop-exit=oom", "0 to 255"),
        ("fail=not-one-word", "invalid value fail=not-one-word", "ErrImageNeverPull"),
        ("ready=yes", "invalid value ready=yes", "-4s+5s-5s+"),
        ("ready=+-5s", "invalid value ready=+-5s", "steps such as"),
        ("ready=+5s-*", "invalid value ready=+5s-*", "steps such as"),
        ("ready=+0s*", "invalid value ready=+0s*", "steps such as"),
        ("cpu=-1", "invalid value cpu=-1", "250m"),
        ("memory=much", "invalid value memory=much", "64Mi"),
        ("run=3s exit=1", "cannot parse 'run=3s exit=1'", "separated by commas"),
        ("run", "cannot parse 'run'", "pairs such as run=3s"),
        ("run=3s; ; exit=1", "cannot parse ';'", "semicolons between attempts"),
        ("run=3s exit=1, stop=2s", "cannot parse 'run=3s exit=1'", "separated by commas"),
        ('message="open', "cannot parse 'message=\"open'", "pairs"),
        ("run=3s, run=4s", "run occurs twice", "use a semicolon to begin another attempt"),
        ("exit=3, exit=oom", "exit occurs twice", "semicolon"),
    ],
)
def test_a_mistake_is_quoted_with_what_is_allowed(text: str, quoted: str, allowed: str) -> None:
    pod = make_pod(annotations={"simulate.podstatus.dev/app": text})
    with pytest.raises(ScriptError) as caught:
        script_for(pod, "app", 0)
    message = str(caught.value)
    assert message.startswith("annotation simulate.podstatus.dev/app: ")
    assert quoted in message
    assert allowed in message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("runs=3s, exits=1", "unknown key 'runs', unknown key 'exits'; valid keys are "),
        ("exit=300; exit=400", "invalid value exit=300, invalid value exit=400; expected a "),
        ("run=x, exit=y", "(1) invalid value run=x; expected a duration such as 500ms, 3s, 2m "),
        ("run=x, exit=y", ". (2) invalid value exit=y; expected a number from 0 to 255, or oom"),
        ("run, run=3, run", "(1) cannot parse 'run', cannot parse 'run'; expected pairs such as"),
        ("run, run=3, run", ". (2) invalid value run=3; "),
        ('exit=300, message="a, b', "(2) cannot parse 'message=\"a, b'; expected pairs "),
        ("a=1, b=1, c=1, d=1, e=1", "unknown key 'c' and 2 more; valid keys are start, "),
    ],
)
def test_all_errors_of_a_script_are_reported(text: str, message: str) -> None:
    assert message in str(mistake_in(text))


def test_a_mistake_is_the_only_one_if_the_rest_is_right() -> None:
    right = str(mistake_in("run=1s, oops; run=2s; exit=3; stop=4s, run=1s"))
    assert right.startswith("cannot parse 'oops'; expected pairs ")


POD = make_pod(containers=("app", "log"), init_containers=("setup",))


@pytest.mark.parametrize("name", ["app", "log", "setup"])
def test_an_annotation_may_be_about_any_container(name: str) -> None:
    pod = annotated({f"simulate.podstatus.dev/{name}": "run=2s"})
    assert script_for(pod, name, 0) == Script(run=2 * S)


def test_an_annotation_about_no_container_is_a_mistake_for_all_of_them() -> None:
    pod = annotated({"simulate.podstatus.dev/ap": "run=2s"})
    for name in ("app", "log", "setup"):
        with pytest.raises(ScriptError) as caught:
            script_for(pod, name, 0)
        assert str(caught.value) == (
            "annotation simulate.podstatus.dev/ap names no container of the pod; "
            "containers are setup, app, log"
        )


def test_errors_of_several_annotations_are_reported_together() -> None:
    pod = annotated(
        {
            "simulate.podstatus.dev/ap": "run=2s",
            "simulate.podstatus.dev/logs": "run=2s",
            "podstatus.dev/simulate": "run=x",
        }
    )
    with pytest.raises(ScriptError) as caught:
        script_for(pod, "app", 0)
    message = str(caught.value)
    assert "annotation simulate.podstatus.dev/ap names no container" in message
    assert ", annotation simulate.podstatus.dev/logs names no container" in message
    assert "; annotation podstatus.dev/simulate: invalid value run=x" in message


def annotated(annotations: dict[str, str]) -> Pod:
    metadata = structs.replace(POD.metadata, annotations=annotations)
    return structs.replace(POD, metadata=metadata)


def mistake_in(text: str) -> ScriptError | None:
    try:
        assert parse_script(text)
    except ScriptError as error:
        return error
    return None


@given(st.text(max_size=40) | st.text(alphabet='runextready=+-?*;,"0123sm ', max_size=40))
def test_any_text_is_a_script_or_a_mistake(text: str) -> None:
    assert len(str(mistake_in(text))) < 1500


def test_a_text_of_errors_only_is_reported_briefly() -> None:
    words = [f"{word}=%" for word in FIELDS if word != "message"]
    text = ", ".join([*words, "run=1s, run=1s", "x=1", "oops"] * 2000)
    assert len(str(mistake_in(text))) < 3000


@given(
    st.sampled_from(sorted(FIELDS)),
    st.text(alphabet="0123456789.smh+-?*neverfoom", min_size=1, max_size=12),
)
def test_any_value_is_read_or_a_mistake_that_names_its_word(word: str, value: str) -> None:
    mistake = mistake_in(f"{word}={value}")
    assert mistake is None or word in str(mistake)


@pytest.mark.parametrize(
    ("text", "seconds", "says", "until"),
    [
        ("+", 0, True, None),
        ("-4s+", 0, False, 4),
        ("-4s+", 3.999, False, 4),
        ("-4s+", 4, True, None),
        ("-4s+5s", 100, True, None),
        ("?2s-1s+", 1, None, 2),
        ("+5s-5s*", 4, True, 5),
        ("+5s-5s*", 5, False, 10),
        ("+5s-5s*", 10, True, 15),
        ("+5s-5s*", 1007, False, 1010),
    ],
)
def test_a_timeline_says_what_it_says_and_until_when(
    text: str, seconds: float, says: bool | None, until: int | None
) -> None:
    ends = None if until is None else until * S
    assert parse_timeline(text).at(round(seconds * S)) == (says, ends)
