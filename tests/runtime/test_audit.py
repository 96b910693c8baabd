"""What the dependency audit of CI makes of pip-audit's answers."""

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def audit() -> Any:
    path = Path(__file__).resolve().parents[2] / ".ci" / "audit.py"
    spec = importlib.util.spec_from_file_location("audit", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def report(*holes: Any) -> str:
    good = {"name": "good", "version": "1", "vulns": []}
    bad = {"name": "bad", "version": "2", "vulns": list(holes)}
    skipped = {"name": "ours", "skip_reason": "editable"}
    return json.dumps({"dependencies": [good, bad, skipped], "fixes": []})


@pytest.mark.parametrize(
    ("code", "output", "errors", "expected", "words"),
    [
        (0, report(), "No known vulnerabilities found", 0, "3 packages without"),
        (1, report({"id": "PYSEC-1", "fix_versions": ["3"]}), "", 1, "bad 2: PYSEC-1, fixed in 3"),
        (1, report({"id": "GHSA-2", "fix_versions": []}), "", 1, "bad 2: GHSA-2, fixed in -"),
        (1, "", "requests.exceptions.ConnectionError: Max retries", 0, "skipped"),
        (1, "", "No module named pip_audit", 1, "failed with code 1: No module"),
        (1, "[]", "odd", 1, "failed"),
    ],
)
def test_judgement(
    audit: Any, code: int, output: str, errors: str, expected: int, words: str
) -> None:
    found, sentence = audit.judge(code, output, errors)
    assert found == expected
    assert words in sentence
