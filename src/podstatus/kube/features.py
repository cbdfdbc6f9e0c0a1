"""Feature gates as an explicit value, which is passed to the functions that depend on them."""

from collections.abc import Mapping

import msgspec

from podstatus.kube.known_feature_gates import ALL_BETA, KNOWN_GATES, LOCKED_GATES


class FeatureGates(msgspec.Struct, frozen=True, kw_only=True):
    """The feature gates that the library supports, with the defaults of v1.36."""

    pod_ready_to_start_containers_condition: bool = True
    restart_all_containers_on_container_exits: bool = True
    container_restart_rules: bool = True
    without_effect: tuple[str, ...] = ()
    """Other gates of Kubernetes that were set; they change nothing here."""

    @classmethod
    def from_names(cls, names: Mapping[str, bool]) -> "FeatureGates":
        """Return the gates by upstream's names, as in `--feature-gates`; others have defaults.

        Accepts all gates of v1.36. As upstream, `AllBeta` sets the beta gates that are not named.
        Raises ValueError for an unknown gate, and for one that is locked to another value.
        """
        unknown = sorted(set(names) - KNOWN_GATES)
        if unknown:
            raise ValueError(
                f"unknown feature gates {', '.join(unknown)}; expected gates of Kubernetes v1.36, "
                f"of which podstatus supports {', '.join(_BY_NAME)}"
            )
        for name, value in names.items():
            if LOCKED_GATES.get(name, value) != value:
                locked = str(LOCKED_GATES[name]).lower()
                raise ValueError(
                    f"cannot set feature gate {name} to {str(bool(value)).lower()}, feature is "
                    f"locked to {locked}"
                )
        # All supported gates are beta in v1.36.
        values = dict.fromkeys(_BY_NAME, names[ALL_BETA]) if ALL_BETA in names else {}
        values |= {name: value for name, value in names.items() if name in _BY_NAME}
        return cls(
            **{_BY_NAME[name]: bool(value) for name, value in values.items()},
            without_effect=tuple(sorted(set(names) - set(_BY_NAME) - {ALL_BETA})),
        )

    def by_name(self) -> dict[str, bool]:
        """Return the supported gates by upstream's names."""
        return {name: getattr(self, field) for name, field in _BY_NAME.items()}


_BY_NAME = {
    "PodReadyToStartContainersCondition": "pod_ready_to_start_containers_condition",
    "RestartAllContainersOnContainerExits": "restart_all_containers_on_container_exits",
    "ContainerRestartRules": "container_restart_rules",
}
