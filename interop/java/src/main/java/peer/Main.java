package peer;

import java.io.BufferedReader;
import java.io.FileOutputStream;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.paimon.options.ExpireConfig;
import org.apache.paimon.table.FileStoreTable;

/** Entry point, see README.md. */
public final class Main {
    private Main() {}

    public static void main(String[] argv) throws Exception {
        if (argv.length == 0) {
            System.err.println(
                    "usage: create|drop|write|delete|analyze|alter|compact|dump|sweep|count|files|inspect|gen|tag|"
                            + "branch|expire|copy|say|batch ...");
            System.exit(2);
        }
        try {
            run(Arrays.asList(argv));
        } catch (Throwable e) {
            e.printStackTrace();
            System.exit(1);
        }
        System.exit(0);
    }

    static void run(List<String> words) throws Exception {
        if (words.get(0).equals("batch")) {
            batch(words.size() > 1 ? words.get(1) : "-");
            return;
        }
        Args a = new Args(words);
        String to = a.get("out");
        try (PrintStream out = to == null
                ? new PrintStream(new Unclosed(System.out), true, StandardCharsets.UTF_8)
                : new PrintStream(new FileOutputStream(to), false, StandardCharsets.UTF_8)) {
            one(a, out);
        }
    }

    private static void one(Args a, PrintStream out) throws Exception {
        switch (a.cmd) {
            case "create":
                Tables.create(a);
                return;
            case "drop":
                Tables.drop(a);
                return;
            case "alter":
                Tables.alter(a);
                return;
            case "write":
                Writing.write(a);
                return;
            case "delete":
                Writing.delete(a);
                return;
            case "analyze":
                Writing.analyze(a);
                return;
            case "compact":
                out.println(
                        a.flag("pretty")
                                ? Values.MAPPER.writerWithDefaultPrettyPrinter()
                                        .writeValueAsString(Compacting.compact(a))
                                : Values.MAPPER.writeValueAsString(Compacting.compact(a)));
                return;
            case "dump":
                Reading.dump(a, out);
                return;
            case "sweep":
                Sweep.sweep(a, out);
                return;
            case "count":
                out.println(Reading.count(a));
                return;
            case "files":
                out.println(
                        Values.MAPPER
                                .writerWithDefaultPrettyPrinter()
                                .writeValueAsString(Listing.files(a)));
                return;
            case "inspect":
                Inspect.inspect(a, out);
                return;
            case "gen":
                Gen.gen(a, out);
                return;
            case "tag":
                FileStoreTable t = Tables.open(a);
                if (a.get("snapshot") == null) {
                    t.createTag(a.need("name"));
                } else {
                    t.createTag(a.need("name"), a.num("snapshot", 0));
                }
                return;
            case "branch":
                FileStoreTable b = Tables.open(a);
                if (a.get("tag") == null) {
                    b.createBranch(a.need("name"));
                } else {
                    b.createBranch(a.need("name"), a.get("tag"));
                }
                return;
            case "expire":
                FileStoreTable e = Tables.open(a);
                int n = (int) a.num("retain", 1);
                int gone =
                        e.newExpireSnapshots()
                                .config(
                                        ExpireConfig.builder()
                                                .snapshotRetainMin(n)
                                                .snapshotRetainMax(n)
                                                .snapshotTimeRetain(Duration.ZERO)
                                                .build())
                                .expire();
                out.println(gone);
                return;
            case "rollback":
                Tables.open(a).rollbackTo(a.num("to", 1));
                return;
            case "drop-partition":
                Writing.dropPartition(a);
                return;
            case "say":
                out.println(a.need("text"));
                return;
            case "copy":
                copy(Paths.get(a.need("from")), Paths.get(a.need("to")));
                return;
            default:
                throw new IllegalArgumentException("unknown command " + a.cmd);
        }
    }

    private static void copy(java.nio.file.Path from, java.nio.file.Path to) throws Exception {
        try (java.util.stream.Stream<java.nio.file.Path> all = Files.walk(from)) {
            for (java.nio.file.Path p : (Iterable<java.nio.file.Path>) all::iterator) {
                java.nio.file.Path q = to.resolve(from.relativize(p).toString());
                if (Files.isDirectory(p)) {
                    Files.createDirectories(q);
                } else {
                    Files.createDirectories(q.getParent());
                    Files.copy(p, q, java.nio.file.StandardCopyOption.REPLACE_EXISTING);
                }
            }
        }
    }

    /** Commands one a line, words as a shell splits them ('..' and ".." quote, # comments). */
    private static void batch(String file) throws Exception {
        BufferedReader in =
                file.equals("-")
                        ? new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8))
                        : Files.newBufferedReader(Paths.get(file));
        String line;
        int no = 0;
        while ((line = in.readLine()) != null) {
            no++;
            List<String> words = split(line);
            if (words.isEmpty()) {
                continue;
            }
            boolean may = words.get(0).equals("try"); // a failure is reported, not fatal
            if (may) {
                words.remove(0);
            }
            try {
                run(words);
            } catch (Throwable e) {
                if (!may) {
                    throw new RuntimeException("line " + no + ": " + line, e);
                }
                Throwable c = e;
                while (c.getCause() != null) {
                    c = c.getCause();
                }
                System.out.println("FAILED " + line + " : " + c);
            }
        }
    }

    static List<String> split(String s) {
        List<String> out = new ArrayList<>();
        StringBuilder w = null;
        for (int i = 0; i < s.length(); i++) {
            char c = s.charAt(i);
            if (c == '\'' || c == '"') {
                int end = s.indexOf(c, i + 1);
                w = w == null ? new StringBuilder() : w;
                w.append(s, i + 1, end);
                i = end;
            } else if (Character.isWhitespace(c)) {
                if (w != null) {
                    out.add(w.toString());
                    w = null;
                }
            } else if (c == '#' && w == null) {
                break;
            } else {
                w = w == null ? new StringBuilder() : w;
                w.append(c);
            }
        }
        if (w != null) {
            out.add(w.toString());
        }
        return out;
    }

    private static final class Unclosed extends OutputStream {
        private final OutputStream to;

        Unclosed(OutputStream to) {
            this.to = to;
        }

        @Override
        public void write(int b) throws java.io.IOException {
            to.write(b);
        }

        @Override
        public void write(byte[] b, int off, int len) throws java.io.IOException {
            to.write(b, off, len);
        }

        @Override
        public void flush() throws java.io.IOException {
            to.flush();
        }

        @Override
        public void close() throws java.io.IOException {
            to.flush();
        }
    }

}
