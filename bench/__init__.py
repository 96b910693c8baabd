"""Matches and measures: the match runner, built-in players, benchmarks."""
