#!/bin/sh
# demo.sh TABLECTL: compacts one partition of a copy of the sample table and shows the table before and after.
set -eu
tablectl=$1
here=$(cd "$(dirname "$0")" && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cp -r "$here/tables/append-partitioned/wh.db" "$dir/demo.db"
chmod -R u+w "$dir"
show() { echo; echo "\$ tablectl $*"; "$tablectl" "$@"; }

export TABLECTL_WAREHOUSE="$dir"
show files demo.t
show compact demo.t --where p=a --commit-user demo
show files demo.t
show snapshots demo.t
echo
echo "Running it again changes nothing:"
show compact demo.t --where p=a --commit-user demo
