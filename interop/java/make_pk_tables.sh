# The cases with primary keys, but for those that make_tables.sh makes itself, which reads this file and has
# the commands that it uses.
# shellcheck shell=bash


if begin pk-dedup-partitioned-deletes "Primary-key table partitioned by p, bucket=2, deletes; in p=c every row is deleted; p=d has deletes only."; then
spec <<X
{"fields":[{"name":"p","type":"STRING NOT NULL"},$PKF],"partitionKeys":["p"],"primaryKeys":["p","k"],"options":{"write-only":"true","bucket":"2"}}
X
MINOR=1
pp() { sed "s/\"k\":/\"p\":\"$1\",\"k\":/"; }
{ pk_rows 1 12 one | pp a; pk_rows 1 12 one | pp b; pk_rows 1 4 one | pp c; } | rows
{ pk_rows 5 14 two | pp a; pk_rows 1 4 two -D | pp b; pk_rows 1 4 two -D | pp c; pk_rows 1 3 x -D | pp d; } | rows
{ pk_rows 6 6 three -D | pp a; pk_rows 2 2 back | pp b; } | rows
finish; fi

if begin pk-dedup-sequence-field "Primary-key table with sequence.field=ts, rows out of order: the larger ts wins, null ts loses, equal ts goes to the later write, late deletes lose."; then
spec <<X
{"fields":[$PKF,{"name":"ts","type":"TIMESTAMP(3)"}],"primaryKeys":["k"],"options":{"write-only":"true","bucket":"1","sequence.field":"ts"}}
X
MINOR=1
sq() { echo "{\"_kind\":\"$1\",\"k\":$2,\"v\":\"$3\",\"n\":$2,\"ts\":$4}"; }
{ sq +I 1 a '"2024-01-05T00:00:00.000"'; sq +I 2 a '"2024-01-05T00:00:00.000"'; sq +I 3 a null; sq +I 4 a '"2024-01-05T00:00:00.000"'; sq +I 5 a '"2024-01-05T00:00:00.000"'; sq +I 6 a '"2024-01-05T00:00:00.000"'; } | rows
{ sq +I 1 late '"2024-01-01T00:00:00.000"'; sq +I 2 newer '"2024-01-09T00:00:00.000"'; sq +I 3 not-null '"2020-01-01T00:00:00.000"'; sq +I 4 null-ts null; sq -D 5 gone '"2024-01-06T00:00:00.000"'; sq -D 6 late '"2024-01-02T00:00:00.000"'; } | rows
{ sq +I 1 tie '"2024-01-05T00:00:00.000"'; sq +I 5 before-delete '"2024-01-05T12:00:00.000"'; sq +I 7 x '"2024-01-05T00:00:00.000"'; } | rows
finish; fi

if begin pk-dedup-sequence-field-desc "As pk-dedup-sequence-field with two sequence fields and sequence.field.sort-order=descending."; then
spec <<X
{"fields":[$PKF,{"name":"s1","type":"INT"},{"name":"s2","type":"STRING"}],"primaryKeys":["k"],"options":{"write-only":"true","bucket":"1","sequence.field":"s1,s2","sequence.field.sort-order":"descending"}}
X
MINOR=1
s2() { echo "{\"k\":$1,\"v\":\"$2\",\"n\":0,\"s1\":$3,\"s2\":$4}"; }
{ s2 1 a 5 '"m"'; s2 2 a 5 '"m"'; s2 3 a null null; s2 4 a 5 '"m"'; } | rows; { s2 1 b 4 '"m"'; s2 2 b 6 '"m"'; s2 3 b 1 '"a"'; s2 4 b 5 '"a"'; } | rows; { s2 1 c 4 '"z"'; s2 4 c null '"q"'; } | rows
finish; fi

if begin pk-composite-key-types "Primary key of ten types (bigint, string, date, decimals, timestamps, boolean, binary, tinyint, double): the order of key records and the min/max keys."; then
spec <<X
{"fields":[{"name":"v","type":"STRING"},{"name":"kl","type":"BIGINT NOT NULL"},{"name":"ks","type":"STRING NOT NULL"},{"name":"kd","type":"DATE NOT NULL"},{"name":"kdec","type":"DECIMAL(10,2) NOT NULL"},{"name":"kbig","type":"DECIMAL(30,5) NOT NULL"},{"name":"kt","type":"TIMESTAMP(6) NOT NULL"},{"name":"kb","type":"BOOLEAN NOT NULL"},{"name":"kbin","type":"BYTES NOT NULL"},{"name":"k8","type":"TINYINT NOT NULL"},{"name":"kf","type":"DOUBLE NOT NULL"}],
 "primaryKeys":["kl","ks","kd","kdec","kbig","kt","kb","kbin","k8","kf"],"options":{"write-only":"true","bucket":"1"}}
