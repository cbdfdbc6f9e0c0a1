"""A pod whose volumes cannot be created is not listed, and leaves nothing behind."""

from pathlib import Path

import pytest

from podstatus.kube.objects.pod import Pod, PodUID
from podstatus.runtime.port import CannotStartError
from podstatus.runtime.process.records.layout import pods_folder
from podstatus.testing.builders import make_pod
from tests.support.processes.process_pods import pod_of
from tests.support.processes.process_runtime import need_bubblewrap, open_process_runtime

pytestmark = need_bubblewrap
MISSING = {"name": "missing", "configMap": {"name": "not-there-yet"}}


def unprepared() -> Pod:
    mounts = [{"name": "here", "mountPath": "/a"}, {"name": "missing", "mountPath": "/b"}]
    return pod_of({"volumeMounts": mounts}, volumes=[{"name": "here", "emptyDir": {}}, MISSING])


async def test_it_tells_of_no_change_so_that_the_next_try_comes_in_its_time(folder: Path) -> None:
    async def first_change() -> PodUID:
        async with open_process_runtime(folder, isolated=True) as runtime:
            changes = runtime.changes()
            with pytest.raises(CannotStartError, match="not-there-yet"):
                await runtime.start_pod(unprepared())
            assert await runtime.list_pods() == []
            await runtime.start_pod(make_pod("other", uid="other"))
            uid = await anext(changes)
            await runtime.remove_pod(PodUID("other"))
            return uid

    assert await first_change() == "other"


async def test_what_was_made_of_it_goes_when_it_is_removed(folder: Path) -> None:
    pod = unprepared()
    async with open_process_runtime(folder, isolated=True) as runtime:
        with pytest.raises(CannotStartError):
            await runtime.start_pod(pod)
        assert list(pods_folder(folder).iterdir())
        await runtime.remove_pod(pod.uid)
    assert list(pods_folder(folder).iterdir()) == []
