"""Prints the messages and enums of the official package's contract: names, fields, numbers, labels and types."""

from tablestore.protobuf import search_pb2, table_store_filter_pb2, table_store_pb2


def messages(message):
    for field in message.fields:
        of = field.message_type or field.enum_type
        print("field", message.name, field.name, field.number, field.label, field.type, of.name if of else "-")
    if not message.fields:
        print("message", message.name)
    for inner in message.nested_types:
        messages(inner)


for file in (table_store_pb2, table_store_filter_pb2, search_pb2):
    for message in file.DESCRIPTOR.message_types_by_name.values():
        messages(message)
    for enum in file.DESCRIPTOR.enum_types_by_name.values():
        for value in enum.values:
            print("value", enum.name, value.name, value.number)
