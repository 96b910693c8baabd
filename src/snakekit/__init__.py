"""snakekit: an inference-first deployment kit for Battlesnake."""

__version__ = "0.1.0"
