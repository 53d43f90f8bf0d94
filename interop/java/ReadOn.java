import java.time.Duration;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.LogTruncationException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;

/**
 * Prints the values of partition 0 from its beginning on, until it is told that the log was truncated: then where it
 * was, and where its log parts from the leader's. Arguments: BOOTSTRAP TOPIC.
 */
public final class ReadOn {
    public static void main(String[] arguments) {
        Properties settings = new Properties();
        settings.put(ConsumerConfig.BOOTSTRAP_SERVERS_CONFIG, arguments[0]);
        settings.put(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG, "none");
        settings.put(ConsumerConfig.ENABLE_AUTO_COMMIT_CONFIG, false);
        TopicPartition partition = new TopicPartition(arguments[1], 0);
        try (KafkaConsumer<String, String> consumer =
                new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer())) {
            consumer.assign(List.of(partition));
            consumer.seek(partition, 0);
            while (true) {
                for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(100))) {
                    System.out.println(record.value());
                }
            }
        } catch (LogTruncationException truncated) {
            System.out.println("truncated at " + truncated.offsetOutOfRangePartitions().get(partition)
                + " to " + truncated.divergentOffsets().get(partition).offset());
        }
    }

    private ReadOn() {}
}
