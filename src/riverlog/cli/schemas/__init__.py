"""Keys and values by the schemas of a registry: Avro, Protobuf and JSON. Needs the extra `schema`."""
