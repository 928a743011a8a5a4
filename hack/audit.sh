#!/usr/bin/env bash
# Compares what uv.lock names for the image, the extras and the release with PyPI's known vulnerabilities.
set -euo pipefail
cd "$(dirname "$0")/.."
tools=$(mktemp -d)
trap 'rm -rf "$tools"' EXIT
"${1:-python3}" -m venv "$tools/uv"
"$tools/uv/bin/pip" install --quiet --require-hashes --requirement hack/uv.txt
uv="$tools/uv/bin/uv"
export UV_PYTHON_DOWNLOADS=never
UV_PROJECT_ENVIRONMENT="$tools/audit" "$uv" sync --quiet --locked --only-group audit --no-install-project
"$uv" export --quiet --locked --no-default-groups --all-extras --group release --no-emit-project \
  --output-file "$tools/requirements.txt"
"$tools/audit/bin/pip-audit" --strict --disable-pip --require-hashes --progress-spinner off \
  --requirement "$tools/requirements.txt"
