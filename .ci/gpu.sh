#!/usr/bin/env bash
# All that needs an NVIDIA GPU, inside ten minutes: tests, and inference on CPU and GPU.
#
#   .ci/gpu.sh OUT [WHEELS]
#
# OUT     folder for gpu.txt, tests.xml, tests.log, inference.json, inference.html, inference.log
# WHEELS  folder of wheels to install from where no index can be reached
#
# PYTHON chooses the interpreter, VENV an environment that has everything already. Every step runs even if one before it failed; the exit code tells.
set -uo pipefail
cd "$(dirname "$0")/.."
OUT=$(mkdir -p "$1" && cd "$1" && pwd)
WHEELS=${2:-}
PYTHON=${PYTHON:-python3}
WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT
failed=0

step() { # SECONDS NAME COMMAND...
  local limit=$1 name=$2
  shift 2
  echo "== $name"
  timeout "$limit" "$@" > "$OUT/$name.log" 2>&1
  local code=$?
  tail -n 5 "$OUT/$name.log"
  if [ $code -ne 0 ]; then
    echo "== $name failed with $code"
    failed=1
  fi
}

{ nvidia-smi || echo "no nvidia-smi here"; "$PYTHON" --version; uname -sr; } > "$OUT/gpu.txt" 2>&1

if [ -z "${VENV:-}" ]; then
  # What the machine has is used; what is missing comes from WHEELS or the index.
  VENV=$WORK/venv
  "$PYTHON" -m venv --system-site-packages "$VENV" || exit 1
  packages=(".[${EXTRAS:-gpu,tensorrt,export,bench}]" pytest pytest-timeout pytest-asyncio)
  from=()
  if [ -n "$WHEELS" ]; then
    from=(--no-index --find-links "$WHEELS" --no-build-isolation)
  fi
  step 90 install "$VENV/bin/pip" --disable-pip-version-check -q install \
    "${from[@]}" "${packages[@]}"
fi
SNAKEKIT=$VENV/bin/snakekit

step 190 tests "$VENV/bin/python" -m pytest -m gpu tests/gpu -rs --junitxml "$OUT/tests.xml"

for net in article compact all-seat; do
  for precision in fp32 fp16; do
    step 26 "export-$net-$precision" "$SNAKEKIT" export --init $net --precision $precision \
      --observations 256 --batch 1,32,256 --out "$WORK/models"
  done
done
models=$(ls "$WORK"/models/*.onnx 2> /dev/null | paste -sd, -)
step 140 inference "$SNAKEKIT" bench inference --model "$models" --threads 1 --seconds 75 \
  --backend cpu,cuda,ort-tensorrt,tensorrt --engine-cache "$WORK/engines" \
  --json "$OUT/inference.json" --html "$OUT/inference.html"
exit $failed
