"""The page of `podstatus status`."""

from collections.abc import Iterator, Mapping

import msgspec

from podstatus import __version__
from podstatus.agent.daemon.restarts_file import STACKS_FILE, AgentExit
from podstatus.cli.render.message import wrap_message
from podstatus.cli.render.wrap import wrap_text
from podstatus.kube.scalars.human_duration import format_age
from podstatus.kube.scalars.time import Time, TimeError
from podstatus.observe.ports import Freshness, NodeSummary, SyncState
from podstatus.observe.summary.health import format_duration
from podstatus.web.v1.wire import StatusResponse
from podstatus.workers.shutdown.progress import OFF

_KEY_WIDTH = 14
_WIDTH = 80 - _KEY_WIDTH


class SuggestedCommands(msgspec.Struct, frozen=True, kw_only=True):
    """The commands that the page suggests."""

    end: str
    """How to end the containers that run without an agent."""
    cancel_drain: str


class AgentState(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What is known about the agent or observer of a root directory."""

    root_dir: str
    running: bool = False
    pid: int = 0
    since: str = ""
    node_name: str = ""
    """Empty for an observer."""
    observes: bool = False
    api_server: str = ""
    embedded: bool = False
    problem: str = ""
    """Why no agent runs, or why it does not answer; empty if it does."""
    checks: Mapping[str, str] = {}
    """The reason of failure of each health check; empty: it passes."""
    status: StatusResponse | None = None
    nodes: tuple[NodeSummary, ...] = ()
    restarts: tuple[AgentExit, ...] = ()
    drain: str = OFF
    """Whether the node is being drained: off, draining or drained."""
    left_running: tuple[str, ...] = ()
    """Pods that run without an agent, as namespace/name."""

    @property
    def is_healthy(self) -> bool:
        """True if the agent runs, answers, and all of its health checks pass."""
        return self.running and not self.problem and not any(self.checks.values())


def status_page(state: AgentState, now: Time, commands: SuggestedCommands) -> str:
    """Return the page as text of at most 80 columns, unless a word or a command is longer."""
    lines = (*_head(state, now, commands), *_answers(state, commands), *_tail(state))
    return "".join(f"{line}\n" for line in lines)


def _head(state: AgentState, now: Time, commands: SuggestedCommands) -> Iterator[str]:
    if not state.running:
        yield wrap_message(state.problem, _WIDTH + _KEY_WIDTH)
        if state.left_running:
            names = ", ".join(state.left_running)
            yield from _field("running", f"containers of {names}")
            yield f"{'  to end':<{_KEY_WIDTH}}{commands.end}"
        return
    name = "the observer" if state.observes else f"node {state.node_name or '<unknown>'}"
    age = _age(state.since, now)
    yield f"{name} has been running for {age} (since {state.since}, pid {state.pid})"
    yield f"{'  files':<{_KEY_WIDTH}}{state.root_dir}"  # one word, to be copied


def _answers(state: AgentState, commands: SuggestedCommands) -> Iterator[str]:
    if state.running and state.problem:
        yield from _field("no answer", state.problem)
    if state.status is None:
        return
    yield from _field("version", _versions(state))
    yield from _field("health", _health(state.checks))
    where = f"{state.api_server} ({'embedded' if state.embedded else 'external'})"
    yield from _field("API server", f"{where}, {_reachability(state.status.freshness)}")
    yield from _field("nodes" if state.observes else "node", _readiness(state))
    if state.drain != OFF:
        effect = "new pods stay Pending, or fail if already bound to the node"
        yield from _field(state.drain, effect)
        yield f"{'  to cancel':<{_KEY_WIDTH}}{commands.cancel_drain}"
    yield from _field("pods", _pods(state.status))
    if state.status.sync is not None and (unsynced := _sync(state.status.sync)):
        yield from _field("status sync", unsynced)
    if problem := state.status.history.problem:
        yield from _field("history", problem)


def _tail(state: AgentState) -> Iterator[str]:
    texts = [_restart(it) for it in reversed(state.restarts)]
    for index, text in enumerate(texts):
        yield from _field("" if index else "restarts", text)


def _restart(restart: AgentExit) -> str:
    """When and how it ended; its last words are the reason, unless it was killed."""
    how = f"killed by {restart.signal}" if restart.signal else f"exit code {restart.exit_code}"
    if restart.hung:
        return (
            f"{restart.at}, hung after {format_duration(restart.lived_seconds)}: {restart.hung}; "
            f"{how}, its stacks are in {STACKS_FILE}"
        )
    last = f": {restart.last_lines[-1]}" if restart.last_lines and not restart.signal else ""
    return f"{restart.at}, {how} after {format_duration(restart.lived_seconds)}{last}"


def _versions(state: AgentState) -> str:
    running = state.nodes[0].version if state.nodes and not state.observes else ""
    command = f"podstatus {__version__}"
    return f"{running}, command {command}" if running else command


def _health(checks: Mapping[str, str]) -> str:
    failing = [f"{name}: {reason}" for name, reason in checks.items() if reason]
    if failing:
        return f"{len(failing)} of {len(checks)} checks fail: {'; '.join(failing)}"
    return f"ok, {len(checks)} checks pass"


def _reachability(freshness: Freshness) -> str:
    age = format_duration(freshness.server_age_seconds)
    return f"answered {age} ago" if freshness.server_reachable else f"no answer for {age}"


def _readiness(state: AgentState) -> str:
    if state.observes:
        ready = sum(node.ready for node in state.nodes)
        return f"{len(state.nodes)}, {ready} Ready"
    node = next(iter(state.nodes), None)
    if node is None:
        return "not registered yet"
    reason = ": ".join(filter(None, (node.reason, node.message)))
    return "Ready" if node.ready else f"not Ready, {reason or 'no reason given'}"


def _pods(status: StatusResponse) -> str:
    counts = sorted(status.health.items(), key=lambda item: (-item[1], item[0]))
    healths = ", ".join(f"{count} {word}" for word, count in counts)
    return f"{status.pods}: {healths}" if healths else "none"


def _sync(sync: SyncState) -> str:
    """The statuses that the API server has not acknowledged; empty if there are none."""
    counts = {
        "unsent": sync.unsent,
        "in flight": sync.in_flight,
        "quarantined": sync.quarantined,
        "in the outbox": sync.outbox,
    }
    oldest = f", the oldest for {format_duration(sync.oldest_unsent_seconds)}"
    named = ", ".join(f"{count} {name}" for name, count in counts.items() if count)
    return f"{named}{oldest if sync.unsent else ''}"


def _age(since: str, now: Time) -> str:
    try:
        return format_age(Time.parse(since), now)
    except TimeError:
        return "<unknown>"


def _field(name: str, text: str) -> Iterator[str]:
    label = f"  {name}"
    for line in wrap_text(text, _WIDTH):
        yield f"{label:<{_KEY_WIDTH}}{line}"
        label = ""
