// AKHQ's client of Kafka Connect: RestClient.java URL USER PASSWORD NAME, with lines NAME=VALUE on standard input.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.LinkedHashMap;
import java.util.Map;
import org.sourcelab.kafka.connect.apiclient.Configuration;
import org.sourcelab.kafka.connect.apiclient.KafkaConnectClient;
import org.sourcelab.kafka.connect.apiclient.request.dto.NewConnectorDefinition;

public class RestClient {
    public static void main(String[] args) throws Exception {
        KafkaConnectClient client = new KafkaConnectClient(new Configuration(args[0]).useBasicAuth(args[1], args[2]));
        String name = args[3];
        Map<String, String> config = new LinkedHashMap<>();
        for (String line : new BufferedReader(new InputStreamReader(System.in)).lines().toList()) {
            config.put(line.substring(0, line.indexOf('=')), line.substring(line.indexOf('=') + 1));
        }
        System.out.println("version " + client.getConnectServerVersion().getVersion());
        System.out.println("created " + client.addConnector(new NewConnectorDefinition(name, config)).getName());
        System.out.println("connectors " + client.getConnectors());
        System.out.println("expanded " + client.getConnectorsWithAllExpandedMetadata().getConnectorNames());
        System.out.println("config " + client.getConnectorConfig(name).get("topic.prefix"));
        while (!client.getConnectorStatus(name).getConnector().get("state").equals("RUNNING")) {
            Thread.sleep(200);
        }
        System.out.println("tasks " + client.getConnectorTasks(name).size());
        System.out.println("topics " + client.getConnectorTopics(name).getName());
        System.out.println("plugins " + client.getConnectorPlugins().size());
        System.out.println("paused " + client.pauseConnector(name));
        System.out.println("resumed " + client.resumeConnector(name));
        System.out.println("restarted " + client.restartConnector(name));
        System.out.println("deleted " + client.deleteConnector(name));
    }
}
