import java.io.IOException;
import java.util.Properties;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Writes 0, 1, 2, ... to every partition, idempotently, until its standard input ends. Says "writing" when the first is
 * acknowledged, and at the end for each record its partition, its number, and the error if it was not acknowledged. Arguments: BOOTSTRAP TOPIC PARTITIONS AT_ONCE PAUSE_MS.
 */
public final class WriteNumbers {
    private static final int OUTSTANDING_MAX = 5000;

    public static void main(String[] arguments) throws IOException, InterruptedException {
        Properties settings = new Properties();
        settings.put(ProducerConfig.BOOTSTRAP_SERVERS_CONFIG, arguments[0]);
        settings.put(ProducerConfig.ACKS_CONFIG, "all");
        settings.put(ProducerConfig.ENABLE_IDEMPOTENCE_CONFIG, true);
        settings.put(ProducerConfig.METADATA_MAX_AGE_CONFIG, 10_000);
        int partitions = Integer.parseInt(arguments[2]);
        int atOnce = Integer.parseInt(arguments[3]);
        long pauseMs = Long.parseLong(arguments[4]);
        ConcurrentLinkedQueue<String> outcomes = new ConcurrentLinkedQueue<>();
        AtomicLong outstanding = new AtomicLong();
        try (KafkaProducer<String, String> producer =
                new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer())) {
            long number = 0;
            while (!ended) {
                if (outstanding.get() < OUTSTANDING_MAX) {
                    for (long last = number + atOnce; number < last; number++) {
                        for (int partition = 0; partition < partitions; partition++) {
                            String about = partition + " " + number;
                            outstanding.incrementAndGet();
                            producer.send(
                                new ProducerRecord<>(arguments[1], partition, null, Long.toString(number)),
                                (written, error) -> {
                                    outstanding.decrementAndGet();
                                    if (outcomes.isEmpty()) {
                                        System.out.println("writing");
                                    }
                                    outcomes.add(error == null ? about : about + " " + error.getClass().getSimpleName());
                                });
                        }
                    }
                }
                Thread.sleep(pauseMs);
            }
        }
        StringBuilder lines = new StringBuilder();
        outcomes.forEach(line -> lines.append(line).append('\n'));
        System.out.print(lines);
    }

    private static volatile boolean ended;

    static {
        Thread watch = new Thread(() -> {
            try {
                while (System.in.read() >= 0) { }
            } catch (IOException error) {
                // Taken for the end.
            }
            ended = true;
        });
        watch.setDaemon(true);
        watch.start();
    }

    private WriteNumbers() {}
}
