//go:build interop

package interop

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// A tableFiles is the files output of the Java peer, as far as single members matter.
type tableFiles struct {
	Snapshots []struct {
		ID   int64  `json:"id"`
		Kind string `json:"kind"`
		User string `json:"user"`
	} `json:"snapshots"`
	Files []liveFile `json:"files"`
}

type liveFile struct {
	FileName string `json:"fileName"`
	RowCount int64  `json:"rowCount"`
}

// latest is the id of the latest snapshot, 0 when there is none.
func (f tableFiles) latest() int64 {
	if len(f.Snapshots) == 0 {
		return 0
	}
	return f.Snapshots[len(f.Snapshots)-1].ID
}

// without are the live files that other does not have.
func (f tableFiles) without(other tableFiles) []liveFile {
	return slices.DeleteFunc(slices.Clone(f.Files), func(file liveFile) bool {
		return slices.Contains(other.Files, file)
	})
}

// listTo has Java list a table and returns the file that it wrote.
func listTo(t *testing.T, tbl table) (string, error) {
	t.Helper()
	out := filepath.Join(t.TempDir(), "files.json")
	failures, err := sharedJava.run(step("files", tbl, "--out", out))
	return out, errors.Join(append(failures, err)...)
}

// readList decodes what listTo wrote.
func readList(t *testing.T, file string) tableFiles {
	t.Helper()
	var f tableFiles
	readJSON(t, file, &f)
	return f
}

// filesNotPages is why fixtures whose target size is less than a page become fewer files.
const filesNotPages = "Java counts the pages in progress as if they were not compressed, so its files are half the target size, " +
	"and a second run would merge them again; tablectl estimates what they become"

const (
	equalSequences = "which of the files with the same least sequence number come first is the order of a heap in Java; tablectl takes them as the manifests have them"
	onePick        = "Java picks once more before it commits; tablectl leaves that to the next run, which knows the size of what was written"
	noBoundsForNaN = "the column holds NaN, so tablectl keeps no bounds; Java keeps NaN as the maximum, and readers that order it otherwise skip files"
	oldBuckets     = "Java compacts only the partition that has as many buckets as the table; tablectl also the one that was written before"
)

// minorSuffix is what the name of a fixture has in allowedDifferences when the compaction is a minor one.
const minorSuffix = " (minor)"

// allowedDifferences are the places where a table that tablectl compacted may differ from what Java makes
// of it, and why. Fixture and place are patterns as of path.Match; the place "raw" is the stored records.
var allowedDifferences = []struct{ fixture, place, why string }{
	{
		"many-files", "files/*/valueStats/*/*",
		"Java packs files of equal size in the order of a hash set, which differs from one JVM to the next",
	},
	{
		"append-rolling", "files", filesNotPages,
	},
	{
		"append-rolling", "deltaManifests/*/entries", filesNotPages,
	},
	{
		"append-rolling", "deltaManifests/*/numAddedFiles", filesNotPages,
	},
	{
		"append-bucketed-partitioned-unordered (minor)", "files/*/*", equalSequences,
	},
	{
		"append-bucketed-partitioned-unordered (minor)", "files/*/valueStats/*/*", equalSequences,
	},
	{
		"pk-two-rounds (minor)", "files", onePick,
	},
	{
		"pk-two-rounds (minor)", "deltaManifests/0/*", onePick,
	},
	{
		"pk-two-rounds (minor)", "snapshot/*RecordCount", onePick,
	},
	{
		"append-all-types", "files/*/valueStats/d/[01]", noBoundsForNaN,
	},
	{
		"pk-all-types*", "files/*/valueStats/d/[01]", noBoundsForNaN,
	},
	{
		"pk-composite-key-types*", "files/*/*Stats/kf/[01]", noBoundsForNaN,
	},
	{
		"pk-rolling*", "files", filesNotPages,
	},
	{
		"pk-rolling*", "deltaManifests/*/entries", filesNotPages,
	},
	{
		"pk-rolling*", "deltaManifests/*/numAddedFiles", filesNotPages,
	},
	{
		"pk-rescaled-bucket", "*", oldBuckets,
	},
	{
		"pk-rescaled-bucket", "*/*", oldBuckets,
	},
	{
		"pk-rescaled-bucket", "deltaManifests/*/*", oldBuckets,
	},
	{
		"pk-rescaled-bucket", "deltaManifests/*/partitionStats/p/*", oldBuckets,
	},
}

