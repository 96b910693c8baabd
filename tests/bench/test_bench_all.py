"""Search figures, a server of its own, and all measures in one report."""

import json
import os
import statistics

import pytest

from snakekit import core
from snakekit.__main__ import main
from snakekit.bench import scenarios, search, served, server
from snakekit.bench.search import SIZES, SearchConfig, fixed_positions, overshoots


@pytest.mark.parametrize("snakes", SIZES.values())
def test_positions_are_fixed_and_from_the_middle_of_games(snakes):
    states = fixed_positions(snakes, 4, 7)
    assert states == fixed_positions(snakes, 4, 7)
    assert len({s.hash() for s in states}) == 4
    for state in states:
        assert len(state.living()) == snakes
        assert 12 <= state.turn <= 60
        assert not state.game_over()


def test_overshoot_is_time_beyond_the_limit():
    states = fixed_positions(2, 2, 1)
    late = overshoots(SearchConfig(overshoot_searches=6, limit_ms=2.0), states)
    assert len(late) == 6
    assert min(late) >= 0
    assert statistics.median(late) < 20


def test_a_search_that_ends_early_is_not_late():
    lone = core.State(5, 5, [core.Snake("a", 90, [(0, 0), (0, 1), (0, 2)])])
    assert overshoots(SearchConfig(overshoot_searches=2, limit_ms=5000.0), [lone]) == [0, 0]


def test_all_measures_are_in_one_report(tmp_path, capsys):
    first, second = tmp_path / "one.json", tmp_path / "two.json"
    page = tmp_path / "page.html"
    quick = ["bench", "all", "--quick", "--only", "encoder,search,nash"]
    assert main([*quick, "--json", str(first), "--html", str(page)]) == 0
    assert main([*quick, "--json", str(second), "--compare", str(first)]) == 0
    assert "against" in capsys.readouterr().out
    report = json.loads(second.read_text())
    names = {r["name"] for r in report["results"]}
    expected = {"encoder.v1.us_per_state", "search.depth_100ms.four", "search.nodes_per_s"}
    assert expected | {"nash.regret_1000_us", "nash.duel.p50_ms"} <= names
    assert {c["name"] for c in report["comparison"]["changes"]} == names
    assert report["environment"]["reference_ms"] > 0
    text = page.read_text()
    assert '<section id="search">' in text
    assert '<section id="rules">' not in text


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--only", "lunch"], "only"),
        (["--only", ""], "only"),
        (["--model", "no-such"], "no file no-such"),
        (["--compare", "no-such.json"], "cannot be read"),
        (["--quick", "--only", "encoder", "--json", "/dev/null/x"], "/dev/null"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_2(args, words, capsys):
    assert main(["bench", "all", *args]) == 2
    error = capsys.readouterr().err.replace("measuring encoder\n", "")
    assert words in error
    assert error.count("\n") == 1


def test_an_interrupted_measure_says_so(monkeypatch, capsys):
    def interrupt(config):
        raise KeyboardInterrupt

    monkeypatch.setattr(search, "measure", interrupt)
    assert main(["bench", "search"]) == 1
    assert capsys.readouterr().err == "snakekit bench search: interrupted\n"


def test_a_measure_that_is_not_possible_leaves_its_reason(monkeypatch, tmp_path):
    def refuse(config):
        raise served.ServedError("no loopback here")

    monkeypatch.setattr(server, "measure", refuse)
    path = tmp_path / "figures.json"
    assert main(["bench", "all", "--quick", "--only", "server", "--json", str(path)]) == 1
    missing = json.loads(path.read_text())["not_measured"]
    assert missing == [{"what": "server", "why": "no loopback here"}]


def test_a_server_is_started_measured_and_stopped(tmp_path, monkeypatch):
    started = []
    popen = served.subprocess.Popen

    def watch(*args, **options):
        started.append(popen(*args, **options))
        return started[-1]

    monkeypatch.setattr(served.subprocess, "Popen", watch)
    path = tmp_path / "figures.json"
    options = ["--requests", "30", "--seconds", "0.5", "--clients", "2", "--games", "3"]
    assert main(["bench", "server", *options, "--json", str(path)]) == 0
    by_name = {r["name"]: r for r in json.loads(path.read_text())["results"]}
    assert by_name["server.policy.p50_ms"]["samples"] == 30
    assert by_name["server.policy.moves_per_s"]["value"] > 1
    assert by_name["server.policy.moves_per_s"]["params"]["games"] == 2
    assert by_name["server.policy.games.misses"]["value"] == 0
    assert "server.policy.own_p99_bound_ms" in by_name
    serving = [process for process in started if "serve" in process.args]
    assert len(serving) == 1
    assert serving[0].poll() is not None


def test_a_server_that_cannot_start_says_why(capsys):
    assert main(["bench", "server", "--model", "no-such"]) == 2
    error = capsys.readouterr().err
    assert "ended at once: model: no file no-such" in error
    assert error.count("\n") == 1


@pytest.mark.slow
def test_soak_and_overload_have_servers_of_their_own(tmp_path, monkeypatch):
    monkeypatch.setattr(scenarios, "PROBE_S", 0.3)
    monkeypatch.setattr(scenarios, "SETTLE_S", 0.1)
    monkeypatch.setattr(scenarios, "OVER_GAMES", 20)
    before = os.sched_getaffinity(0)
    path = tmp_path / "figures.json"
    words = ["--scenario", "soak,overload", "--soak-games", "2", "--clients", "4"]
    code = main(["bench", "server", *words, "--seconds", "1", "--json", str(path)])
    report = json.loads(path.read_text())
    by_name = {r["name"]: r for r in report["results"]}
    assert code == ("not_measured" in report)
    assert by_name["server.hybrid.soak.p999_ms"]["params"]["goal"] == 475
    assert by_name["server.hybrid.soak.misses"]["params"]["server"] == "started here, mode hybrid"
    over = by_name["server.policy.overload.moves_per_s"]
    facts = over["params"]
    assert over["samples"] == pytest.approx(4 * facts["saturation_per_s"], rel=0.01)
    assert by_name["server.policy.overload.memory_ratio"]["value"] > 0.5
    assert os.sched_getaffinity(0) == before
