"""Policies: from recent load to proposed moves."""

from levelwind.balance.protocol import Policy, Proposal, Situation
from levelwind.balance.registry import make_policy, policy_class, policy_names

__all__ = ["Policy", "Proposal", "Situation", "make_policy", "policy_class", "policy_names"]