// allowed is why a difference is allowed, empty when it is not.
func allowed(fixture, place string) string {
	for _, a := range allowedDifferences {
		fixtureOK, _ := path.Match(a.fixture, fixture)
		placeOK, _ := path.Match(a.place, place)
		if fixtureOK && placeOK {
			return a.why
		}
	}
	return ""
}

// The members of the files output that differ from run to run.
var (
	volatileSnapshot = []string{
		"baseManifestList", "baseManifestListSize", "deltaManifestList", "deltaManifestListSize",
		"commitUser", "timeMillis",
	}
	volatileManifest = []string{"fileName", "fileSize"}
	volatileFile     = []string{"fileName", "fileSize", "creationTime"}
)

// essentials is what two runs of the same compaction have in common: the files output without its
// volatile members, with live files and manifest entries in an order that does not depend on names.
func essentials(t *testing.T, doc map[string]any) any {
	t.Helper()
	snapshots := doc["snapshots"].([]any)
	all := map[string]any{"number of snapshots": len(snapshots)}
	snapshot, ok := doc["snapshot"].(map[string]any)
	if !ok {
		return all
	}
	all["snapshot"] = omit(snapshot, volatileSnapshot...)
	for _, key := range []string{"baseManifests", "deltaManifests"} {
		var manifests []any
		for _, m := range doc[key].([]any) {
			manifest := omit(m.(map[string]any), volatileManifest...)
			manifest["entries"] = withoutNames(manifest["entries"].([]any))
			manifests = append(manifests, manifest)
		}
		all[key] = manifests
	}
	all["indexEntries"] = doc["indexEntries"]
	files := make([]any, 0, len(doc["files"].([]any)))
	for _, f := range doc["files"].([]any) {
		file := omit(f.(map[string]any), volatileFile...)
		file["number of extraFiles"] = len(file["extraFiles"].([]any))
		file["has embedded index"] = file["embeddedIndexBytes"] != nil
		files = append(files, omit(file, "extraFiles", "embeddedIndexBytes"))
	}
	slices.SortFunc(files, func(a, b any) int { return strings.Compare(fileOrder(t, a), fileOrder(t, b)) })
	all["files"] = files
	return all
}

// withoutNames are the entries of a manifest, texts that end with the name of a data file, without it.
func withoutNames(entries []any) []any {
	short := make([]string, len(entries))
	for i, e := range entries {
		text := e.(string)
		short[i] = text[:strings.LastIndexByte(text, ' ')]
	}
	slices.Sort(short)
	out := make([]any, len(short))
	for i, s := range short {
		out[i] = s
	}
	return out
}

// fileOrder is a text that sorts live files by what places them in a table first.
func fileOrder(t *testing.T, file any) string {
	t.Helper()
	m := file.(map[string]any)
	text, err := json.Marshal([]any{
		m["partition"], m["bucket"], m["level"], m["minSequenceNumber"], m["maxSequenceNumber"], m["rowCount"], m,
	})
	if err != nil {
		t.Fatalf("encoding a file: %v", err)
	}
	return string(text)
}

// readDocument decodes a file and keeps numbers as they are written.
func readDocument(t *testing.T, file string) map[string]any {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var doc map[string]any
	if err := dec.Decode(&doc); err != nil {
		t.Fatalf("decoding %s: %v", file, err)
	}
	return doc
}

func omit(m map[string]any, keys ...string) map[string]any {
	rest := maps.Clone(m)
	for _, key := range keys {
		delete(rest, key)
	}
	return rest
}

// A difference is a member that two JSON documents do not share.
type difference struct {
	path      string // members and indexes, separated by slashes
	want, got any
}

func (d difference) String() string {
	return fmt.Sprintf("%s is %s, want %s", d.path, jsonText(d.got), jsonText(d.want))
}

func jsonText(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	const width = 400
	return fmt.Sprintf("%.*s", width, text)
}

// compare lists the differences of two JSON documents. A missing member equals null.
func compare(at string, want, got any) []difference {
	var all []difference
	switch w := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok {
			break
		}
		keys := maps.Clone(w)
		maps.Copy(keys, g)
		for _, key := range slices.Sorted(maps.Keys(keys)) {
			all = append(all, compare(path.Join(at, key), w[key], g[key])...)
		}
		return all
	case []any:
		g, ok := got.([]any)
		if !ok || len(g) != len(w) {
			break
		}
		for i := range w {
			all = append(all, compare(fmt.Sprintf("%s/%d", at, i), w[i], g[i])...)
		}
		return all
	}
	if !reflect.DeepEqual(want, got) {
		all = append(all, difference{at, want, got})
	}
	return all
}