X
MINOR=1
ck() { cat <<X
{"v":"$1","kl":-1,"ks":"a","kd":"2024-01-01","kdec":"1.00","kbig":"1.5","kt":"2024-01-01T00:00:00.000001","kb":false,"kbin":"00","k8":1,"kf":1.5}
{"v":"$1","kl":5,"ks":"","kd":"1950-01-01","kdec":"-1.00","kbig":"-12345678901234567890.5","kt":"1950-01-01T00:00:00.000001","kb":true,"kbin":"","k8":-1,"kf":"-1.5"}
{"v":"$1","kl":5,"ks":"é","kd":"2024-01-01","kdec":"1.00","kbig":"1.5","kt":"2024-01-01T00:00:00.000001","kb":false,"kbin":"ff","k8":1,"kf":1.5}
{"v":"$1","kl":5,"ks":"😀","kd":"2024-01-01","kdec":"1.00","kbig":"1.5","kt":"2024-01-01T00:00:00.000001","kb":false,"kbin":"7f","k8":1,"kf":1.5}
{"v":"$1","kl":5,"ks":"\uff5e","kd":"2024-01-01","kdec":"1.00","kbig":"1.5","kt":"2024-01-01T00:00:00.000001","kb":false,"kbin":"7f","k8":1,"kf":1.5}
{"v":"$1","kl":5,"ks":"a","kd":"2024-01-01","kdec":"1.00","kbig":"12345678901234567890.5","kt":"2024-01-01T00:00:00.000001","kb":false,"kbin":"7f","k8":1,"kf":1.5}
{"v":"$1","kl":5,"ks":"a","kd":"2024-01-01","kdec":"1.00","kbig":"-1.5","kt":"2024-01-01T00:00:00.000001","kb":true,"kbin":"7f","k8":1,"kf":"NaN"}
{"v":"$1","kl":5,"ks":"a long string that is over eight bytes","kd":"2024-01-01","kdec":"1.00","kbig":"1.5","kt":"2024-01-01T00:00:00.000001","kb":false,"kbin":"7fff","k8":1,"kf":1.5}
{"v":"$1","kl":9223372036854775807,"ks":"z","kd":"9999-12-31","kdec":"99999999.99","kbig":"0","kt":"9999-12-31T23:59:59.999999","kb":true,"kbin":"80","k8":127,"kf":"+Inf"}
X
}
ck one | rows; ck two | sed -n '2,6p' | rows; { ck three | sed -n '1p'; ck three | sed -n '9p' | sed 's/{/{"_kind":"-D",/'; } | rows
finish; fi

if begin pk-all-types "Primary-key table with every type as value; later runs overwrite rows with nulls and extremes."; then
spec <<X
{"fields":[{"name":"id","type":"INT NOT NULL"},$ALL_TYPES],"primaryKeys":["id"],"options":{"write-only":"true","bucket":"1"}}
X
all_rows 1 6 | rows; { nulls 5; nulls 7; } | rows; extremes 6 | rows
finish; fi

if begin pk-partial-update "merge-engine=partial-update, ignore-delete: nulls do not overwrite; one row never gets a value in one column."; then
spec <<X
{"fields":[{"name":"k","type":"INT NOT NULL"},{"name":"a","type":"STRING"},{"name":"b","type":"INT"},{"name":"c","type":"ARRAY<INT>"}],"primaryKeys":["k"],"options":{"write-only":"true","bucket":"1","merge-engine":"partial-update","partial-update.ignore-delete":"true"}}
X
MINOR=1
rows <<'X'
{"k":1,"a":"a1","b":null,"c":[1]}
{"k":2,"a":null,"b":20,"c":null}
{"k":3,"a":"a3","b":30,"c":null}
X
rows <<'X'
{"k":1,"a":null,"b":11,"c":null}
{"k":2,"a":"a2","b":null,"c":[]}
{"_kind":"-D","k":3,"a":"a3","b":30,"c":null}
{"k":4,"a":null,"b":null,"c":null}
X
rows <<'X'
{"k":1,"a":"A1","b":null,"c":[1,2]}
{"k":1,"a":null,"b":111,"c":null}
X
finish; fi

if begin pk-partial-update-sequence-group "partial-update with two sequence groups (one of two fields), an aggregate inside a group, a default aggregate, and null sequence values."; then
spec <<X
{"fields":[{"name":"k","type":"INT NOT NULL"},{"name":"g1","type":"INT"},{"name":"a","type":"STRING"},{"name":"s","type":"INT"},{"name":"g2","type":"INT"},{"name":"g3","type":"TIMESTAMP(3)"},{"name":"b","type":"STRING"},{"name":"x","type":"INT"}],"primaryKeys":["k"],
 "options":{"write-only":"true","bucket":"1","merge-engine":"partial-update","fields.g1.sequence-group":"a,s","fields.g2,g3.sequence-group":"b","fields.s.aggregate-function":"sum"}}
