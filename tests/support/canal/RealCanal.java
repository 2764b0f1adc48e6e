import com.alibaba.otter.canal.common.alarm.LogAlarmHandler;
import com.alibaba.otter.canal.filter.aviater.AviaterRegexFilter;
import com.alibaba.otter.canal.instance.core.AbstractCanalInstance;
import com.alibaba.otter.canal.meta.FileMixedMetaManager;
import com.alibaba.otter.canal.parse.ha.HeartBeatHAController;
import com.alibaba.otter.canal.parse.inbound.mysql.MysqlEventParser;
import com.alibaba.otter.canal.parse.index.FailbackLogPositionManager;
import com.alibaba.otter.canal.parse.index.MemoryLogPositionManager;
import com.alibaba.otter.canal.parse.index.MetaLogPositionManager;
import com.alibaba.otter.canal.parse.support.AuthenticationInfo;
import com.alibaba.otter.canal.protocol.position.EntryPosition;
import com.alibaba.otter.canal.server.embedded.CanalServerWithEmbedded;
import com.alibaba.otter.canal.server.netty.CanalServerWithNetty;
import com.alibaba.otter.canal.sink.entry.EntryEventSink;
import com.alibaba.otter.canal.store.memory.MemoryEventStoreWithBuffer;
import com.alibaba.otter.canal.store.model.BatchMode;
import java.io.FileReader;
import java.net.InetSocketAddress;
import java.util.Properties;

/**
 * RealCanal CONF_DIR DESTINATION PORT: Canal's server with one destination, put together as its own file-instance.xml
 * does, without its table-structure database. Prints "up", and ends when its standard input does.
 */
public class RealCanal {
    static class Instance extends AbstractCanalInstance {
        Instance(String folder, String name) throws Exception {
            Properties given = new Properties();
            try (FileReader reader = new FileReader(folder + "/" + name + "/instance.properties")) {
                given.load(reader);
            }
            String prefix = "canal.instance.", master = prefix + "master.";
            canalId = 1L;
            destination = name;
            alarmHandler = new LogAlarmHandler();
            FileMixedMetaManager meta = new FileMixedMetaManager();
            meta.setDataDir(folder);
            metaManager = meta;
            MemoryEventStoreWithBuffer store = new MemoryEventStoreWithBuffer();
            store.setBufferSize(16384);
            store.setBatchMode(BatchMode.valueOf(given.getProperty(prefix + "memory.batch.mode", "MEMSIZE")));
            store.setRaw(true);
            eventStore = store;
            EntryEventSink sink = new EntryEventSink();
            sink.setEventStore(store);
            eventSink = sink;
            String[] address = given.getProperty(master + "address").split(":");
            MysqlEventParser parser = new MysqlEventParser();
            parser.setDestination(name);
            parser.setSlaveId(4_000_000L);
            parser.setMasterInfo(new AuthenticationInfo(
                new InetSocketAddress(address[0], Integer.parseInt(address[1])),
                given.getProperty(prefix + "dbUsername"), given.getProperty(prefix + "dbPassword"), "mysql"));
            parser.setConnectionCharset("UTF-8");
            String file = given.getProperty(master + "journal.name");
            if (file != null) {
                parser.setMasterPosition(new EntryPosition(file, Long.parseLong(given.getProperty(master + "position"))));
            }
            parser.setEventFilter(new AviaterRegexFilter(given.getProperty(prefix + "filter.regex")));
            parser.setLogPositionManager(
                new FailbackLogPositionManager(new MemoryLogPositionManager(), new MetaLogPositionManager(meta)));
            parser.setAlarmHandler(alarmHandler);
            parser.setEventSink(sink);
            parser.setHaController(new HeartBeatHAController());
            parser.setDetectingEnable(false);
            parser.setSupportBinlogFormats("ROW");
            parser.setSupportBinlogImages("FULL");
            parser.setEnableTsdb(false);
            parser.setParallel(true);
            parser.setParallelBufferSize(256);
            eventParser = parser;
        }
    }

    public static void main(String[] given) throws Exception {
        CanalServerWithEmbedded embedded = CanalServerWithEmbedded.instance();
        embedded.setMetricsPort(0);
        embedded.setCanalInstanceGenerator(name -> {
            try {
                return new Instance(given[0], name);
            } catch (Exception error) {
                throw new IllegalStateException(error);
            }
        });
        CanalServerWithNetty server = CanalServerWithNetty.instance();
        server.setIp("127.0.0.1");
        server.setPort(Integer.parseInt(given[2]));
        server.start();
        embedded.start(given[1]);
        System.out.println("up");
        while (System.in.read() >= 0) {
        }
        server.stop();
        System.exit(0);
    }
}
