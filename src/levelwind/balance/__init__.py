"""Policies: from recent load to proposed moves."""

from levelwind.balance.protocol import Policy, Proposal, Situation
from levelwind.balance.registry import make_policy, policy_class, policy_names
from levelwind.balance.surroundings import Surroundings, surroundings

__all__ = [
    "Policy",
    "Proposal",
    "Situation",
    "Surroundings",
    "make_policy",
    "policy_class",
    "policy_names",
    "surroundings",
]
