#!/usr/bin/env python3
"""Reads many tables with one reader in one process, because starting Python for each is slow.

  batch.py pypaimon|rust < jobs

A job is a JSON object a line:

  table              <warehouse>/<db>.db/<table>
  branch             a branch of it, optional
  snapshot, tag      what to read, the latest snapshot unless one of them is given
  sweep              instead of the rows, the wrong answers to pushed down predicates: up to that
                     many values of every column (read.py --sweep)
  out                the file to write, one canonical row or one wrong answer a line

For every job one JSON object a line is printed, in order: {"status": "ok", "detail": ""},
{"status": "skipped", "detail": reason} when skip.tsv says that the reader cannot read this kind of
table, or {"status": "failed", "detail": error}. A failed job does not keep the next from being read.
"""

import json
import logging
import os
import sys

import kind
import read

SKIP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "skip.tsv")


def run(impl, job, rules):
    """Does one job; returns its status and detail."""
    at = {k: job.get(k) for k in ("branch", "snapshot", "tag")}
    options = []
    rule = kind.rule(kind.kind(job["table"], **at), impl, rules)
    if rule is not None:
        _, _, action, reason = rule[:4]
        if action == "skip":
            return "skipped", reason
        options = action.split()[1::2]  # -D k=v ...
    table, types = read.reader(impl, job["table"], options=options, **at)
    if job.get("sweep"):
        lines = read.sweep(table, types, job["sweep"])[1]
    else:
        lines = read.Rows(table.read([]), types).where([])
    with open(job["out"], "w", encoding="utf-8", newline="\n") as f:
        f.writelines(line + "\n" for line in lines)
    return "ok", ""


def main(impl):
    logging.basicConfig(level=logging.ERROR, stream=sys.stderr)
    rules = kind.rules(SKIP)
    for line in sys.stdin:
        try:
            status, detail = run(impl, json.loads(line), rules)
        except KeyboardInterrupt:
            raise
        except BaseException as e:  # a Rust panic is a BaseException
            status, detail = "failed", read.reason(e)
        print(json.dumps({"status": status, "detail": detail}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
    sys.stdout.flush()
    os._exit(0)  # do not wait for the readers' worker threads
