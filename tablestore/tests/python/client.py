"""Calls every operation that the official package has and this crate reads, and holds the answers of the test's server against
what the package makes of them."""

import sys

from tablestore import *  # noqa: F403
from tablestore.metadata import CastType, SecondaryIndexMeta

ENDPOINT, REGION = sys.argv[1], sys.argv[2]
options = {"region": REGION} if REGION != "-" else {}
client = OTSClient(ENDPOINT, "demo", "demo-secret", "demo", **options)


def key(order, nth):
    return [("id", order), ("nth", nth)]


def refused(code, status, call):
    try:
        call()
    except OTSServiceError as error:
        assert (error.get_error_code(), error.get_http_status()) == (code, status), error
        assert error.get_request_id() == "request-1", error
        return error.get_error_message()
    raise AssertionError(f"{code} isn't raised")


def tables():
    meta = TableMeta(
        "orders",
        [("id", "STRING"), ("nth", "INTEGER", PK_AUTO_INCR)],
        [("city", "STRING"), ("price", "DOUBLE")],
    )
    index = SecondaryIndexMeta("by_city", ["city"], ["price"])
    throughput = ReservedThroughput(CapacityUnit(0, 0))
    client.create_table(meta, TableOptions(3600, 2, 86400, False), throughput, [index])
    assert list(client.list_table()) == ["orders", "people"]
    described = client.describe_table("orders")
    assert described.table_meta.schema_of_primary_key == [("id", "STRING"), ("nth", "INTEGER", PK_AUTO_INCR)]
    assert described.table_options.max_version == 2 and described.table_options.allow_update is False
    assert described.secondary_indexes[0].index_name == "by_city"
    updated = client.update_table("orders", TableOptions(-1, 1, 600, True), throughput)
    assert updated.table_options.time_to_live == -1
    client.create_secondary_index("orders", index, True)
    client.delete_secondary_index("orders", "by_city")
    client.delete_table("orders")


def rows():
    both = CompositeColumnCondition(LogicalOperator.AND)
    both.add_sub_condition(SingleColumnCondition("city", "杭州", ComparatorType.EQUAL, False, True))
    neither = CompositeColumnCondition(LogicalOperator.NOT)
    rule = RegexRule("v([0-9]+)", CastType.VT_INTEGER)
    neither.add_sub_condition(SingleColumnRegexCondition("tag", ComparatorType.GREATER_THAN, 5, rule, False))
    both.add_sub_condition(neither)

    attributes = [("city", "杭州"), ("price", 1.5, 1700000000000), ("paid", True), ("raw", bytearray(b"\x00\x01"))]
    condition = Condition(RowExistenceExpectation.EXPECT_NOT_EXIST, both)
    row = Row(key("o1", PK_AUTO_INCR), attributes)
    consumed, returned = client.put_row("orders", row, condition, ReturnType.RT_PK)
    assert (consumed.read, consumed.write) == (0, 1)
    assert returned.primary_key == key("o1", 7) and returned.attribute_columns == []

    changes = {
        "PUT": [("city", "上海"), ("price", 2.5, 1700000000001)],
        "DELETE": [("old", None, 1700000000000)],
        "DELETE_ALL": ["gone"],
        "INCREMENT": [("count", 5)],
    }
    ignore = Condition(RowExistenceExpectation.IGNORE)
    client.update_row("orders", Row(key("o1", 7), changes), ignore)

    missing = SingleColumnCondition("price", 2, ComparatorType.GREATER_EQUAL, True, False)
    consumed, found, _ = client.get_row("orders", key("o1", 7), ["city", "price"], missing, 2, (1, 1800000000000))
    assert consumed.read == 1 and found.primary_key == key("o1", 7), found
    wanted = [
        ("city", "上海", 1700000000002),
        ("price", 2.5, 1700000000001),
        ("price", 1.5, 1700000000000),
        ("count", -9223372036854775808, 3),
        ("paid", False, 0),
        ("raw", bytearray(b"\xff\x00"), 1),
    ]
    assert found.attribute_columns == wanted, found.attribute_columns
    assert client.get_row("orders", key("none", 1), max_version=1)[1] is None

    client.delete_row("orders", Row(key("o1", 7)), ignore)
    failing = Condition(RowExistenceExpectation.EXPECT_EXIST)
    said = refused("OTSConditionCheckFail", 403, lambda: client.put_row("people", Row([("id", 1)], []), failing))
    assert said == "Condition check failed."


