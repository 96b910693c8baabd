"""Cores that a container leaves to the process."""

from pathlib import Path

import pytest

from snakekit.runtime import cores as module
from snakekit.runtime.cores import MOST, cores


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module.os, "sched_getaffinity", lambda _: set(range(8)), raising=False)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("max 100000", 8),
        ("400000 100000", 4),
        ("250000 100000", 2),
        ("50000 100000", 1),
        ("10000000 100000", 8),
        ("nonsense", 8),
        ("100000 0", 8),
    ],
)
def test_quota_of_version_2(tmp_path: Path, line: str, expected: int) -> None:
    (tmp_path / "cpu.max").write_text(line + "\n")
    assert cores(tmp_path) == expected


def test_quota_of_version_1(tmp_path: Path) -> None:
    folder = tmp_path / "cpu"
    folder.mkdir()
    (folder / "cpu.cfs_period_us").write_text("100000\n")
    for quota, expected in (("-1", 8), ("300000", 3)):
        (folder / "cpu.cfs_quota_us").write_text(quota + "\n")
        assert cores(tmp_path) == expected


def test_without_a_quota_there_is_a_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert cores(tmp_path) == 8
    monkeypatch.setattr(module.os, "sched_getaffinity", lambda _: set(range(64)), raising=False)
    assert cores(tmp_path) == MOST
