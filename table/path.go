package table

import (
	"context"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"time"
	"unicode"

	"tablectl/internal/binrow"
	"tablectl/internal/fileio"
	"tablectl/internal/types"
)

// The folders and files of a table, as the reference's FileStorePathFactory
// and its managers lay them out. Names that come from metadata pass through
// safeSegment: no path may leave the table.

func (t *Table) root() string {
	if t.Branch == "" {
		return t.Location
	}
	return path.Join(t.Location, "branch", "branch-"+t.Branch)
}

// SchemaDir is the folder of the branch's schema files.
func (t *Table) SchemaDir() string { return path.Join(t.root(), "schema") }

// SnapshotDir is the folder of the branch's snapshots and hints.
func (t *Table) SnapshotDir() string { return path.Join(t.root(), "snapshot") }

// SnapshotPath is the file of the snapshot with that id.
func (t *Table) SnapshotPath(id int64) string {
	return path.Join(t.SnapshotDir(), fmt.Sprintf("snapshot-%d", id))
}

// ManifestPath is the file of a manifest, a manifest list or an index manifest.
// Branches share the folder with the main branch.
func (t *Table) ManifestPath(name string) (string, error) {
	if !safeSegment(name) {
		return "", fmt.Errorf("manifest name %q is not a file name", name)
	}
	return path.Join(t.Location, "manifest", name), nil
}

// BucketDir is the folder of a bucket's data files. The partition is the
// serialized row that manifests hold.
func (t *Table) BucketDir(partition []byte, bucket int) (string, error) {
	values, err := binrow.Decode(partition, t.Schema.PartitionTypes())
	if err != nil {
		return "", fmt.Errorf("read partition %x: %w", partition, err)
	}
	parts := []string{t.Location, t.Options.DataFilePath}
	for i, f := range t.Schema.PartitionFields() {
		parts = append(parts, escapePath(f.Name)+"="+escapePath(t.partitionText(f.Type, values[i])))
	}
	name := fmt.Sprintf("bucket-%d", bucket)
	if bucket == PostponeBucket {
		name = "bucket-postpone"
	}
	return path.Join(append(parts, name)...), nil
}

// PostponeBucket is the number of the bucket that holds rows not yet routed.
const PostponeBucket = -2

// FilePath is the path of a file in a bucket's folder.
func (t *Table) FilePath(partition []byte, bucket int, name string) (string, error) {
	if !safeSegment(name) {
		return "", fmt.Errorf("data file name %q is not a file name", name)
	}
	dir, err := t.BucketDir(partition, bucket)
	return path.Join(dir, name), err
}

// PartitionName is the partition for people: k1=v1,k2=v2, or "" for a table
// without partitions.
func (t *Table) PartitionName(partition []byte) string {
	values, err := binrow.Decode(partition, t.Schema.PartitionTypes())
	if err != nil {
		return fmt.Sprintf("%x", partition)
	}
	parts := make([]string, len(values))
	for i, f := range t.Schema.PartitionFields() {
		text := types.Format(f.Type, values[i])
		if strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
			text = strconv.Quote(text)
		}
		parts[i] = f.Name + "=" + text
	}
	return strings.Join(parts, ",")
}

// BucketName is a bucket for people.
func (t *Table) BucketName(partition []byte, bucket int32) string {
	if name := t.PartitionName(partition); name != "" {
		return fmt.Sprintf("partition (%s) bucket %d", name, bucket)
	}
	return fmt.Sprintf("bucket %d", bucket)
}

// partitionText is the text of a partition value in its folder's name.
func (t *Table) partitionText(typ types.Type, v types.Value) string {
	if v.Null {
		return t.Options.DefaultPartition
	}
	text := types.Format(typ, v)
	switch typ.Kind {
	case types.Float:
		text = types.JavaFloat(v.Float, 32)
	case types.Double:
		text = types.JavaFloat(v.Float, 64)
	case types.Date:
		if t.Options.LegacyPartition {
			text = strconv.FormatInt(v.Int, 10)
		}
	case types.Time:
		if t.Options.LegacyPartition {
			text = strconv.FormatInt(v.Int, 10)
		}
	case types.Timestamp, types.TimestampLTZ:
		if t.Options.LegacyPartition {
			text = javaLocalDateTime(v)
		} else {
			text = types.FormatTimestamp(localWallClock(typ, v), typ.Precision)
		}
	case types.Binary, types.Varbinary:
		text = string(v.Bytes)
	}
	if !strings.ContainsFunc(text, notJavaBlank) {
		return t.Options.DefaultPartition
	}
	return text
}

// localWallClock turns an instant into what clocks in the time zone of this process
// show, as the reference does for TIMESTAMP WITH LOCAL TIME ZONE.
func localWallClock(typ types.Type, v types.Value) types.Value {
	if typ.Kind == types.TimestampLTZ {
		_, offset := time.UnixMilli(v.Int).Zone()
		v.Int += int64(offset) * 1000
	}
	return v
}

// notJavaBlank is the opposite of Java's Character.isWhitespace, which knows no
// spaces that do not break.
func notJavaBlank(r rune) bool {
	switch {
	case r >= '\t' && r <= '\r', r >= 0x1c && r <= 0x1f:
		return false
	case r == 0xa0, r == 0x2007, r == 0x202f:
		return true
	}
	return !unicode.In(r, unicode.Zs, unicode.Zl, unicode.Zp)
}

// javaLocalDateTime writes a timestamp as Java's LocalDateTime.toString does:
// seconds only where there are any, fractions in groups of three digits.
func javaLocalDateTime(v types.Value) string {
	s := strings.Replace(types.FormatTimestamp(v, 9), " ", "T", 1)
	head, fraction, _ := strings.Cut(s, ".")
	switch {
	case fraction == "000000000":
		return strings.TrimSuffix(head, ":00")
	case strings.HasSuffix(fraction, "000000"):
		return head + "." + fraction[:3]
	case strings.HasSuffix(fraction, "000"):
		return head + "." + fraction[:6]
	}
	return s
}

const escapedChars = "\"#%'*/:=?\\{}[]^\x7f"

// escapePath escapes the characters that have a meaning in paths as %XX; every
// other one, non-ASCII and blanks included, stays.
func escapePath(s string) string {
	var b strings.Builder
	for i := range len(s) {
		if c := s[i]; c < 0x20 || strings.IndexByte(escapedChars, c) >= 0 {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// safeSegment reports whether a name stays within its folder.
func safeSegment(name string) bool {
	return name != "" && name != "." && name != ".." && !strings.ContainsAny(name, "/\\\x00")
}

// safePath reports whether a relative path stays within its folder.
func safePath(p string) bool {
	for seg := range strings.SplitSeq(p, "/") {
		if !safeSegment(seg) {
			return false
		}
	}
	return true
}

// CheckBucketDir makes sure that a bucket's folder is where its existing files
// are, by looking for one of them: nothing in the metadata names the folder, so
// a wrong encoding of a partition would write files where no reader looks.
func (t *Table) CheckBucketDir(ctx context.Context, partition []byte, bucket int, existing string) error {
	p, err := t.FilePath(partition, bucket, existing)
	if err != nil {
		return err
	}
	found, err := fileio.Exists(ctx, t.IO, p)
	if err != nil {
		return fmt.Errorf("look for data file %s: %w", p, err)
	}
	if !found {
		return fmt.Errorf("data file %s is missing: it is live in the latest snapshot but not where %s keeps its files: %w",
			p, t.BucketName(partition, int32(bucket)), fs.ErrNotExist)
	}
	return nil
}