X
MINOR=1
rows <<'X'
{"k":1,"g1":5,"a":"a5","s":5,"g2":1,"g3":"2024-01-01T00:00:00","b":"b1","x":1}
{"k":2,"g1":5,"a":"a5","s":5,"g2":1,"g3":"2024-01-01T00:00:00","b":"b1","x":1}
{"k":3,"g1":null,"a":"ignored","s":5,"g2":null,"g3":null,"b":"ignored","x":null}
X
rows <<'X'
{"k":1,"g1":4,"a":"a4","s":4,"g2":1,"g3":"2024-01-02T00:00:00","b":"b2","x":null}
{"k":2,"g1":6,"a":null,"s":6,"g2":0,"g3":"2025-01-01T00:00:00","b":"late","x":2}
{"k":3,"g1":1,"a":"a1","s":1,"g2":1,"g3":null,"b":"b-null-g3","x":3}
X
rows <<'X'
{"k":1,"g1":null,"a":"no","s":100,"g2":2,"g3":null,"b":null,"x":9}
{"_kind":"-D","k":2,"g1":7,"a":"z","s":1,"g2":null,"g3":null,"b":null,"x":null}
X
finish; fi

if begin pk-partial-update-remove-record "partial-update with partial-update.remove-record-on-delete=true: a delete removes the row, later writes start over."; then
spec <<X
{"fields":[{"name":"k","type":"INT NOT NULL"},{"name":"a","type":"STRING"},{"name":"b","type":"INT"}],"primaryKeys":["k"],"options":{"write-only":"true","bucket":"1","merge-engine":"partial-update","partial-update.remove-record-on-delete":"true"}}
X
MINOR=1
rows <<'X'
{"k":1,"a":"a1","b":1}
{"k":2,"a":"a2","b":2}
{"k":3,"a":"a3","b":3}
X
rows <<'X'
{"_kind":"-D","k":1,"a":null,"b":null}
{"_kind":"-D","k":2,"a":null,"b":null}
{"k":3,"a":null,"b":33}
X
rows <<'X'
{"k":2,"a":null,"b":22}
X
finish; fi

AGG='{"name":"k","type":"INT NOT NULL"},{"name":"sum_i","type":"INT"},{"name":"sum_d","type":"DECIMAL(12,2)"},{"name":"max_","type":"BIGINT"},{"name":"min_","type":"DATE"},{"name":"lv","type":"STRING"},{"name":"lnn","type":"STRING"},{"name":"fv","type":"STRING"},{"name":"fnn","type":"STRING"},{"name":"ba","type":"BOOLEAN"},{"name":"bo","type":"BOOLEAN"},{"name":"prod","type":"DOUBLE"},{"name":"la","type":"STRING"},{"name":"col","type":"ARRAY<INT>"},{"name":"cold","type":"ARRAY<STRING>"},{"name":"mm","type":"MAP<STRING,INT>"},{"name":"nu","type":"ARRAY<ROW<id INT, s STRING>>"},{"name":"dflt","type":"STRING"}'
AGGO='"merge-engine":"aggregation","fields.sum_i.aggregate-function":"sum","fields.sum_d.aggregate-function":"sum","fields.max_.aggregate-function":"max","fields.min_.aggregate-function":"min","fields.lv.aggregate-function":"last_value","fields.lnn.aggregate-function":"last_non_null_value","fields.fv.aggregate-function":"first_value","fields.fnn.aggregate-function":"first_non_null_value","fields.ba.aggregate-function":"bool_and","fields.bo.aggregate-function":"bool_or","fields.prod.aggregate-function":"product","fields.la.aggregate-function":"listagg","fields.la.list-agg-delimiter":";","fields.col.aggregate-function":"collect","fields.cold.aggregate-function":"collect","fields.cold.distinct":"true","fields.mm.aggregate-function":"merge_map","fields.nu.aggregate-function":"nested_update","fields.nu.nested-key":"id"'
if begin pk-aggregation "merge-engine=aggregation with sum, max, min, last/first(_non_null)_value, bool_and/or, product, listagg, collect (distinct too), merge_map, nested_update, and a column with no function."; then
spec <<X
{"fields":[$AGG],"primaryKeys":["k"],"options":{"write-only":"true","bucket":"1",$AGGO}}
X
MINOR=1
rows <<'X'
{"k":1,"sum_i":1,"sum_d":"1.50","max_":10,"min_":"2024-05-05","lv":"l1","lnn":"n1","fv":null,"fnn":null,"ba":true,"bo":false,"prod":"2","la":"x","col":[1,2],"cold":["a"],"mm":[["a",1],["b",2]],"nu":[{"id":1,"s":"one"}],"dflt":"d1"}
{"k":2,"sum_i":null,"sum_d":null,"max_":null,"min_":null,"lv":null,"lnn":null,"fv":null,"fnn":null,"ba":null,"bo":null,"prod":null,"la":null,"col":null,"cold":null,"mm":null,"nu":null,"dflt":null}
{"k":3,"sum_i":2147483647,"sum_d":"9999999999.99","max_":1,"min_":"2024-01-01","lv":"a","lnn":"a","fv":"a","fnn":"a","ba":true,"bo":true,"prod":"0.5","la":"","col":[],"cold":[],"mm":[],"nu":[],"dflt":"x"}
X
rows <<'X'
{"k":1,"sum_i":2,"sum_d":"2.25","max_":5,"min_":"2024-04-05","lv":null,"lnn":null,"fv":"f2","fnn":"f2","ba":false,"bo":true,"prod":"3","la":"y","col":[2,3],"cold":["a","b"],"mm":[["b",20],["c",3]],"nu":[{"id":1,"s":"uno"},{"id":2,"s":"two"}],"dflt":null}
{"k":2,"sum_i":7,"sum_d":"7.00","max_":7,"min_":"2024-07-07","lv":"l","lnn":"l","fv":"f","fnn":"f","ba":true,"bo":false,"prod":"7","la":"q","col":[7],"cold":["q"],"mm":[["q",7]],"nu":[{"id":7,"s":"q"}],"dflt":"d"}
X
rows <<'X'
{"k":1,"sum_i":null,"sum_d":null,"max_":null,"min_":null,"lv":"l3","lnn":"n3","fv":"f3","fnn":"f3","ba":null,"bo":null,"prod":null,"la":null,"col":null,"cold":null,"mm":null,"nu":[{"id":2,"s":null}],"dflt":"d3"}
{"k":3,"sum_i":0,"sum_d":"0.00","max_":-1,"min_":"2024-01-02","lv":"b","lnn":"b","fv":"b","fnn":"b","ba":true,"bo":false,"prod":"4","la":"tail","col":[1],"cold":["z","z"],"mm":[["k",null]],"nu":[{"id":1,"s":"s"}],"dflt":"y"}
X
finish; fi

