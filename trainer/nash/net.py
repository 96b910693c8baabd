"""Networks that see all seats at once and answer for all of them.

They map features (uint8 `[N, planes, rows, cols]`) to `policy` (float32 logits
`[N, slots, actions]`) and `outcome` (float32 logits `[N, slots + 1]`: a chance to win for each
slot, then that of a draw; slots without a living seat get -1e4). Plane 0 marks the board; the
plane `heads[k]` marks the cell at which slot `k` is read out and is empty without a living seat.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from snakekit import core
from snakekit.trainer.model import Block, Net

ABSENT = -1e4
MOST_SIDE = 25
AREA, STANDING = 6, 9
"""Planes of the area, and the first of the three of the standing, in a slot's block of v3."""
STEPS = ((1, 0), (-1, 0), (0, -1), (0, 1))
"""Rows and columns that up, down, left and right lead on."""
OWN_SCALARS, MOVE_SCALARS = 4, 8
SCORE_LOGITS, DUEL_SCORE_LOGITS = (0.5, 0.5), (0.1, 0.1)
"""Logits of winning that 256 points are worth, now and after the best move's worst reply.

In duels one slot's gain is the other's loss, and 600 points of the learned value are one logit.
"""
MOVE_LOGITS = (2.5, 1.0)
"""Logits of a move that 256 points after its worst reply, and full hope, are worth."""
DRAW_LOGIT = -2.0


class ConvTrunk(nn.Module):
    """Residual 3x3 convolutions at board size."""

    def __init__(self, planes: int, channels: int, blocks: int) -> None:
        """Create the trunk; its blocks start as the identity."""
        super().__init__()
        self.stem = nn.Conv2d(planes, channels, 3, padding=1)
        self.blocks = nn.ModuleList(Block(channels) for _ in range(blocks))

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """Map scaled planes `[N, planes, rows, cols]` to features `[N, channels, rows, cols]`."""
        x = functional.relu(self.stem(x)) * mask
        for block in self.blocks:
            x = block(x, mask)
        return x


