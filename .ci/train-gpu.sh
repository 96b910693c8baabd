#!/usr/bin/env bash
# Trains the post mortem's net on one large GPU inside ten minutes, and measures who waits.
#
#   .ci/train-gpu.sh OUT [MINUTES]
#
# OUT      folder for metrics.jsonl, report.html, bench.json, train.log and the newest weights in
#          at most four parts of 15 MiB, renewed every two minutes (.ci/handover.py unpack)
# MINUTES  of training, 6 unless given; installing and measuring take about three more
#
# VENV has an environment with everything, PYTHON chooses the interpreter of a new one. DEVICE=cpu
# tries the script out where there is no GPU; CONFIG and the further ARGS="--envs 8 ..." are
# passed to the training.
set -uo pipefail
cd "$(dirname "$0")/.."
OUT=$(mkdir -p "$1" && cd "$1" && pwd)
MINUTES=${2:-6}
DEVICE=${DEVICE:-cuda}
CONFIG=${CONFIG:-configs/ppo-h200.toml}
PYTHON=${PYTHON:-python3}
WORK=$(mktemp -d)
helper=
trap '[ -n "$helper" ] && kill $helper 2> /dev/null; rm -rf "$WORK"' EXIT
read -r -a args <<< "${ARGS:-}"

if [ "$DEVICE" = cuda ]; then
  nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader || exit 2
  fast=(--device cuda --precision bf16 --compile)
else
  fast=(--device cpu --precision fp32)
  args+=(--device cpu --precision fp32 --no-compile)
fi
if [ -z "${VENV:-}" ]; then
  VENV=$WORK/venv
  "$PYTHON" -m venv --system-site-packages "$VENV" || exit 1
  "$VENV/bin/pip" --disable-pip-version-check -q install '.[train,bench]' || exit 1
fi
SNAKEKIT=$VENV/bin/snakekit

# Who waits: the same work with acting and learning one after the other, and at once.
measure() { # NAME OPTION...
  local name=$1
  shift
  timeout "${BENCH_SECONDS:-70}" "$SNAKEKIT" bench train --net article --rounds 3 "${fast[@]}" \
    --json "$WORK/$name.json" "$@"
}
sizes=(--envs "${BENCH_ENVS:-1024}" --steps "${BENCH_STEPS:-16}" --env-threads "${ENV_THREADS:-12}")
measure serial "${sizes[@]}"
measure overlap "${sizes[@]}" --overlap
shopt -s nullglob
"$VENV/bin/python" - "$WORK"/*.json > "$OUT/bench.json" <<'PY'
import json, pathlib, sys
print(json.dumps({pathlib.Path(p).stem: json.load(open(p)) for p in sys.argv[1:]}, indent=1))
PY

bring() {
  cp -f "$WORK/run/metrics.jsonl" "$WORK/run/report.html" "$OUT" 2> /dev/null
  "$VENV/bin/python" .ci/handover.py pack "$WORK/run" "$OUT" || true
}
(while sleep 120; do bring; done) > /dev/null 2>&1 &
helper=$!
"$SNAKEKIT" train ppo --config "$CONFIG" --run "$WORK/run" --minutes "$MINUTES" "${args[@]}" \
  > "$OUT/train.log" 2>&1
code=$?
kill $helper 2> /dev/null
helper=
tail -n 3 "$OUT/train.log"
bring
exit $code
