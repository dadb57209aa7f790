#!/usr/bin/env bash
# Makes the tables of testdata/tables with Java Paimon and records what Java's own compaction makes of a copy.
#   make_tables.sh DIR            all cases, as DIR/<case>
#   make_tables.sh DIR a b c      only these
# testdata/tables/README.md describes what a case holds. The written-by-* cases come from other writers
# and are not made here.
set -euo pipefail
HERE="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
PEER="$HERE/peer.sh"
[ $# -ge 1 ] || { sed -n 2,4p "$0" | cut -c3- >&2; exit 2; }
mkdir -p "$1"
OUT="$(cd "$1" && pwd)"; shift
WANT=("$@")
export JAVA_OPTS="${JAVA_OPTS:--Xmx1g -XX:TieredStopAtLevel=1}"
WORK="$(mktemp -d)"; trap 'rm -rf "$WORK"' EXIT
FAILED=()

# begin <case> <one line>: returns 1 when the case was not asked for
begin() {
  C=$1
  if [ ${#WANT[@]} -gt 0 ] && [[ ! " ${WANT[*]} " == *" $C "* ]]; then return 1; fi
  D=$WORK/$C ROWID="" MINOR="" COMPACT=""
  mkdir -p "$D/input"
  printf '%s\n' "$2" > "$D/README"
  : > "$D/input/steps.txt"
}
step() { printf '%s\n' "$*" >> "$D/input/steps.txt"; }
spec() { cat > "$D/spec.json"; step create --table wh.db/t --spec spec.json; }
rows() { # rows [more write arguments] < jsonl
  # a pipeline runs this in a subshell, so the number comes from the folder
  local n; n=$(($(find "$D/input" -name 'rows-*.jsonl' | wc -l) + 1)); cat > "$D/input/rows-$n.jsonl"
  step write --table wh.db/t --rows "input/rows-$n.jsonl" "$@"
}
alter() { step "alter --table wh.db/t --changes '$1'"; }

# compacted <folder> <name> [compact arguments]: compacts a copy and records the result
compacted() {
  local folder=$1 name=$2; shift 2
  step copy --from wh.db --to "$folder/wh.db"
  step compact --table "$folder/wh.db/t" --no-expire --out "$folder.json" "$@"
  step files --table "$folder/wh.db/t" --out "after_java$name.json"
  step dump --table "$folder/wh.db/t" --out "$folder/rows.jsonl"
  if [ -z "$name" ] && grep -q '"primaryKeys":\["' "$D/spec.json"; then step dump --table "$folder/wh.db/t" --raw --out after_java_raw.jsonl; fi
}

# finish: runs the steps and moves what a case holds to OUT
finish() {
  echo "== $C"
  step dump --table wh.db/t --out expected.jsonl
  compacted full "" --full $COMPACT
  if [ -n "$MINOR" ]; then compacted minor _minor; fi
  if [ -n "$ROWID" ]; then step dump --table wh.db/t --row-id --out expected_rowid.jsonl; fi
  if ! (cd "$D" && "$PEER" batch input/steps.txt) > "$D/run.log" 2>&1; then
    tail -5 "$D/run.log" | cut -c1-300; FAILED+=("$C"); return 0
  fi
  cmp -s "$D/expected.jsonl" "$D/full/rows.jsonl" || cp "$D/full/rows.jsonl" "$D/expected_after.jsonl"
  if [ -n "$MINOR" ] && ! cmp -s "$D/expected.jsonl" "$D/minor/rows.jsonl"; then
    cp "$D/minor/rows.jsonl" "$D/expected_after_minor.jsonl"
  fi
  rm -rf "${OUT:?}/$C" && mkdir -p "$OUT/$C"
  (cd "$D" && cp -r README spec.json wh.db expected*.jsonl after_java*.json* "$OUT/$C/")
}

# seq_rows from to: id, name, v, ts
seq_rows() {
  awk -v a="$1" -v b="$2" 'BEGIN{for(i=a;i<=b;i++)printf "{\"id\":%d,\"name\":\"name-%d\",\"v\":%d.25,\"ts\":\"2024-01-%02dT%02d:00:00.%03d\"}\n",i,i*7919%1000,i*3,1+i%28,i%24,i%1000}'
}

# ============================================================ append
if begin append-unpartitioned "Append table, no partition, no bucket: six small files of one schema, all rewritten into one."; then
spec <<'X'
{"fields":[{"name":"id","type":"INT"},{"name":"name","type":"STRING"},{"name":"v","type":"DOUBLE"},{"name":"ts","type":"TIMESTAMP(3)"}],
 "options":{"write-only":"true"}}
X
for k in 0 1 2 3 4 5; do seq_rows $((k*10+1)) $((k*10+10+k)) | rows; done
finish; fi

if begin append-partitioned "Append table partitioned by p: 6 files in p=a, 5 in p=b and 3 in p=c (under compaction.min.file-num, left alone)."; then
spec <<'X'
{"fields":[{"name":"p","type":"STRING"},{"name":"id","type":"BIGINT"},{"name":"name","type":"STRING"}],
 "partitionKeys":["p"],"options":{"write-only":"true"}}
X
prow() { for p in $1; do awk -v p=$p -v k=$2 'BEGIN{for(i=0;i<7;i++)printf "{\"p\":\"%s\",\"id\":%d,\"name\":\"%s%d\"}\n",p,k*100+i,p,i}'; done; }
prow "a b c" 1 | rows; prow "a b c" 2 | rows; prow "c b a" 3 | rows; prow "a b" 4 | rows; prow "a b" 5 | rows; prow "a" 6 | rows
finish; fi

if begin append-multi-partition-types "Append table with INT, DATE and STRING partition keys: null, empty and blank values (all three share one default directory name), and names that need escaping; two files a partition, compaction.min.file-num=2."; then
spec <<'X'
{"fields":[{"name":"id","type":"INT"},{"name":"pi","type":"INT"},{"name":"pd","type":"DATE"},{"name":"ps","type":"STRING"},{"name":"v","type":"STRING"}],
 "partitionKeys":["pi","pd","ps"],"options":{"write-only":"true","compaction.min.file-num":"2"}}
X
mp() { cat <<X
{"id":$1,"pi":1,"pd":"2024-02-29","ps":"plain","v":"v$1"}
{"id":$1,"pi":-5,"pd":"1969-12-31","ps":"a b/c=d%e","v":"v$1"}
{"id":$1,"pi":2147483647,"pd":"9999-12-31","ps":"ünï-日本-😀","v":"v$1"}
{"id":$1,"pi":null,"pd":null,"ps":null,"v":"all null $1"}
{"id":$1,"pi":2,"pd":null,"ps":"x","v":"v$1"}
{"id":$1,"pi":3,"pd":"2024-01-01","ps":"","v":"empty $1"}
{"id":$1,"pi":3,"pd":"2024-01-01","ps":null,"v":"null $1"}
{"id":$1,"pi":3,"pd":"2024-01-01","ps":"  ","v":"blank $1"}
{"id":$1,"pi":4,"pd":"2024-01-01","ps":"q'\"#:*?\\\\{}[]^~\u007f\t","v":"v$1"}
{"id":$1,"pi":5,"pd":"2024-01-01","ps":"__DEFAULT_PARTITION__","v":"literal $1"}
X
}
mp 1 | rows; mp 2 | rows
finish; fi

if begin append-bucketed "Append table with bucket=2 and bucket-key=id (bucket-append-ordered stays true): six commits, files of one bucket are merged in order of sequence number."; then
spec <<'X'
{"fields":[{"name":"id","type":"INT"},{"name":"name","type":"STRING"},{"name":"v","type":"DOUBLE"},{"name":"ts","type":"TIMESTAMP(3)"}],
 "options":{"write-only":"true","bucket":"2","bucket-key":"id"}}
X
MINOR=1
for k in 0 1 2 3 4 5; do seq_rows $((k*10+1)) $((k*10+10)) | rows; done
finish; fi

if begin append-bucketed-partitioned-unordered "Append table, partition p, bucket=2, bucket-append-ordered=false: seven commits, one bucket a partition stays small."; then
spec <<'X'
{"fields":[{"name":"p","type":"INT"},{"name":"id","type":"INT"},{"name":"v","type":"STRING"}],"partitionKeys":["p"],
 "options":{"write-only":"true","bucket":"2","bucket-key":"id","bucket-append-ordered":"false"}}
X
MINOR=1
for k in 0 1 2 3 4 5 6; do awk -v k=$k 'BEGIN{for(i=0;i<8;i++)printf "{\"p\":%d,\"id\":%d,\"v\":\"r%d\"}\n",i%2,(i%2==1&&k>2)?7:k*8+i,k*8+i}' | rows; done
finish; fi

ALL_TYPES='{"name":"b","type":"BOOLEAN"},{"name":"i8","type":"TINYINT"},{"name":"i16","type":"SMALLINT"},{"name":"i32","type":"INT"},{"name":"i64","type":"BIGINT"},
 {"name":"f","type":"FLOAT"},{"name":"d","type":"DOUBLE"},{"name":"dec5","type":"DECIMAL(5,2)"},{"name":"dec15","type":"DECIMAL(15,4)"},{"name":"dec30","type":"DECIMAL(30,10)"},
 {"name":"c5","type":"CHAR(5)"},{"name":"vc20","type":"VARCHAR(20)"},{"name":"s","type":"STRING"},{"name":"bin4","type":"BINARY(4)"},{"name":"vb10","type":"VARBINARY(10)"},{"name":"bs","type":"BYTES"},
 {"name":"dt","type":"DATE"},{"name":"tm","type":"TIME(3)"},{"name":"ts0","type":"TIMESTAMP(0)"},{"name":"ts3","type":"TIMESTAMP(3)"},{"name":"ts6","type":"TIMESTAMP(6)"},{"name":"ts9","type":"TIMESTAMP(9)"},
 {"name":"lz0","type":"TIMESTAMP_LTZ(0)"},{"name":"lz3","type":"TIMESTAMP_LTZ(3)"},{"name":"lz6","type":"TIMESTAMP_LTZ(6)"},{"name":"lz9","type":"TIMESTAMP_LTZ(9)"},
 {"name":"ai","type":"ARRAY<INT>"},{"name":"as_","type":"ARRAY<STRING NOT NULL>"},{"name":"aa","type":"ARRAY<ARRAY<BIGINT>>"},
 {"name":"m","type":"MAP<STRING,INT>"},{"name":"mr","type":"MAP<INT,ROW<x DECIMAL(20,3), y TIMESTAMP(6)>>"},
 {"name":"r","type":"ROW<a INT, b STRING, c ROW<d DATE, e ARRAY<DOUBLE>>>"},{"name":"ar","type":"ARRAY<ROW<k STRING NOT NULL, v FLOAT>>"}'
MULTISET='{"name":"ms","type":"MULTISET<STRING>"}'
all_rows() { # first last [ms]
awk -v a=$1 -v z=$2 -v ms="${3:-}" 'BEGIN{for(i=a;i<=z;i++){
 printf "{\"id\":%d,\"b\":%s,\"i8\":%d,\"i16\":%d,\"i32\":%d,\"i64\":%d,\"f\":%d.5,\"d\":%d.0625,", i, (i%2?"true":"false"), i%100-50, i*100-500, i*1000003-5000000, i*100000007, i-5, i*3-7
 printf "\"dec5\":\"%d.%02d\",\"dec15\":\"-%d1234567.%04d\",\"dec30\":\"%d2345678901234567.0123456789\",", i%999, i%100, i, i, i
 printf "\"c5\":\"c%d\",\"vc20\":\"vc-%d\",\"s\":\"string número %d\",\"bin4\":\"%08x\",\"vb10\":\"%04x\",\"bs\":\"00ff%02x\",", i%1000, i, i, i*65537, i, i%256
 printf "\"dt\":\"20%02d-03-01\",\"tm\":\"%02d:01:02.%03d\",\"ts0\":\"2024-01-01T00:00:%02d\",\"ts3\":\"2024-01-01T00:00:00.%03d\",\"ts6\":\"1969-12-31T23:59:59.%06d\",\"ts9\":\"2024-06-30T12:00:00.%09d\",", i%100, i%24, i%1000, i%60, i, 900000+i, 123456000+i
 printf "\"lz0\":\"2024-01-01T00:00:%02dZ\",\"lz3\":\"2024-01-01T00:00:00.%03dZ\",\"lz6\":\"2024-01-01T00:00:00.%06dZ\",\"lz9\":\"1960-01-01T00:00:00.%09dZ\",", i%60, i, i, i
 printf "\"ai\":[%d,null,%d],\"as_\":[\"a%d\",\"\"],\"aa\":[[%d],[],null,[1,null]],\"m\":[[\"k%d\",%d],[\"n\",null]],\"mr\":[[%d,{\"x\":\"%d.125\",\"y\":\"2024-01-01T00:00:00.%06d\"}],[-1,null]],", i, i+1, i, i, i, i, i, i, i
 printf "\"r\":{\"a\":%d,\"b\":null,\"c\":{\"d\":\"2024-02-29\",\"e\":[\"1.5e+00\",null]}},\"ar\":[{\"k\":\"x\",\"v\":%d},{\"k\":\"y\",\"v\":null}]", i, i
 if(ms!="") printf ",\"ms\":[[\"one\",1],[\"many\",%d]]", i
 print "}" }}'
}
nulls() { printf '{"id":%d}\n' "$1"; }
extremes() { # id [ms]
cat <<X
{"id":$1,"b":false,"i8":-128,"i16":-32768,"i32":-2147483648,"i64":-9223372036854775808,"f":"-Inf","d":"NaN","dec5":"-999.99","dec15":"99999999999.9999","dec30":"-99999999999999999999.9999999999","c5":"","vc20":"","s":"","bin4":"00000000","vb10":"","bs":"","dt":"0001-01-01","tm":"00:00:00.000","ts0":"0001-01-01T00:00:00","ts3":"1900-01-01T00:00:00.001","ts6":"1677-09-21T00:12:43.145225","ts9":"1970-01-01T00:00:00.000000001","lz0":"1970-01-01T00:00:00Z","lz3":"1969-12-31T23:59:59.999Z","lz6":"1969-12-31T23:59:59.999999Z","lz9":"1970-01-01T00:00:00.000000001Z","ai":[],"as_":[],"aa":[],"m":[],"mr":[],"r":{"a":null,"b":null,"c":null},"ar":[]${2:+,\"ms\":[]}}
{"id":$(($1+1)),"b":true,"i8":127,"i16":32767,"i32":2147483647,"i64":9223372036854775807,"f":"3.4028235e+38","d":"5e-324","dec5":"999.99","dec15":"-99999999999.9999","dec30":"99999999999999999999.9999999999","c5":"日本語","vc20":"é\u0000\"\\\\\n","s":"😀 long enough to be cut by truncate(16)","bin4":"ffffffff","vb10":"ffffffffffffffffffff","bs":"ffffffffffffffffffffffffffffffffffffffff","dt":"9999-12-31","tm":"23:59:59.999","ts0":"9999-12-31T23:59:59","ts3":"9999-12-31T23:59:59.999","ts6":"9999-12-31T23:59:59.999999","ts9":"2262-04-11T23:47:16.854775807","lz0":"9999-12-31T23:59:59Z","lz3":"9999-12-31T23:59:59.999Z","lz6":"9999-12-31T23:59:59.999999Z","lz9":"2262-04-11T23:47:16.854775807Z","ai":[2147483647],"as_":["ü"],"aa":[[9223372036854775807]],"m":[["",0]],"mr":[[2147483647,{"x":"-99999999999999999.999","y":"9999-12-31T23:59:59.999999"}]],"r":{"a":-1,"b":"","c":{"d":null,"e":[]}},"ar":[{"k":"","v":"NaN"}]${2:+,\"ms\":[["",2147483647]]}}
X
}
if begin append-all-types "Append table with every type, nested too, parquet: nulls, extremes, decimals of precision 5, 15 and 30, timestamps of precision 0, 3, 6 and 9."; then
spec <<X
{"fields":[{"name":"id","type":"INT NOT NULL"},$ALL_TYPES],"options":{"write-only":"true"}}
X
all_rows 1 6 | rows; { nulls 7; nulls 8; } | rows; extremes 9 | rows; { all_rows 11 14; nulls 15; } | rows; all_rows 16 20 | rows
finish; fi

if begin append-multiset "Append table with a MULTISET column, parquet."; then
spec <<X
{"fields":[{"name":"id","type":"INT NOT NULL"},$MULTISET],"options":{"write-only":"true"}}
X
for k in 1 2 3 4 5; do { echo "{\"id\":$k,\"ms\":[[\"a\",$k],[\"b\",1]]}"; echo "{\"id\":$((k+10)),\"ms\":null}"; } | rows; done
finish; fi

if begin append-variant "Append table with a VARIANT column, parquet, not shredded."; then
spec <<X
{"fields":[{"name":"id","type":"INT"},{"name":"v","type":"VARIANT"}],"options":{"write-only":"true"}}
X
for k in 1 2 3 4 5; do { echo "{\"id\":$k,\"v\":{\"a\":$k,\"b\":[1,\"x\",null,true,1.5],\"c\":{\"d\":\"deep\"}}}"; echo "{\"id\":$((k+10)),\"v\":$k}"; echo "{\"id\":$((k+20)),\"v\":null}"; } | rows; done
finish; fi

if begin append-blob "Append table with a BLOB column (row tracking and data evolution on): rows and blobs live in separate files."; then
spec <<X
{"fields":[{"name":"id","type":"INT"},{"name":"s","type":"STRING"},{"name":"bl","type":"BLOB"}],"options":{"write-only":"true","row-tracking.enabled":"true","data-evolution.enabled":"true"}}
X
for k in 1 2 3 4 5 6; do { echo "{\"id\":$k,\"s\":\"s$k\",\"bl\":\"00010203${k}0\"}"; echo "{\"id\":$((k+10)),\"s\":null,\"bl\":\"\"}"; } | rows; done
ROWID=1
finish; fi

if begin append-schema-evolution "Append table, seven files over five schemas: int to bigint, float to double, varchar to string, column added in the middle, renamed, dropped, re-added under the old name with another type, moved first, nested field added."; then
spec <<'X'
{"fields":[{"name":"id","type":"INT"},{"name":"a","type":"STRING"},{"name":"b","type":"INT"},{"name":"f","type":"FLOAT"},{"name":"c","type":"DOUBLE"},{"name":"vc","type":"VARCHAR(8)"},{"name":"r","type":"ROW<x INT, y STRING>"}],
 "options":{"write-only":"true"}}
X
for k in 1 2; do echo "{\"id\":$k,\"a\":\"a$k\",\"b\":$((k*10)),\"f\":\"$k.1\",\"c\":\"$k.5\",\"vc\":\"vc$k\",\"r\":{\"x\":$k,\"y\":\"y$k\"}}" | rows; done
alter '[{"op":"addColumn","name":"e","type":"DATE","after":"a"},{"op":"updateType","name":"b","type":"BIGINT"},{"op":"updateType","name":"f","type":"DOUBLE"}]'
for k in 3 4; do echo "{\"id\":$k,\"a\":\"a$k\",\"e\":\"2024-01-0$k\",\"b\":$((k*10000000000)),\"f\":\"$k.1\",\"c\":\"$k.5\",\"vc\":\"vc$k\",\"r\":{\"x\":$k,\"y\":\"y$k\"}}" | rows; done
alter '[{"op":"renameColumn","name":"a","to":"a2"},{"op":"dropColumn","name":"c"},{"op":"updateType","name":"vc","type":"STRING"}]'
echo '{"id":5,"a2":"a5","e":null,"b":5,"f":"5.1","vc":"longer than eight","r":{"x":5,"y":"y5"}}' | rows
alter '[{"op":"addColumn","name":"c","type":"STRING"},{"op":"move","name":"b","first":true},{"op":"addColumn","name":"r.z","type":"BIGINT"}]'
echo '{"id":6,"a2":"a6","e":"2024-01-06","b":6,"f":"6.1","vc":"v","r":{"x":6,"y":"y6","z":66},"c":"new c"}' | rows
alter '[{"op":"renameColumn","name":"id","to":"ident"},{"op":"addColumn","name":"a","type":"INT"}]'
echo '{"ident":7,"a2":"a7","e":"2024-01-07","b":7,"f":"7.1","vc":"v","r":null,"c":"c7","a":7}' | rows
finish; fi

if begin append-schema-evolution-casts "Append table, casts on read between old files and the last schema: int to string, bigint to int (narrowing), decimal rescale, date to timestamp, string to int, timestamp precision."; then
spec <<'X'
{"fields":[{"name":"id","type":"INT"},{"name":"i2s","type":"INT"},{"name":"l2i","type":"BIGINT"},{"name":"dec","type":"DECIMAL(10,4)"},{"name":"d2t","type":"DATE"},{"name":"s2i","type":"STRING"},{"name":"ts","type":"TIMESTAMP(6)"},{"name":"d2dec","type":"DOUBLE"},{"name":"b2s","type":"BOOLEAN"}],
 "options":{"write-only":"true"}}
X
for k in 1 2 3; do echo "{\"id\":$k,\"i2s\":$((k*-7)),\"l2i\":$((k*5)),\"dec\":\"$k.1250\",\"d2t\":\"2024-01-0$k\",\"s2i\":\"$((k*3))\",\"ts\":\"2024-01-01T00:00:00.12345$k\",\"d2dec\":\"$k.255\",\"b2s\":true}" | rows; done
echo '{"id":4}' | rows
alter '[{"op":"updateType","name":"i2s","type":"STRING"},{"op":"updateType","name":"l2i","type":"INT"},{"op":"updateType","name":"dec","type":"DECIMAL(12,2)"},{"op":"updateType","name":"d2t","type":"TIMESTAMP(3)"},{"op":"updateType","name":"s2i","type":"INT"},{"op":"updateType","name":"ts","type":"TIMESTAMP(3)"},{"op":"updateType","name":"d2dec","type":"DECIMAL(10,2)"},{"op":"updateType","name":"b2s","type":"STRING"}]'
echo '{"id":5,"i2s":"five","l2i":5,"dec":"5.12","d2t":"2024-01-05T01:02:03.004","s2i":55,"ts":"2024-01-01T00:00:00.555","d2dec":"5.25","b2s":"no"}' | rows
finish; fi

if begin append-one-file "Append table with one file: nothing to compact, no new snapshot."; then
spec <<'X'
{"fields":[{"name":"id","type":"INT"},{"name":"name","type":"STRING"},{"name":"v","type":"DOUBLE"},{"name":"ts","type":"TIMESTAMP(3)"}],"options":{"write-only":"true"}}
X
seq_rows 1 10 | rows
finish; fi

if begin append-few-files "Append table with four files, under compaction.min.file-num (5): nothing to compact."; then
spec <<'X'
{"fields":[{"name":"id","type":"INT"},{"name":"name","type":"STRING"},{"name":"v","type":"DOUBLE"},{"name":"ts","type":"TIMESTAMP(3)"}],"options":{"write-only":"true"}}
X
for k in 0 1 2 3; do seq_rows $((k*10+1)) $((k*10+10)) | rows; done
finish; fi

if begin append-big-and-small "Append table with target-file-size 8 kb and tiny open cost: files over 70% of it are left alone, the rest is packed into bins of twice the target."; then
spec <<'X'
{"fields":[{"name":"id","type":"INT"},{"name":"s","type":"STRING"}],"options":{"write-only":"true","target-file-size":"8 kb","source.split.open-file-cost":"1 b"}}
X
big() { awk -v a=$1 -v n=$2 'BEGIN{srand(a);for(i=0;i<n;i++){s="";for(j=0;j<12;j++)s=s sprintf("%04x",int(rand()*65536));printf "{\"id\":%d,\"s\":\"%s\"}\n",a*1000+i,s}}'; }
for x in "1 250" "2 60" "3 80" "4 70" "5 260" "6 50" "7 90" "8 75" "9 40" "10 85" "11 95"; do big $x | rows; done
finish; fi

DVROWS() { awk -v p=$1 -v k=$2 'BEGIN{for(i=0;i<10;i++)printf "{\"p\":\"%s\",\"id\":%d,\"s\":\"%s-%d\"}\n",p,k*10+i,p,k*10+i}'; }
if begin append-deletion-vectors "Append table with deletion vectors: p=a six files of which three have one (two delete commits), p=b six files and none, p=c one file with one, p=d all rows of a file deleted."; then
spec <<'X'
{"fields":[{"name":"p","type":"STRING"},{"name":"id","type":"INT"},{"name":"s","type":"STRING"}],"partitionKeys":["p"],"options":{"write-only":"true","deletion-vectors.enabled":"true"}}
X
for k in 0 1 2 3 4 5; do { DVROWS a $k; DVROWS b $k; if [ $k = 0 ]; then DVROWS c 0; fi; if [ $k -lt 2 ]; then DVROWS d $k; fi; } | rows; done
step "delete --table wh.db/t --match '[{\"p\":\"a\",\"id\":3},{\"p\":\"a\",\"id\":7},{\"p\":\"a\",\"id\":15},{\"p\":\"c\",\"id\":0},{\"p\":\"d\",\"id\":0},{\"p\":\"d\",\"id\":1},{\"p\":\"d\",\"id\":2},{\"p\":\"d\",\"id\":3},{\"p\":\"d\",\"id\":4},{\"p\":\"d\",\"id\":5},{\"p\":\"d\",\"id\":6},{\"p\":\"d\",\"id\":7},{\"p\":\"d\",\"id\":8},{\"p\":\"d\",\"id\":9}]'"
step "delete --table wh.db/t --match '[{\"p\":\"a\",\"id\":4},{\"p\":\"a\",\"id\":22},{\"p\":\"a\",\"id\":29}]'"
finish; fi

if begin append-deletion-vectors-bitmap64 "As append-deletion-vectors, with deletion-vectors.bitmap64=true and no partition: seven files, three with a vector."; then
spec <<'X'
{"fields":[{"name":"p","type":"STRING"},{"name":"id","type":"INT"},{"name":"s","type":"STRING"}],"options":{"write-only":"true","deletion-vectors.enabled":"true","deletion-vectors.bitmap64":"true"}}
X
for k in 0 1 2 3 4 5 6; do DVROWS a $k | rows; done
step "delete --table wh.db/t --match '[{\"id\":3},{\"id\":7},{\"id\":15},{\"id\":22}]'"
finish; fi

if begin append-bucketed-deletion-vectors "Append table, bucket=2, deletion vectors: six commits, deletes in both buckets (one index file a bucket)."; then
spec <<'X'
{"fields":[{"name":"p","type":"STRING"},{"name":"id","type":"INT"},{"name":"s","type":"STRING"}],"options":{"write-only":"true","deletion-vectors.enabled":"true","bucket":"2","bucket-key":"id"}}
X
MINOR=1
for k in 0 1 2 3 4 5; do DVROWS a $k | rows; done
step "delete --table wh.db/t --match '[{\"id\":3},{\"id\":4},{\"id\":7},{\"id\":15},{\"id\":22}]'"
finish; fi
if begin append-row-tracking "Append table with row tracking: row ids and sequence numbers are kept through compaction (expected_rowid.jsonl has _ROW_ID and _SEQUENCE_NUMBER)."; then
spec <<'X'
{"fields":[{"name":"id","type":"INT"},{"name":"name","type":"STRING"},{"name":"v","type":"DOUBLE"},{"name":"ts","type":"TIMESTAMP(3)"}],"options":{"write-only":"true","row-tracking.enabled":"true"}}
X
for k in 0 1 2 3 4 5; do seq_rows $((k*10+1)) $((k*10+10-k)) | rows; done
ROWID=1
finish; fi
if begin append-row-tracking-recompacted "As append-row-tracking, but compacted once already and then written to five times more (one file has stored row ids, the others only in the manifest)."; then
spec <<'X'
{"fields":[{"name":"id","type":"INT"},{"name":"name","type":"STRING"},{"name":"v","type":"DOUBLE"},{"name":"ts","type":"TIMESTAMP(3)"}],"options":{"write-only":"true","row-tracking.enabled":"true"}}
X
for k in 0 1 2 3 4; do seq_rows $((k*10+1)) $((k*10+10-k)) | rows; done
step compact --table wh.db/t
for k in 5 6 7 8 9; do seq_rows $((k*10+1)) $((k*10+3)) | rows; done
ROWID=1
finish; fi
if begin append-data-evolution "Append table with row tracking and data evolution: three batches of rows, and columns b and c of two of them rewritten in files of their own that share the row ids."; then
spec <<'X'
{"fields":[{"name":"id","type":"INT"},{"name":"a","type":"STRING"},{"name":"b","type":"STRING"},{"name":"c","type":"BIGINT"}],"options":{"write-only":"true","row-tracking.enabled":"true","data-evolution.enabled":"true"}}
X
de() { awk -v a=$1 -v n=$2 'BEGIN{for(i=0;i<n;i++)printf "{\"id\":%d,\"a\":\"a%d\",\"b\":\"b%d\",\"c\":%d}\n",a+i,a+i,a+i,a+i}'; }
de 0 10 | rows; de 10 10 | rows; de 20 5 | rows
awk 'BEGIN{for(i=0;i<10;i++)printf "{\"b\":\"B%d\"}\n",i}' | rows --cols b --first-row-id 0
awk 'BEGIN{for(i=0;i<5;i++)printf "{\"b\":\"B%d\",\"c\":%d}\n",20+i,-20-i}' | rows --cols b,c --first-row-id 20
awk 'BEGIN{for(i=0;i<10;i++)printf "{\"c\":%d}\n",i*100}' | rows --cols c --first-row-id 0
ROWID=1
finish; fi
if begin append-file-index "Append table with bloom-filter and bitmap file indexes, threshold 1 byte: every data file has an .index file in extraFiles."; then
spec <<'X'
{"fields":[{"name":"id","type":"INT"},{"name":"name","type":"STRING"},{"name":"v","type":"DOUBLE"},{"name":"ts","type":"TIMESTAMP(3)"}],
 "options":{"write-only":"true","file-index.bloom-filter.columns":"id,name","file-index.bloom-filter.id.items":"100","file-index.bloom-filter.name.items":"100","file-index.bitmap.columns":"name","file-index.in-manifest-threshold":"1 b"}}
X
for k in 0 1 2 3 4; do seq_rows $((k*10+1)) $((k*10+10)) | rows; done
finish; fi
if begin append-file-index-embedded "Append table with a bloom-filter file index small enough to sit in the manifest (_EMBEDDED_FILE_INDEX)."; then
spec <<'X'
{"fields":[{"name":"id","type":"INT"},{"name":"name","type":"STRING"},{"name":"v","type":"DOUBLE"},{"name":"ts","type":"TIMESTAMP(3)"}],
 "options":{"write-only":"true","file-index.bloom-filter.columns":"id","file-index.bloom-filter.id.items":"50"}}
X
for k in 0 1 2 3 4; do seq_rows $((k*10+1)) $((k*10+10)) | rows; done
finish; fi

for mode in none counts 'truncate(4)' full; do
name=append-stats-$(echo $mode | tr -d '()4')
if begin $name "Append table with metadata.stats-mode=$mode."; then
spec <<X
{"fields":[{"name":"id","type":"INT"},{"name":"name","type":"STRING"},{"name":"v","type":"DOUBLE"},{"name":"ts","type":"TIMESTAMP(3)"},{"name":"arr","type":"ARRAY<INT>"}],"options":{"write-only":"true","metadata.stats-mode":"$mode"}}
X
for k in 0 1 2 3 4; do seq_rows $((k*10+1)) $((k*10+10)) | rows; done
finish; fi
done

if begin append-stats-per-column "Append table: stats none by default, full for one column, dense store keeps only the columns that have some (_VALUE_STATS_COLS)."; then
spec <<X
{"fields":[{"name":"id","type":"INT"},{"name":"name","type":"STRING"},{"name":"v","type":"DOUBLE"},{"name":"ts","type":"TIMESTAMP(3)"}],"options":{"write-only":"true","metadata.stats-mode":"none","fields.name.stats-mode":"full","fields.ts.stats-mode":"truncate(16)"}}
X
for k in 0 1 2 3 4; do seq_rows $((k*10+1)) $((k*10+10)) | rows; done
finish; fi
if begin append-stats-not-dense "Append table with metadata.stats-dense-store=false and stats mode none."; then
spec <<X
{"fields":[{"name":"id","type":"INT"},{"name":"name","type":"STRING"},{"name":"v","type":"DOUBLE"},{"name":"ts","type":"TIMESTAMP(3)"}],"options":{"write-only":"true","metadata.stats-mode":"none","metadata.stats-dense-store":"false"}}
X
for k in 0 1 2 3 4; do seq_rows $((k*10+1)) $((k*10+10)) | rows; done
finish; fi
if begin append-not-null-default "Append table with NOT NULL columns, a column with a default value, comments, and lz4 compression."; then
spec <<X
{"comment":"table comment","fields":[{"name":"id","type":"BIGINT NOT NULL","comment":"the id"},{"name":"name","type":"STRING NOT NULL"},{"name":"n","type":"INT","default":"42"}],"options":{"write-only":"true","file.compression":"lz4"}}
X
for k in 1 2 3 4 5; do { echo "{\"id\":$k,\"name\":\"n$k\"}"; echo "{\"id\":$((k+10)),\"name\":\"m\",\"n\":$k}"; } | rows; done
finish; fi

# ============================================================ primary key
PKF='{"name":"k","type":"INT NOT NULL"},{"name":"v","type":"STRING"},{"name":"n","type":"BIGINT"}'
# pk_rows first last tag [kind]
pk_rows() { awk -v a=$1 -v z=$2 -v t="$3" -v kind="${4:-+I}" 'BEGIN{for(i=a;i<=z;i++)printf "{\"_kind\":\"%s\",\"k\":%d,\"v\":\"%s-%d\",\"n\":%d}\n",kind,i,t,i,i*10}'; }

. "$HERE/make_pk_tables.sh"

if begin pk-dedup-write-only "Primary-key table, deduplicate, bucket=1: two level-0 runs with overlapping keys and deletes of present and absent keys."; then
spec <<X
{"fields":[$PKF],"primaryKeys":["k"],"options":{"write-only":"true","bucket":"1"}}
X
MINOR=1
pk_rows 1 20 first | rows; { pk_rows 11 25 second; pk_rows 3 5 gone -D; pk_rows 99 99 absent -D; pk_rows 12 12 twice; echo '{"_kind":"-U","k":13,"v":"old","n":1}'; echo '{"_kind":"+U","k":13,"v":"new","n":2}'; } | rows
finish; fi
if begin pk-deletion-vectors "Primary-key table with deletion vectors: a compacted base at level 5 and two level-0 runs whose rows are invisible before compaction."; then
spec <<X
{"fields":[$PKF],"primaryKeys":["k"],"options":{"write-only":"true","bucket":"1","deletion-vectors.enabled":"true"}}
X
MINOR=1
pk_rows 1 20 base | rows; step compact --table wh.db/t --full; { pk_rows 5 8 upd; pk_rows 1 2 x -D; } | rows; pk_rows 8 22 upd2 | rows
finish; fi
if begin pk-postpone-bucket "bucket=-2: new rows wait in bucket-postpone as avro files and are invisible; compaction moves them into real buckets."; then
spec <<X
{"fields":[{"name":"p","type":"STRING NOT NULL"},$PKF],"partitionKeys":["p"],"primaryKeys":["p","k"],"options":{"bucket":"-2","postpone.default-bucket-num":"2"}}
X
{ pk_rows 1 10 one | sed 's/"k":/"p":"a","k":/'; pk_rows 1 5 one | sed 's/"k":/"p":"b","k":/'; } | rows
step compact --table wh.db/t
{ pk_rows 8 14 two | sed 's/"k":/"p":"a","k":/'; pk_rows 2 2 x -D | sed 's/"k":/"p":"b","k":/'; } | rows
pk_rows 9 9 three | sed 's/"k":/"p":"a","k":/' | rows
finish; fi
if begin append-rolling "Append table, six files of 2000 rows, target-file-size 16 kb, open cost 1 b: bins of at least twice the target, several output files a bin."; then
spec <<X
{"fields":[{"name":"k","type":"INT"},{"name":"n","type":"BIGINT"}],"options":{"write-only":"true","target-file-size":"16 kb","source.split.open-file-cost":"1 b"}}
X
nar() { awk -v a=$1 -v n=$2 'BEGIN{srand(a);for(i=0;i<n;i++)printf "{\"k\":%d,\"n\":%d}\n",a*10000+i,int(rand()*1000000)}'; }
for k in 1 2 3 4 5 6; do nar $k $((900+k*50)) | rows; done
finish; fi
if begin append-partition-new-name "Append table with DATE, TIMESTAMP and BOOLEAN partition keys and partition.legacy-name=false: the directory shows the cast text."; then
spec <<X
{"fields":[{"name":"id","type":"INT"},{"name":"pd","type":"DATE"},{"name":"pt","type":"TIMESTAMP(3)"},{"name":"pb","type":"BOOLEAN"}],"partitionKeys":["pd","pt","pb"],"options":{"write-only":"true","partition.legacy-name":"false","compaction.min.file-num":"2"}}
X
for k in 1 2; do { echo "{\"id\":$k,\"pd\":\"2024-02-29\",\"pt\":\"2024-02-29T01:02:03.004\",\"pb\":true}"; echo "{\"id\":$k,\"pd\":null,\"pt\":\"1969-12-31T23:00:00.000\",\"pb\":false}"; } | rows; done
finish; fi
if begin append-partition-legacy-types "As append-partition-new-name with the default legacy names, and DECIMAL and BIGINT keys."; then
spec <<X
{"fields":[{"name":"id","type":"INT"},{"name":"pd","type":"DATE"},{"name":"pt","type":"TIMESTAMP(3)"},{"name":"pb","type":"BOOLEAN"},{"name":"pdec","type":"DECIMAL(10,2)"},{"name":"pl","type":"BIGINT"}],"partitionKeys":["pd","pt","pb","pdec","pl"],"options":{"write-only":"true","compaction.min.file-num":"2"}}
X
for k in 1 2; do { echo "{\"id\":$k,\"pd\":\"2024-02-29\",\"pt\":\"2024-02-29T01:02:03.004\",\"pb\":true,\"pdec\":\"12.50\",\"pl\":-7}"; echo "{\"id\":$k,\"pd\":null,\"pt\":\"1969-12-31T23:00:00.000\",\"pb\":false,\"pdec\":null,\"pl\":null}"; } | rows; done
finish; fi
if begin append-path-options "Append table with data-file.path-directory=data, data-file.prefix=part-, file.suffix.include.compression=true, manifest.compression=null: other paths and names."; then
spec <<X
{"fields":[{"name":"p","type":"INT"},{"name":"id","type":"INT"}],"partitionKeys":["p"],"options":{"write-only":"true","data-file.path-directory":"data","data-file.prefix":"part-","file.suffix.include.compression":"true","manifest.compression":"null"}}
X
for k in 1 2 3 4 5; do echo "{\"p\":1,\"id\":$k}" | rows; done
finish; fi
if begin append-manifest-orc "Append table with manifest.format=orc: manifests, lists and index manifests are orc."; then
spec <<X
{"fields":[{"name":"p","type":"INT"},{"name":"id","type":"INT"}],"partitionKeys":["p"],"options":{"write-only":"true","manifest.format":"orc"}}
X
for k in 1 2 3 4 5; do echo "{\"p\":1,\"id\":$k}" | rows; done
finish; fi
if begin statistics-watermark-properties "Append table with an ANALYZE snapshot, a watermark and snapshot properties: what the COMPACT snapshot takes over."; then
spec <<X
{"fields":[{"name":"id","type":"INT"}],"options":{"write-only":"true"}}
X
for k in 1 2 3 4; do echo "{\"id\":$k}" | rows; done
step analyze --table wh.db/t
echo '{"id":5}' | rows --watermark 1234567 --property who=peer
finish; fi
if begin append-row-tracking-deletion-vectors "Append table with row tracking and deletion vectors: six files, two with a vector; only those two are compacted."; then
spec <<X
{"fields":[{"name":"id","type":"INT"},{"name":"s","type":"STRING"}],"options":{"write-only":"true","row-tracking.enabled":"true","deletion-vectors.enabled":"true"}}
X
for k in 1 2 3 4 5 6; do { echo "{\"id\":$k,\"s\":\"a\"}"; echo "{\"id\":$((k+10)),\"s\":\"b\"}"; } | rows; done
step "delete --table wh.db/t --match '[{\"id\":2},{\"id\":13}]'"
ROWID=1
finish; fi

# ============================================================ formats
for f in orc avro; do
T=$ALL_TYPES
[ $f = orc ] || T=$(echo "$ALL_TYPES" | sed 's/TIMESTAMP(9)/TIMESTAMP(6)/; s/TIMESTAMP_LTZ(9)/TIMESTAMP_LTZ(6)/') # avro stops at 6
if begin append-$f "Append table of every type in $f."; then
spec <<X
{"fields":[{"name":"id","type":"INT NOT NULL"},$T],"options":{"write-only":"true","file.format":"$f"}}
X
for k in 0 1 2 3; do { all_rows $((k*5+1)) $((k*5+4)); nulls $((k*5+5)); } | rows; done; all_rows 30 33 | rows
finish; fi
done

if begin append-mixed-formats "Append table whose file.format was changed from parquet to orc to avro between commits; the last option decides the format of the result."; then
spec <<X
{"fields":[{"name":"id","type":"INT"},{"name":"name","type":"STRING"},{"name":"v","type":"DOUBLE"},{"name":"ts","type":"TIMESTAMP(3)"}],"options":{"write-only":"true"}}
X
seq_rows 1 5 | rows; seq_rows 6 10 | rows
alter '[{"op":"setOption","key":"file.format","value":"orc"}]'; seq_rows 11 15 | rows; seq_rows 16 20 | rows
alter '[{"op":"setOption","key":"file.format","value":"avro"}]'; seq_rows 21 25 | rows
alter '[{"op":"setOption","key":"file.format","value":"parquet"},{"op":"setOption","key":"file.compression","value":"snappy"}]'; seq_rows 26 30 | rows
finish; fi

# ============================================================ table state
if begin with-branch "Append table with tag t1, branch b1 from it and branch empty1 without one, both written to; compaction is of main."; then
spec <<X
{"fields":[{"name":"id","type":"INT"},{"name":"name","type":"STRING"},{"name":"v","type":"DOUBLE"},{"name":"ts","type":"TIMESTAMP(3)"}],"options":{"write-only":"true"}}
X
for k in 0 1 2; do seq_rows $((k*10+1)) $((k*10+5)) | rows; done
step tag --table wh.db/t --name t1; step branch --table wh.db/t --name b1 --tag t1; step branch --table wh.db/t --name empty1
for k in 3 4 5; do seq_rows $((k*10+1)) $((k*10+5)) | rows; done
for k in 6 7; do seq_rows $((k*10+1)) $((k*10+5)) | rows --branch b1; done
seq_rows 91 95 | rows --branch empty1
for b in b1 empty1; do step dump --table wh.db/t --branch $b --out expected-$b.jsonl; done
finish; fi

if begin with-tags "Append table with tags on snapshots 2 and 4, after snapshots 1 to 4 were expired: the tags hold files and manifests no snapshot has."; then
spec <<X
{"fields":[{"name":"id","type":"INT"},{"name":"name","type":"STRING"},{"name":"v","type":"DOUBLE"},{"name":"ts","type":"TIMESTAMP(3)"}],"options":{"write-only":"true"}}
X
for k in 0 1 2 3; do seq_rows $((k*10+1)) $((k*10+5)) | rows; done
step tag --table wh.db/t --name two --snapshot 2; step tag --table wh.db/t --name four
seq_rows 41 45 | rows; step compact --table wh.db/t
for k in 5 6 7 8 9; do seq_rows $((k*10+1)) $((k*10+5)) | rows; done
step expire --table wh.db/t --retain 4
step dump --table wh.db/t --tag two --out expected-tag-two.jsonl; step dump --table wh.db/t --tag four --out expected-tag-four.jsonl
finish; fi

if begin snapshot-expired "Append table with snapshots 1 to 6 expired: EARLIEST is 7."; then
spec <<X
{"fields":[{"name":"id","type":"INT"},{"name":"name","type":"STRING"},{"name":"v","type":"DOUBLE"},{"name":"ts","type":"TIMESTAMP(3)"}],"options":{"write-only":"true"}}
X
for k in 0 1 2 3 4 5 6 7; do seq_rows $((k*10+1)) $((k*10+5)) | rows; done
step expire --table wh.db/t --retain 2
finish; fi

if begin empty-table "A table without a snapshot."; then
spec <<X
{"fields":[{"name":"id","type":"INT"},{"name":"name","type":"STRING"}],"options":{"write-only":"true"}}
X
finish; fi

if begin empty-table-pk "A primary-key table without a snapshot."; then
spec <<X
{"fields":[$PKF],"primaryKeys":["k"],"options":{"write-only":"true","bucket":"1"}}
X
finish; fi

if begin overwritten "Append table with two commits, an insert overwrite of everything, and five commits more: DELETE entries in the manifests."; then
spec <<X
{"fields":[{"name":"id","type":"INT"},{"name":"name","type":"STRING"},{"name":"v","type":"DOUBLE"},{"name":"ts","type":"TIMESTAMP(3)"}],"options":{"write-only":"true"}}
X
seq_rows 1 5 | rows; seq_rows 6 10 | rows; seq_rows 11 15 | rows --overwrite
for k in 2 3 4 5 6; do seq_rows $((k*10+1)) $((k*10+5)) | rows; done
finish; fi

if begin many-files "Append table, 200 tiny files in ten commits of twenty."; then
spec <<X
{"fields":[{"name":"id","type":"INT"},{"name":"s","type":"STRING"}],"options":{"write-only":"true"}}
X
for k in 0 1 2 3 4 5 6 7 8 9; do awk -v k=$k 'BEGIN{for(i=0;i<40;i++)printf "{\"id\":%d,\"s\":\"s%d\"}\n",k*40+i,i%7}' | rows --split 20; done
finish; fi

if begin many-manifests "Append table, 35 commits of one row: the base manifests are merged (manifest.merge-min-count 30)."; then
spec <<X
{"fields":[{"name":"id","type":"INT"}],"options":{"write-only":"true"}}
X
for k in $(seq 1 35); do echo "{\"id\":$k}" | rows; done
step expire --table wh.db/t --retain 3
finish; fi

[ ${#FAILED[@]} -eq 0 ] || { echo "FAILED: ${FAILED[*]}" >&2; exit 1; }
