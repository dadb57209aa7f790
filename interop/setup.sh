#!/usr/bin/env bash
# Prepares the peers the interop tests drive: the Java peer (built with Maven) and the Python readers (a
# virtual environment with requirements.txt). Safe to run again; it does only what is missing.
# Everything goes under ${XDG_CACHE_HOME:-~/.cache}/tablectl-interop. Missing Debian packages are installed
# when it runs as root.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
cache="${XDG_CACHE_HOME:-$HOME/.cache}/tablectl-interop"

fail() { echo "setup.sh: $*" >&2; exit 1; }

# java_release prints the major release of javac, or 0
java_release() { javac -version 2>/dev/null | sed -nE 's/^javac ([0-9]+).*/\1/p' | grep . || echo 0; }

have_java() { [ "$(java_release)" -ge 11 ]; }
have_maven() { command -v mvn >/dev/null; }
have_python() { python3 -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }

missing=()
have_java || missing+=(default-jdk-headless)
have_maven || missing+=(maven)
have_python || missing+=(python3 python3-venv)
if [ ${#missing[@]} -gt 0 ]; then
  [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null ||
    fail "install ${missing[*]} first (not root on a Debian system, so not done here)"
  apt-get update -q
  DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${missing[@]}"
  have_java || fail "no javac of release 11 or later even after installing ${missing[*]}"
  have_maven || fail "no mvn even after installing ${missing[*]}"
  have_python || fail "no python3 of release 3.11 or later with venv even after installing ${missing[*]}"
fi

echo "java peer: building"
"$here/java/peer.sh" build

venv="$cache/python"
if ! cmp -s "$here/python/requirements.txt" "$venv/installed.txt"; then
  echo "python readers: installing into $venv"
  python3 -m venv --clear "$venv"
  "$venv/bin/python" -m pip install -q --disable-pip-version-check --no-deps -r "$here/python/requirements.txt"
  "$venv/bin/python" -m pip check --disable-pip-version-check
  cp "$here/python/requirements.txt" "$venv/installed.txt"
fi
echo "ready"
