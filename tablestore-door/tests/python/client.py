"""Lets the official package work with tables, rows, ranges, batches and transactions of a running endpoint."""

import sys

from tablestore import *  # noqa: F403
from tablestore.metadata import SecondaryIndexMeta

ENDPOINT, ID, SECRET, INSTANCE, REGION = sys.argv[1:6]
options = {"region": REGION} if REGION != "-" else {}
client = OTSClient(ENDPOINT, ID, SECRET, INSTANCE, **options)
ignore = Condition(RowExistenceExpectation.IGNORE)
nothing_reserved = ReservedThroughput(CapacityUnit(0, 0))


def key(user, nth):
    return [("user", user), ("nth", nth)]


def refused(code, status, call):
    try:
        call()
    except OTSServiceError as error:
        assert (error.get_error_code(), error.get_http_status()) == (code, status), error
        assert error.get_request_id(), error
        return error.get_error_message()
    raise AssertionError(f"{code} isn't raised")


def tables():
    meta = TableMeta(
        "messages",
        [("user", "STRING"), ("nth", "INTEGER", PK_AUTO_INCR)],
        [("sender", "STRING"), ("size", "INTEGER")],
    )
    client.create_table(meta, TableOptions(-1, 1, 86400), nothing_reserved)
    notes = TableMeta("notes", [("user", "STRING"), ("nth", "INTEGER")], [("city", "STRING")])
    by_city = SecondaryIndexMeta("notes_by_city", ["city"], [])
    client.create_table(notes, TableOptions(-1, 3, 86400), nothing_reserved, [by_city])
    assert list(client.list_table()) == ["messages", "notes", "notes_by_city"], client.list_table()
    described = client.describe_table("messages")
    assert described.table_meta.schema_of_primary_key == [("user", "STRING"), ("nth", "INTEGER", PK_AUTO_INCR)]
    assert described.table_options.time_to_live == -1 and described.table_options.max_version == 1
    updated = client.update_table("notes", TableOptions(86400, 2, 86400), None)
    assert updated.table_options.max_version == 2 and updated.table_options.time_to_live == 86400
    updated = client.update_table("notes", TableOptions(-1, None, None), None)
    assert updated.table_options.max_version == 2 and updated.table_options.time_to_live == -1
    said = refused("OTSObjectAlreadyExist", 409, lambda: client.create_table(meta, TableOptions(), nothing_reserved))
    assert said == "Requested table already exists."
    refused("OTSObjectNotExist", 404, lambda: client.describe_table("none"))


def rows():
    attributes = [("sender", "小明"), ("size", 7), ("price", 1.5), ("read", False), ("raw", bytearray(b"\x00\xff"))]
    row = Row(key("ann", PK_AUTO_INCR), attributes)
    consumed, returned = client.put_row("messages", row, ignore, ReturnType.RT_PK)
    assert (consumed.read, consumed.write) == (0, 1), consumed
    (user, _), (_, nth) = returned.primary_key
    assert user == "user" and isinstance(nth, int)
    consumed, found, _ = client.get_row("messages", key("ann", nth))
    assert consumed.read == 1 and found.primary_key == key("ann", nth)
    told = {name: value for name, value, _ in found.attribute_columns}
    assert told == dict(attributes), told
    assert client.get_row("messages", key("ann", nth + 1))[1] is None

    there = Condition(RowExistenceExpectation.EXPECT_EXIST)
    changes = {"PUT": [("sender", "小红")], "DELETE_ALL": ["raw"], "INCREMENT": [("size", 5)]}
    client.update_row("messages", Row(key("ann", nth), changes), there)
    told = {name: value for name, value, _ in client.get_row("messages", key("ann", nth))[1].attribute_columns}
    assert told == {"sender": "小红", "size": 12, "price": 1.5, "read": False}, told

    both = CompositeColumnCondition(LogicalOperator.AND)
    both.add_sub_condition(SingleColumnCondition("sender", "小红", ComparatorType.EQUAL))
    both.add_sub_condition(SingleColumnCondition("size", 12, ComparatorType.GREATER_THAN))
    assert client.get_row("messages", key("ann", nth), ["sender", "size"], both)[1] is None
    wrong = Condition(RowExistenceExpectation.EXPECT_EXIST, both)
    delete = Row(key("ann", nth))
    said = refused("OTSConditionCheckFail", 403, lambda: client.delete_row("messages", delete, wrong))
    assert said == "Condition check failed."
    client.delete_row("messages", delete, ignore)
    assert client.get_row("messages", key("ann", nth))[1] is None

    # Several versions of a column.
    at = 1_000 * 1_800_000_000
    client.update_table("notes", TableOptions(-1, 2, 2**31), None)
    for version in (at, at + 1):
        client.update_row("notes", Row(key("ann", 1), {"PUT": [("text", str(version), version)]}), ignore)
    _, found, _ = client.get_row("notes", key("ann", 1), max_version=2)
    assert [version for _, _, version in found.attribute_columns] == [at + 1, at]
    _, found, _ = client.get_row("notes", key("ann", 1), max_version=1, time_range=(at, at + 1))
    assert found.attribute_columns == [("text", str(at), at)]
    client.delete_row("notes", Row(key("ann", 1)), ignore)


