"""What bubblewrap allows a container to do, with the arguments of this package."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from podstatus.kube.objects.pod import PodUID
from podstatus.runtime.process.spec.environment import DEFAULT_PATH
from podstatus.runtime.process.volumes.memory_volumes import MemoryVolumes
from tests.runtime.process.conftest import Trials
from tests.support.processes.process_pods import UID

VOLUME = {"name": "v", "emptyDir": {}}
MOUNT = {"name": "v", "mountPath": "/data"}
# Tries to write to every folder, and prints where that succeeded.
TOUCH = "for d in {}; do touch $d/probe 2>/dev/null && echo $d; done; true"


def test_the_environment_is_what_the_spec_says_and_no_more(trials: Trials) -> None:
    odd = "quote ' \" back\\slash\n$(date) `date` $HOME ü\t*"
    env = [{"name": "ODD", "value": odd}, {"name": "EMPTY", "value": ""}]
    script = "import os, json; print(json.dumps(dict(os.environ)))"
    (result,) = trials.run({"command": ["/usr/bin/python3", "-c", script], "env": env})
    found: dict[str, str] = json.loads(result["out"])
    found.pop("LC_CTYPE", None)  # set by Python itself
    found.pop("PWD", None)  # set by bubblewrap
    expected = {"PATH": DEFAULT_PATH, "HOME": "/tmp", "HOSTNAME": "p", "ODD": odd, "EMPTY": ""}
    assert found == expected


def test_arguments_arrive_unchanged(trials: Trials) -> None:
    odd = ["", "a b", "quote ' \"", "line\nline", "$(date)", "`date`", "--args", "*", "ü"]
    script = "import sys, json; print(json.dumps(sys.argv[1:]))"
    (result,) = trials.run({"command": ["/usr/bin/python3", "-c", script], "args": odd})
    assert json.loads(result["out"]) == odd


def test_only_volumes_tmp_shm_and_the_message_can_be_written(trials: Trials) -> None:
    folders = "/ /etc /etc/conf /usr /usr/bin /var /var/lib /var/tmp /run /run/secrets /home /root"
    folders += " /dev /dev/pts /proc /proc/sys /sys /sys/fs/cgroup /boot /srv /opt /mnt /data /tmp"
    folders += f" /dev/shm {trials.root}"
    mounts = [
        MOUNT,
        {"name": "c", "mountPath": "/etc/conf"},
        {"name": "c", "mountPath": "/run/secrets/x"},
    ]
    volumes = [VOLUME, {"name": "c", "configMap": {"name": "c"}}]
    out = trials.shell(
        TOUCH.format(folders),
        {"volumeMounts": mounts},
        volumes=volumes,
        config_maps={"c": {"k": "v"}},
    )
    assert set(out.split()) == {"/data", "/tmp", "/dev/shm"}


def test_the_hosts_file_has_the_pod_and_its_aliases(trials: Trials) -> None:
    aliases = [{"ip": "1.2.3.4", "hostnames": ["db", "db.example"]}]
    lines = trials.shell("cat /etc/hosts", hostAliases=aliases).splitlines()
    assert lines[0] == "# Kubernetes-managed hosts file."
    assert lines[-2:] == ["# Entries added by HostAliases.", "1.2.3.4\tdb\tdb.example"]
    assert trials.shell("hostname; grep -c p$ /etc/hosts").split() == ["p", "1"]


def test_a_memory_volume_is_a_tmpfs(root_trials: Trials) -> None:
    volume = {"name": "v", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}}
    for path in ("/data", "/dev/shm"):
        mount = {"volumeMounts": [{"name": "v", "mountPath": path}]}
        script = f"touch {path}/file && stat -f -c %T {path} && df -k --output=size {path}"
        try:
            out = root_trials.shell(script, mount, volumes=[volume])
        finally:
            MemoryVolumes(root_trials.root).remove(PodUID(UID))
        assert out.split() == ["tmpfs", "1K-blocks", "1024"]


def test_nothing_that_is_writable_was_forgotten(trials: Trials) -> None:
    """All mounts but those of the container are read-only, whatever the host has mounted."""
    # Those that the user cannot reach may be writable: memory volumes of another agent.
    script = 'while read -r line; do set -- $line; test -e "$5" && echo "$line"; done; true'
    script = f"({script}) < /proc/self/mountinfo"
    out = trials.shell(script, {"volumeMounts": [MOUNT]}, volumes=[VOLUME])
    fields = [line.split() for line in out.splitlines()]
    writable = {field[4] for field in fields if "rw" in field[5].split(",")}
    devices = {f"/dev/{name}" for name in ("null", "zero", "full", "random", "urandom", "tty")}
    own = {"/data", "/tmp", "/dev/shm", "/dev/termination-log", "/dev/pts", "/proc"}
    assert writable - devices - {"/dev/console"} == own


def test_kernel_settings_cannot_be_changed(trials: Trials) -> None:
    out = trials.shell("(echo x > /proc/sys/kernel/hostname) 2>/dev/null || echo refused")
    assert out == "refused\n"


def test_what_is_hidden_cannot_be_read(trials: Trials) -> None:
    secret = trials.root / "secret"
    secret.write_text("psst")
    secret.chmod(0o644)
    script = f"ls -A /run /home /root /var/tmp {trials.root}; cat {secret} 2>/dev/null; true"
    out = trials.shell(script)
    assert "psst" not in out
    assert {line for line in out.splitlines() if line and not line.endswith(":")} == set()


def test_a_path_of_the_host_does_not_show_the_agents_folder(trials: Trials) -> None:
    parent = trials.root.parent
    volume = {"name": "h", "hostPath": {"path": str(parent), "type": "Directory"}}
    mounts = [{"name": "h", "mountPath": "/host", "readOnly": True}]
    out = trials.shell(
        f"ls /host | wc -l; ls -A /host/{trials.root.name}",
        {"volumeMounts": mounts},
        volumes=[volume],
    )
    assert int(out) >= 1


def test_the_agents_folder_cannot_be_asked_for(trials: Trials) -> None:
    volume = {"name": "h", "hostPath": {"path": f"{trials.root}/pods"}}
    mounts = [{"name": "h", "mountPath": "/host"}]
    (result,) = trials.run({"command": ["true"], "volumeMounts": mounts}, volumes=[volume])
    assert "it belongs to the agent" in result["refused"]


def test_processes_of_the_host_are_neither_seen_nor_signalled(trials: Trials) -> None:
    out = trials.shell("echo $$$$; ls /proc | grep -c '^[0-9]'; kill -0 -1 2>&1; true")
    first, count, *_ = out.split()
    assert first == "1"
    assert int(count) <= 4
    victim = subprocess.Popen(["sleep", "60"])  # noqa: S607
    try:
        trials.shell(f"kill -9 {victim.pid} 2>/dev/null; true")
        assert victim.poll() is None
    finally:
        victim.kill()
        victim.wait()


@pytest.mark.parametrize(
    "script",
    [
        "mount -o remount,rw /",
        "mount -o remount,bind,rw /usr",
        "mount -t tmpfs x /tmp",
        "umount /home",
        "unshare -Urm mount -o remount,bind,rw /usr",
        "unshare -Urm umount /home",
        "unshare -m true",
        "nsenter --target 1 --mount true",
        "chroot / mount -o remount,rw /",
        "mknod /data/disk b 8 0",
        "mknod /tmp/mem c 1 1",
    ],
)
def test_the_isolation_cannot_be_undone(trials: Trials, script: str) -> None:
    command = ["sh", "-c", f"PATH=$PATH:/sbin; {script}"]
    (result,) = trials.run({"command": command, "volumeMounts": [MOUNT]}, volumes=[VOLUME])
    assert result["code"] not in (0, None), result


def test_privileges_cannot_grow(trials: Trials) -> None:
    out = trials.shell("grep -E '^(NoNewPrivs|CapEff)' /proc/self/status")
    status = dict(line.split(":\t") for line in out.splitlines())
    assert status["NoNewPrivs"] == "1"
    usual = 0b10011111011  # CHOWN … SETUID, and NET_BIND_SERVICE
    assert int(status["CapEff"], 16) == (0 if trials.user else usual)


def test_capabilities_are_dropped(trials: Trials) -> None:
    drop = {"securityContext": {"capabilities": {"drop": ["ALL"]}}}
    out = trials.shell("grep ^CapEff /proc/self/status", drop)
    assert int(out.split()[1], 16) == 0


def test_it_runs_as_the_user_that_was_asked_for(root_trials: Trials) -> None:
    context = {"runAsUser": 4242, "runAsGroup": 4343, "fsGroup": 77, "supplementalGroups": [88]}
    projected = {"sources": [{"serviceAccountToken": {"path": "token"}}]}
    volumes = [
        VOLUME,
        {"name": "t", "projected": projected},
        {"name": "s", "secret": {"secretName": "s", "defaultMode": 0o400}},
    ]
    mounts = [
        MOUNT,
        {"name": "t", "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"},
        {"name": "s", "mountPath": "/etc/deep/er"},
    ]
    script = (
        "id -u; id -g; id -G; grep ^CapEff /proc/self/status; touch /data/x; stat -c %u:%g /data/x;"
        "cat /var/run/secrets/kubernetes.io/serviceaccount/token; echo; cat /etc/deep/er/k; echo;"
        "echo hi > /dev/termination-log; touch /tmp/x; cat /etc/shadow 2>&1 | tail -1"
    )
    (result,) = root_trials.run(
        {"command": ["sh", "-c", script], "volumeMounts": mounts},
        volumes=volumes,
        secrets={"s": {"k": "v"}},
        securityContext=context,
    )
    lines = result["out"].splitlines()
    assert lines[:3] == ["4242", "4343", "4343 77 88"]
    assert int(lines[3].split()[1], 16) == 0
    assert lines[4:7] == ["4242:77", "token-1--3600", "v"]
    assert "Permission denied" in lines[7]
    assert result["message"] == "hi\n"


def test_a_container_has_the_name_of_its_pod(trials: Trials) -> None:
    assert trials.shell("cat /proc/sys/kernel/hostname; hostname").split()[-1] == "p"
    assert trials.shell("hostname", hostNetwork=True) == os.uname().nodename + "\n"
    assert trials.shell("hostname", hostname="other") == "other\n"


def test_the_message_can_be_left_at_any_path(trials: Trials) -> None:
    for path in ("/dev/termination-log", "/tmp/a.term", "/data/x/term", "/deep/er/term", "/run/t"):
        container = {
            "command": ["sh", "-c", f"printf words > {path}"],
            "terminationMessagePath": path,
            "volumeMounts": [MOUNT],
        }
        (result,) = trials.run(container, volumes=[VOLUME])
        assert result["message"] == "words", (path, result)


def test_volumes_are_shared_and_stay(trials: Trials) -> None:
    write = {"command": ["sh", "-c", "echo one > /data/f"], "volumeMounts": [MOUNT]}
    elsewhere = {"name": "v", "mountPath": "/opt/seen", "readOnly": True}
    script = "cat /opt/seen/f; touch /opt/seen/g 2>/dev/null || echo read-only"
    read = {"command": ["sh", "-c", script], "volumeMounts": [elsewhere]}
    _, result = trials.run(write, read, volumes=[VOLUME])
    assert result["out"] == "one\nread-only\n"


def test_it_starts_in_its_working_directory(trials: Trials) -> None:
    assert trials.shell("pwd") == "/\n"
    assert trials.shell("pwd", {"workingDir": "/usr/bin"}) == "/usr/bin\n"


def _sub(path: str) -> dict[str, Any]:
    return {"name": "v", "mountPath": "/part", "subPath": path}


def test_a_part_of_a_volume(trials: Trials) -> None:
    first = {"command": ["sh", "-c", "echo hi > /part/f"], "volumeMounts": [_sub("a/b")]}
    (result,) = trials.run(first, volumes=[VOLUME])
    assert result["code"] == 0, result
    found = trials.shell("cat /data/a/b/f", {"volumeMounts": [MOUNT]}, volumes=[VOLUME])
    assert found == "hi\n"


@pytest.mark.parametrize("link", ["/", "/etc", "../../..", "/oldroot/etc"])
def test_a_link_does_not_lead_out_of_a_volume(trials: Trials, link: str) -> None:
    plant = f"ln -s {link} /data/evil; mkdir /data/ok; ln -s {link} /data/ok/evil"
    trials.shell(plant, {"volumeMounts": [MOUNT]}, volumes=[VOLUME])
    for path in ("evil", "ok/evil", "evil/new", "evil/passwd"):
        (result,) = trials.run(
            {"command": ["true"], "volumeMounts": [_sub(path)]}, volumes=[VOLUME]
        )
        words = 'failed to prepare subPath for volumeMount "v" of container "c0"'
        assert result["refused"] == words
    inner = [MOUNT, {"name": "w", "mountPath": "/data/evil/new"}]
    (result,) = trials.run(
        {"command": ["true"], "volumeMounts": inner},
        volumes=[VOLUME, {"name": "w", "emptyDir": {}}],
    )
    assert "the mount point cannot be created" in result["refused"]
    assert not Path("/etc/new").exists()


def test_a_part_that_others_can_change_meanwhile_is_refused(trials: Trials) -> None:
    whole = {"command": ["true"], "volumeMounts": [MOUNT]}
    part = {"command": ["true"], "volumeMounts": [_sub("a")]}
    assert "refused" not in trials.run(part, part, volumes=[VOLUME])[0]
    _, result = trials.run(whole, part, volumes=[VOLUME])
    assert "container c0 can change the path meanwhile" in result["refused"]


def test_a_volume_in_a_volume(trials: Trials) -> None:
    mounts = [MOUNT, {"name": "c", "mountPath": "/data/deep/conf"}]
    volumes = [VOLUME, {"name": "c", "configMap": {"name": "c"}}]
    container = {"volumeMounts": mounts}
    objects = {"c": {"k": "v"}}
    script = "cat /data/deep/conf/k; touch /data/deep/x"
    assert trials.shell(script, container, volumes=volumes, config_maps=objects) == "v"


def test_a_file_of_a_config_map_beside_what_the_host_has(trials: Trials) -> None:
    mounts = [{"name": "c", "mountPath": "/etc/app/one.conf", "subPath": "k"}]
    out = trials.shell(
        "cat /etc/app/one.conf; test -r /etc/passwd",
        {"volumeMounts": mounts},
        volumes=[{"name": "c", "configMap": {"name": "c"}}],
        config_maps={"c": {"k": "v"}},
    )
    assert out == "v"


def test_paths_of_the_host(trials: Trials) -> None:
    mounts = [{"name": "h", "mountPath": "/host"}]
    volume = {"name": "h", "hostPath": {"path": "/usr/share", "type": "Directory"}}
    out = trials.shell("ls -d /host/doc", {"volumeMounts": mounts}, volumes=[volume])
    assert out == "/host/doc\n"


def test_pods_do_not_see_each_other(trials: Trials) -> None:
    trials.shell("echo mine > /data/f", {"volumeMounts": [MOUNT]}, volumes=[VOLUME])
    script = f"find / -xdev -name f -path '*{UID}*' 2>/dev/null; true"
    assert trials.shell(script) == ""


def test_a_container_ends_with_its_bubblewrap(trials: Trials) -> None:
    (result,) = trials.run({"command": ["sleep", "60"], "killed": True})
    assert result == {"left": False}


def test_memory_is_shared_with_the_host_only_if_asked_for(trials: Trials) -> None:
    name = Path("/dev/shm") / f"podstatus-test-{os.getpid()}"
    name.touch()
    try:
        assert trials.shell(f"test -e {name} || echo no") == "no\n"
        assert trials.shell(f"test -e {name} && echo yes", hostIPC=True) == "yes\n"
    finally:
        name.unlink()
