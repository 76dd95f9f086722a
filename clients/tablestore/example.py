"""Keeps the messages of a conversation in a table, numbered by the server, reads the last ones, and searches them: by Tablestore's own package.

    clients/run tablestore http://localhost:8087 demo demo-secret demo
"""

import sys
import time

from tablestore import (
    INF_MAX,
    INF_MIN,
    PK_AUTO_INCR,
    AnalyzerType,
    BoolQuery,
    CapacityUnit,
    ColumnReturnType,
    ColumnsToGet,
    Condition,
    Direction,
    FieldSchema,
    FieldSort,
    FieldType,
    MatchQuery,
    OTSClient,
    OTSServiceError,
    RangeQuery,
    ReservedThroughput,
    ReturnType,
    Row,
    RowExistenceExpectation,
    SearchIndexMeta,
    SearchQuery,
    Sort,
    SortOrder,
    TableMeta,
    TableOptions,
)

TABLE, INDEX = "example_messages", "example_messages_index"
DEADLINE = 30  # seconds


def drop(client: OTSClient) -> None:
    """A table that has a search index isn't deleted: the index goes first."""
    for _, index in client.list_search_index(TABLE):
        client.delete_search_index(TABLE, index)
    client.delete_table(TABLE)


def main(endpoint: str, key_id: str, secret: str, instance: str) -> None:
    client = OTSClient(endpoint, key_id, secret, instance)
    if TABLE in client.list_table():
        drop(client)
    meta = TableMeta(TABLE, [("conversation", "STRING"), ("number", "INTEGER", PK_AUTO_INCR)])
    client.create_table(meta, TableOptions(-1, 1), ReservedThroughput(CapacityUnit(0, 0)))
    fields = [
        FieldSchema("sender", FieldType.KEYWORD),
        FieldSchema("text", FieldType.TEXT, analyzer=AnalyzerType.MAXWORD),
        FieldSchema("number", FieldType.LONG, enable_sort_and_agg=True),
    ]
    client.create_search_index(TABLE, INDEX, SearchIndexMeta(fields))

    # The server numbers each message, above all earlier ones of its conversation.
    ignore = Condition(RowExistenceExpectation.IGNORE)
    numbers = []
    for sender, text in [("小明", "奶茶？"), ("小红", "好"), ("小明", "6 点，奶茶店"), ("小红", "奶茶我请")]:
        row = Row([("conversation", "c1"), ("number", PK_AUTO_INCR)], [("sender", sender), ("text", text)])
        _, written = client.put_row(TABLE, row, ignore, ReturnType.RT_PK)
        numbers.append(written.primary_key[1][1])
    print(f"wrote {numbers}")

    # The last two, the newest first.
    newest = [("conversation", "c1"), ("number", INF_MAX)]
    oldest = [("conversation", "c1"), ("number", INF_MIN)]
    _, following, rows, _ = client.get_range(TABLE, Direction.BACKWARD, newest, oldest, limit=2, max_version=1)
    for row in rows:
        message = {name: value for name, value, _ in row.attribute_columns}
        print(f"{message['sender']}: {message['text']}")
    assert len(rows) == 2 and following is not None

    # Milk tea after the first message, the newest first. Rows are found a moment after they are written, and the package has no way to
    # wait for one: the search is repeated until it finds both.
    later = RangeQuery("number", numbers[0], include_lower=False)
    search = SearchQuery(
        BoolQuery(must_queries=[MatchQuery("text", "奶茶"), later]),
        sort=Sort([FieldSort("number", SortOrder.DESC)]),
        limit=10,
        get_total_count=True,
    )
    until = time.monotonic() + DEADLINE
    while True:
        found = client.search(TABLE, INDEX, search, ColumnsToGet(return_type=ColumnReturnType.ALL))
        if found.total_count == 2:
            break
        assert time.monotonic() < until, "it isn't found in time"
    for _, columns in found.rows:
        message = {name: value for name, value, _ in columns}
        print(f"found: {message['sender']}: {message['text']}")
    assert [key[1][1] for key, _ in found.rows] == [numbers[3], numbers[2]]

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
    drop(client)
    print("done")


main(*sys.argv[1:5])
