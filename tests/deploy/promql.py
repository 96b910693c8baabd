"""Names, labels and values in PromQL expressions, enough to check that they exist."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

Matcher = tuple[str, str, str]
_WORDS = frozenset({"and", "or", "unless", "offset", "bool", "inf", "nan"})
_LISTS = re.compile(r"\b(?:by|without|on|ignoring|group_left|group_right)\s*\([^)]*\)")
_NAME = re.compile(r"([a-zA-Z_:][\w:]*)\s*(\{[^}]*\})?\s*(\()?")
_MATCHER = re.compile(r'(\w+)\s*(=~|!~|!=|=)\s*"([^"]*)"')
_FREE = frozenset({"job", "instance", "le", "namespace", "pod"})


def names_in(expression: str) -> list[tuple[str, list[Matcher]]]:
    """Return each metric of an expression with its label matchers."""
    text = re.sub(r"\[[^\]]*\]", "", _LISTS.sub("", expression))
    text = re.sub(r"\boffset\s+\w+", "", text)
    found = []
    for name in _NAME.finditer(text):
        before = text[: name.start()]
        if name[3] or name[1].lower() in _WORDS or before.endswith(tuple("0123456789.")):
            continue
        if name[1] in ("sum", "avg", "max", "min", "count", "topk", "quantile"):
            continue
        found.append((name[1], _MATCHER.findall(name[2] or "")))
    return found


@dataclass
class Known:
    """Metrics that exist: by name the labels, and by label the values."""

    labels: dict[str, dict[str, set[str]]] = field(default_factory=dict)
    families: set[str] = field(default_factory=set)

    @staticmethod
    def of(exposition: str, records: Iterable[str]) -> "Known":
        """Read what a server shows; `records` are the names that rules add."""
        known = Known({name: {} for name in ("up", *records)})
        for family in text_string_to_metric_families(exposition):
            known.families.add(family.name)
            for sample in family.samples:
                labels = known.labels.setdefault(sample.name, {})
                for label, value in sample.labels.items():
                    labels.setdefault(label, set()).add(value)
        return known


def problems(expression: str, known: Known) -> list[str]:
    """Return one sentence for each metric, label or value that does not exist."""
    found = []
    for name, matchers in names_in(expression):
        if name not in known.labels:
            found.append(f"{name} does not exist, in {expression}")
            continue
        for label, sign, value in matchers:
            values = known.labels[name].get(label)
            if label in _FREE:
                continue
            if values is None:
                found.append(f"{name} has no label {label}, in {expression}")
            elif sign in ("=", "=~"):
                found += [
                    f"{name} has no {label} {v}, in {expression}"
                    for v in (value.split("|") if sign == "=~" else [value])
                    if v not in values
                ]
    return found


def dashboard_expressions(dashboard: dict[str, Any]) -> list[str]:
    """Return every expression of a Grafana dashboard, its annotations and variables included."""
    found = [t["expr"] for panel in dashboard["panels"] for t in panel.get("targets", [])]
    found += [a["expr"] for a in dashboard["annotations"]["list"]]
    for variable in dashboard["templating"]["list"]:
        values = re.match(r"label_values\((.*),\s*\w+\)", variable.get("definition", ""))
        found += [values[1]] if values else []
    return found


def rule_expressions(rules: dict[str, Any]) -> list[str]:
    """Return every expression of a file of rules."""
    return [rule["expr"] for group in rules["groups"] for rule in group["rules"]]
