import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import org.apache.kafka.common.errors.InvalidMetadataException;
import org.apache.kafka.common.errors.RefreshRetriableException;
import org.apache.kafka.common.errors.RetriableException;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.MessageSizeAccumulator;
import org.apache.kafka.common.protocol.ObjectSerializationCache;

/**
 * Writes messages with Kafka's own classes: reads lines of JSON with "api", "kind", "version" and "message", and writes
 * each with its "bytes" in hexadecimal. With the argument "errors" it writes the table of error codes instead.
 */
public class KafkaMessages {
    private static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] arguments) throws Exception {
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        if (arguments.length > 0 && arguments[0].equals("errors")) {
            errors(out);
        } else {
            var in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
            for (String line = in.readLine(); line != null; line = in.readLine()) {
                ObjectNode entry = (ObjectNode) JSON.readTree(line);
                entry.put("bytes", HexFormat.of().formatHex(written(entry)));
                out.println(JSON.writeValueAsString(entry));
            }
        }
        out.flush();
    }

    private static byte[] written(JsonNode entry) throws Exception {
        String name = entry.get("api").asText() + entry.get("kind").asText();
        short version = (short) entry.get("version").asInt();
        Class<?> converter = Class.forName("org.apache.kafka.common.message." + name + "DataJsonConverter");
        var read = converter.getMethod("read", JsonNode.class, short.class);
        Message message = (Message) read.invoke(null, entry.get("message"), version);
        ObjectSerializationCache cache = new ObjectSerializationCache();
        MessageSizeAccumulator size = new MessageSizeAccumulator();
        message.addSize(size, cache, version);
        ByteBuffer buffer = ByteBuffer.allocate(size.totalSize());
        message.write(new ByteBufferAccessor(buffer), cache, version);
        return buffer.array();
    }

    /** Lines of code, name, and whether the exception is of three classes, separated by tabs. */
    private static void errors(PrintStream out) {
        for (Errors error : Errors.values()) {
            Object exception = error.exception();
            String retriable = exception instanceof RetriableException ? "retriable" : "";
            String metadata = exception instanceof InvalidMetadataException ? "metadata" : "";
            String refresh = exception instanceof RefreshRetriableException ? "refresh" : "";
            out.println(String.join("\t", Short.toString(error.code()), error.name(), retriable, metadata, refresh));
        }
    }
}
