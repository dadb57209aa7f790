#!/usr/bin/env python3
"""Prints the rows of a Paimon table as canonical JSON lines, read by pypaimon or pypaimon-rust.

  read.py --impl pypaimon|rust --table <warehouse>/<db>.db/<table>
          [--branch B] [--snapshot N | --tag T] [-D key=value]... [--count] [--row-id]
          [--pushdown 'field=value' | 'field is null']... [--sweep N]

The lines are those of the Java peer's ``dump``, sorted by their UTF-8 bytes (see canon.py).

--pushdown gives the reader an equality predicate (several are and-ed) and prints what comes back,
filtered once more here, so a line missing against the same filter over a plain read means that a
statistic, a bucket, an index or the reader itself wrongly hid it.
--sweep does that for up to N values of every column, and for its nulls, and reports each predicate
that returns other rows than the plain read has; exit 3 when there is one.

Errors go to stderr as one line, exit 1.
"""

import argparse
import collections
import decimal
import json
import logging
import os
import sys

import pyarrow as pa

import canon


class Pypaimon:
    """pypaimon with its Rust routes off, so that it stays a second implementation."""

    def __init__(self, place, options):
        sys.modules["pypaimon_rust"] = None  # any import of it fails
        from pypaimon import CatalogFactory
        catalog = CatalogFactory.create({"warehouse": place.warehouse})
        table = catalog.get_table("%s.%s" % (place.db, place.object_name))
        off = {"read.native.enabled": "false", "scan.native-plan.enabled": "false"}
        self.table = table.copy({**options, **off})

    def read(self, wheres, columns=None):
        b = self.table.new_read_builder()
        if columns:
            b = b.with_projection(columns)
        if wheres:
            p = b.new_predicate_builder()
            b = b.with_filter(p.and_predicates(
                [p.is_null(w.field) if w.value is None else p.equal(w.field, w.value) for w in wheres]))
        plan = b.new_scan().plan()
        return b.new_read().to_arrow(plan.splits(), parallelism=1).to_batches()

    def count(self):
        return sum(x.num_rows for x in self.read([]))


class Rust:
    """pypaimon-rust: catalog, planning and reading are all paimon-rust's."""

    def __init__(self, place, options):
        from pypaimon_rust.datafusion import PaimonCatalog
        self.table = PaimonCatalog({"warehouse": place.warehouse}).get_table(
            (place.db, place.object_name))
        self.options = options

    def read(self, wheres, columns=None):
        b = self.table.new_read_builder(self.options or None)
        if columns:
            b = b.with_projection(columns)
        if wheres:
            kids = [{"method": "isNull", "field": w.field, "literals": []} if w.value is None else
                    {"method": "equal", "field": w.field, "literals": [w.value]} for w in wheres]
            b = b.with_filter(kids[0] if len(kids) == 1 else {"method": "and", "children": kids})
        plan = b.new_scan().plan()
        return b.new_read().read(plan.splits())

    def count(self):
        return sum(x.num_rows for x in self.read([]))


IMPLS = {"pypaimon": Pypaimon, "rust": Rust}


class Place:
    """Where a table is: <warehouse>/<db>.db/<table>, and the schema that a read of it shows."""

    def __init__(self, path, branch):
        self.path = os.path.abspath(path)
        parent, self.table = os.path.split(self.path)
        self.warehouse, db = os.path.split(parent)
        if not db.endswith(".db"):
            raise ValueError("want <warehouse>/<db>.db/<table>, got " + path)
        self.db = db[:-3]
        self.object_name = self.table + ("$branch_" + branch if branch else "")
        self.meta = os.path.join(self.path, "branch", "branch-" + branch) if branch else self.path
        if not os.path.isdir(os.path.join(self.meta, "schema")):
            raise FileNotFoundError("no table at " + self.meta)

    def types(self, options):
        """Column name to Paimon type, of the snapshot's schema when one is chosen, else the latest."""
        num = None
        if "scan.snapshot-id" in options:
            num = self._json("snapshot", "snapshot-" + options["scan.snapshot-id"])
        elif "scan.tag-name" in options:
            num = self._json("tag", "tag-" + options["scan.tag-name"])
        if num is not None:
            num = num["schemaId"]
        else:
            num = max(int(n[7:]) for n in os.listdir(os.path.join(self.meta, "schema"))
                      if n.startswith("schema-"))
        fields = self._json("schema", "schema-%d" % num)["fields"]
        return {f["name"]: canon.Type.parse(f["type"]) for f in fields}

    def _json(self, *names):
        with open(os.path.join(self.meta, *names), encoding="utf-8") as f:
            return json.load(f)


