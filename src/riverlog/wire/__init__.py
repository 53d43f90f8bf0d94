"""Kafka's wire protocol: message tables, codec, framing, the table of APIs, and the commonest shapes by hand.

Bytes in, values out, and back; nothing here touches a socket, a clock or a file. What a request means is
decided above. Sub-modules are imported by name, so that a process loads only the messages that it uses.
"""
