"""The networks, one definition each.

Every net maps `obs` (uint8 `[N, planes, rows, cols]`, as `snakekit.core` encodes it) to `policy`
(float32 logits `[N, 4]` in the order up, down, left, right) and `value` (float32 `[N, 1]` in
-1..1, the expected result for the own seat). The division by the plane scale is part of the
graph, so that one byte a cell travels from the encoder to the device.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from types import MappingProxyType

import torch
from torch import Tensor, nn
from torch.nn import functional

from snakekit import core
from snakekit.runtime.contract import ALL_SEATS
from snakekit.trainer.canonical import face_up, headings, turn_back

CANONICAL = "canonical"
"""Option 0 or 1 of every architecture: turn each board so that the own snake faces up."""
LEAK = 0.01
ARTICLE_PLANES = 17
ARTICLE_VIEW = 23
ARTICLE_CHANNELS = (32, 64, 128, 256)
ARTICLE_HIDDEN = 512


class Net(nn.Module):
    """A network with the shared input and outputs; `scale` is its divisor for each plane."""

    scale: Tensor
    canonical = False
    """Whether boards are turned so that the own snake faces up, see `canonical.py`."""

    def __init__(self, scale: Sequence[float]) -> None:
        """Keep `scale` (one positive divisor a plane) as part of the weights."""
        super().__init__()
        if not scale or min(scale) <= 0:
            raise ValueError(f"plane scale must be positive numbers, got {tuple(scale)}")
        self.register_buffer("scale", torch.tensor(scale, dtype=torch.float32).view(1, -1, 1, 1))

    def forward(self, obs: Tensor) -> tuple[Tensor, Tensor]:
        """Return (`policy` `[N, 4]` logits, `value` `[N, 1]` in -1..1) for uint8 `obs`."""
        if not self.canonical:
            return self.answer(obs)
        planes = obs.to(torch.float32)
        heading = headings(*self.own_snake(planes))
        policy, value = self.answer(face_up(planes, heading))
        return turn_back(policy, heading), value

    def answer(self, obs: Tensor) -> tuple[Tensor, Tensor]:
        """Return what `forward` does, for boards that are turned already if they are to be."""
        raise NotImplementedError

    def own_snake(self, planes: Tensor) -> tuple[Tensor, Tensor]:
        """Return the own segments' numbers from the tail and the own head, `[N, rows, cols]`.

        `planes` is the observation as float32, not scaled.
        """
        raise NotImplementedError


class ArticleNet(Net):
    """The net of the Battlesnake post mortem by Asymptotic Labs, 29,886,725 parameters.

    Four 3x3 convolutions without padding, 17-32-64-128-256, then 225x256 features into a linear
    layer of 512, with leaky ReLU after each; one linear head for the value and one for the
    policy. Reads encoder version 1, `[N, 17, 23, 23]`. The article gives no scaling of the raw
    counts and no squashing of the value: the divisors and the tanh are ours.
    """

    def __init__(self, scale: Sequence[float]) -> None:
        """Create the net with He initialisation; `scale` holds 17 divisors."""
        super().__init__(scale)
        if len(scale) != ARTICLE_PLANES:
            raise ValueError(f"the article net reads {ARTICLE_PLANES} planes, got {len(scale)}")
        sizes = (ARTICLE_PLANES, *ARTICLE_CHANNELS)
        self.convs = nn.ModuleList(nn.Conv2d(a, b, 3) for a, b in pairwise(sizes))
        side = ARTICLE_VIEW - 2 * len(ARTICLE_CHANNELS)
        self.hidden = nn.Linear(ARTICLE_CHANNELS[-1] * side * side, ARTICLE_HIDDEN)
        self.value = nn.Linear(ARTICLE_HIDDEN, 1)
        self.policy = nn.Linear(ARTICLE_HIDDEN, 4)
        for layer in (*self.convs, self.hidden):
            assert isinstance(layer, nn.Conv2d | nn.Linear)
            nn.init.kaiming_normal_(layer.weight, a=LEAK, nonlinearity="leaky_relu")

    def answer(self, obs: Tensor) -> tuple[Tensor, Tensor]:
        """See `Net.answer`."""
        x = obs.to(torch.float32) / self.scale
        for conv in self.convs:
            x = functional.leaky_relu(conv(x), LEAK)
        x = functional.leaky_relu(self.hidden(x.flatten(1)), LEAK)
        return self.policy(x), torch.tanh(self.value(x))

    def own_snake(self, planes: Tensor) -> tuple[Tensor, Tensor]:
        """See `Net.own_snake`. Planes 8 and 9 mark the bodies of the others."""
        own = (planes[:, 8] + planes[:, 9] == 0).to(torch.float32)
        return planes[:, 2] * own, planes[:, 6]


class Block(nn.Module):
    """Two 3x3 convolutions with a residual; cells off the board stay zero throughout."""

    def __init__(self, channels: int) -> None:
        """Create a block that starts as the identity, which makes deep stacks easy to train."""
        super().__init__()
        self.first = nn.Conv2d(channels, channels, 3, padding=1)
        self.second = nn.Conv2d(channels, channels, 3, padding=1)
        nn.init.kaiming_normal_(self.first.weight, nonlinearity="relu")
        nn.init.zeros_(self.second.weight)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """Map `x` `[N, C, rows, cols]` with `mask` `[N, 1, rows, cols]` to the same shape."""
        inner = functional.relu(self.first(x)) * mask
        return functional.relu(x + self.second(inner)) * mask


class CompactNet(Net):
    """A small fully convolutional net for boards of any size; reads encoder version 2.

    Plane 0 of the observation marks the board and plane 1 the own head. Multiplying by the mask
    after every convolution keeps whatever lies beside the board at zero, which is also what the
    padding of a convolution assumes: a board gives the same answer alone and inside a larger
    tensor, so boards of different sizes can share a batch. The readout looks at the features of
    the own head's cell and at the mean and maximum over the board.
    """

    def __init__(
        self, scale: Sequence[float], *, channels: int = 32, blocks: int = 3, hidden: int = 64
    ) -> None:
        """Create the net; `channels` and `blocks` size the trunk, `hidden` the readout."""
        super().__init__(scale)
        if min(channels, blocks, hidden) < 1:
            raise ValueError("channels, blocks and hidden must be at least 1")
        self.stem = nn.Conv2d(len(scale), channels, 3, padding=1)
        self.blocks = nn.ModuleList(Block(channels) for _ in range(blocks))
        self.readout = nn.Linear(3 * channels, hidden)
        self.value = nn.Linear(hidden, 1)
        self.policy = nn.Linear(hidden, 4)

    def own_snake(self, planes: Tensor) -> tuple[Tensor, Tensor]:
        """See `Net.own_snake`."""
        return planes[:, 2], planes[:, 1]

    def answer(self, obs: Tensor) -> tuple[Tensor, Tensor]:
        """See `Net.answer`."""
        # Converted before anything else: GPUs convert bytes, but neither cut nor compare them.
        planes = obs.to(torch.float32)
        marks = (planes[:, :2] > 0).to(torch.float32)
        mask, head = marks[:, :1], marks[:, 1:2]
        x = functional.relu(self.stem(planes / self.scale)) * mask
        for block in self.blocks:
            x = block(x, mask)
        area = mask.sum((2, 3))
        # Features are never negative and zero off the board, so a plain maximum is the masked one.
        pooled = ((x * head).sum((2, 3)), x.sum((2, 3)) / area, x.amax((2, 3)))
        y = functional.relu(self.readout(torch.cat(pooled, 1)))
        return self.policy(y), torch.tanh(self.value(y))


@dataclass(frozen=True)
class NetKind:
    """What the rest of the trainer needs to know about an architecture."""

    encoder: int
    """Observation version that the net reads."""
    view: tuple[int, int] | None
    """Rows and columns of its observation, or None when they are the board's."""
    make: Callable[..., Net]
    """Called with the plane scale and the options by keyword."""
    options: Mapping[str, int]
    """Every option with its default, `CANONICAL` aside, which every architecture has."""