def ranges():
    for nth in range(25):
        client.put_row("notes", Row(key("bob", nth), [("city", "杭州" if nth % 2 else "上海"), ("n", nth)]), ignore)
    start, end = key("bob", INF_MIN), key("bob", INF_MAX)
    seen, pages = [], 0
    while start:
        _, start, page, _ = client.get_range("notes", Direction.FORWARD, start, end, ["n"], 10, max_version=1)
        seen += [row.primary_key[1][1] for row in page]
        pages += 1
    assert seen == list(range(25)) and pages == 3, (seen, pages)
    _, _, page, _ = client.get_range(
        "notes", Direction.BACKWARD, key("bob", INF_MAX), key("bob", 20), max_version=1
    )
    assert [row.primary_key[1][1] for row in page] == [24, 23, 22, 21]
    odd = SingleColumnCondition("city", "杭州", ComparatorType.EQUAL)
    _, _, page, _ = client.get_range(
        "notes", Direction.FORWARD, key("bob", 0), key("bob", 6), [], 10, odd, max_version=1
    )
    assert [row.primary_key[1][1] for row in page] == [1, 3, 5]
    # The index, in the order of cities.
    start = [("city", "杭州"), ("user", INF_MIN), ("nth", INF_MIN)]
    end = [("city", "杭州"), ("user", INF_MAX), ("nth", INF_MAX)]
    _, following, page, _ = client.get_range("notes_by_city", Direction.FORWARD, start, end, limit=5, max_version=1)
    assert [row.primary_key[2][1] for row in page] == [1, 3, 5, 7, 9]
    assert following == [("city", "杭州"), ("user", "bob"), ("nth", 11)], following


def batches():
    write = BatchWriteRowRequest()
    fresh = Condition(RowExistenceExpectation.EXPECT_NOT_EXIST)
    items = [
        PutRowItem(Row(key("bob", 1), [("n", 100)]), fresh),
        PutRowItem(Row(key("eve", 1), [("n", 1)]), ignore),
        UpdateRowItem(Row(key("bob", 2), {"PUT": [("n", 200)]}), ignore),
        DeleteRowItem(Row(key("bob", 3)), ignore),
    ]
    write.add(TableInBatchWriteRowItem("notes", items))
    written = client.batch_write_row(write)
    assert not written.is_all_succeed()
    succeeded, failed = written.get_put()
    assert len(succeeded) == 1 and failed[0].error_code == "OTSConditionCheckFail"
    assert failed[0].error_message == "Condition check failed."

    get = BatchGetRowRequest()
    get.add(TableInBatchGetRowItem("notes", [key("bob", 1), key("bob", 2), key("bob", 3)], ["n"], None, 1))
    get.add(TableInBatchGetRowItem("messages", [key("ann", 1)], [], None, 1))
    found = client.batch_get_row(get)
    assert found.is_all_succeed()
    numbers = [item.row and item.row.attribute_columns[0][1] for item in found.get_result_by_table("notes")]
    assert numbers == [1, 200, None], numbers
    assert found.get_result_by_table("messages")[0].row is None


def transactions():
    transaction = client.start_local_transaction("notes", [("user", "tom")])
    client.put_row("notes", Row(key("tom", 1), [("n", 1)]), ignore, transaction_id=transaction)
    assert client.get_row("notes", key("tom", 1))[1] is None
    _, found, _ = client.get_row("notes", key("tom", 1), transaction_id=transaction)
    assert found.attribute_columns[0][:2] == ("n", 1)
    client.commit_transaction(transaction)
    assert client.get_row("notes", key("tom", 1))[1] is not None
    transaction = client.start_local_transaction("notes", [("user", "tom")])
    client.delete_row("notes", Row(key("tom", 1)), ignore, transaction_id=transaction)
    client.abort_transaction(transaction)
    assert client.get_row("notes", key("tom", 1))[1] is not None
    said = refused("OTSSessionNotExist", 404, lambda: client.commit_transaction(transaction))
    assert said == "Session not exist or may be timeout."


def refusals():
    said = refused("OTSParameterInvalid", 400, lambda: client.exe_sql_query("select 1"))
    assert said == "Unsupported operation: SQLQuery.", said
    stranger = OTSClient(ENDPOINT, ID, "another-secret", INSTANCE, **options)
    assert refused("OTSAuthFailed", 403, stranger.list_table) == "Signature mismatch."
    client.delete_secondary_index("notes", "notes_by_city")
    for table in ("messages", "notes"):
        client.delete_table(table)
    assert list(client.list_table()) == []


for step in (tables, rows, ranges, batches, transactions, refusals):
    step()
    print(step.__name__)
