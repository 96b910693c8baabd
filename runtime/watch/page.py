"""The page as one self-contained HTML text; `page.js` draws, `page.css` dresses."""

import base64
import hashlib
from collections.abc import Sequence
from html import escape
from pathlib import Path

import msgspec

from snakekit.runtime.decided import Decided

_HERE = Path(__file__).parent


class SeatFrame(msgspec.Struct, frozen=True):
    """What an equilibrium expects of one snake."""

    id: str
    policy: list[float]
    """Probabilities of up, down, left and right."""
    utility: float
    """Chance to win plus the worth of a draw."""


class Frame(msgspec.Struct, frozen=True, kw_only=True):
    """One turn of one game as the page draws it; `board` as in a request."""

    game: str
    you: str
    turn: int
    board: msgspec.Raw
    decided: Decided | None = None
    seats: list[SeatFrame] | None = None
    """By snake; None where no model answered for all."""
    over: bool = False


def page(title: str, frames: Sequence[Frame] | None = None) -> str:
    """Return the page: of these turns, or, without any, of what `watch/events` sends."""
    script = (_HERE / "page.js").read_text(encoding="utf-8")
    style = (_HERE / "page.css").read_text(encoding="utf-8")
    # Only this very script may run, whatever a name may hold, and nothing else can be fetched.
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'"
    )
    data = msgspec.json.encode(frames).decode().replace("<", "\\u003c")
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(policy)}">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{escape(title)}</title><style>{style}</style></head><body>"
        f'<header><h1>{escape(title)}</h1><p id="state" role="status"></p></header>'
        '<nav id="games" aria-label="games"></nav><main id="game" hidden></main>'
        f'<script type="application/json" id="frames">{data}</script>'
        f"<script>{script}</script></body></html>\n"
    )