class Where:
    """field = value; text is the value as canon prints it, value None asks for nulls."""

    def __init__(self, field, text, value):
        self.field, self.text, self.value = field, text, value

    @staticmethod
    def parse(arg, types):
        if arg.lower().endswith(" is null"):
            field = arg[:-8].strip()
            Where._type(types, field)
            return Where(field, "null", None)
        field, eq, value = arg.partition("=")
        if not eq:
            raise ValueError("--pushdown wants field=value or 'field is null', got " + arg)
        t = Where._type(types, field)
        return Where.of(field, t, literal(value, t))

    @staticmethod
    def _type(types, field):
        if field not in types:
            raise ValueError("no column " + field)
        return types[field]

    @staticmethod
    def of(field, t, array):
        """From an array of one element."""
        if pa.types.is_timestamp(array.type) and array.type.unit == "ns":
            # both readers take a datetime only
            if array.view(pa.int64())[0].as_py() % 1000:
                raise ValueError("no reader takes a literal finer than a microsecond: %s = %s" % (
                    field, canon.texts(array, t)[0]))
            value = array.cast(pa.timestamp("us", array.type.tz))[0].as_py()
        else:
            value = array[0].as_py()
        return Where(field, canon.texts(array, t)[0], value)

    def __str__(self):
        return "%s %s" % (self.field, "is null" if self.value is None else "= " + self.text)


