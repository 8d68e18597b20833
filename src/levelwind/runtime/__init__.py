"""The superstep, checkpoints and statistics; no Spark."""
