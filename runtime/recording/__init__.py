"""Recording: a process of its own keeps games and decisions; moves never wait for a disk."""

from snakekit.runtime.recording.recorder import Recorder, RecorderError

__all__ = ["Recorder", "RecorderError"]
