#!/usr/bin/env bash
# Install what the project needs, once: the project's Python packages (.venv), MiniStack in an
# environment of its own (.local/ministack, because it pins botocore exactly), and the Node tools
# (node_modules, by the Node that comes from PyPI). What is up to date is left alone.
#
# Needs Python 3.11 or newer; `PYTHON=/path/to/python make setup` names one. Packages come from
# wherever pip, uv and npm are configured to take them from.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

fail() {
  printf 'setup: %s\n' "$*" >&2
  exit 1
}

# A stamp is written when a part is complete and names all that it was made from: its inputs, and this
# folder, because environments do not survive a move.
stamp_of() { { pwd; cat -- "$@"; } | cksum; }
current() { [[ -e $1 && $(<"$1") == "$(stamp_of "${@:2}")" ]]; }
seal() { stamp_of "${@:2}" >"$1"; }

VENV_STAMP=.venv/.complete
MINISTACK_STAMP=.local/ministack/.complete
NODE_STAMP=node_modules/.complete
python_current() { current $VENV_STAMP requirements-dev.txt && .venv/bin/python -c '' 2>/dev/null; }
ministack_current() { current $MINISTACK_STAMP requirements-ministack.txt && .local/ministack/bin/python -c '' 2>/dev/null; }
node_current() { current $NODE_STAMP package.json package-lock.json; }

find_python() {
  local candidate
  for candidate in ${PYTHON:-python3 python3.13 python3.12 python3.11}; do
    if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
      printf '%s' "$candidate"
      return
    fi
  done
  fail "Spillway needs Python 3.11 or newer, and ${PYTHON:-python3} is $("${PYTHON:-python3}" --version 2>/dev/null || echo missing). Install one, or name it: PYTHON=/path/to/python make setup"
}

# uv does not read pip's configuration: a machine whose pip uses another index means that one.
adopt_pip_index() {
  [[ -n ${UV_DEFAULT_INDEX:-}${UV_INDEX_URL:-}${UV_INDEX:-}${UV_CONFIG_FILE:-} ]] && return
  [[ -e ${XDG_CONFIG_HOME:-$HOME/.config}/uv/uv.toml || -e /etc/uv/uv.toml ]] && return
  local index
  index=$(.venv/bin/python -m pip config list 2>/dev/null | sed -nE "s/^.*\.index-url='(.*)'$/\1/p" | tail -n 1)
  [[ -z $index ]] || export UV_DEFAULT_INDEX=$index
}

make_venv() {
  local python
  python=$(find_python)
  rm -rf .venv
  "$python" -m venv .venv || {
    rm -rf .venv
    fail "$python cannot make a virtual environment in .venv (the lines above say why; on Debian and Ubuntu, install python3-venv). Then run make setup again."
  }
  local pin
  pin=$(mktemp)
  awk '/^uv==/ { on = 1 } on { print } on && !/\\$/ { exit }' requirements-dev.txt >"$pin"
  .venv/bin/python -m pip install -q --disable-pip-version-check --no-deps --require-hashes -r "$pin" || {
    rm -rf .venv "$pin"
    fail "pip could not install uv into .venv (the lines above say why). Check the network or the package index that pip is configured for, then run make setup again."
  }
  rm -f "$pin"
}

install_python() {
  echo "setup: Python packages into .venv"
  .venv/bin/uv --version >/dev/null 2>&1 && [[ $(.venv/bin/python -c 'import sys; print(sys.prefix)' 2>/dev/null) == "$PWD/.venv" ]] || make_venv
  rm -f $VENV_STAMP
  adopt_pip_index
  .venv/bin/uv pip install -q --python .venv/bin/python --require-hashes -r requirements-dev.txt ||
    fail "could not install the Python packages of requirements-dev.txt into .venv (the lines above say why). Check the network or the package index that uv is configured for, then run make setup again."
  seal $VENV_STAMP requirements-dev.txt
}

install_ministack() {
  echo "setup: MiniStack into .local/ministack"
  rm -rf .local/ministack
  mkdir -p .local
  adopt_pip_index
  { .venv/bin/uv venv -q --python .venv/bin/python .local/ministack &&
    .venv/bin/uv pip install -q --python .local/ministack/bin/python --require-hashes -r requirements-ministack.txt; } || {
    rm -rf .local/ministack
    fail "could not install MiniStack into .local/ministack (the lines above say why). Check the network or the package index that uv is configured for, then run make setup again."
  }
  seal $MINISTACK_STAMP requirements-ministack.txt
}

install_node() {
  echo "setup: Node tools into node_modules"
  rm -f $NODE_STAMP
  .venv/bin/python -m toolchain npm ci --no-progress --loglevel=error >&2 || {
    rm -rf node_modules
    fail "npm could not install the packages of package-lock.json into node_modules (the lines above say why). Check the network or the registry that npm is configured for, then run make setup again."
  }
  check_engine
  seal $NODE_STAMP package.json package-lock.json
}

# npm treats a failed optional package as success, but without the engine nothing local runs.
check_engine() {
  [[ -x node_modules/@dynoxide/linux-x64/dynoxide ]] && return
  command -v dynoxide >/dev/null && return
  if [[ $(uname -sm) == "Linux x86_64" ]]; then
    rm -rf node_modules
    fail "npm did not bring the DynamoDB engine @dynoxide/linux-x64 into node_modules. Check the registry that npm is configured for, then run make setup again."
  fi
  echo "setup: no DynamoDB engine for $(uname -sm) on npm; to run the local cloud, put dynoxide on PATH" >&2
}

main() {
  if python_current && ministack_current && node_current; then return; fi
  mkdir -p .local
  if command -v flock >/dev/null; then # two at once would trample on each other
    exec 9>.local/setup.lock
    flock 9
  fi
  python_current || install_python
  ministack_current || install_ministack
  node_current || install_node
}

main "$@"
