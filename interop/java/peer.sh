#!/usr/bin/env bash
# Runs the Java peer (README.md), building it first when it is not built or older than its sources.
#   peer.sh build         only builds
#   peer.sh CMD ...       JAVA_OPTS is honoured (default -Xmx1g)
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
build="${XDG_CACHE_HOME:-$HOME/.cache}/tablectl-interop/java"
main="$build/target/classes/peer/Main.class"
mkdir -p "$build"
(
  flock 9
  if [ ! -s "$build/cp.txt" ] || [ ! -f "$main" ] || [ -n "$(find "$here/src" "$here/pom.xml" -newer "$main" -print -quit)" ]; then
    rm -rf "$build/src" "$build/target"
    cp -r "$here/src" "$here/pom.xml" "$build/" && chmod -R u+w "$build/src" "$build/pom.xml"
    cd "$build"
    goals=(compile dependency:build-classpath -Dmdep.outputFile=cp.txt)
    { mvn -q -o "${goals[@]}" || mvn -q "${goals[@]}"; } >build.log 2>&1 || { cat build.log >&2; exit 1; }
    touch "$main"
  fi
) 9>"$build/.lock"
[ "${1:-}" != build ] || exit 0
# the time zone keeps creation times comparable
# shellcheck disable=SC2086
exec java ${JAVA_OPTS:--Xmx1g} -Duser.timezone=UTC -Dfile.encoding=UTF-8 \
  --add-opens=java.base/java.nio=ALL-UNNAMED \
  -cp "$build/target/classes:$(cat "$build/cp.txt")" peer.Main "$@"
