import numpy as np
import pytest
import torch

from snakekit import core
from snakekit.trainer.model import ArticleNet, build, count_parameters

PLANES = len(core.PLANE_SCALE[2])


def board(rows: int, cols: int, *, seed: int) -> np.ndarray:
    """Return a made-up observation of version 2: mask, one own head, noise elsewhere."""
    generator = np.random.default_rng(seed)
    obs = generator.integers(0, 30, (PLANES, rows, cols), dtype=np.uint8)
    obs[0] = 1
    obs[1] = 0
    obs[1, generator.integers(rows), generator.integers(cols)] = 1
    return obs


def test_article_net_has_the_articles_size() -> None:
    assert count_parameters(build("article")) == 29_886_725


def test_article_net_reads_the_articles_view() -> None:
    policy, value = build("article")(torch.zeros(2, 17, 23, 23, dtype=torch.uint8))
    assert policy.shape == (2, 4)
    assert value.shape == (2, 1)


def test_article_net_needs_its_planes() -> None:
    with pytest.raises(ValueError, match="17 planes"):
        ArticleNet([1.0] * 16)


@pytest.mark.parametrize(("rows", "cols"), [(3, 3), (7, 7), (11, 11), (11, 22), (25, 25)])
def test_padding_beside_the_board_changes_nothing(rows: int, cols: int) -> None:
    torch.manual_seed(0)
    net = build("compact", {"channels": 16, "blocks": 3}).eval()
    for parameter in net.parameters():
        torch.nn.init.normal_(parameter, std=0.1)
    obs = board(rows, cols, seed=rows)
    padded = np.zeros((PLANES, 25, 25), np.uint8)
    padded[:, :rows, :cols] = obs
    with torch.no_grad():
        alone = net(torch.from_numpy(obs[None]))
        inside = net(torch.from_numpy(padded[None]))
    for a, b in zip(alone, inside, strict=True):
        torch.testing.assert_close(a, b, atol=1e-5, rtol=0)
    assert alone[0].abs().max() > 1e-3


def test_compact_net_sees_far_cells() -> None:
    torch.manual_seed(0)
    net = build("compact", {"blocks": 1}).eval()
    obs = board(19, 19, seed=1)
    obs[1], obs[1, 0, 0] = 0, 1
    changed = obs.copy()
    changed[5, 18, 18] += 20
    with torch.no_grad():
        first, second = net(torch.from_numpy(np.stack([obs, changed])))[0]
    assert (first - second).abs().max() > 0


def test_values_stay_in_range() -> None:
    net = build("compact", {"channels": 8, "blocks": 1})
    torch.nn.init.constant_(net.value.bias, 50.0)
    value = net(torch.from_numpy(board(11, 11, seed=2)[None]))[1]
    assert value.item() == pytest.approx(1.0)


def test_unknown_nets_and_options_are_refused() -> None:
    with pytest.raises(ValueError, match="known: all-seat, article, compact"):
        build("transformer")
    with pytest.raises(ValueError, match="no option width"):
        build("compact", {"width": 3})
    with pytest.raises(ValueError, match="at least 1"):
        build("compact", {"blocks": 0})
