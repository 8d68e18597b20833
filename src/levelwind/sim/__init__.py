"""The simulator: operators, nodes and tuples in virtual time, driven by the same manager as a real run."""
