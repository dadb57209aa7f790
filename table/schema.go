package table

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"tablectl/internal/types"
)

// Schema is one version of a table's definition, the content of a file
// schema/schema-<id> (reference: TableSchema, SchemaSerializer).
type Schema struct {
	Version        int
	ID             int64
	Fields         []types.Field
	HighestFieldID int
	PartitionKeys  []string
	PrimaryKeys    []string
	Options        map[string]string
	Comment        *string
	TimeMillis     int64
}

// currentSchemaVersion is the newest layout of schema files that is known.
const currentSchemaVersion = 3

// ParseSchema reads a schema file. Members that are not known are ignored, as
// the reference does; what is known must have its type.
func ParseSchema(data []byte) (*Schema, error) {
	var raw struct {
		Version        *int              `json:"version"`
		ID             *int64            `json:"id"`
		Fields         json.RawMessage   `json:"fields"`
		HighestFieldID int               `json:"highestFieldId"`
		PartitionKeys  []string          `json:"partitionKeys"`
		PrimaryKeys    []string          `json:"primaryKeys"`
		Options        map[string]string `json:"options"`
		Comment        *string           `json:"comment"`
		TimeMillis     int64             `json:"timeMillis"`
	}
	if err := json.Unmarshal(data, &raw); err != nil {
		return nil, fmt.Errorf("parse schema: %w", err)
	}
	if raw.ID == nil || len(raw.Fields) == 0 {
		return nil, errors.New("parse schema: member \"id\" or \"fields\" is missing")
	}
	fields, err := types.ParseFields(raw.Fields)
	if err != nil {
		return nil, fmt.Errorf("parse schema: %w", err)
	}
	s := &Schema{
		Version: 1, ID: *raw.ID, Fields: fields, HighestFieldID: raw.HighestFieldID,
		PartitionKeys: raw.PartitionKeys, PrimaryKeys: raw.PrimaryKeys, Options: raw.Options,
		Comment: raw.Comment, TimeMillis: raw.TimeMillis,
	}
	if raw.Version != nil {
		s.Version = *raw.Version
	}
	if s.Options == nil {
		s.Options = map[string]string{}
	}
	// Files of older layouts rely on defaults that have changed since.
	if _, ok := s.Options["bucket"]; !ok && s.Version <= 1 {
		s.Options["bucket"] = "1"
	}
	if _, ok := s.Options["file.format"]; !ok && s.Version <= 2 {
		s.Options["file.format"] = "orc"
	}
	return s, s.check()
}

func (s *Schema) check() error {
	if s.Version < 1 || s.Version > currentSchemaVersion {
		return fmt.Errorf("schema %d has the version %d, newer than %d: %w", s.ID, s.Version, currentSchemaVersion, ErrUnsupported)
	}
	names, ids := map[string]bool{}, map[int]bool{}
	for _, f := range s.Fields {
		if names[f.Name] || ids[f.ID] {
			return fmt.Errorf("schema %d names the column %q or its id %d twice", s.ID, f.Name, f.ID)
		}
		names[f.Name], ids[f.ID] = true, true
	}
	for _, k := range slices.Concat(s.PartitionKeys, s.PrimaryKeys) {
		if !names[k] {
			return fmt.Errorf("schema %d has no column for its key %q", s.ID, k)
		}
	}
	for _, f := range s.PartitionFields() {
		if !f.Type.Scalar() {
			return fmt.Errorf("schema %d is partitioned by %q, a column of type %s: %w", s.ID, f.Name, f.Type, ErrUnsupported)
		}
	}
	return s.checkKeys()
}

// Field returns the column of that name.
func (s *Schema) Field(name string) (types.Field, bool) {
	i := slices.IndexFunc(s.Fields, func(f types.Field) bool { return f.Name == name })
	if i < 0 {
		return types.Field{}, false
	}
	return s.Fields[i], true
}

// PartitionFields returns the partition columns in the order of the partition keys.
func (s *Schema) PartitionFields() []types.Field {
	fields := make([]types.Field, 0, len(s.PartitionKeys))
	for _, k := range s.PartitionKeys {
		f, _ := s.Field(k)
		fields = append(fields, f)
	}
	return fields
}

// PartitionTypes returns the types of the partition columns, in the order in
// which a partition row holds them.
func (s *Schema) PartitionTypes() []types.Type {
	fields := s.PartitionFields()
	ts := make([]types.Type, len(fields))
	for i, f := range fields {
		ts[i] = f.Type
	}
	return ts
}
