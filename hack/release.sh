#!/usr/bin/env bash
# Builds what a release signs, from uv.lock alone: `hack/release.sh wheel` writes dist/gangsched-VERSION-py3-none-any.whl,
# `hack/release.sh kubectl-gang` the program of the kubectl plug-in with all that it needs in one file.
set -euo pipefail
cd "$(dirname "$0")/.."
tools=$(mktemp -d)
trap 'rm -rf "$tools"' EXIT
python3 -m venv "$tools/uv"
"$tools/uv/bin/pip" install --quiet --require-hashes --requirement hack/uv.txt
uv="$tools/uv/bin/uv"
export UV_PYTHON_DOWNLOADS=never
UV_PROJECT_ENVIRONMENT="$tools/build" "$uv" sync --quiet --locked --only-group release --no-install-project
# Without build isolation the wheel is built by the hatchling of uv.lock.
"$uv" build --quiet --wheel --no-build-isolation --python "$tools/build/bin/python" --out-dir dist
case "${1:?wheel or kubectl-gang}" in
wheel) ;;
kubectl-gang)
  UV_PROJECT_ENVIRONMENT="$tools/run" "$uv" sync --quiet --locked --no-default-groups --no-install-project
  "$uv" pip install --quiet --python "$tools/run/bin/python" --no-deps dist/gangsched-*.whl
  "$tools/build/bin/pex" --venv-repository "$tools/run" gangsched --console-script kubectl-gang \
    --output-file kubectl-gang --python-shebang "/usr/bin/env python3.11"
  ;;
*)
  echo "error: $1 is not known: write wheel or kubectl-gang" >&2
  exit 2
  ;;
esac
