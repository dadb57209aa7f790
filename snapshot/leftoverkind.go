package snapshot

import (
	"cmp"
	"path"
	"slices"
	"strings"
)

// temporaryKind knows the files that are written under another name first, as
// writers do who publish by renaming.
func temporaryKind(name string) LeftoverKind {
	if strings.HasSuffix(name, ".tmp") {
		return LeftoverTemporary
	}
	return ""
}

func manifestKind(name string) LeftoverKind {
	switch {
	case temporaryKind(name) != "":
		return LeftoverTemporary
	case strings.HasPrefix(name, "manifest-list-"):
		return LeftoverManifestList
	case strings.HasPrefix(name, "manifest-"):
		return LeftoverManifest
	case strings.HasPrefix(name, "index-manifest-"):
		return LeftoverIndexManifest
	}
	return ""
}

func indexKind(name string) LeftoverKind {
	if strings.HasPrefix(name, "index-") && temporaryKind(name) == "" {
		return LeftoverIndex
	}
	return temporaryKind(name)
}

func statisticsKind(name string) LeftoverKind {
	if strings.HasPrefix(name, "stat-") && temporaryKind(name) == "" {
		return LeftoverStatistics
	}
	return temporaryKind(name)
}

// dataFormats are the ends of data files' names. Those of blobs and vectors are not
// among them: packs of blobs are managed by other rules.
var dataFormats = []string{".parquet", ".orc", ".avro", ".csv", ".json", ".text", ".lance"}

// dataKind tells the kind of a file in a bucket's folder.
func (c *candidates) dataKind(name string) LeftoverKind {
	if temporaryKind(name) != "" {
		return LeftoverTemporary
	}
	switch path.Ext(name) {
	case ".index":
		return LeftoverFileIndex
	case ".row", ".lookup":
		return LeftoverSidecar
	case "":
		return indexKind(name) // index-file-in-data-file-dir
	}
	// Text formats have the end of their compression behind that of the format.
	format, under := path.Ext(name), path.Ext(strings.TrimSuffix(name, path.Ext(name)))
	if !slices.Contains(dataFormats, format) && !slices.Contains(dataFormats, under) {
		return ""
	}
	if strings.HasPrefix(name, cmp.Or(c.table.Options.Raw["changelog-file.prefix"], "changelog-")) {
		return LeftoverChangelog
	}
	return LeftoverData
}
