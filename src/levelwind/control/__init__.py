"""The manager: events in, instructions out. It does no I/O and has no clock."""

from levelwind.control.journal import Journal, Record
from levelwind.control.manager import Manager
from levelwind.control.standing import UnderWay
from levelwind.control.tiers import TopManager

__all__ = ["Journal", "Manager", "Record", "TopManager", "UnderWay"]
