"""Policies: from recent load to proposed moves."""

from levelwind.balance.protocol import Policy, Proposal, Situation

__all__ = ["Policy", "Proposal", "Situation"]
