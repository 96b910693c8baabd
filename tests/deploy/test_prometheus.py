"""Debian's Prometheus scrapes a running server; every expression and rule is evaluated there."""

import json
import re
import shutil
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from promql import dashboard_expressions

from snakekit.bench.served import served

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        shutil.which("prometheus") is None or shutil.which("promtool") is None,
        reason="the package prometheus is not installed",
    ),
]

DEPLOY = Path(__file__).parents[2] / "deploy"
SCRAPED_S = 30.0
# Nothing is there unless something goes wrong, or has just begun.
MAY_BE_EMPTY = re.compile(r"> 0$|changes\(process_start_time")


def promtool(*words: str) -> None:
    done = subprocess.run(
        ["promtool", *words],
        cwd=DEPLOY / "prometheus",
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_rules_and_configuration_are_well_formed_and_alerts_fire_when_they_should() -> None:
    promtool("check", "rules", "rules.yml")
    promtool("check", "config", "prometheus.yml")
    promtool("test", "rules", "rules_test.yml")


def test_promtool_finds_nothing_to_mend_in_the_metrics() -> None:
    from snakekit.runtime.metrics import Metrics

    done = subprocess.run(
        ["promtool", "check", "metrics"],
        input=Metrics().render(),
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert b"error" not in done.stderr.lower(), done.stderr
    complaints = [line for line in done.stdout.decode().splitlines() if "snakekit_" in line]
    # A count and its time of creation share a name; the server does not show the latter.
    assert [line for line in complaints if "_created" not in line] == []


class Api:
    """Prometheus's own interface."""

    def __init__(self, port: int) -> None:
        self._base = f"http://127.0.0.1:{port}/api/v1/"

    def get(self, what: str, **parameters: str) -> Any:
        url = self._base + what + "?" + urllib.parse.urlencode(parameters)
        try:
            with urllib.request.urlopen(url, timeout=10) as response:
                return json.load(response)["data"]
        except urllib.error.HTTPError as error:
            with error:
                raise AssertionError((parameters, error.read())) from None

    def value(self, expression: str) -> float:
        (found,) = self.get("query", query=expression)["result"]
        return float(found["value"][1])


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory, free_port: Callable[[], int]) -> Iterator[Api]:
    """A Prometheus that has scraped a server under play for a while."""
    folder, port = tmp_path_factory.mktemp("prometheus"), free_port()
    options = ["--model", "standard", "--budget-ms", "20", "--record", str(folder / "records")]
    with served(options) as place:
        target = urllib.parse.urlsplit(place.metrics_url).netloc
        config = {
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "rule_files": [str(DEPLOY / "prometheus/rules.yml")],
            "scrape_configs": [
                {"job_name": "snakekit", "static_configs": [{"targets": [target]}]},
            ],
        }
        (folder / "prometheus.yml").write_text(yaml.safe_dump(config))
        log = (folder / "log").open("w")
        prometheus = subprocess.Popen(
            [
                "prometheus",
                f"--config.file={folder / 'prometheus.yml'}",
                f"--storage.tsdb.path={folder / 'data'}",
                f"--web.listen-address=127.0.0.1:{port}",
            ],
            stdout=log,
            stderr=log,
        )
        try:
            play(place.url, SCRAPED_S)
            yield Api(port)
        finally:
            prometheus.terminate()
            prometheus.wait(20)
            log.close()


def play(url: str, seconds: float) -> None:
    """Play for so long, with a request now and then that is refused."""
    end = time.monotonic() + seconds
    command = [sys.executable, "-m", "snakekit", "play", url, "greedy", "--max-turns", "60"]
    while time.monotonic() < end:
        subprocess.run([*command, "--games", "2"], check=True, capture_output=True, timeout=100)
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(url + "/move", b"{}", timeout=5)
        refused.value.close()
        time.sleep(0.5)


def test_the_server_is_scraped(api: Api) -> None:
    assert api.value('up{job="snakekit"}') == 1
    assert api.value("count_over_time(up[1m])") > 20
    assert api.value("snakekit_move_seconds_count") > 100
    assert api.value("snakekit_recorded_games_total") > 1


def test_every_expression_of_the_dashboard_shows_something(api: Api) -> None:
    dashboard = json.loads((DEPLOY / "grafana/dashboards/snakekit.json").read_text())
    empty = []
    for expression in dashboard_expressions(dashboard):
        asked = expression.replace("$__rate_interval", "20s").replace("$instance", ".*")
        if not api.get("query", query=asked)["result"] and not MAY_BE_EMPTY.search(expression):
            empty.append(expression)
    assert empty == []


def test_every_rule_is_evaluated_and_nothing_is_wrong_with_a_healthy_server(api: Api) -> None:
    rules = [rule for group in api.get("rules")["groups"] for rule in group["rules"]]
    wanted = yaml.safe_load((DEPLOY / "prometheus/rules.yml").read_text())["groups"]
    assert len(rules) == sum(len(group["rules"]) for group in wanted)
    assert [(rule["name"], rule.get("lastError")) for rule in rules if rule["health"] != "ok"] == []
    firing = {rule["name"] for rule in rules if rule.get("state") == "firing"}
    assert not firing & {"SnakekitDown", "SnakekitNotReady", "SnakekitPolicyBroken"}
    assert not firing & {"SnakekitRecordsLost", "SnakekitReloadRefused"}
    assert api.value("snakekit:moves:rate") > 0
    assert 0 < api.value("snakekit:move_seconds:p99") < 1
