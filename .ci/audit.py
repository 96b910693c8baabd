"""Ask the OSV database for known holes in what is installed; without a network, say so and pass."""

import json
import subprocess
import sys

COMMAND = [
    *(sys.executable, "-m", "pip_audit", "--vulnerability-service", "osv", "--skip-editable"),
    *("--format", "json", "--progress-spinner", "off"),
]
UNREACHABLE = ("ConnectionError", "NameResolutionError", "ConnectTimeout", "ProxyError", "SSLError")


def judge(code: int, output: str, errors: str) -> tuple[int, str]:
    """Return the exit code and the sentence for what `pip-audit` returned and wrote.

    Args:
        code: its exit code.
        output: its report, JSON where there is one.
        errors: what it said besides.
    """
    try:
        packages = json.loads(output)["dependencies"]
    except (ValueError, KeyError, TypeError):
        if any(word in errors for word in UNREACHABLE):
            return 0, "audit: skipped, the advisory database cannot be reached from here"
        return 1, f"audit: pip-audit failed with code {code}: {errors.strip()[-500:]}"
    holes = [
        f"{p['name']} {p['version']}: {hole['id']}, "
        f"fixed in {', '.join(hole['fix_versions']) or '-'}"
        for p in packages
        for hole in p.get("vulns", [])
    ]
    if holes:
        return 1, "\n".join(["audit: known holes", *holes])
    return 0, f"audit: {len(packages)} packages without a known hole"


def main() -> int:
    """Run it and return 1 for a hole or a failure."""
    done = subprocess.run(COMMAND, capture_output=True, text=True, check=False)
    code, sentence = judge(done.returncode, done.stdout, done.stderr)
    print(sentence, file=sys.stderr if code else sys.stdout)
    return code


if __name__ == "__main__":
    sys.exit(main())