if begin pk-aggregation-retract "aggregation with deletes and -U/+U: sum and collect retract, max has ignore-retract, one column with aggregation.remove-record-on-delete off."; then
spec <<X
{"fields":[{"name":"k","type":"INT NOT NULL"},{"name":"s","type":"INT"},{"name":"c","type":"ARRAY<INT>"},{"name":"m","type":"INT"},{"name":"p","type":"DOUBLE"},{"name":"lv","type":"STRING"}],"primaryKeys":["k"],
 "options":{"write-only":"true","bucket":"1","merge-engine":"aggregation","fields.s.aggregate-function":"sum","fields.c.aggregate-function":"collect","fields.m.aggregate-function":"max","fields.m.ignore-retract":"true","fields.p.aggregate-function":"product","fields.lv.aggregate-function":"last_value"}}
X
MINOR=1
rows <<'X'
{"k":1,"s":10,"c":[1,2,2],"m":5,"p":"4","lv":"a"}
{"k":2,"s":10,"c":[1],"m":5,"p":"4","lv":"a"}
X
rows <<'X'
{"_kind":"-U","k":1,"s":4,"c":[2],"m":9,"p":"2","lv":"b"}
{"_kind":"+U","k":1,"s":1,"c":[3],"m":2,"p":"3","lv":"c"}
{"_kind":"-D","k":2,"s":10,"c":[1],"m":5,"p":"4","lv":"a"}
{"_kind":"-D","k":3,"s":10,"c":[1],"m":5,"p":"4","lv":"a"}
X
finish; fi

if begin pk-first-row "merge-engine=first-row, changelog-producer none: the first write of a key stays; level 0 is invisible to reads before compaction."; then
spec <<X
{"fields":[$PKF],"primaryKeys":["k"],"options":{"write-only":"true","bucket":"1","merge-engine":"first-row"}}
X
MINOR=1
pk_rows 1 8 base | rows; step compact --table wh.db/t --full; pk_rows 5 12 later | rows; pk_rows 10 14 last | rows
finish; fi

if begin pk-first-row-lookup "As pk-first-row with changelog-producer=lookup: compaction writes the changelog of the newly visible keys."; then
spec <<X
{"fields":[$PKF],"primaryKeys":["k"],"options":{"write-only":"true","bucket":"1","merge-engine":"first-row","changelog-producer":"lookup"}}
X
MINOR=1
pk_rows 1 8 base | rows; step compact --table wh.db/t --full; pk_rows 5 12 later | rows; pk_rows 10 14 last | rows
finish; fi

if begin pk-deletion-vectors-existing "As pk-deletion-vectors, but a non-full compaction has already put vectors on the level-5 file; then two more level-0 runs, one deleting already deleted keys."; then
spec <<X
{"fields":[{"name":"p","type":"INT NOT NULL"},$PKF],"partitionKeys":["p"],"primaryKeys":["p","k"],"options":{"write-only":"true","bucket":"1","deletion-vectors.enabled":"true","num-sorted-run.compaction-trigger":"3","num-levels":"6"}}
X
MINOR=1
p1() { sed 's/"k":/"p":1,"k":/'; }
awk 'BEGIN{srand(3);for(i=1;i<=400;i++){s="";for(j=0;j<6;j++)s=s sprintf("%04x",int(rand()*65536));printf "{\"p\":1,\"k\":%d,\"v\":\"%s\",\"n\":%d}\n",i,s,i}}' | rows
step compact --table wh.db/t --full
{ pk_rows 5 8 upd; pk_rows 1 2 x -D; } | p1 | rows; pk_rows 30 32 upd | p1 | rows; pk_rows 50 50 upd | p1 | rows
step compact --table wh.db/t
{ pk_rows 5 5 again; pk_rows 1 1 gone -D; pk_rows 60 61 more; } | p1 | rows; pk_rows 2 2 back | p1 | rows
finish; fi

