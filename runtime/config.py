"""The server's options; each field is a flag, an environment variable and a TOML key."""

from typing import Annotated, Literal

from msgspec import Meta

from snakekit.runtime.backends.options import BackendOptions
from snakekit.runtime.contract import DRAW_WORTH

Mode = Literal["hybrid", "policy", "search", "equilibrium"]


class ServerConfig(BackendOptions, frozen=True, kw_only=True):
    """Everything that `snakekit serve` can be told."""

    host: Annotated[str, Meta(description="address to listen on; 0.0.0.0 is every IPv4 one")] = (
        "0.0.0.0"
    )
    port: Annotated[int, Meta(ge=0, le=65535, description="port; 0 takes a free one")] = 8000
    metrics: Annotated[bool, Meta(description="serve Prometheus metrics on their own port")] = True
    metrics_host: Annotated[str, Meta(description="address of the metrics; loopback if unset")] = (
        "127.0.0.1"
    )
    metrics_port: Annotated[
        int, Meta(ge=0, le=65535, description="port of the metrics; 0 takes a free one")
    ] = 9100
    watch: Annotated[
        bool, Meta(description="show running games at /watch of the metrics port, to this machine")
    ] = True
    mode: Annotated[
        Mode,
        Meta(
            description="policy overridden by proofs of the search, one of them alone, or the "
            "equilibrium of a model for all seats overridden in the same way"
        ),
    ] = "hybrid"
    plies: Annotated[
        int, Meta(ge=1, le=2, description="turns an equilibrium looks ahead, time allowing")
    ] = 2
    plans: Annotated[
        Literal["off", "none", "uniform", "local"],
        Meta(
            description="instead of a second turn an equilibrium looks at plans of several turns: "
            "the policy's own alone, or others found by double oracle at random or near them"
        ),
    ] = "off"
    plan_turns: Annotated[int, Meta(ge=1, le=16, description="length of a plan, turns")] = 3
    draw_worth: Annotated[
        float,
        Meta(ge=0, le=1, description="worth of an equal part of a draw, for an equilibrium"),
    ] = DRAW_WORTH
    iterations: Annotated[
        int, Meta(ge=1, le=100_000, description="of regret matching, for an equilibrium")
    ] = 256
    temperature: Annotated[
        float,
        Meta(ge=0, le=10, description="of moves by a model for all seats; 0: the likeliest one"),
    ] = 0.0
    model: Annotated[
        str | None, Meta(description="ONNX file, or name of a shipped model; none: the default")
    ] = None
    backend: Annotated[
        Literal[
            "cpu", "cuda", "ort-tensorrt", "tensorrt", "tensorrt-rtx", "triton", "check", "random"
        ],
        Meta(description="what runs the policy; random needs no model"),
    ] = "cpu"
    batch_sizes: Annotated[
        tuple[Annotated[int, Meta(ge=1, le=256)], ...],
        Meta(min_length=1, max_length=16, description="batch sizes to warm up; the last is most"),
    ] = (1, 2, 4, 8)
    batch_wait_ms: Annotated[
        float, Meta(ge=0, le=50, description="wait for company before an inference, ms")
    ] = 0.0
    queue_limit: Annotated[
        int, Meta(ge=1, le=10_000, description="requests that may wait for the policy or a search")
    ] = 64
    budget_ms: Annotated[
        float, Meta(ge=1, le=60_000, description="longest search per move, ms")
    ] = 250.0
    margin_ms: Annotated[
        float,
        Meta(ge=0, le=10_000, description="safety margin, ms; at most a quarter of the timeout"),
    ] = 25.0
    overhead_ms: Annotated[
        float,
        Meta(ge=0, le=10_000, description="network overhead assumed before it is measured, ms"),
    ] = 80.0
    search_workers: Annotated[
        int,
        Meta(ge=0, le=64, description="cores for the searches of all games; 0: all, at most 16"),
    ] = 0
    search_threads: Annotated[
        int,
        Meta(ge=1, le=64, description="threads of one search; there are as many fewer workers"),
    ] = 1
    mixed: Annotated[
        Literal["likeliest", "sample"],
        Meta(description="where a duel's turn has a mixed strategy: its likeliest move, or drawn"),
    ] = "likeliest"
    table_mb: Annotated[
        int, Meta(ge=1, le=4096, description="transposition table of each search worker, MiB")
    ] = 16
    max_depth: Annotated[int, Meta(ge=1, le=200, description="deepest search, turns")] = 64
    proof: Annotated[
        Literal["sound", "article"],
        Meta(description="sound proofs, or the article's plain alpha-beta rule"),
    ] = "sound"
    author: Annotated[str, Meta(max_length=64, description="Battlesnake account of the owner")] = ""
    color: Annotated[
        str, Meta(pattern="^#[0-9a-fA-F]{6}$", description="colour of the snake, #rrggbb")
    ] = "#2e7d5b"
    head: Annotated[str, Meta(max_length=64, description="head of the snake")] = "default"
    tail: Annotated[str, Meta(max_length=64, description="tail of the snake")] = "default"
    version: Annotated[
        str, Meta(max_length=64, description="version told to the site; none: the program's")
    ] = ""
    secret_path: Annotated[
        str,
        Meta(
            pattern="^([A-Za-z0-9_-]{8,128})?$",
            description="play only under http://HOST/SECRET; 8 to 128 letters, digits, _ or -",
        ),
    ] = ""
    rate_limit: Annotated[
        float, Meta(ge=0, le=1e6, description="requests a second from one address; 0: no limit")
    ] = 0.0
    behind_proxy: Annotated[
        bool, Meta(description="the rate limit goes by the proxy's X-Forwarded-For")
    ] = False
    body_limit: Annotated[
        int, Meta(ge=1024, le=64 << 20, description="largest request body, bytes")
    ] = 1 << 20
    read_timeout_s: Annotated[
        float, Meta(ge=0.1, le=3600, description="longest wait for headers, and for a body, s")
    ] = 10.0
    keepalive_s: Annotated[
        float,
        Meta(ge=1, le=86_400, description="keep silent connections so long, s; above the proxy's"),
    ] = 620.0
    connections_limit: Annotated[
        int, Meta(ge=16, le=65_536, description="connections; silent ones make way for new ones")
    ] = 4096
    drain_s: Annotated[
        float, Meta(ge=0, le=3600, description="after SIGTERM play running games on so long, s")
    ] = 0.0
    games_limit: Annotated[
        int, Meta(ge=1, le=1_000_000, description="seats remembered at the same time")
    ] = 2048
    game_ttl_s: Annotated[
        float, Meta(ge=1, le=86_400, description="forget a seat unseen for so long, s")
    ] = 600.0
    record: Annotated[
        str, Meta(description="folder to record games and decisions in; needs snakekit[record]")
    ] = ""
    record_limit_mb: Annotated[
        int, Meta(ge=1, le=1 << 20, description="bound on all records, the oldest go first, MiB")
    ] = 1024
    record_days: Annotated[
        float, Meta(gt=0, le=36_500, description="remove finished games after so many days")
    ] = 30.0
    log_level: Annotated[
        Literal["debug", "info", "warning", "error"],
        Meta(description="least level logged; debug has one line per move"),
    ] = "info"
    log_format: Annotated[
        Literal["json", "text"], Meta(description="one JSON object a line, or words to read")
    ] = "json"

    def __post_init__(self) -> None:
        """Recheck what no single field can tell.

        Raises:
            ValueError: batch sizes that do not rise.
        """
        if list(self.batch_sizes) != sorted(set(self.batch_sizes)):
            raise ValueError(f"batch_sizes: expected rising numbers, found {self.batch_sizes}")
