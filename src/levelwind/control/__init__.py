"""The manager: events in, instructions out. It does no I/O and has no clock."""