if begin pk-deletion-vectors-partitioned "Deletion vectors over two partitions and bucket=2, vectors in several buckets, then level-0 rows in only one."; then
spec <<X
{"fields":[{"name":"p","type":"INT NOT NULL"},$PKF],"partitionKeys":["p"],"primaryKeys":["p","k"],"options":{"write-only":"true","bucket":"2","deletion-vectors.enabled":"true","num-sorted-run.compaction-trigger":"2"}}
X
MINOR=1
pq() { sed "s/\"k\":/\"p\":$1,\"k\":/"; }
gen2() { awk -v p=$1 'BEGIN{srand(p);for(i=1;i<=200;i++){s="";for(j=0;j<6;j++)s=s sprintf("%04x",int(rand()*65536));printf "{\"p\":%d,\"k\":%d,\"v\":\"%s\",\"n\":%d}\n",p,i,s,i}}'; }
{ gen2 1; gen2 2; } | rows; step compact --table wh.db/t --full
{ pk_rows 5 12 upd | pq 1; pk_rows 5 12 upd | pq 2; } | rows; { pk_rows 20 23 u2 | pq 1; pk_rows 20 23 u2 | pq 2; } | rows
step compact --table wh.db/t
pk_rows 100 103 u3 | pq 1 | rows
finish; fi

for prod in input lookup full-compaction; do
if begin pk-changelog-$prod "changelog-producer=$prod: a compacted base, then inserts, updates, a no-op update and deletes in two level-0 runs."; then
spec <<X
{"fields":[$PKF],"primaryKeys":["k"],"options":{"write-only":"true","bucket":"1","changelog-producer":"$prod"}}
X
MINOR=1
pk_rows 1 10 base | rows; step compact --table wh.db/t --full
{ pk_rows 3 4 upd; pk_rows 5 5 base; pk_rows 1 1 x -D; pk_rows 11 12 new; pk_rows 77 77 absent -D; } | rows
{ pk_rows 4 4 upd2; pk_rows 12 12 new -D; pk_rows 2 2 x -D; pk_rows 2 2 base; } | rows
finish; fi
done

if begin pk-changelog-lookup-row-dedup "changelog-producer=lookup with changelog-producer.row-deduplicate=true: an update to the same value gives no changelog."; then
spec <<X
{"fields":[$PKF],"primaryKeys":["k"],"options":{"write-only":"true","bucket":"1","changelog-producer":"lookup","changelog-producer.row-deduplicate":"true"}}
X
MINOR=1
pk_rows 1 10 base | rows; step compact --table wh.db/t --full
{ pk_rows 3 4 upd; pk_rows 5 6 base; pk_rows 11 11 new; } | rows
finish; fi

if begin pk-dynamic-bucket "bucket=-1 with dynamic-bucket.target-row-num=15: several buckets and hash index files in the index manifest."; then
spec <<X
{"fields":[$PKF],"primaryKeys":["k"],"options":{"write-only":"true","bucket":"-1","dynamic-bucket.target-row-num":"15"}}
X
MINOR=1
pk_rows 1 40 one | rows; pk_rows 30 55 two | rows; pk_rows 1 3 x -D | rows
finish; fi

if begin pk-row-kind-field "rowkind.field=op: the kind of a row comes from a column and the column is stored."; then
spec <<X
{"fields":[$PKF,{"name":"op","type":"STRING"}],"primaryKeys":["k"],"options":{"write-only":"true","bucket":"1","rowkind.field":"op"}}
X
MINOR=1
rk() { sed "s/}\$/,\"op\":\"$1\"}/"; }
pk_rows 1 6 one | rk +I | rows; { pk_rows 1 2 x | rk -D; pk_rows 3 3 new | rk +U; pk_rows 4 4 old | rk -U; pk_rows 9 9 n | rk +I; } | rows
finish; fi

if begin pk-ignore-delete "ignore-delete=true: deletes are dropped on write; a file written before the option was set still holds some."; then
spec <<X
{"fields":[$PKF],"primaryKeys":["k"],"options":{"write-only":"true","bucket":"1"}}
X
MINOR=1
{ pk_rows 1 10 one; } | rows; pk_rows 1 2 x -D | rows
alter '[{"op":"setOption","key":"ignore-delete","value":"true"}]'
{ pk_rows 3 4 x -D; pk_rows 5 6 two; } | rows
finish; fi

