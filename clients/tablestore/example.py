"""Keeps the messages of a conversation in a table, numbered by the server, and reads the last ones: by Tablestore's own package.

    clients/run tablestore http://localhost:8087 demo demo-secret demo
"""

import sys

from tablestore import (
    INF_MAX,
    INF_MIN,
    PK_AUTO_INCR,
    CapacityUnit,
    Condition,
    Direction,
    OTSClient,
    OTSServiceError,
    ReservedThroughput,
    ReturnType,
    Row,
    RowExistenceExpectation,
    TableMeta,
    TableOptions,
)

TABLE = "example_messages"


def main(endpoint: str, key_id: str, secret: str, instance: str) -> None:
    client = OTSClient(endpoint, key_id, secret, instance)
    if TABLE in client.list_table():
        client.delete_table(TABLE)
    meta = TableMeta(TABLE, [("conversation", "STRING"), ("number", "INTEGER", PK_AUTO_INCR)])
    client.create_table(meta, TableOptions(-1, 1), ReservedThroughput(CapacityUnit(0, 0)))

    # The server numbers each message, above all earlier ones of its conversation.
    ignore = Condition(RowExistenceExpectation.IGNORE)
    for sender, text in [("小明", "奶茶？"), ("小红", "好"), ("小明", "6 点")]:
        row = Row([("conversation", "c1"), ("number", PK_AUTO_INCR)], [("sender", sender), ("text", text)])
        _, written = client.put_row(TABLE, row, ignore, ReturnType.RT_PK)
        print(f"wrote {written.primary_key[1][1]}")

    # The last two, the newest first.
    newest = [("conversation", "c1"), ("number", INF_MAX)]
    oldest = [("conversation", "c1"), ("number", INF_MIN)]
    _, following, rows, _ = client.get_range(TABLE, Direction.BACKWARD, newest, oldest, limit=2, max_version=1)
    for row in rows:
        message = {name: value for name, value, _ in row.attribute_columns}
        print(f"{message['sender']}: {message['text']}")
    assert len(rows) == 2 and following is not None

    # An update that expects a row which doesn't exist is refused.
    there = Condition(RowExistenceExpectation.EXPECT_EXIST)
    row = Row([("conversation", "c1"), ("number", 1_000_000)], {"PUT": [("text", "?")]})
    try:
        client.update_row(TABLE, row, there)
        raise AssertionError("it isn't refused")
    except OTSServiceError as error:
        print(f"refused: {error.get_error_code()}: {error.get_error_message()}")

    # The writes of a transaction take effect at its commit.
    transaction = client.start_local_transaction(TABLE, [("conversation", "c1")])
    read = {"PUT": [("read", True)]}
    for row in rows:
        client.update_row(TABLE, Row(row.primary_key, read), there, transaction_id=transaction)
    client.commit_transaction(transaction)
    client.delete_table(TABLE)
    print("done")


main(*sys.argv[1:5])