ALL_SEAT = "all-seat"
ALL_SEAT_OPTIONS = MappingProxyType(
    {"slots": 2, "channels": 16, "blocks": 2, "hidden": 48, "attention": 0, "separate": 0}
)


def _all_seat(scale: Sequence[float], **options: int) -> Net:
    from snakekit.trainer.nash.net import snake_net  # which itself builds on this module

    return snake_net(scale, **options)


NETS: Mapping[str, NetKind] = MappingProxyType(
    {
        "article": NetKind(1, (ARTICLE_VIEW, ARTICLE_VIEW), ArticleNet, {}),
        "compact": NetKind(2, None, CompactNet, {"channels": 32, "blocks": 3, "hidden": 64}),
        ALL_SEAT: NetKind(ALL_SEATS, None, _all_seat, ALL_SEAT_OPTIONS),
    }
)


def kind_of(net: str) -> NetKind:
    """Return the architecture called `net`; raises ValueError with the known names."""
    if net not in NETS:
        raise ValueError(f"unknown net {net!r}; known: {', '.join(sorted(NETS))}")
    return NETS[net]


def build(net: str, options: Mapping[str, int] | None = None) -> Net:
    """Create the architecture `net` with random weights from torch's global generator.

    Args:
        net: key of `NETS`.
        options: values for the architecture's options; missing ones take their default.

    Raises:
        ValueError: an unknown net or option, or an option out of range.
    """
    kind = kind_of(net)
    given = dict(options or {})
    canonical = given.pop(CANONICAL, 0)
    unknown = set(given) - set(kind.options)
    if unknown:
        raise ValueError(f"net {net!r} has no option {', '.join(sorted(unknown))}")
    if canonical not in (0, 1):
        raise ValueError(f"{CANONICAL} must be 0 or 1, got {canonical}")
    if canonical and net == ALL_SEAT:
        raise ValueError(f"{CANONICAL}: a net that answers for all seats has no own snake")
    chosen = {**kind.options, **given}
    model = kind.make(plane_scale(kind.encoder, chosen), **chosen)
    model.canonical = bool(canonical)
    return model


def plane_scale(encoder: int, options: Mapping[str, int]) -> Sequence[float]:
    """Return the divisors of an observation's planes; version 3 has a block for each slot."""
    if encoder == ALL_SEATS:
        return core.all_seat_scale(options["slots"])
    return core.PLANE_SCALE[encoder]


def count_parameters(model: nn.Module) -> int:
    """Return the number of trained parameters (buffers such as the plane scale are not)."""
    return sum(p.numel() for p in model.parameters())
