"""Everything in deploy/ against what it speaks of: metrics, options, files, ports, each other."""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from kubernetes_validate import latest_version, validate
from promql import Known, dashboard_expressions, names_in, problems, rule_expressions

from snakekit.runtime.backends.base import BackendInfo
from snakekit.runtime.backends.random_play import random_card
from snakekit.runtime.config import ServerConfig
from snakekit.runtime.metrics import Metrics

DEPLOY = Path(__file__).parents[2] / "deploy"
DOCS = DEPLOY.parent / "docs"
DASHBOARD = DEPLOY / "grafana/dashboards/snakekit.json"
RULES = DEPLOY / "prometheus/rules.yml"
OPTIONS = {field.name for field in msgspec.structs.fields(ServerConfig)}


def load(path: Path) -> list[Any]:
    return list(yaml.safe_load_all(path.read_text()))


@pytest.fixture(scope="module")
def known() -> Known:
    """What a server shows, and what the rules make of it."""
    metrics = Metrics()
    metrics.describe_model(random_card(), BackendInfo("cpu", "cpu", "fp32"))
    records = [r["record"] for g in load(RULES)[0]["groups"] for r in g["rules"] if "record" in r]
    return Known.of(metrics.render().decode(), records)


def test_expressions_are_taken_apart() -> None:
    expression = 'sum by (le, z) (rate(a_bucket{x="1", y=~"b|c"}[5m])) / on (z) d:e > 0.5 and f'
    assert [name for name, _ in names_in(expression)] == ["a_bucket", "d:e", "f"]
    assert names_in(expression)[0][1] == [("x", "=", "1"), ("y", "=~", "b|c")]


def test_a_wrong_name_label_or_value_is_found(known: Known) -> None:
    good = 'rate(snakekit_fallbacks_total{stage="policy", cause=~"error|busy"}[5m])'
    assert problems(good, known) == []
    for old, new in (("fallbacks", "fallback"), ("stage", "stages"), ("policy", "polixy")):
        assert len(problems(good.replace(old, new), known)) == 1


def test_the_dashboard_uses_what_is_there(known: Known) -> None:
    found = dashboard_expressions(json.loads(DASHBOARD.read_text()))
    assert len(found) > 30
    assert [p for expression in found for p in problems(expression, known)] == []


def test_the_rules_use_what_is_there(known: Known) -> None:
    found = rule_expressions(load(RULES)[0])
    assert len(found) > 10
    assert [p for expression in found for p in problems(expression, known)] == []


def test_every_metric_is_shown_or_watched(known: Known) -> None:
    expressions = dashboard_expressions(json.loads(DASHBOARD.read_text()))
    expressions += rule_expressions(load(RULES)[0])
    used = {name for expression in expressions for name, _ in names_in(expression)}
    families = {re.sub(r"_(total|bucket|count|sum)$", "", name) for name in used}
    # Without the time of creation, which the server does not show.
    shown = {f for f in known.families if re.match(r"snakekit_(?!.*_created$)", f)}
    assert shown - families == set()