if begin pk-record-level-expire "record-level.expire-time=1 d on an INT seconds column: rows of 2020 go at compaction, rows of 2038 stay."; then
spec <<X
{"fields":[$PKF,{"name":"t","type":"INT"}],"primaryKeys":["k"],"options":{"write-only":"true","bucket":"1","record-level.expire-time":"1 d","record-level.time-field":"t"}}
X
MINOR=1
tt() { sed "s/}\$/,\"t\":$1}/"; }
{ pk_rows 1 5 old | tt 1577836800; pk_rows 6 10 new | tt 2145916800; } | rows; { pk_rows 5 6 upd-old | tt 1577836801; pk_rows 1 1 upd-new | tt 2145916801; } | rows
finish; fi

if begin pk-multilevel "Primary-key table partly compacted: one file at level 5, one at an intermediate level and three level-0 runs."; then
spec <<X
{"fields":[$PKF],"primaryKeys":["k"],"options":{"write-only":"true","bucket":"1","num-sorted-run.compaction-trigger":"3","num-levels":"6"}}
X
MINOR=1
awk 'BEGIN{srand(7);for(i=1;i<=600;i++){s="";for(j=0;j<6;j++)s=s sprintf("%04x",int(rand()*65536));printf "{\"k\":%d,\"v\":\"%s\",\"n\":%d}\n",i,s,i}}' | rows
step compact --table wh.db/t --full
for r in "10 14" "12 20" "300 303"; do pk_rows $r mid | rows; done; pk_rows 1 2 x -D | rows
step compact --table wh.db/t
pk_rows 13 13 top | rows; pk_rows 1 1 back | rows; { pk_rows 301 302 x -D; pk_rows 601 605 new; } | rows
finish; fi

if begin pk-many-runs "Primary-key table with twelve level-0 runs and no base: the non-full pick of universal compaction."; then
spec <<X
{"fields":[$PKF],"primaryKeys":["k"],"options":{"write-only":"true","bucket":"1"}}
X
MINOR=1
for i in 1 2 3 4 5 6 7 8 9 10 11 12; do pk_rows $i $((i+i*4)) r$i | rows; done
finish; fi

if begin pk-upgrade "Primary-key table with a small target-file-size: big non-overlapping level-0 files are moved to level 5 without a rewrite, the others merged and split."; then
spec <<X
{"fields":[$PKF],"primaryKeys":["k"],"options":{"write-only":"true","bucket":"1","target-file-size":"6 kb"}}
X
MINOR=1
wide() { awk -v a=$1 -v z=$2 -v kind="${3:-+I}" 'BEGIN{srand(a);for(i=a;i<=z;i++){s="";for(j=0;j<12;j++)s=s sprintf("%04x",int(rand()*65536));printf "{\"_kind\":\"%s\",\"k\":%d,\"v\":\"%s\",\"n\":%d}\n",kind,i,s,i}}'; }
wide 1 200 | rows; wide 1001 1200 | rows; { wide 2001 2190; wide 2200 2200 -D; } | rows; wide 3001 3150 | rows; wide 3100 3300 | rows; wide 5001 5005 | rows
finish; fi

if begin pk-schema-evolution "Primary-key table, five runs over four schemas: value columns added, renamed, widened, dropped, moved."; then
spec <<X
{"fields":[{"name":"k","type":"INT NOT NULL"},{"name":"a","type":"STRING"},{"name":"b","type":"INT"},{"name":"c","type":"DOUBLE"}],"primaryKeys":["k"],"options":{"write-only":"true","bucket":"1"}}
X
MINOR=1
for x in "1 4" "3 6"; do set -- $x; awk -v a=$1 -v z=$2 'BEGIN{for(i=a;i<=z;i++)printf "{\"k\":%d,\"a\":\"a%d\",\"b\":%d,\"c\":%d.5}\n",i,i,i*10,i}' | rows; done
alter '[{"op":"addColumn","name":"e","type":"DATE","after":"k"},{"op":"updateType","name":"b","type":"BIGINT"}]'
echo '{"k":2,"e":"2024-01-02","a":"a2","b":20000000000,"c":2.25}' | rows
alter '[{"op":"renameColumn","name":"a","to":"a2"},{"op":"dropColumn","name":"c"},{"op":"move","name":"b","first":true}]'
echo '{"k":7,"e":null,"a2":"a7","b":7}' | rows
alter '[{"op":"addColumn","name":"c","type":"STRING"}]'
{ echo '{"k":8,"e":null,"a2":"a8","b":8,"c":"c8"}'; echo '{"_kind":"-D","k":4,"e":null,"a2":null,"b":null,"c":null}'; } | rows
finish; fi

if begin pk-thin-mode "data-file.thin-mode=true: the _KEY_ columns are not stored in the data file."; then
spec <<X
{"fields":[$PKF,{"name":"k2","type":"STRING NOT NULL"}],"primaryKeys":["k2","k"],"options":{"write-only":"true","bucket":"1","data-file.thin-mode":"true"}}
X
MINOR=1
k2() { sed 's/}$/,"k2":"z"}/'; }
pk_rows 1 10 one | k2 | rows; { pk_rows 5 12 two | k2; pk_rows 1 1 x -D | k2; } | rows
finish; fi

