import com.alibaba.otter.canal.client.CanalConnector;
import com.alibaba.otter.canal.client.CanalConnectors;
import com.alibaba.otter.canal.protocol.CanalEntry.Column;
import com.alibaba.otter.canal.protocol.CanalEntry.Entry;
import com.alibaba.otter.canal.protocol.CanalEntry.EntryType;
import com.alibaba.otter.canal.protocol.CanalEntry.RowChange;
import com.alibaba.otter.canal.protocol.CanalEntry.RowData;
import com.alibaba.otter.canal.protocol.Message;
import java.io.PrintStream;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.concurrent.TimeUnit;

/**
 * Canal's Java client. Follow HOST PORT DESTINATION, or Follow zookeeper HOST:PORT DESTINATION for the cluster client,
 * reads a destination until it is ended, over lost connections.
 */
public class Follow {
    static final PrintStream OUT = new PrintStream(System.out, false, StandardCharsets.UTF_8);

    static CanalConnector connector(String[] a) {
        if (a[0].equals("zookeeper")) {
            return CanalConnectors.newClusterConnector(a[1], a[2], "", "");
        }
        return CanalConnectors.newSingleConnector(new InetSocketAddress(a[0], Integer.parseInt(a[1])), a[2], "", "");
    }

    static void image(StringBuilder line, List<Column> columns) {
        for (Column column : columns) {
            line.append('\t').append(column.getIsNull() ? "\\N" : column.getValue());
        }
    }

    static void showPosition(Entry entry) {
        OUT.print("at\t" + entry.getHeader().getLogfileName() + "\t" + entry.getHeader().getLogfileOffset() + "\n");
    }

    static void show(Entry entry) throws Exception {
        if (entry.getEntryType() != EntryType.ROWDATA) {
            showPosition(entry);
            return;
        }
        RowChange change = RowChange.parseFrom(entry.getStoreValue());
        if (change.getIsDdl()) {
            showPosition(entry);
        }
        for (RowData row : change.getRowDatasList()) {
            StringBuilder line = new StringBuilder("row\t").append(entry.getHeader().getTableName());
            line.append('\t').append(change.getEventType().name());
            image(line, row.getBeforeColumnsList());
            line.append("\t|");
            image(line, row.getAfterColumnsList());
            OUT.print(line.append('\n'));
        }
    }

    static void follow(CanalConnector client) throws Exception {
        client.connect();
        client.subscribe(".*\\.load_.*");
        OUT.print("connected\n");
        OUT.flush();
        while (true) {
            Message message = client.getWithoutAck(100, 200L, TimeUnit.MILLISECONDS);
            if (message.getId() == -1 || message.getEntries().isEmpty()) {
                continue;
            }
            OUT.print("batch\t" + message.getId() + "\n");
            for (Entry entry : message.getEntries()) {
                show(entry);
            }
            OUT.print("ack\t" + message.getId() + "\n");
            OUT.flush();
            client.ack(message.getId());
        }
    }

    public static void main(String[] a) throws Exception {
        while (true) {
            CanalConnector client = null;
            try {
                client = connector(a);
                follow(client);
            } catch (Exception e) {
                OUT.print("lost\t" + String.valueOf(e).replaceAll("\\s+", " ") + "\n");
                OUT.flush();
            }
            try {
                if (client != null) {
                    client.disconnect();
                }
            } catch (Exception e) {
                // nothing is left to end
            }
            Thread.sleep(200);
        }
    }
}
