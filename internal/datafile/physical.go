package datafile

import (
	"fmt"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/schema"

	"tablectl/internal/merge"
	"tablectl/internal/types"
)

// physical makes what moves the values of one physical type of Parquet.
type physical interface {
	// check refuses a column that cannot hold the declared type.
	check(t types.Type, column *schema.Column) error
	mover(p plan, column *schema.Column, dst taker) (mover, error)
	sink(l leaf, column *schema.Column, pageSize int64) (sink, error)
	sortColumn(l leaf, column *schema.Column, index int, runs []*run) (sortColumn, error)
	merged(l leaf, column *schema.Column, index int, runs []*run, f merge.Function, dst sink) (gatheredLeaf, error)
}

// physicalOf finds what is made for a column.
func physicalOf(column *schema.Column) (physical, error) {
	switch column.PhysicalType() {
	case parquet.Types.Boolean:
		return values[bool]{}, nil
	case parquet.Types.Int32:
		return values[int32]{}, nil
	case parquet.Types.Int64:
		return values[int64]{}, nil
	case parquet.Types.Int96:
		return values[parquet.Int96]{}, nil
	case parquet.Types.Float:
		return values[float32]{}, nil
	case parquet.Types.Double:
		return values[float64]{}, nil
	case parquet.Types.ByteArray:
		return values[parquet.ByteArray]{}, nil
	case parquet.Types.FixedLenByteArray:
		return values[parquet.FixedLenByteArray]{}, nil
	}
	return nil, fmt.Errorf("physical type %s: %w", column.PhysicalType(), ErrUnsupported)
}

// values is the physical type whose values are T.
type values[T parquet.ColumnTypes] struct{}

func (values[T]) check(t types.Type, column *schema.Column) error {
	_, err := decoder[T](t, column)
	return err
}

func (values[T]) mover(p plan, column *schema.Column, dst taker) (mover, error) {
	return newMover[T](p, column, dst)
}

func (values[T]) sink(l leaf, column *schema.Column, pageSize int64) (sink, error) {
	return newSink[T](l, column, pageSize)
}

func (values[T]) sortColumn(l leaf, column *schema.Column, index int, runs []*run) (sortColumn, error) {
	return newTypedSort[T](l, column, index, runs)
}

func (values[T]) merged(l leaf, column *schema.Column, index int, runs []*run, f merge.Function, dst sink) (gatheredLeaf, error) {
	return newTypedMerge[T](l, column, index, runs, f, dst)
}
