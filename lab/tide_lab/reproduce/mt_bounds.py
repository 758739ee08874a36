# SPDX-License-Identifier: Apache-2.0
"""The paper's own bounds of a configuration, as published and as safe, and the execution times for which all that its
text says of bounds is so."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal

from tide.analysis.bounds import AnalysisError, compare_executors
from tide.analysis.lower import host_document
from tide.system.model import System
from tide_lab.reproduce.mt_cases import POLICY_LETTERS, Configuration, MtCase, scaled, system_of
from tide_lab.reproduce.ros_chains import HostError

FORMS = ("published", "safe")
SCALES = tuple(Decimal(percent) / 100 for percent in range(100, 131, 2))
# By chain, in ms; None: the analysis finds no bound.
ByChain = Mapping[str, float | None]

# The text: all reentrant cases are bounded, all priority-driven ones too; the default one is not for these.
UNBOUNDED = {
    Configuration("readyset", 2, exclusive=True): frozenset({"c1", "c2"}),
    Configuration("readyset", 4, exclusive=True): frozenset({"c1"}),
}


def theorem(configuration: Configuration) -> str:
    """Which the paper uses: constrained deadlines throughout."""
    if configuration.exclusive:
        return "theorem5-constrained" if configuration.policy == "readyset" else "theorem6-constrained"
    return "theorem1" if configuration.policy == "readyset" else "theorem2"


def theorem_bounds(system: System, configuration: Configuration) -> dict[str, ByChain]:
    """By form. A chain over two executors: the sum of its parts (section V-F), with the delays of the description."""
    document = host_document(system, "priority" if configuration.policy == "tide" else "default")
    try:
        told = {(one.analysis, one.chain): one.response_ns for one in compare_executors(document)}
    except AnalysisError as error:
        raise HostError(str(error).splitlines()[-1]) from None
    paths = {path["name"]: (path["segments"], sum(path.get("delays_ns", ()))) for path in document["paths"]}
    found: dict[str, ByChain] = {}
    for form in FORMS:
        by_chain = {}
        for chain in system.chains:
            parts, delays_ns = paths.get(chain.name, ([chain.name], 0))
            responses = [told[f"{theorem(configuration)}-{form}", part] for part in parts]
            by_chain[chain.name] = None if None in responses else (sum(one or 0 for one in responses) + delays_ns) / 1e6
        found[form] = by_chain
    return found


@dataclass(frozen=True)
class Fit:
    """Execution times by a factor to those of the public example. wrong: where the text says otherwise than the
    published theorem."""

    scale: Decimal
    wrong: tuple[str, ...]


def stated() -> list[Configuration]:
    """Configurations whose bounds the text speaks of; which numbers of threads there were beside 2 and 4 it lost."""
    single = [
        Configuration(policy, threads, exclusive=exclusive)
        for exclusive in (False, True)
        for policy in POLICY_LETTERS
        for threads in (2, 4)
    ]
    return [*single, *(Configuration(policy, 2, executors=2) for policy in POLICY_LETTERS)]


def differences(case: MtCase, scale: Decimal) -> Iterator[str]:
    for configuration in stated():
        system = scaled(system_of(case, configuration), scale / case.scale)
        unbounded = UNBOUNDED.get(configuration, frozenset())
        for name, bound_ms in theorem_bounds(system, configuration)["published"].items():
            if (bound_ms is None) != (name in unbounded):
                yield f"{configuration.name} {name}: {'no bound' if bound_ms is None else f'{bound_ms:.0f} ms'}"


def fits(case: MtCase) -> list[Fit]:
    return [Fit(scale, tuple(differences(case, scale))) for scale in SCALES]
