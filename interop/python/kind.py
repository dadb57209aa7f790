#!/usr/bin/env python3
"""What kind of table this is, as a set of words; and whether a reader is known not to read it.

  kind.py TABLE                    the words, one a line
  kind.py TABLE skip.tsv IMPL      action and reason of the first line of skip.tsv that holds, or exit 1

A line of skip.tsv is IMPL, words that must all hold, action ("skip", or options to read with), reason,
verdict, separated by tabs. The words:

  pk, append                 primary-key table or not
  opt:KEY=VALUE              each option
  engine:E bucket:MODE       of a primary-key table; fixed, dynamic, postpone, unaware
  agg, agg:F                 aggregate functions; also agg:ignore-retract, agg:sequence-group
  type:ROOT                  each column or nested type; type:ns finer than a microsecond,
                             type:inner-not-null a NOT NULL inside a nested type, type:map-of-row
  part:ROOT                  partition columns
  manifest:FORMAT            manifest:unread when the manifests are not Avro; what follows is then absent
  manifest:old               manifest entries, live or not, older than _VALUE_STATS_COLS
  file:EXT                   live data files
  cast:A>B                   live files of an older schema where a column had another type
  rowid:none                 row tracking, and a live file without a first row id
  merge, settled             some bucket of a primary-key table has several sorted runs, or none has
  dv                         deletion vectors in the snapshot
  empty                      no snapshot
"""

import json
import os
import re
import sys

import fastavro


def load(*path):
    with open(os.path.join(*path), encoding="utf-8") as f:
        return json.load(f)


def ids(folder, prefix):
    if not os.path.isdir(folder):
        return []
    return sorted(int(n[len(prefix):]) for n in os.listdir(folder)
                  if n.startswith(prefix) and n[len(prefix):].isdigit())


def types(node, words, inner=False):
    """Adds the words of a type; returns its root."""
    text = node if isinstance(node, str) else node["type"]
    m = re.match(r"([A-Z_]+)\s*(?:\((\d+))?(.*)", text.upper())
    root = "TIMESTAMP_LTZ" if "LOCAL TIME ZONE" in m.group(3) else m.group(1)
    words.add("type:" + root)
    if root.startswith("TIMESTAMP") and m.group(2) and int(m.group(2)) > 6:
        words.add("type:ns")
    if inner and text.upper().rstrip().endswith("NOT NULL"):
        words.add("type:inner-not-null")
    if isinstance(node, dict):
        for k in ("element", "key", "value"):
            if k in node and types(node[k], words, True) == "ROW" and k == "value":
                words.add("type:map-of-row")
        for f in node.get("fields", []):
            types(f["type"], words, True)
    return root


def records(path):
    with open(path, "rb") as f:
        return list(fastavro.reader(f))


def live(table, snapshot, words):
    """Live data files by (partition, bucket, level, name); adds the words of manifest entries."""
    files, gone = {}, set()
    for key in ("baseManifestList", "deltaManifestList"):
        if not snapshot.get(key):
            continue
        for m in records(os.path.join(table, "manifest", snapshot[key])):
            for e in records(os.path.join(table, "manifest", m["_FILE_NAME"])):
                f = e["_FILE"]
                if "_VALUE_STATS_COLS" not in f:
                    words.add("manifest:old")
                k = (bytes(e["_PARTITION"]), e["_BUCKET"], f["_LEVEL"], f["_FILE_NAME"])
                if e["_KIND"] == 0:
                    files[k] = f
                else:
                    gone.add(k)
    return {k: f for k, f in files.items() if k not in gone}


def chosen(meta, snapshot, tag):
    """The snapshot to read, the latest unless one is named; None when there is none."""
    if tag is not None:
        return load(meta, "tag", "tag-" + tag)
    if snapshot is None:
        snapshot = max(ids(os.path.join(meta, "snapshot"), "snapshot-"), default=None)
    return None if snapshot is None else load(meta, "snapshot", "snapshot-%d" % snapshot)


def kind(table, branch=None, snapshot=None, tag=None):
    meta = os.path.join(table, "branch", "branch-" + branch) if branch else table
    schemas = {n: load(meta, "schema", "schema-%d" % n)
               for n in ids(os.path.join(meta, "schema"), "schema-")}
    schema = schemas[max(schemas)]
    opts = schema.get("options") or {}
    words = {"opt:%s=%s" % kv for kv in opts.items()}
    pk = bool(schema.get("primaryKeys"))
    words.add("pk" if pk else "append")
    if pk:
        words.add("engine:" + opts.get("merge-engine", "deduplicate"))
    for k, v in opts.items():
        if k.endswith("aggregate-function"):
            words |= {"agg", "agg:" + v}
        for tail in ("sequence-group", "ignore-retract"):
            if k.startswith("fields.") and k.endswith("." + tail):
                words.add("agg:" + tail)
    bucket = int(opts.get("bucket", "-1"))
    words.add("bucket:" + ("fixed" if bucket > 0 else "postpone" if bucket == -2 else
                           "dynamic" if pk else "unaware"))
    roots = {}
    for f in schema["fields"]:
        roots[f["id"]] = root = types(f["type"], words)
        if f["name"] in (schema.get("partitionKeys") or []):
            words.add("part:" + root)
    words.add("manifest:" + opts.get("manifest.format", "avro"))
    snapshot = chosen(meta, snapshot, tag)
    if snapshot is None:
        words.add("empty")
        return words
    try:
        if snapshot.get("indexManifest"):
            for e in records(os.path.join(table, "manifest", snapshot["indexManifest"])):
                if e["_INDEX_TYPE"] == "DELETION_VECTORS":
                    words.add("dv")
        files = live(table, snapshot, words)
    except Exception:  # not Avro
        words.add("manifest:unread")
        return words
    runs = {}
    for (part, b, level, name), f in files.items():
        words.add("file:" + name.rsplit(".", 1)[-1])
        runs.setdefault((part, b), set()).add((level, name if level == 0 else ""))
        if opts.get("row-tracking.enabled") == "true" and f.get("_FIRST_ROW_ID") is None:
            words.add("rowid:none")
        for old in schemas[f["_SCHEMA_ID"]]["fields"]:
            was = types(old["type"], set())
            if old["id"] in roots and was != roots[old["id"]]:
                words.add("cast:%s>%s" % (was, roots[old["id"]]))
    if pk:
        words.add("merge" if any(len(r) > 1 for r in runs.values()) else "settled")
    return words


def rules(path):
    with open(path, encoding="utf-8") as f:
        return [line.rstrip("\n").split("\t") for line in f if line.strip() and not line.startswith("#")]


def rule(words, impl, lines):
    for line in lines:
        if line[0] == impl and set(line[1].split()) <= words:
            return line
    return None


def main(argv):
    words = kind(argv[0])
    if len(argv) == 1:
        print("\n".join(sorted(words)))
        return 0
    r = rule(words, argv[2], rules(argv[1]))
    if r is None:
        return 1
    print("%s\t%s" % (r[2], r[3]))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
