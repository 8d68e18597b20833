"""What each operator does to its rows and its state; no Spark."""
