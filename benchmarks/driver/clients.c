#include "clients.h"

void set_property(rd_kafka_conf_t *conf, const char *name, const char *value) {
  char why[512];
  if (rd_kafka_conf_set(conf, name, value, why, sizeof why) != RD_KAFKA_CONF_OK) fail("%s", why);
}

rd_kafka_conf_t *new_conf(const settings_t *settings) {
  rd_kafka_conf_t *conf = rd_kafka_conf_new();
  set_property(conf, "bootstrap.servers", settings->brokers);
  set_property(conf, "log_level", "2"); /* What matters ends the run with its own message. */
  for (int i = 0; i < settings->set_count; i++)
    set_property(conf, settings->set_name[i], settings->set_value[i]);
  return conf;
}

rd_kafka_t *new_client(int type, rd_kafka_conf_t *conf) {
  char why[512];
  rd_kafka_t *client = rd_kafka_new(type, conf, why, sizeof why);
  if (client == NULL) fail("%s", why);
  return client;
}

void must(rd_kafka_resp_err_t err, const char *what) {
  if (err != ERR_NONE) fail("%s: %s", what, rd_kafka_err2str(err));
}

void must_not_fail(rd_kafka_error_t *error, const char *what) {
  if (error != NULL) fail("%s: %s", what, rd_kafka_error_string(error));
}

rd_kafka_topic_partition_list_t *all_partitions(const settings_t *settings, int64_t offset) {
  rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(settings->partitions);
  for (int partition = 0; partition < settings->partitions; partition++) {
    rd_kafka_topic_partition_list_add(list, settings->topic, partition);
    rd_kafka_topic_partition_list_set_offset(list, settings->topic, partition, offset);
  }
  return list;
}

rd_kafka_topic_partition_list_t *subscription(const settings_t *settings) {
  rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
  rd_kafka_topic_partition_list_add(list, settings->topic, -1);
  return list;
}
