import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from podstatus.kube.objects.pod import Pod
from podstatus.runtime.simulated.model.probe_timeline import Timeline, TimelineStep, parse_timeline
from podstatus.runtime.simulated.model.script import (
    FIELD_PARSERS,
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
        ("runs=3s", "there is no word 'runs'", "words are start, fail, post-start, "),
        ("run=3", "run=3 cannot be read", "500ms, 3s, 2m or 1h, or forever"),
        ("run=never", "run=never cannot be read", "or forever"),
        ("run=1234567s", "run=1234567s cannot be read", "a length"),
        ("run=٣s", "run=٣s cannot be read", "a length"),
        ("exit=256", "exit=256 cannot be read", "0 to 255, or oom"),
        ("exit=-1", "exit=-1 cannot be read", "0 to 255"),
        ("stop-exit=oom", "stop-exit=oom cannot be read", "0 to 255"),
        ("fail=not-one-word", "fail=not-one-word cannot be read", "ErrImageNeverPull"),
        ("ready=yes", "ready=yes cannot be read", "-4s+5s-5s+"),
        ("ready=+-5s", "ready=+-5s cannot be read", "steps such as"),
        ("ready=+5s-*", "ready=+5s-* cannot be read", "steps such as"),
        ("ready=+0s*", "ready=+0s* cannot be read", "steps such as"),
        ("cpu=-1", "cpu=-1 cannot be read", "250m"),
        ("memory=much", "memory=much cannot be read", "64Mi"),
        ("run=3s exit=1", "cannot read 'run=3s exit=1'", "commas between them"),
        ("run", "cannot read 'run'", "pairs such as run=3s"),
        ("run=3s; ; exit=1", "cannot read ';'", "semicolons between attempts"),
        ("run=3s exit=1, stop=2s", "cannot read 'run=3s exit=1'", "commas between them"),
        ('message="open', "cannot read 'message=\"open'", "pairs"),
        ("run=3s, run=4s", "run is said twice", "a semicolon begins another attempt"),
        ("exit=3, exit=oom", "exit is said twice", "semicolon"),
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
    ("text", "told"),
    [
        ("runs=3s, exits=1", "there is no word 'runs', there is no word 'exits'; words are "),
        ("exit=300; exit=400", "exit=300 cannot be read, exit=400 cannot be read; a number "),
        ("run=x, exit=y", "(1) run=x cannot be read; a length such as 500ms, 3s, 2m or 1h, or "),
        ("run=x, exit=y", ". (2) exit=y cannot be read; a number from 0 to 255, or oom, is exp"),
        ("run, run=3, run", "(1) cannot read 'run', cannot read 'run'; pairs such as run=3s are"),
        ("run, run=3, run", ". (2) run=3 cannot be read; "),
        ('exit=300, message="a, b', "(2) cannot read 'message=\"a, b'; pairs "),
        ("a=1, b=1, c=1, d=1, e=1", "there is no word 'c' and 2 more; words are start, "),
    ],
)
def test_all_mistakes_of_a_script_are_told(text: str, told: str) -> None:
    assert told in str(mistake_in(text))


def test_a_mistake_is_the_only_one_if_the_rest_is_right() -> None:
    right = str(mistake_in("run=1s, oops; run=2s; exit=3; stop=4s, run=1s"))
    assert right.startswith("cannot read 'oops'; pairs ")


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


def test_mistakes_of_several_annotations_are_told_together() -> None:
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
    assert "; annotation podstatus.dev/simulate: run=x cannot be read" in message


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


def test_a_text_that_is_all_mistakes_is_told_in_few_words() -> None:
    words = [f"{word}=%" for word in FIELD_PARSERS if word != "message"]
    text = ", ".join([*words, "run=1s, run=1s", "x=1", "oops"] * 2000)
    assert len(str(mistake_in(text))) < 3000


@given(
    st.sampled_from(sorted(FIELD_PARSERS)),
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
