import com.alibaba.otter.canal.parse.driver.mysql.packets.server.ResultSetPacket;
import com.alibaba.otter.canal.parse.inbound.mysql.MysqlConnection;
import com.alibaba.otter.canal.parse.inbound.mysql.dbsync.LogEventConvert;
import com.alibaba.otter.canal.parse.inbound.mysql.dbsync.TableMetaCache;
import com.alibaba.otter.canal.parse.inbound.mysql.tsdb.MemoryTableMeta;
import com.alibaba.otter.canal.protocol.CanalEntry;
import com.taobao.tddl.dbsync.binlog.LogBuffer;
import com.taobao.tddl.dbsync.binlog.LogContext;
import com.taobao.tddl.dbsync.binlog.LogDecoder;
import com.taobao.tddl.dbsync.binlog.LogEvent;
import com.taobao.tddl.dbsync.binlog.LogPosition;
import com.taobao.tddl.dbsync.binlog.event.RowsLogEvent;
import com.sun.management.OperatingSystemMXBean;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * CanalRows ROUNDS FILE...: binlog files to Canal's entries, with its own decoder and converter; the structures come from
 * the statements in the files. Prints the number of row images, and the processor time of each round, as JSON.
 */
public class CanalRows {
    /** The database that Canal would ask for structures. */
    static class NoDatabase extends MysqlConnection {
        NoDatabase() {
            super(new InetSocketAddress("127.0.0.1", 1), "none", "none");
        }

        @Override
        public ResultSetPacket query(String command) throws IOException {
            return new ResultSetPacket();
        }

        @Override
        public void reconnect() {}
    }

    static long rows(String name) throws Exception {
        byte[] bytes = Files.readAllBytes(Path.of(name));
        LogEventConvert convert = new LogEventConvert();
        convert.setCharset(StandardCharsets.UTF_8);
        convert.setTableMetaCache(new TableMetaCache(new NoDatabase(), new MemoryTableMeta()));
        LogDecoder decoder = new LogDecoder(LogEvent.UNKNOWN_EVENT, LogEvent.ENUM_END_EVENT);
        LogContext context = new LogContext();
        context.setLogPosition(new LogPosition(Path.of(name).getFileName().toString(), 4));
        long images = 0;
        for (int at = 4; at + 19 <= bytes.length;) {
            int length = (bytes[at + 9] & 255) | (bytes[at + 10] & 255) << 8 | (bytes[at + 11] & 255) << 16 | (bytes[at + 12] & 255) << 24;
            LogEvent event = decoder.decode(new LogBuffer(Arrays.copyOfRange(bytes, at, at + length), 0, length), context);
            CanalEntry.Entry entry = event == null ? null : convert.parse(event, false);
            if (entry != null && event instanceof RowsLogEvent) {
                CanalEntry.RowChange change = CanalEntry.RowChange.parseFrom(entry.getStoreValue());
                int each = change.getEventType() == CanalEntry.EventType.UPDATE ? 2 : 1;
                images += (long) each * change.getRowDatasCount();
            }
            at += length;
        }
        return images;
    }

    static double cpu() {
        return ((OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean()).getProcessCpuTime() / 1e9;
    }

    public static void main(String[] arguments) throws Exception {
        List<Double> seconds = new ArrayList<>();
        long images = 0;
        for (int round = 0; round < Integer.parseInt(arguments[0]); round++) {
            double begin = cpu();
            images = 0;
            for (int i = 1; i < arguments.length; i++) {
                images += rows(arguments[i]);
            }
            seconds.add(cpu() - begin);
        }
        System.out.println("{\"rows\": " + images + ", \"cpu\": " + seconds + "}");
    }
}