def batches():
    get = BatchGetRowRequest()
    get.add(TableInBatchGetRowItem("orders", [key("o1", 1), key("o2", 2)], ["city"], None, 1))
    found = client.batch_get_row(get).get_result_by_table("orders")
    assert [row.is_ok for row in found] == [True, False]
    assert found[0].row.attribute_columns == [("city", "杭州", 5)]
    assert (found[1].error_code, found[1].error_message) == ("OTSTimeout", "Operation timeout.")

    ignore = Condition(RowExistenceExpectation.IGNORE)
    write = BatchWriteRowRequest()
    items = [
        PutRowItem(Row(key("o1", 1), [("city", "杭州")]), ignore),
        UpdateRowItem(Row(key("o2", 2), {"PUT": [("city", "上海")]}), ignore),
        DeleteRowItem(Row(key("o3", 3)), ignore),
    ]
    write.add(TableInBatchWriteRowItem("orders", items))
    write.set_transaction_id("t-1")
    written = client.batch_write_row(write)
    assert not written.is_all_succeed()
    assert [item.is_ok for item in written.get_put()[0] + written.get_put()[1]] == [True]
    assert written.get_update()[1][0].error_code == "OTSConditionCheckFail"

    start, end = key(INF_MIN, INF_MIN), key(INF_MAX, INF_MAX)
    ranged = client.get_range("orders", Direction.FORWARD, start, end, [], 2, max_version=1)
    consumed, next_key, found = ranged[0], ranged[1], ranged[2]
    assert [row.primary_key for row in found] == [key("o1", 1), key("o2", 2)]
    assert next_key == key("o3", 3) and consumed.read == 2
    ranged = client.get_range("orders", Direction.BACKWARD, end, start, max_version=1)
    assert ranged[1] is None and ranged[2] == []


def transactions():
    assert client.start_local_transaction("orders", [("id", "o1")]) == "t-1"
    client.commit_transaction("t-1")
    client.abort_transaction("t-1")


def searches():
    fields = [
        FieldSchema("city", FieldType.KEYWORD, index=True, enable_sort_and_agg=True, store=True),
        FieldSchema("name", FieldType.TEXT, index=True, analyzer=AnalyzerType.SINGLEWORD,
                    analyzer_parameter=SingleWordAnalyzerParameter(True, True)),
        FieldSchema("items", FieldType.NESTED, sub_field_schemas=[FieldSchema("sku", FieldType.KEYWORD, index=True)]),
    ]
    meta = SearchIndexMeta(fields, IndexSetting(["id"]), Sort([FieldSort("city", SortOrder.DESC)]), 3600)
    client.create_search_index("orders", "orders_index", meta)
    assert client.list_search_index("orders") == [("orders", "orders_index")]
    described, sync = client.describe_search_index("orders", "orders_index")
    assert [field.field_name for field in described.fields] == ["city"]
    assert sync.current_sync_timestamp == 9
    client.update_search_index("orders", "orders_index", SearchIndexMeta(None, time_to_live=7200))

    query = BoolQuery(
        must_queries=[
            TermQuery("city", "杭州"),
            RangeQuery("price", 1, 2.5, include_upper=True),
            TermsQuery("paid", [True, False]),
            MatchQuery("name", "奶茶", operator=QueryOperator.AND, minimum_should_match="75%"),
        ],
        must_not_queries=[NestedQuery("items", ExistsQuery("items.sku"))],
        filter_queries=[GeoDistanceQuery("place", "30.2,120.1", 1000)],
        should_queries=[KnnVectorQuery("vector", top_k=3, float32_query_vector=[0.5, -1.0], filter=MatchAllQuery())],
        minimum_should_match=1,
    )
    sort = Sort([FieldSort("price", SortOrder.DESC, SortMode.MAX), ScoreSort(), PrimaryKeySort()])
    group = GroupByField("city", 3, [RowCountSort(SortOrder.DESC)], [Sum("price", name="sum")], name="by_city")
    search = SearchQuery(query, sort, True, limit=10, aggs=[Max("price", 0, name="max")], group_bys=[group])
    columns = ColumnsToGet(["city"], ColumnReturnType.SPECIFIED)
    found = client.search("orders", "orders_index", search, columns, [[("id", "o1")]], 3)
    assert found.rows == [(key("o1", 1), [("city", "杭州", 5)])], found.rows
    assert (found.total_count, found.is_all_succeed, found.next_token) == (1, True, b"more")
    assert (found.agg_results[0].name, found.agg_results[0].value) == ("max", 2.5)
    by_city = found.group_by_results[0]
    assert by_city.name == "by_city" and by_city.items[0].key == "杭州" and by_city.items[0].row_count == 2
    assert by_city.items[0].sub_aggs[0].value == 4.0

    splits = client.compute_splits("orders", "orders_index")
    assert splits.splits_size == 2
    scan = ScanQuery(MatchAllQuery(), 2000, None, 0, 2, 30)
    scanned = client.parallel_scan("orders", "orders_index", scan, splits.session_id, columns)
    assert scanned.rows == [(key("o1", 1), [("city", "杭州", 5)])] and not scanned.next_token
    client.delete_search_index("orders", "orders_index")


def refusals():
    said = refused("OTSParameterInvalid", 400, lambda: client.exe_sql_query("select 1"))
    assert said == "Unsupported operation: SQLQuery.", said
    stranger = OTSClient(ENDPOINT, "demo", "another-secret", "demo", **options)
    assert refused("OTSAuthFailed", 403, stranger.list_table) == "Signature mismatch."
    unknown = OTSClient(ENDPOINT, "nobody", "demo-secret", "demo", **options)
    assert refused("OTSAuthFailed", 403, unknown.list_table) == "The AccessKeyID does not exist."


for step in (tables, rows, batches, transactions, searches, refusals):
    step()
    print(step.__name__)
