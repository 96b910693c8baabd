"""The frame of every report: one HTML file, no script, no requests, light and dark."""

import html
from collections.abc import Sequence

# Tells the browser itself to refuse every request, whatever a label may hold.
POLICY = "default-src 'none'; style-src 'unsafe-inline'"

STYLE = """
:root{color-scheme:light dark;--bg:#fbfbfa;--card:#fff;--ink:#1d2125;--soft:#5b646d;--line:#e1e4e8;
--good:#1a7f4b;--bad:#c2282d;--c0:#1f6fd6;--c1:#d9480f;--c2:#1a8f5a;--c3:#8f3fc2;--c4:#b7791f;
--c5:#0b8793;--c6:#c2336f;--c7:#5f6b7a}
@media (prefers-color-scheme:dark){:root{--bg:#14171a;--card:#1c2024;--ink:#e6e9ec;--soft:#9aa4ae;
--line:#31373d;--good:#4cc38a;--bad:#ff7b72;--c0:#6cb0ff;--c1:#ff9057;--c2:#56cf94;--c3:#c796ee;
--c4:#e8b64c;--c5:#4fc8d4;--c6:#f587b4;--c7:#a7b2be}}
*{box-sizing:border-box}
body{margin:0 auto;padding:24px 20px 60px;max-width:1360px;background:var(--bg);color:var(--ink);
font:15px/1.5 system-ui,sans-serif}
h1{font-size:26px;margin:0 0 4px}h2{font-size:19px;margin:36px 0 10px}
p.about,p.note{color:var(--soft);margin:0 0 6px;overflow-wrap:anywhere}
.plots{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,420px),1fr));gap:16px;align-items:start;
margin-bottom:16px}
figure,.box{margin:0;padding:14px 16px;background:var(--card);border:1px solid var(--line);
border-radius:10px}
.box{overflow-x:auto;padding:4px 16px 8px}
figcaption{font-weight:600;margin-bottom:6px}
svg{display:block;width:100%;height:auto}
svg text{fill:var(--soft);font:12px system-ui,sans-serif}svg text.name{fill:var(--ink)}
.grid{stroke:var(--line)}.axis{stroke:var(--soft);fill:none}
.line{fill:none;stroke-width:2;stroke:var(--c)}.dot,.bar{fill:var(--c)}
.legend{margin:8px 0 0;color:var(--soft);font-size:13px;display:flex;flex-wrap:wrap;gap:2px 16px}
.key{display:inline-block;width:11px;height:11px;border-radius:3px;margin-right:6px;
background:var(--c)}
.s0{--c:var(--c0)}.s1{--c:var(--c1)}.s2{--c:var(--c2)}.s3{--c:var(--c3)}.s4{--c:var(--c4)}
.s5{--c:var(--c5)}.s6{--c:var(--c6)}.s7{--c:var(--c7)}
table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}
th,td{padding:5px 14px 5px 0;text-align:right;border-bottom:1px solid var(--line);
white-space:nowrap}
th{color:var(--soft);font-weight:600}tr:last-child td{border-bottom:0}
.w{text-align:left}td.why{text-align:left;color:var(--soft);white-space:normal}
tr.better td:last-child{color:var(--good);font-weight:600}
tr.worse td:last-child{color:var(--bad);font-weight:600}
"""


def document(title: str, body: Sequence[str], style: str = STYLE) -> str:
    """Return a page of the HTML parts `body`; `title` is escaped here, the parts are not."""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{html.escape(POLICY)}">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{html.escape(title)}</title><style>{style}</style></head><body>\n"
        + "\n".join(body)
        + "\n</body></html>\n"
    )
