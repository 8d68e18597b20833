"""Policies by name: the built-in ones, and those that other packages bring."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from levelwind.balance.protocol import Policy
from levelwind.plugins import Registry

BUILT_IN = {
    "steady_pairs": "levelwind.balance.steady_pairs:SteadyPairsPolicy",
    "cor_bal": "levelwind.balance.cor_bal:CorBalPolicy",
    "cor_re": "levelwind.balance.cor_re:CorRePolicy",
    "cor_se": "levelwind.balance.cor_se:CorSePolicy",
    "cor_re_imp": "levelwind.balance.cor_re_imp:CorReImpPolicy",
    "cor_se_imp": "levelwind.balance.cor_se_imp:CorSeImpPolicy",
    "llf_bal": "levelwind.balance.llf_bal:LlfBalPolicy",
    "balance": "levelwind.balance.even:BalancePolicy",
    "degradation": "levelwind.balance.degradation:DegradationPolicy",
    "replan": "levelwind.balance.replan:ReplanPolicy",
    "rand_bal": "levelwind.balance.rand_bal:RandBalPolicy",
    "local_relaxation": "levelwind.balance.local_relaxation:LocalRelaxationPolicy",
}
ENTRY_POINTS = "levelwind.policies"
POLICIES = Registry(kind="policy", built_in=BUILT_IN, entry_points=ENTRY_POINTS)


def policy_names() -> tuple[str, ...]:
    """Names of all policies, the built-in ones first."""
    return POLICIES.names()


def policy_class(name: str) -> type[Any]:
    """The class of a policy; an unknown name is an input error that names the nearest."""
    return POLICIES.find(name)


def make_policy(name: str, options: Mapping[str, Any] | None = None) -> Policy:
    """A policy with options, given as values or as the text of ``--set key=value``."""
    policy: Policy = POLICIES.make(name, options)
    return policy
