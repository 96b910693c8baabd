"""The watch page: running games live in a browser, or a recorded one as a file."""

from snakekit.runtime.watch.live import Watch
from snakekit.runtime.watch.page import page

__all__ = ["Watch", "page"]
