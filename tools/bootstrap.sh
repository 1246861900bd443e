#!/bin/sh
# Makes .venv from the lock file, with nothing but Python 3.11 or newer and the package index of this machine.
# uv gets a small environment of its own, because it makes the other one.
set -eu
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || {
    echo "Python 3.11 or newer is needed, and $python is $("$python" --version 2>&1 || echo missing)." >&2
    echo "Install it, or name it: make PYTHON=/path/to/python3.11 …" >&2
    exit 1
}
wanted=$(cat requirements/dev.txt requirements/uv.txt pyproject.toml tools/bootstrap.sh | cksum)
[ "$(cat .venv/.plumbline 2>/dev/null || true)" = "$wanted" ] && exit 0

echo "environment: installing what requirements/dev.txt locks into .venv" >&2
uv=.plumbline/uv/bin/uv
if [ "$("$uv" --version 2>/dev/null | cut -d' ' -f2)" != "$(sed -n 's/^uv==\([0-9.]*\).*/\1/p' requirements/uv.txt)" ]; then
    rm -rf .plumbline/uv
    "$python" -m venv .plumbline/uv
    .plumbline/uv/bin/pip install --quiet --disable-pip-version-check --require-hashes -r requirements/uv.txt >&2
fi
[ -x .venv/bin/python ] || "$uv" venv --quiet --python "$python" .venv
VIRTUAL_ENV=$PWD/.venv
export VIRTUAL_ENV
"$uv" pip sync --quiet --require-hashes requirements/dev.txt >&2
"$uv" pip install --quiet --no-deps --no-build-isolation --editable . >&2
echo "$wanted" >.venv/.plumbline
