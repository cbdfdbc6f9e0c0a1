"""Feature gates as an explicit value, which is passed to the functions that depend on them."""

from collections.abc import Mapping

import msgspec


class FeatureGates(msgspec.Struct, frozen=True, kw_only=True):
    """The feature gates that the library supports, with the defaults of v1.36."""

    pod_ready_to_start_containers_condition: bool = True
    restart_all_containers_on_container_exits: bool = True
    container_restart_rules: bool = True

    @classmethod
    def from_names(cls, names: Mapping[str, bool]) -> "FeatureGates":
        """Return the gates by upstream's names, as in `--feature-gates`; others have defaults."""
        unknown = sorted(set(names) - set(_BY_NAME))
        if unknown:
            raise ValueError(
                f"unknown feature gates {', '.join(unknown)}; supported: {', '.join(_BY_NAME)}"
            )
        return cls(**{_BY_NAME[name]: bool(value) for name, value in names.items()})

    def by_name(self) -> dict[str, bool]:
        """Return all gates by upstream's names."""
        return {name: getattr(self, field) for name, field in _BY_NAME.items()}


_BY_NAME = {
    "PodReadyToStartContainersCondition": "pod_ready_to_start_containers_condition",
    "RestartAllContainersOnContainerExits": "restart_all_containers_on_container_exits",
    "ContainerRestartRules": "container_restart_rules",
}