def literal(text, t):
    """An array holding the one value that the text stands for, in canon's form or a looser one."""
    ty = t.arrow()
    if ty is None:
        raise ValueError("no equality predicate on type " + t.root)
    if t.root in ("BINARY", "VARBINARY"):
        return pa.array([bytes.fromhex(text)], ty)
    if t.root in ("FLOAT", "DOUBLE"):
        return pa.array([float(text)], ty)
    if t.root == "BOOLEAN":
        return pa.array([{"true": True, "false": False}[text.lower()]], ty)
    if t.root.startswith("TIMESTAMP"):
        day, _, clock = text.rstrip("Z").replace(" ", "T").partition("T")
        days = pa.array([day]).cast(pa.date32()).view(pa.int32())[0].as_py()
        per = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}[ty.unit]
        return pa.array([(days * 86400 * 10**9 + nanos(clock)) // per], pa.int64()).view(ty)
    if t.root == "TIME":
        return pa.array([nanos(text) // 10**6], pa.int32()).view(ty)
    if t.root == "DECIMAL":
        return pa.array([decimal.Decimal(text)], ty)
    return pa.array([text], pa.string()).cast(ty)


def nanos(clock):
    """Of hh:mm[:ss[.fraction]]."""
    hms, _, frac = (clock or "00:00").partition(".")
    h, m, sec = (hms.split(":") + ["0"])[:3]
    return ((int(h) * 60 + int(m)) * 60 + int(sec)) * 10**9 + int(frac.ljust(9, "0")[:9])


class Rows:
    """What came back: the lines, and the texts of each column."""

    def __init__(self, batches, types):
        self.columns = collections.defaultdict(list)
        self.lines = []
        for b in batches:
            if b.num_rows == 0:
                continue
            names, cols = b.schema.names, []
            for n, c in zip(names, b.columns):
                try:
                    cols.append(canon.texts(c, types.get(n)))
                except canon.Mismatch as e:
                    raise canon.Mismatch("column %s: %s" % (n, e)) from None
                self.columns[n] += cols[-1]
            self.lines += canon.objects(b.num_rows, names, cols)

    def where(self, wheres):
        keep = self.lines
        if keep and wheres:
            ok = zip(*[self.columns[w.field] for w in wheres])
            want = tuple(w.text for w in wheres)
            keep = [line for line, have in zip(keep, ok) if have == want]
        return sorted(keep)


def picked(batches, field, t, n):
    """Up to n values of a column, spread evenly from its least to its greatest."""
    values = {}
    for b in batches:
        i = b.schema.get_field_index(field)
        if i < 0 or t.arrow() is None:
            continue
        col = b.column(i)
        for j, s in enumerate(canon.texts(col, t)):
            if s != "null" and s != '"NaN"' and s not in values:
                try:
                    values[s] = Where.of(field, t, col.slice(j, 1))
                except (ValueError, OverflowError):  # no literal in Python
                    pass
    values = sorted(values.values(), key=lambda w: w.value)
    if len(values) > n:
        values = [values[i * (len(values) - 1) // max(n - 1, 1)] for i in range(n)]
    return values


def sweep(impl, types, n):
    """Every column, up to n values of it and null; returns how many were tried and the wrong answers."""
    batches = impl.read([])
    rows = Rows(batches, types)
    tried, wrong = 0, []
    for field, t in types.items():
        for w in [Where(field, "null", None)] + picked(batches, field, t, n):
            tried += 1
            want = rows.where([w])
            try:
                got = Rows(impl.read([w]), types).where([w])
            except BaseException as e:  # a Rust panic is a BaseException
                if isinstance(e, KeyboardInterrupt):
                    raise
                wrong.append("%s: %s" % (w, reason(e)))
                continue
            if got != want:
                wrong.append("%s: %d rows, the plain read has %d" % (w, len(got), len(want)))
    return tried, wrong


def reason(e):
    text = " ".join(str(e).split()) or type(e).__name__
    return "%s: %s" % (type(e).__name__, text[:600])


def reader(impl, table, branch=None, snapshot=None, tag=None, options=()):
    """The reader of a table, and the types of the columns it shows; options are k=v texts."""
    chosen = {}
    for o in options:
        k, eq, v = o.partition("=")
        if not eq:
            raise ValueError("-D wants k=v, got " + o)
        chosen[k] = v
    if snapshot is not None:
        chosen["scan.snapshot-id"] = str(snapshot)
    if tag is not None:
        chosen["scan.tag-name"] = tag
    place = Place(table, branch)
    return IMPLS[impl](place, chosen), place.types(chosen)


def main(argv):
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--impl", choices=sorted(IMPLS), required=True)
    p.add_argument("--table", required=True)
    p.add_argument("--branch")
    at = p.add_mutually_exclusive_group()
    at.add_argument("--snapshot", type=int)
    at.add_argument("--tag")
    p.add_argument("-D", action="append", default=[], metavar="k=v", dest="options")
    p.add_argument("--count", action="store_true")
    p.add_argument("--row-id", action="store_true", help="add _ROW_ID and _SEQUENCE_NUMBER")
    p.add_argument("--pushdown", action="append", default=[], metavar="'field=value'")
    p.add_argument("--sweep", type=int, metavar="N")
    a = p.parse_args(argv)

    logging.basicConfig(level=logging.WARNING, stream=sys.stderr)
    impl, types = reader(a.impl, a.table, a.branch, a.snapshot, a.tag, a.options)
    if a.sweep is not None:
        tried, wrong = sweep(impl, types, a.sweep)
        print("".join(w + "\n" for w in wrong) + "%d predicates, %d wrong" % (tried, len(wrong)))
        return 3 if wrong else 0
    wheres = [Where.parse(s, types) for s in a.pushdown]
    if a.count and not wheres:
        print(impl.count())
        return 0
    columns = list(types) + ["_ROW_ID", "_SEQUENCE_NUMBER"] if a.row_id else None
    lines = Rows(impl.read(wheres, columns), types).where(wheres)
    if a.count:
        print(len(lines))
    else:
        out = "".join(s + "\n" for s in lines).encode("utf-8")
        sys.stdout.buffer.write(out)
        sys.stdout.buffer.flush()
    return 0


if __name__ == "__main__":
    try:
        code = main(sys.argv[1:])
    except SystemExit:
        raise
    except BaseException as e:  # a Rust panic is a BaseException
        sys.stderr.write("read.py: %s\n" % reason(e))
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # do not wait for the readers' worker threads