class Attention(nn.Module):
    """One pre-norm transformer layer over the cells of the board, without dropout."""

    def __init__(self, channels: int, heads: int) -> None:
        """Create a layer whose residual branches start at zero."""
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(channels), nn.LayerNorm(channels)
        self.qkv = nn.Linear(channels, 3 * channels)
        self.out = nn.Linear(channels, channels)
        self.wide = nn.Linear(channels, 2 * channels)
        self.narrow = nn.Linear(2 * channels, channels)
        for layer in (self.out, self.narrow):
            nn.init.zeros_(layer.weight)

    def forward(self, x: Tensor, absent: Tensor) -> Tensor:
        """Map `x` `[N, cells, channels]`; `absent` `[N, 1, 1, cells]` is added to the scores."""
        n, cells, channels = x.shape
        parts = self.qkv(self.norm1(x)).view(n, cells, 3, self.heads, channels // self.heads)
        q, k, v = parts.permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-1, -2) * (channels // self.heads) ** -0.5 + absent
        mixed = (scores.softmax(-1) @ v).transpose(1, 2).reshape(n, cells, channels)
        x = x + self.out(mixed)
        y: Tensor = x + self.narrow(functional.relu(self.wide(self.norm2(x))))
        return y


class CellTrunk(nn.Module):
    """A transformer encoder whose tokens are the board's cells, with learned places."""

    def __init__(self, planes: int, channels: int, blocks: int, heads: int) -> None:
        """Create the trunk for boards of up to 25 rows and columns."""
        super().__init__()
        self.embed = nn.Linear(planes, channels)
        self.row = nn.Parameter(torch.randn(MOST_SIDE, channels) * 0.1)
        self.col = nn.Parameter(torch.randn(MOST_SIDE, channels) * 0.1)
        self.layers = nn.ModuleList(Attention(channels, heads) for _ in range(blocks))
        self.norm = nn.LayerNorm(channels)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """Map scaled planes `[N, planes, rows, cols]` to features `[N, channels, rows, cols]`."""
        n, _, rows, cols = x.shape
        places = self.row[:rows, None] + self.col[None, :cols]
        y = (self.embed(x.permute(0, 2, 3, 1)) + places).flatten(1, 2)
        absent = (mask.flatten(2) - 1)[:, None] * -ABSENT
        for layer in self.layers:
            y = layer(y, absent)
        y = functional.relu(self.norm(y))
        return y.transpose(1, 2).reshape(n, -1, rows, cols) * mask


def _moved(marks: Tensor, step: tuple[int, int]) -> Tensor:
    """Return `marks` `[N, slots, rows, cols]` moved by a step, around the edges.

    By slices with fixed ends: `roll` exports arithmetic on sizes, which GPUs refuse.
    """
    rows, cols = step
    if rows:
        return torch.cat((marks[:, :, -rows:], marks[:, :, :-rows]), 2)
    return torch.cat((marks[..., -cols:], marks[..., :-cols]), 3)


class Standing(nn.Module):
    """Reads what the planes of the standing say: scores in 256 points, hopes in -1..1."""

    def __init__(self, first: Sequence[int]) -> None:
        """Read the three planes from `first[k]` on for slot `k`."""
        super().__init__()
        self.first = tuple(first)

    def forward(self, scaled: Tensor, marks: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the score now `[N, slots]`, and worst scores and hopes `[N, slots, 4]` of moves.

        Moves that are not legal have the lowest score and hope.
        """
        planes = [scaled[:, [first + k for first in self.first]] for k in range(3)]
        score, hope = 8 * (planes[0] + planes[1]), planes[2]
        now = torch.einsum("nshw,nshw->ns", score, marks) - 8
        # Boards whose edges wrap fill their tensor; on others nothing is written across an edge.
        places = [_moved(marks, step) for step in STEPS]
        worst = torch.stack([torch.einsum("nshw,nshw->ns", score, place) for place in places], 2)
        hopes = torch.stack([torch.einsum("nshw,nshw->ns", hope, place) for place in places], 2)
        return now, worst - 8, hopes - 1


class AllSeatNet(Net):
    """A trunk over the board, read out at each slot's head and over the whole board.

    The readout's weights are the same for all slots. With `separate` policy and outcome have a
    trunk of their own, as the paper found better for large nets.

    With `standing` the planes' own judgement is added to the logits by learned factors, and the
    last layers start at zero: an untrained net judges and moves by it.
    """

    def __init__(
        self,
        scale: Sequence[float],
        *,
        heads: Sequence[int],
        areas: Sequence[int] = (),
        stats: Sequence[Sequence[int]] = (),
        standing: Sequence[int] = (),
        score_logits: Sequence[float] = SCORE_LOGITS,
        actions: int = 4,
        channels: int = 16,
        blocks: int = 2,
        hidden: int = 48,
        attention: int = 0,
        separate: int = 0,
    ) -> None:
        """Create the net.

        Args:
            scale: divisor of each plane.
            heads: plane of each slot's head.
            areas: plane of each slot's area, over which features are also added up; or none.
            stats: planes of each slot whose means over the board are read directly; or none.
            standing: first of the three planes of each slot's standing; or none.
            score_logits: what it is worth at first.
            actions: places of the policy.
            channels: width of the trunk.
            blocks: its depth.
            hidden: width of the readout.
            attention: heads of a transformer trunk; 0 makes a convolutional one.
            separate: 1 for two trunks.
        """
        super().__init__(scale)
        if min(channels, blocks, hidden, actions) < 1 or not 0 <= separate <= 1:
            raise ValueError("channels, blocks, hidden, actions: at least 1; separate: 0 or 1")
        if attention < 0 or (attention and channels % attention):
            raise ValueError(f"attention: {attention} heads do not divide {channels} channels")
        self.heads, self.areas = tuple(heads), tuple(areas)
        self.stats = tuple(tuple(planes) for planes in stats)

        def trunk() -> ConvTrunk | CellTrunk:
            if attention:
                return CellTrunk(len(scale), channels, blocks, attention)
            return ConvTrunk(len(scale), channels, blocks)

        self.trunk = trunk()
        self.second = trunk() if separate else None
        # A readout that all slots share cannot tell from the whole board whose features are whose,
        # so each slot also gets what is its own.
        own = (3 + bool(self.areas)) * channels + (len(self.stats[0]) if self.stats else 0)
        own += 2 * OWN_SCALARS if standing else 0
        self.to_policy = nn.Linear(own + (MOVE_SCALARS if standing else 0), hidden)
        self.policy = nn.Linear(hidden, actions)
        self.to_outcome = nn.Linear(own, hidden)
        self.win = nn.Linear(hidden, 1)
        self.to_draw = nn.Linear(2 * channels, hidden)
        self.draw = nn.Linear(hidden, 1)
        self.standing = Standing(standing) if standing else None
        if standing:
            self._lean_on_standing(standing, score_logits)

    def _lean_on_standing(self, standing: Sequence[int], score_logits: Sequence[float]) -> None:
        self.by_score = nn.Parameter(torch.tensor(score_logits))
        self.by_move = nn.Parameter(torch.tensor(MOVE_LOGITS))
        for layer in (self.win, self.draw, self.policy):
            nn.init.zeros_(layer.weight)
            nn.init.zeros_(layer.bias)
        nn.init.constant_(self.draw.bias, DRAW_LOGIT)
        # Both parts of a score count alike, so that it enters whole.
        for trunk in (self.trunk, self.second):
            if trunk is None:
                continue
            weight = trunk.embed.weight if isinstance(trunk, CellTrunk) else trunk.stem.weight
            with torch.no_grad():
                for first in standing:
                    weight[:, first + 1] = weight[:, first]

    def _read(
        self, x: Tensor, mask: Tensor, marks: Tensor, scaled: Tensor, scalars: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """Return features of every slot `[N, slots, own]` and of the board `[N, 2C]`."""
        area = mask.sum((2, 3))
        # Features are never negative and zero off the board, so a plain maximum is the masked one.
        board = torch.cat((x.sum((2, 3)) / area, x.amax((2, 3))), 1)
        at_heads = torch.einsum("nchw,nshw->nsc", x, marks)
        parts = [at_heads, board[:, None].expand(-1, len(self.heads), -1)]
        if self.areas:
            own = scaled[:, list(self.areas)]
            parts.append(torch.einsum("nchw,nshw->nsc", x, own) / area[:, None])
        if self.stats:
            means = scaled.sum((2, 3)) / area
            parts.append(torch.stack([means[:, list(planes)] for planes in self.stats], 1))
        if scalars is not None:
            parts += [scalars, scalars.sum(1, keepdim=True) - scalars]
        return torch.cat(parts, 2), board

    def answer(self, obs: Tensor) -> tuple[Tensor, Tensor]:
        """Return (`policy`, `outcome`), see the module."""
        # Converted before anything else: GPUs convert bytes, but neither cut nor compare them.
        planes = obs.to(torch.float32)
        marks = (planes[:, list(self.heads)] > 0).to(torch.float32)
        mask = (planes[:, :1] > 0).to(torch.float32)
        scaled = planes / self.scale
        living = marks.amax((2, 3))
        scalars = None
        if self.standing is not None:
            now, worst, hopes = self.standing(scaled, marks)
            best = torch.stack((now, worst.amax(2)), 2)
            scalars = torch.cat((best / 8, torch.tanh(best / 2)), 2) * living[..., None]
        x = self.trunk(scaled, mask)
        slots, board = self._read(x, mask, marks, scaled, scalars)
        win = self.win(functional.relu(self.to_outcome(slots)))[..., 0]
        draw = self.draw(functional.relu(self.to_draw(board)))
        if self.second is not None:
            slots, _ = self._read(self.second(scaled, mask), mask, marks, scaled, scalars)
        if self.standing is not None:
            win = win + best @ self.by_score
            slots = torch.cat((slots, torch.tanh(worst / 2), hopes), 2)
        win = win * living + (1 - living) * ABSENT
        policy = self.policy(functional.relu(self.to_policy(slots)))
        if self.standing is not None:
            policy = policy + torch.stack((worst, hopes), 3) @ self.by_move
        return policy, torch.cat((win, draw), 1)


def snake_net(scale: Sequence[float], *, slots: int, **options: int) -> AllSeatNet:
    """Return a net for observation v3 with `slots` slots; `scale` is that of its planes."""
    block = core.ALL_SEAT_BLOCK
    heads = [core.ALL_SEAT_COMMON + slot * block for slot in range(slots)]
    areas = [head + AREA for head in heads]
    standing = [head + STANDING for head in heads]
    stats = [range(head, first) for head, first in zip(heads, standing, strict=True)]
    score_logits = DUEL_SCORE_LOGITS if slots == 2 else SCORE_LOGITS
    return AllSeatNet(
        scale,
        heads=heads,
        areas=areas,
        stats=stats,
        standing=standing,
        score_logits=score_logits,
        **options,
    )