if begin pk-local-sort-stats-none "Primary-key table with metadata.stats-mode=none and metadata.stats-keep-first-n-columns left at its default: keys stay in the manifest, value stats do not."; then
spec <<X
{"fields":[$PKF],"primaryKeys":["k"],"options":{"write-only":"true","bucket":"1","metadata.stats-mode":"none"}}
X
pk_rows 1 10 one | rows; pk_rows 5 12 two | rows
finish; fi

if begin pk-per-level-format "Primary-key table with file.format.per.level 0:avro and file.compression.per.level 0:zstd,5:lz4: level 0 in avro, level 5 in parquet."; then
spec <<X
{"fields":[$PKF],"primaryKeys":["k"],"options":{"write-only":"true","bucket":"1","file.format.per.level":"0:avro","file.compression.per.level":"0:zstd,5:lz4","metadata.stats-mode.per.level":"0:none"}}
X
pk_rows 1 10 one | rows; pk_rows 5 12 two | rows
finish; fi

if begin pk-file-index "Primary-key table with a bloom-filter file index on a value column."; then
spec <<X
{"fields":[$PKF],"primaryKeys":["k"],"options":{"write-only":"true","bucket":"1","file-index.bloom-filter.columns":"v","file-index.bloom-filter.v.items":"50","file-index.in-manifest-threshold":"1 b"}}
X
pk_rows 1 10 one | rows; pk_rows 5 12 two | rows
finish; fi

if begin pk-auto-compacted "Primary-key table written without write-only: what auto compaction leaves behind (level 5 and two level-0 runs, some COMPACT snapshots by the writers)."; then
spec <<X
{"fields":[$PKF],"primaryKeys":["k"],"options":{"bucket":"1"}}
X
MINOR=1
for i in 1 2 3 4 5 6 7; do pk_rows $i $((i+6)) r$i | rows; done
finish; fi

if begin pk-two-rounds "Primary-key table where a non-full compaction picks twice (compact, then again inside prepareCommit): two level-0 runs go to level 2, then 2 and 3 to 3, as one commit."; then
spec <<X
{"fields":[$PKF],"primaryKeys":["k"],"options":{"write-only":"true","bucket":"1","num-sorted-run.compaction-trigger":"3","num-levels":"6"}}
X
MINOR=1
rnd() { awk -v a=$1 -v n=$2 'BEGIN{srand(a);for(i=0;i<n;i++){s="";for(j=0;j<6;j++)s=s sprintf("%04x",int(rand()*65536));printf "{\"k\":%d,\"v\":\"%s\",\"n\":%d}\n",a+i*2,s,i}}'; }
rnd 1 1500 | rows; step compact --table wh.db/t --full
for i in 0 1 2 3; do rnd $((i*300+1)) 140 | rows; done; step compact --table wh.db/t -D num-sorted-run.compaction-trigger=5
for i in 0 1 2; do rnd $((i*110+1)) 50 | rows; done; step compact --table wh.db/t -D num-sorted-run.compaction-trigger=5
rnd 7 5 | rows; rnd 9 5 | rows
finish; fi

if begin pk-rolling "Primary-key table, three overlapping runs of 4000 rows and target-file-size 16 kb: level 5 gets several files, cut at the 1000-record checks."; then
spec <<X
{"fields":[{"name":"k","type":"INT NOT NULL"},{"name":"n","type":"BIGINT"}],"primaryKeys":["k"],"options":{"write-only":"true","bucket":"1","target-file-size":"16 kb"}}
X
MINOR=1
nar() { awk -v a=$1 -v n=$2 'BEGIN{srand(a);for(i=0;i<n;i++)printf "{\"k\":%d,\"n\":%d}\n",a+i*3,int(rand()*1000000)}'; }
nar 1 4000 | rows; nar 2 4000 | rows; nar 7 4000 | rows
finish; fi

if begin pk-changelog-lookup-partial-update "changelog-producer=lookup with merge-engine=partial-update: the changelog has the merged values, not the written ones."; then
spec <<X
{"fields":[{"name":"k","type":"INT NOT NULL"},{"name":"a","type":"STRING"},{"name":"b","type":"INT"}],"primaryKeys":["k"],"options":{"write-only":"true","bucket":"1","merge-engine":"partial-update","changelog-producer":"lookup"}}
X
MINOR=1
rows <<'X'
{"k":1,"a":"a1","b":1}
{"k":2,"a":"a2","b":null}
X
step compact --table wh.db/t --full
rows <<'X'
{"k":1,"a":null,"b":11}
{"k":3,"a":"a3","b":null}
X
rows <<'X'
{"k":2,"a":null,"b":22}
{"k":3,"a":null,"b":33}
X
finish; fi