def test_panels_have_their_own_place_and_a_unit() -> None:
    dashboard = json.loads(DASHBOARD.read_text())
    panels = dashboard["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    taken: set[tuple[int, int]] = set()
    for panel in panels:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, panel["title"]
        assert place["x"] + place["w"] <= 24
        taken |= cells
        if panel["type"] in ("stat", "timeseries"):
            assert panel["fieldConfig"]["defaults"]["unit"]
        for target in panel.get("targets", []):
            assert target["datasource"]["uid"] == "${datasource}"


def test_alerts_say_what_is_wrong_and_what_to_do() -> None:
    for group in load(RULES)[0]["groups"]:
        for rule in group["rules"]:
            if "alert" in rule:
                assert rule["labels"]["severity"] in ("critical", "warning", "info")
                assert set(rule["annotations"]) == {"summary", "description"}
                assert "{{ $labels.instance }}" in rule["annotations"]["summary"]


def alerts_of(rules: Any) -> set[str]:
    return {r["alert"] for g in rules["groups"] for r in g["rules"] if "alert" in r}


def test_every_alert_is_tried_on_a_healthy_server_and_on_one_in_trouble() -> None:
    (tried,) = load(RULES.with_name("rules_test.yml"))
    healthy, troubled = (
        {case["alertname"]: bool(case["exp_alerts"]) for case in test["alert_rule_test"]}
        for test in tried["tests"]
    )
    (rules,) = load(RULES)
    assert healthy == dict.fromkeys(alerts_of(rules), False)
    assert troubled == dict.fromkeys(alerts_of(rules), True)


def test_every_alert_is_explained() -> None:
    alerts = alerts_of(load(RULES)[0])
    explained = re.findall(r"^\| `(\w+)` \|", (DOCS / "operations.md").read_text(), re.M)
    assert set(explained) == alerts
    assert len(explained) == len(alerts)


def texts() -> Iterator[tuple[str, str]]:
    for path in [*DEPLOY.rglob("*"), *DOCS.glob("*.md")]:
        if path.is_file() and path.suffix != ".json":
            yield path.name, path.read_text()


def test_only_options_of_the_server_are_set() -> None:
    seen = set()
    for name, text in texts():
        for variable in re.findall(r"\bSNAKEKIT_([A-Z][A-Z_]*[A-Z])\b", text):
            if variable not in ("TARGET",):
                assert variable.lower() in OPTIONS, (name, variable)
                seen.add(variable)
    assert len(seen) > 5
    unit = (DEPLOY / "systemd/snakekit.service").read_text()
    for flag in re.findall(r"serve (.*)", unit)[0].split():
        assert not flag.startswith("--") or flag[2:].replace("-", "_") in OPTIONS


def test_compose(known: Known) -> None:
    (compose,) = load(DEPLOY / "compose.yaml")
    services = compose["services"]
    dockerfile = (DEPLOY / "Dockerfile").read_text()
    build = services["snakekit"]["build"]
    assert (DEPLOY / build["context"] / build["dockerfile"]).samefile(DEPLOY / "Dockerfile")
    assert re.search(r"AS cpu$", dockerfile, re.M)
    assert "${SNAKEKIT_TARGET:-cpu}" in build["target"]
    assert set(build["args"]) <= set(re.findall(r"^ARG (\w+)", dockerfile, re.M))
    command = services["snakekit"]["command"]
    assert all(w[2:].replace("-", "_") in OPTIONS for w in command if w.startswith("--"))
    published = [port for service in services.values() for port in service.get("ports", [])]
    assert [port for port in published if not port.startswith("127.0.0.1:")] == ["8000:8000"]
    for service in services.values():
        assert service["restart"] == "unless-stopped"
        for volume in service["volumes"]:
            source = volume.split(":")[0]
            if source.startswith("."):
                assert (DEPLOY / source).is_dir()
            else:
                assert source in compose["volumes"]
    for name in ("prometheus", "grafana"):
        assert re.search(r":v?\d+\.\d+\.\d+$", services[name]["image"])
    (prometheus,) = load(DEPLOY / "prometheus/prometheus.yml")
    assert prometheus["rule_files"] == [RULES.name]
    (job,) = prometheus["scrape_configs"]
    assert job["dns_sd_configs"][0]["names"] == ["snakekit"]
    assert job["dns_sd_configs"][0]["port"] == 9100
    (source,) = load(DEPLOY / "grafana/provisioning/datasources/prometheus.yml")
    assert source["datasources"][0]["url"] == "http://prometheus:9090"
    (provider,) = load(DEPLOY / "grafana/provisioning/dashboards/snakekit.yml")
    mounted = provider["providers"][0]["options"]["path"]
    assert f"./grafana/dashboards:{mounted}:ro" in services["grafana"]["volumes"]
    home = services["grafana"]["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
    assert home == f"{mounted}/{DASHBOARD.name}"


def test_kubernetes() -> None:
    folder = DEPLOY / "kubernetes"
    (kustomization,) = load(folder / "kustomization.yaml")
    found = {
        manifest["kind"]: manifest
        for name in kustomization["resources"]
        for manifest in load(folder / name)
    }
    assert set(found) == {
        "Deployment", "Service", "PodDisruptionBudget", "NetworkPolicy", "HorizontalPodAutoscaler",
    }  # fmt: skip
    for manifest in found.values():
        validate(manifest, latest_version(), strict=True)
    labels = found["Deployment"]["spec"]["template"]["metadata"]["labels"]
    assert found["Deployment"]["spec"]["selector"]["matchLabels"] == labels
    assert found["Service"]["spec"]["selector"] == labels
    assert found["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"] == labels
    assert found["NetworkPolicy"]["spec"]["podSelector"]["matchLabels"] == labels
    check_pod(found["Deployment"]["spec"]["template"]["spec"], found["Service"]["spec"])
    check_scaling(found["HorizontalPodAutoscaler"]["spec"], found["Deployment"])


def check_pod(pod: Any, service: Any) -> None:
    (container,) = pod["containers"]
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert ports == {"http": 8000, "metrics": 9100}
    assert service["ports"][0]["targetPort"] in ports
    assert container["readinessProbe"]["httpGet"] == {"path": "/readyz", "port": "http"}
    assert container["livenessProbe"]["httpGet"] == {"path": "/healthz", "port": "http"}
    assert container["startupProbe"]["httpGet"]["path"] == "/readyz"
    assert pod["securityContext"]["runAsNonRoot"]
    assert container["securityContext"]["readOnlyRootFilesystem"]
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert "cpu" in container["resources"]["requests"]
    assert "cpu" not in container["resources"]["limits"]
    assert str(pod["securityContext"]["runAsUser"]) in (DEPLOY / "Dockerfile").read_text()
    # Time for the balancers, for a move, and for the records.
    pause = int(container["lifecycle"]["preStop"]["exec"]["command"][1])
    assert pod["terminationGracePeriodSeconds"] >= pause + 10
    for variable in container["env"]:
        assert isinstance(variable["value"], str)


def check_scaling(scaler: Any, deployment: Any) -> None:
    assert scaler["scaleTargetRef"]["name"] == deployment["metadata"]["name"]
    assert scaler["minReplicas"] >= 2
    pods = next(m for m in scaler["metrics"] if m["type"] == "Pods")["pods"]
    (adapter,) = load(DEPLOY / "kubernetes/prometheus-adapter.yaml")
    (rule,) = adapter["rules"]["custom"]
    assert pods["metric"]["name"] == rule["name"]["as"]
    assert rule["seriesQuery"].startswith("snakekit_move_seconds_bucket")
    # Between the search budget and the usual timeout, else it scales always or never.
    target = int(pods["target"]["averageValue"].removesuffix("m")) / 1000
    assert ServerConfig().budget_ms / 1000 < target < 0.5


def test_nginx_keeps_connections_for_less_time_than_the_server() -> None:
    text = (DEPLOY / "nginx/snakekit.conf").read_text()
    upstream = re.search(r"upstream snakekit \{(.*?)\n\}", text, re.S)
    assert upstream
    kept = re.search(r"keepalive_timeout (\d+)s", upstream[1])
    assert kept
    assert int(kept[1]) < ServerConfig().keepalive_s
    assert "client_max_body_size 1m" in text
    assert ServerConfig().body_limit == 1 << 20


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")
def test_systemd_finds_nothing_wrong_with_the_unit(tmp_path: Path) -> None:
    text = (DEPLOY / "systemd/snakekit.service").read_text()
    assert "/opt/snakekit/bin/snakekit serve" in text
    unit = tmp_path / "snakekit.service"
    unit.write_text(text.replace("/opt/snakekit/bin/snakekit", "/bin/true"))
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(unit)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    said = [line for line in done.stderr.splitlines() if "snakekit.service" in line]
    assert (done.returncode, said) == (0, [])
