"""In any order of events, a node reaches the desired state of its pods, and loses none.

Changing sources, containers that crash and hang, an unavailable runtime and API server, foreign
writers, agent restarts and time are interleaved at random, with the services of the product as
the agent composes them.
"""

import asyncio
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, given, settings
from msgspec import structs

from podstatus.kube.objects.containers import Probe
from podstatus.kube.objects.pod import Pod
from tests.support.node_in_memory import a_pod, with_deadline
from tests.workers.node_model import NodeModel

Happening = tuple[str, dict[str, Any]]

SCRIPTS = [
    "",
    "start=1s, stop=2s, stop-exit=3",
    "start=30s",
    "fail=ErrImageNeverPull",
    "fail=StartError",
    "run=3s",
    "run=2s, exit=1",
    "run=2s, exit=1; run=forever",
    "stop=never",
    "stop=never, kill=5s",
    "ready=-4s+5s-5s*",
    "alive=+3s-, stop-exit=2; alive=+",
    "started=?4s+, run=20s",
]
INIT_SCRIPTS = ["run=1s", "run=1s, exit=1; run=1s", "run=1s, exit=1"]
NAMES = ["p", "q"]


@st.composite
def pods(draw: st.DrawFn, name: str) -> Pod:
    """Pods of all kinds."""
    containers = draw(st.sampled_from([["a"], ["a", "b"]]))
    init = draw(st.sampled_from([[], [], ["i"]]))
    sidecars = draw(st.sampled_from([[], [], ["s"]]))
    scripts = {c: draw(st.sampled_from(SCRIPTS)) for c in (*containers, *sidecars)}
    scripts |= {c: draw(st.sampled_from(INIT_SCRIPTS)) for c in init}
    pod = a_pod(
        name,
        containers=containers,
        init=init,
        sidecars=sidecars,
        script=scripts,
        policy=draw(st.sampled_from(["Always", "OnFailure", "Never"])),
        grace=draw(st.sampled_from([0, 3, 30])),
    )
    pod = with_deadline(pod, draw(st.sampled_from([None, None, 15])))
    return _with_probes(pod, scripts)


def _with_probes(pod: Pod, scripts: dict[str, str]) -> Pod:
    """The pod with the probes that its script defines."""
    words = {"readiness_probe": "ready=", "startup_probe": "started=", "liveness_probe": "alive="}
    containers = tuple(
        structs.replace(
            c, **{field: Probe() for field, word in words.items() if word in scripts[c.name]}
        )
        for c in pod.spec.containers or ()
    )
    return structs.replace(pod, spec=structs.replace(pod.spec, containers=containers))


names = st.sampled_from(NAMES)
some_pods = st.one_of(*map(pods, NAMES))
static_pods = st.sampled_from(["s-1", "s-2"]).flatmap(
    lambda uid: pods("s").map(
        lambda pod: structs.replace(pod, metadata=structs.replace(pod.metadata, uid=uid))
    )
)
patches = st.sampled_from(
    [
        {"conditions": [{"type": "Ready", "status": "False", "reason": "Meddling"}]},
        {"conditions": [{"type": "example.com/mine", "status": "True"}]},
        {"message": "it was me", "containerStatuses": []},
        {"podIP": "10.9.9.9"},
    ]
)


def happening(what: str, /, **arguments: Any) -> st.SearchStrategy[Happening]:
    """A method of the model, with its arguments."""
    return st.tuples(st.just(what), st.fixed_dictionaries(arguments))


time_passes = happening("passes", seconds=st.sampled_from([0.05, 1.0, 3.0, 11.0, 40.0]))
happenings = st.one_of(
    time_passes,
    time_passes,
    happening("create", pod=some_pods),
    happening("create", pod=some_pods),
    happening("come_back", name=names),
    happening("delete", name=names, grace=st.sampled_from([1, 5, 40])),
    happening("force_delete", name=names),
    happening("change", name=names, image=st.sampled_from(["x:1", "x:2"])),
    happening("meddle", name=names, patch=patches),
    happening("evict", name=names),
    happening("crash", name=names),
    happening("write_manifest", pod=st.none() | static_pods),
    happening("lose_sight"),
    happening("see_again"),
    happening("server", is_away=st.booleans()),
    happening("runtime", is_down=st.booleans(), lies=st.booleans()),
    happening("restart", after=st.sampled_from([0.0, 5.0])),
)


beginning = st.tuples(
    *(happening("create", pod=pods(name)) for name in NAMES),
    time_passes,
)
stories = st.tuples(beginning, st.lists(happenings, min_size=3, max_size=20)).map(
    lambda parts: [*parts[0], *parts[1]]
)


def examples(count: int) -> settings:
    return settings(
        max_examples=count,
        derandomize=True,
        suppress_health_check=[HealthCheck.too_slow],
    )


@examples(100)
@given(stories)
def test_whatever_happens_every_pod_comes_to_its_end(story: list[Happening]) -> None:
    asyncio.run(tell(story))


@pytest.mark.slow
@examples(400)
@given(stories)
def test_so_it_does_in_many_more_stories(story: list[Happening]) -> None:
    asyncio.run(tell(story))


async def tell(story: list[Happening]) -> None:
    """Apply the events and check; recover and check; then delete everything."""
    model = NodeModel()
    async with model.node:
        for name, arguments in story:
            await getattr(model, name)(**arguments)
            await model.passes(0)
            await model.check()
        await model.heal()
        await model.check_at_rest()
        await model.take_all_away()
        await model.check_no_task_waits()