if begin pk-deletion-vectors-sequence-field "Deletion vectors with sequence.field: when the base row wins over level 0 it is copied up and its old place gets a deletion mark."; then
spec <<X
{"fields":[$PKF,{"name":"ts","type":"INT"}],"primaryKeys":["k"],"options":{"write-only":"true","bucket":"1","deletion-vectors.enabled":"true","sequence.field":"ts","num-sorted-run.compaction-trigger":"3","num-levels":"6"}}
X
MINOR=1
ts() { sed "s/}\$/,\"ts\":$1}/"; }
awk 'BEGIN{srand(3);for(i=1;i<=400;i++){s="";for(j=0;j<6;j++)s=s sprintf("%04x",int(rand()*65536));printf "{\"k\":%d,\"v\":\"%s\",\"n\":%d,\"ts\":100}\n",i,s,i}}' | rows
step compact --table wh.db/t --full
{ pk_rows 1 3 late | ts 50; pk_rows 4 6 newer | ts 150; } | rows; { pk_rows 3 4 mid | ts 120; pk_rows 7 7 late -D | ts 10; pk_rows 8 8 gone -D | ts 200; } | rows
finish; fi

if begin pk-deletion-vectors-partial-update "Deletion vectors with partial-update: the merged row is written to the new level, the base row gets a deletion mark."; then
spec <<X
{"fields":[{"name":"k","type":"INT NOT NULL"},{"name":"a","type":"STRING"},{"name":"b","type":"INT"}],"primaryKeys":["k"],"options":{"write-only":"true","bucket":"1","merge-engine":"partial-update","deletion-vectors.enabled":"true","num-sorted-run.compaction-trigger":"3","num-levels":"6"}}
X
MINOR=1
awk 'BEGIN{srand(3);for(i=1;i<=400;i++){s="";for(j=0;j<6;j++)s=s sprintf("%04x",int(rand()*65536));printf "{\"k\":%d,\"a\":\"%s\",\"b\":%d}\n",i,s,i}}' | rows
step compact --table wh.db/t --full
rows <<'X'
{"k":1,"a":null,"b":-1}
{"k":2,"a":"two","b":null}
{"k":1000,"a":"new","b":null}
X
rows <<'X'
{"k":1,"a":"one","b":null}
{"k":1000,"a":null,"b":1000}
X
finish; fi

if begin pk-rescaled-bucket "Primary-key table partitioned by p, bucket changed from 1 to 2 after p=a was written: entries of p=a keep _TOTAL_BUCKETS 1; Java compacts p=b only (whole-table compaction fails)."; then
spec <<X
{"fields":[{"name":"p","type":"STRING NOT NULL"},$PKF],"partitionKeys":["p"],"primaryKeys":["p","k"],"options":{"write-only":"true","bucket":"1"}}
X
COMPACT="--where p=b"
pr() { sed "s/\"k\":/\"p\":\"$1\",\"k\":/"; }
pk_rows 1 6 one | pr a | rows; pk_rows 4 8 two | pr a | rows
alter '[{"op":"setOption","key":"bucket","value":"2"}]'
pk_rows 1 6 one | pr b | rows; pk_rows 4 8 two | pr b | rows
finish; fi

for f in orc avro; do
if begin pk-$f "Primary-key table in $f: two runs, updates and deletes."; then
spec <<X
{"fields":[$PKF,{"name":"d","type":"DECIMAL(20,3)"},{"name":"t","type":"TIMESTAMP(6)"},{"name":"a","type":"ARRAY<STRING>"}],"primaryKeys":["k"],"options":{"write-only":"true","bucket":"1","file.format":"$f"}}
X
MINOR=1
ft() { sed 's/}$/,"d":"12345678901234567.125","t":"2024-01-01T00:00:00.123456","a":["x",null]}/'; }
pk_rows 1 20 first | ft | rows; { pk_rows 11 25 second | ft; pk_rows 3 5 gone -D; } | rows
finish; fi
done

if begin pk-mixed-formats "Primary-key table, runs in orc, avro and parquet."; then
spec <<X
{"fields":[$PKF],"primaryKeys":["k"],"options":{"write-only":"true","bucket":"1","file.format":"orc"}}
X
pk_rows 1 8 orc | rows
alter '[{"op":"setOption","key":"file.format","value":"avro"}]'; pk_rows 5 10 avro | rows
alter '[{"op":"setOption","key":"file.format","value":"parquet"}]'; pk_rows 8 12 parquet | rows
finish; fi

if begin pk-snapshot-expired "Primary-key table, compacted, then expired: the level-0 files of the compaction are gone from disk."; then
spec <<X
{"fields":[$PKF],"primaryKeys":["k"],"options":{"write-only":"true","bucket":"1","changelog-producer":"full-compaction"}}
X
MINOR=1
pk_rows 1 10 a | rows; pk_rows 5 12 b | rows; step compact --table wh.db/t --full; pk_rows 1 3 c | rows; pk_rows 20 22 d | rows
step expire --table wh.db/t --retain 2
finish; fi
