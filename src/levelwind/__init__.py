"""Levelwind: where every operator of every continuous query runs."""
