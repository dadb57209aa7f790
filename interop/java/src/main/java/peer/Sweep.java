package peer;

import java.io.PrintStream;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import org.apache.paimon.data.BinaryRow;
import org.apache.paimon.data.InternalRow;
import org.apache.paimon.data.serializer.InternalRowSerializer;
import org.apache.paimon.predicate.Predicate;
import org.apache.paimon.predicate.PredicateBuilder;
import org.apache.paimon.table.FileStoreTable;
import org.apache.paimon.table.Table;
import org.apache.paimon.types.DataType;
import org.apache.paimon.types.RowType;

/** sweep: the predicates that lose rows when they are pushed down. */
final class Sweep {
    private Sweep() {}

    static void sweep(Args a, PrintStream out) throws Exception {
        FileStoreTable t = Reading.openAt(a);
        int most = (int) a.num("values", 20);
        InternalRowSerializer copier = new InternalRowSerializer(t.rowType());
        List<InternalRow> all = new ArrayList<>();
        Reading.scan(t, null, r -> all.add(copier.copy(r)));
        List<Predicate> predicates = new ArrayList<>();
        for (int c = 0; c < t.rowType().getFieldCount(); c++) {
            of(t.rowType(), c, all, most, predicates);
        }
        for (Predicate p : predicates) {
            try {
                long lost = lost(t, all, p);
                if (lost > 0) {
                    out.println(p + " loses " + lost + " rows");
                }
            } catch (Exception | LinkageError e) {
                out.println(p + ": " + e);
            }
        }
    }

    /** Predicates with up to so many values of a column. */
    private static void of(
            RowType type, int c, List<InternalRow> rows, int most, List<Predicate> predicates) {
        DataType column = type.getTypeAt(c);
        switch (column.getTypeRoot()) {
            case ARRAY:
            case MAP:
            case MULTISET:
            case ROW:
            case VARIANT:
            case BINARY: // which Paimon cannot compare when it prunes
            case VARBINARY:
                return;
            default:
        }
        PredicateBuilder b = new PredicateBuilder(type);
        InternalRow.FieldGetter getter = InternalRow.createFieldGetter(column, c);
        TreeSet<Comparable<Object>> distinct = new TreeSet<>();
        for (InternalRow r : rows) {
            @SuppressWarnings("unchecked")
            Comparable<Object> v = (Comparable<Object>) getter.getFieldOrNull(r);
            if (v != null) {
                distinct.add(v);
            }
        }
        List<Object> sorted = new ArrayList<>(distinct);
        List<Object> values = new ArrayList<>();
        for (int i = 0; i < Math.min(most, sorted.size()); i++) {
            values.add(sorted.get(i * (sorted.size() - 1) / Math.max(1, Math.min(most, sorted.size()) - 1)));
        }
        predicates.add(b.isNull(c));
        predicates.add(b.isNotNull(c));
        for (Object v : values) {
            predicates.add(b.equal(c, v));
            predicates.add(b.notEqual(c, v));
            predicates.add(b.lessThan(c, v));
            predicates.add(b.lessOrEqual(c, v));
            predicates.add(b.greaterThan(c, v));
            predicates.add(b.greaterOrEqual(c, v));
        }
        if (values.size() > 1) {
            predicates.add(b.in(c, values.subList(0, 2)));
            predicates.add(b.notIn(c, values.subList(0, 2)));
        }
    }

    /** How many rows that the predicate selects are not read when it is pushed down. */
    private static long lost(Table t, List<InternalRow> all, Predicate p) throws Exception {
        InternalRowSerializer s = new InternalRowSerializer(t.rowType());
        Map<BinaryRow, Long> read = new HashMap<>();
        Reading.scan(t, p, r -> read.merge(s.toBinaryRow(r).copy(), 1L, Long::sum));
        long lost = 0;
        for (InternalRow r : all) {
            if (p.test(r) && read.merge(s.toBinaryRow(r).copy(), -1L, Long::sum) < 0) {
                lost++;
            }
        }
        return lost;
    }
}
