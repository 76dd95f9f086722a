"""The three systems of Tablestore's handbook (orders, shops on a map, media) on plain tables. Copies rows of the demo, read from Souk's own
services as JSON, into four tables by Tablestore's package, and asks both the same.

    clients/run handbook http://localhost:50051 http://localhost:8087 demo demo-secret demo
"""

import json
import sys
import time
import urllib.request

from tablestore import *  # noqa: F403

GATEWAY, ENDPOINT, ID, SECRET, INSTANCE = sys.argv[1:6]
client = OTSClient(ENDPOINT, ID, SECRET, INSTANCE)
ignore = Condition(RowExistenceExpectation.IGNORE)
DEADLINE = 60  # seconds
BATCH = 200  # rows
SECONDS, MILLIS = "yyyy-MM-dd'T'HH:mm:ssX", "yyyy-MM-dd'T'HH:mm:ss.SSSX"


def asked(collection, search):
    """One page of a search, by a service of Souk."""
    body = json.dumps({"search": search}).encode()
    request = urllib.request.Request(f"{GATEWAY}/v1/{collection}:search", body, {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=DEADLINE) as answer:
        return json.load(answer)


def resources(collection):
    """All resources of a collection, page by page."""
    token = ""
    while True:
        page = asked(collection, {"page_size": 1000, "page_token": token, "sort": [{"primary_key": {}}]})
        yield from (hit["resource"] for hit in page.get("hits", []))
        token = page.get("nextPageToken", "")
        if not token:
            return


def texts(of, *names):
    return [(name, of[name]) for name in names if of.get(name)]


def numbers(of, *names):
    return [(name, int(of[name])) for name in names if name in of]


def place(of):
    position = of.get("position")
    return [("position", f"{position.get('latitude', 0)},{position.get('longitude', 0)}")] if position else []


def order(of):
    named = ["consumerId", "consumerName", "productName", "productBrand", "productType", "orderTime", "payTime"]
    columns = texts(of, *named) + numbers(of, "unitPriceCents", "quantity", "totalPriceCents")
    return of["orderId"], [*columns, ("paid", of.get("paid", False))]


def consumer(of):
    return of["id"], texts(of, "name")


def shop(of):
    columns = texts(of, "name", "type", "city", "address") + numbers(of, "averagePriceCents") + place(of)
    rating = [("rating", float(of["rating"]))] if "rating" in of else []
    return of["shopId"], [*columns, *rating, ("tags", json.dumps(of.get("tags", [])))]


def media(of):
    columns = texts(of, "userId", "type", "title", "createdAt") + place(of)
    nested = [(name, json.dumps(of.get(name, []))) for name in ("tags", "faces")]
    return of["mediaId"], columns + nested


def field(name, kind, **options):
    return FieldSchema(name, kind, index=True, **options)


def keywords(*names):
    return [field(name, FieldType.KEYWORD, enable_sort_and_agg=True) for name in names]


def longs(*names):
    return [field(name, FieldType.LONG, enable_sort_and_agg=True) for name in names]


def dates(*names):
    return [field(name, FieldType.DATE, date_formats=[SECONDS, MILLIS]) for name in names]


def nested(name, *inside):
    return FieldSchema(name, FieldType.NESTED, sub_field_schemas=list(inside))


# For each table: the collection that it is copied from, its name, how a resource becomes key and columns, and the fields of its index.
TABLES = [
    (
        "orders",
        "order_contract",
        order,
        keywords("consumerId", "productBrand", "productType")
        + longs("unitPriceCents", "quantity", "totalPriceCents")
        + dates("orderTime", "payTime")
        + [field("productName", FieldType.TEXT, analyzer=AnalyzerType.MAXWORD), field("paid", FieldType.BOOLEAN)],
    ),
    ("consumers", "consumer", consumer, keywords("name")),
    (
        "shops",
        "shop",
        shop,
        keywords("type", "city")
        + longs("averagePriceCents")
        + [
            field("name", FieldType.TEXT, analyzer=AnalyzerType.MAXWORD),
            field("rating", FieldType.DOUBLE, enable_sort_and_agg=True),
            field("position", FieldType.GEOPOINT),
            field("tags", FieldType.KEYWORD, is_array=True),
        ],
    ),
    (
        "media",
        "media",
        media,
        keywords("userId", "type")
        + dates("createdAt")
        + [
            field("position", FieldType.GEOPOINT),
            nested("tags", *keywords("tag"), field("score", FieldType.DOUBLE, enable_sort_and_agg=True)),
            nested("faces", *keywords("person"), field("similarity", FieldType.DOUBLE, enable_sort_and_agg=True)),
        ],
    ),
]


def copied(collection, table, columns, fields):
    """Creates a table with its index, copies all rows into it, and returns their number."""
    meta = TableMeta(table, [("id", "STRING")])
    client.create_table(meta, TableOptions(-1, 1), ReservedThroughput(CapacityUnit(0, 0)))
    client.create_search_index(table, f"{table}_index", SearchIndexMeta(fields))
    count, rows = 0, []

    def written():
        batch = BatchWriteRowRequest()
        batch.add(TableInBatchWriteRowItem(table, rows))
        assert client.batch_write_row(batch).is_all_succeed()

    for resource in resources(collection):
        key, row = columns(resource)
        rows.append(PutRowItem(Row([("id", key)], row), ignore))
        count += 1
        if len(rows) == BATCH:
            written()
            rows = []
    if rows:
        written()
    return count


def seen(table, count):
    """Waits until an index has all rows: Tablestore's clients can't send a sequence to wait for."""
    until = time.monotonic() + DEADLINE
    while time.monotonic() < until:
        counting = SearchQuery(MatchAllQuery(), limit=0, get_total_count=True)
        if client.search(table, f"{table}_index", counting).total_count == count:
            return
    raise AssertionError(f"{table} isn't searched in time")


def same(what, collection, search, table, query, sort):
    """Asks both the same, and compares ids, order and totals."""
    page = asked(collection, {**search, "page_size": 50, "total": {"exact": True}})
    key = {"orders": "orderId", "consumers": "id", "shops": "shopId", "media": "mediaId"}[collection]
    expected = [hit["resource"][key] for hit in page.get("hits", [])]
    found = client.search(table, f"{table}_index", SearchQuery(query, sort=sort, limit=50, get_total_count=True))
    answered = [row[0][0][1] for row in found.rows]
    assert answered == expected, (what, answered, expected)
    assert found.total_count == int(page["total"].get("value", 0)), what
    assert expected, f"nothing found: {what}"
    print(f"{what}: {found.total_count}, first {answered[0]}")


def term(name, value):
    return {"term": {"field": name, "value": {"string_value": value}}}


def main():
    counts = [(table, copied(collection, table, columns, fields)) for collection, table, columns, fields in TABLES]
    for table, count in counts:
        seen(table, count)
        print(f"{table}: {count} rows")

    price = {"range": {"field": "total_price_cents", "gt": {"int_value": "9999"}}}
    same(
        "orders of c0001 above 99.99, the dearest first",
        "orders",
        {
            "query": {"bool": {"must": [term("consumer_id", "c0001"), price]}},
            "sort": [{"field": {"field": "total_price_cents", "descending": True}}],
        },
        "order_contract",
        BoolQuery(must_queries=[TermQuery("consumerId", "c0001"), RangeQuery("totalPriceCents", 9999, include_lower=False)]),
        Sort([FieldSort("totalPriceCents", SortOrder.DESC)]),
    )
    around = {
        "field": "position",
        "center": {"latitude": 30.2741, "longitude": 120.1551},
        "distance_meters": 100_000,
    }
    cheap = {"range": {"field": "average_price_cents", "lte": {"int_value": "10000"}}}
    same(
        "milk tea in Hangzhou for at most 100 yuan, the best first",
        "shops",
        {
            "query": {"bool": {"must": [term("type", "奶茶"), {"geo_distance": around}, cheap]}},
            "sort": [{"field": {"field": "rating", "descending": True}}],
        },
        "shop",
        BoolQuery(
            must_queries=[
                TermQuery("type", "奶茶"),
                GeoDistanceQuery("position", "30.2741,120.1551", 100_000),
                RangeQuery("averagePriceCents", range_to=10000, include_upper=True),
            ]
        ),
        Sort([FieldSort("rating", SortOrder.DESC)]),
    )
    happy = term("tags.tag", "开心")
    of_2025 = {
        "range": {
            "field": "created_at",
            "gte": {"time_value": "2025-01-01T00:00:00Z"},
            "lt": {"time_value": "2026-01-01T00:00:00Z"},
        }
    }
    by_score = {"path": "tags", "filter": happy}
    same(
        "happy media of 2025, the happiest first",
        "media",
        {
            "query": {"bool": {"must": [{"nested": {"path": "tags", "query": happy}}, of_2025]}},
            "sort": [
                {"field": {"field": "tags.score", "descending": True, "mode": "SORT_MODE_MAX", "nested": by_score}}
            ],
        },
        "media",
        BoolQuery(
            must_queries=[
                NestedQuery("tags", TermQuery("tags.tag", "开心")),
                RangeQuery("createdAt", "2025-01-01T00:00:00Z", "2026-01-01T00:00:00Z"),
            ]
        ),
        Sort([FieldSort("tags.score", SortOrder.DESC, SortMode.MAX, NestedFilter("tags", TermQuery("tags.tag", "开心")))]),
    )
    print("done")


main()
