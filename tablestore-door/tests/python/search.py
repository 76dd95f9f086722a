"""Lets the official package work with search indexes of a running endpoint, as a user of Tablestore does: it can't name a sequence, so it
asks for the total until a deadline to learn that its rows are there."""

import json
import sys
import time

from tablestore import *  # noqa: F403

ENDPOINT, ID, SECRET, INSTANCE = sys.argv[1:5]
client = OTSClient(ENDPOINT, ID, SECRET, INSTANCE)
ignore = Condition(RowExistenceExpectation.IGNORE)
TABLE, INDEX = "media", "media_index"
DEADLINE = 60  # seconds
DAY = 86_400_000  # milliseconds
ROWS = 12


def media(nth):
    """Row `nth`: even ones are images, every third is of a happy one."""
    tags = [{"tag": "开心", "score": nth / 10}] if nth % 3 == 0 else []
    tags.append({"tag": "car", "score": 0.5})
    return [
        ("type", "image" if nth % 2 == 0 else "video"),
        ("title", f"杭州的第{nth}张照片 photo {nth}"),
        ("size", nth * 100),
        ("createdAt", nth * DAY),
        ("tags", json.dumps(tags, ensure_ascii=False)),
        ("labels", json.dumps([f"l{nth % 2}", f"m{nth % 3}"])),
        ("pos", f"30.{nth:02},120.0"),
    ]


def search(query, **options):
    columns = options.pop("columns", ColumnsToGet(return_type=ColumnReturnType.NONE))
    return client.search(TABLE, INDEX, SearchQuery(query, **options), columns)


def numbers(found):
    """The numbers of the rows that were found: the response is iterated as rows."""
    return [int(key[0][1]) for key, _ in found.rows]


def index():
    meta = TableMeta(TABLE, [("id", "STRING")])
    client.create_table(meta, TableOptions(-1, 1), ReservedThroughput(CapacityUnit(0, 0)))
    fields = [
        FieldSchema("type", FieldType.KEYWORD, index=True, enable_sort_and_agg=True),
        FieldSchema("title", FieldType.TEXT, analyzer=AnalyzerType.MAXWORD, enable_highlighting=True),
        FieldSchema("size", FieldType.LONG, index=True, enable_sort_and_agg=True),
        FieldSchema("createdAt", FieldType.DATE, date_formats=["epoch_millis"]),
        FieldSchema("labels", FieldType.KEYWORD, is_array=True),
        FieldSchema("pos", FieldType.GEOPOINT),
        FieldSchema(
            "tags",
            FieldType.NESTED,
            sub_field_schemas=[
                FieldSchema("tag", FieldType.KEYWORD, index=True),
                FieldSchema("score", FieldType.DOUBLE, index=True, enable_sort_and_agg=True),
            ],
        ),
        FieldSchema("size_text", FieldType.KEYWORD, is_virtual_field=True, source_fields=["size"]),
    ]
    client.create_search_index(TABLE, INDEX, SearchIndexMeta(fields, IndexSetting(["id"])))
    assert client.list_search_index(TABLE) == [(TABLE, INDEX)]
    described, sync = client.describe_search_index(TABLE, INDEX)
    assert [field.field_name for field in described.fields] == [field.field_name for field in fields]
    assert described.fields[1].analyzer == AnalyzerType.MAXWORD
    assert described.fields[6].sub_field_schemas[1].field_type == FieldType.DOUBLE
    assert sync.sync_phase in (SyncPhase.FULL, SyncPhase.INCR)
    batch = BatchWriteRowRequest()
    rows = [PutRowItem(Row([("id", str(nth))], media(nth)), ignore) for nth in range(ROWS)]
    batch.add(TableInBatchWriteRowItem(TABLE, rows))
    assert client.batch_write_row(batch).is_all_succeed()
    until = time.monotonic() + DEADLINE
    while time.monotonic() < until:
        try:
            if search(MatchAllQuery(), limit=0, get_total_count=True).total_count == ROWS:
                return
        except OTSServiceError as error:
            assert error.get_error_code() == "OTSTableNotReady", error
    raise AssertionError("the rows aren't there in time")


def queries():
    by_size = Sort([FieldSort("size", SortOrder.ASC)])

    def found(query, **options):
        return numbers(search(query, sort=by_size, limit=100, **options))

    assert found(TermQuery("type", "image")) == [0, 2, 4, 6, 8, 10]
    assert found(TermsQuery("size", [100, 300])) == [1, 3]
    assert found(RangeQuery("createdAt", 3 * DAY, 5 * DAY)) == [3, 4]
    assert found(TermQuery("labels", "m2")) == [2, 5, 8, 11]
    assert found(TermQuery("size_text", "700")) == [7]
    assert found(PrefixQuery("size_text", "11")) == [11]
    assert found(WildcardQuery("size_text", "*1*")) == [1, 10, 11]
    assert found(MatchQuery("title", "photo 7", operator=QueryOperator.AND)) == [7]
    assert found(MatchPhraseQuery("title", "杭州的第3张")) == [3]
    assert found(ExistsQuery("pos")) == list(range(ROWS))
    assert found(GeoDistanceQuery("pos", "30.0,120.0", 2500)) == [0, 1, 2]
    assert found(GeoBoundingBoxQuery("pos", "30.035,119", "30.005,121")) == [1, 2, 3]
    assert found(GeoPolygonQuery("pos", ["30.095,119", "30.095,121", "30.2,121", "30.2,119"])) == [10, 11]
    happy = BoolQuery(must_queries=[TermQuery("tags.tag", "开心"), RangeQuery("tags.score", 0.5)])
    assert found(NestedQuery("tags", happy)) == [6, 9]
    both = BoolQuery(
        must_queries=[TermQuery("type", "image")],
        must_not_queries=[RangeQuery("size", 500)],
        should_queries=[TermQuery("labels", "m0"), TermQuery("labels", "m1")],
        minimum_should_match=1,
    )
    assert found(both) == [0, 4]
    assert found(FunctionScoreQuery(MatchAllQuery(), FieldValueFactor("size"))) == list(range(ROWS))
    assert found(DisMaxQuery([TermQuery("size", 0), TermQuery("size", 500)], 0.5)) == [0, 5]
    try:
        search(KnnVectorQuery("v", 1, [0.1]))
        raise AssertionError("there are vectors")
    except OTSServiceError as error:
        assert error.get_error_code() == "OTSParameterInvalid" and "knn" in error.get_error_message(), error


def sorts():
    happiest = NestedFilter("tags", TermQuery("tags.tag", "开心"))
    by_score = Sort([FieldSort("tags.score", SortOrder.DESC, SortMode.MAX, happiest)])
    happy = NestedQuery("tags", TermQuery("tags.tag", "开心"))
    assert numbers(search(happy, sort=by_score)) == [9, 6, 3, 0]
    near = Sort([GeoDistanceSort("pos", ["30.05,120.0"], SortOrder.ASC)])
    assert numbers(search(MatchAllQuery(), sort=near, limit=1)) == [5]
    best = Sort([ScoreSort(SortOrder.DESC), PrimaryKeySort(SortOrder.ASC)])
    assert numbers(search(FunctionScoreQuery(MatchAllQuery(), FieldValueFactor("size")), sort=best, limit=2)) == [11, 10]
    everything = search(MatchAllQuery(), sort=best, limit=1, columns=ColumnsToGet(return_type=ColumnReturnType.ALL))
    names = sorted(column[0] for column in everything.rows[0][1])
    assert names == ["createdAt", "labels", "pos", "size", "tags", "title", "type"], names
    some = search(MatchAllQuery(), limit=1, columns=ColumnsToGet(["size"], ColumnReturnType.SPECIFIED))
    assert [column[:2] for column in some.rows[0][1]] == [("size", 0)]


def pages():
    seen, token = [], None
    by_size = Sort([FieldSort("size", SortOrder.DESC)])
    while True:
        sort = by_size if token is None else None
        found = search(MatchAllQuery(), sort=sort, limit=5, next_token=token, get_total_count=True)
        assert found.total_count == ROWS and found.is_all_succeed
        seen.append(numbers(found))
        token = found.next_token
        if not token:
            break
    assert seen == [[11, 10, 9, 8, 7], [6, 5, 4, 3, 2], [1, 0]], seen
    assert numbers(search(MatchAllQuery(), sort=by_size, offset=10, limit=5)) == [1, 0]
    collapsed = search(MatchAllQuery(), sort=by_size, collapse_field=Collapse("type"))
    assert numbers(collapsed) == [11, 10]


def hits():
    marked = Highlight([HighlightParameter("title", 1, 50, "<b>", "</b>")])
    found = search(MatchQuery("title", "photo"), highlight=marked, limit=1)
    [hit] = found.search_hits
    [field] = hit.highlight_result.highlight_fields
    assert field.field_name == "title" and "<b>photo</b>" in field.field_fragments[0], field.field_fragments
    inner = InnerHits(None, 0, 3, None)
    found = search(NestedQuery("tags", TermQuery("tags.tag", "car"), inner_hits=inner), limit=2)
    offsets = [[each.nested_doc_offset for each in hit.search_inner_hits[0].search_hits] for hit in found.search_hits]
    assert offsets == [[1], [0]], offsets


def groups():
    aggs = [Max("size", name="max"), Min("size", name="min"), Avg("size", name="avg"), Sum("size", name="sum")]
    aggs += [Count("size", name="count"), DistinctCount("type", name="types")]
    aggs += [Percentiles("size", [50, 100], name="percentiles")]
    by_type = GroupByField(
        "type",
        10,
        [GroupKeySort(SortOrder.ASC)],
        [Sum("size", name="sum"), TopRows(1, Sort([FieldSort("size", SortOrder.DESC)]), name="top")],
        [GroupByRange("size", [(0, 500), (500, 2000)], name="sizes")],
        name="types",
    )
    others = [
        GroupByFilter([TermQuery("labels", "m0"), TermQuery("labels", "m1")], name="filters"),
        GroupByGeoDistance("pos", GeoPoint(30.0, 120.0), [(0, 2500), (2500, 1000000)], name="near"),
        GroupByHistogram("size", 600, FieldRange(0, 1200), name="histogram"),
        GroupByComposite([GroupByField("type", name="type"), GroupByField("labels", name="label")], 3, name="both"),
    ]
    found = search(MatchAllQuery(), limit=0, aggs=aggs, group_bys=[by_type, *others])
    figures = {figure.name: figure.value for figure in found.agg_results}
    percentiles = [(item.key, item.value) for item in figures.pop("percentiles")]
    assert percentiles == [(50, 500.0), (100, 1100.0)], percentiles
    assert figures == {"max": 1100, "min": 0, "avg": 550, "sum": 6600, "count": 12, "types": 2}, figures
    answers = {group.name: group.items for group in found.group_by_results}
    image, video = answers["types"]
    assert (image.key, image.row_count, video.key, video.row_count) == ("image", 6, "video", 6)
    assert image.sub_aggs[0].value == 3000 and video.sub_aggs[0].value == 3600
    assert [key[0][1] for key, _ in image.sub_aggs[1].value] == ["10"]
    [sizes] = image.sub_group_bys
    assert [(item.range_from, item.range_to, item.row_count) for item in sizes.items] == [(0, 500, 3), (500, 2000, 3)]
    assert [item.row_count for item in answers["filters"]] == [4, 4]
    assert [item.row_count for item in answers["near"]] == [3, 9]
    assert [(item.key, item.value) for item in answers["histogram"]] == [(0, 6), (600, 6)]
    keys = [item.keys for item in answers["both"]]
    assert keys == [["image", "l0"], ["image", "m0"], ["image", "m1"]], keys
    days = GroupByDateHistogram("createdAt", DateTimeValue(7, DateTimeUnit.DAY), name="weeks")
    grid = GroupByGeoGrid("pos", GeoHashPrecision.GHP_5009KM_4992KM_1, name="grid")
    found = search(MatchAllQuery(), limit=0, group_bys=[days, grid])
    weeks, cells = found.group_by_results
    assert sum(item.row_count for item in weeks.items) == ROWS
    assert [(item.key, item.row_count) for item in cells.items] == [("w", ROWS)]


def scans():
    splits = client.compute_splits(TABLE, INDEX)
    assert splits.splits_size == 1 and isinstance(splits.session_id, str)
    seen, token = [], None
    while True:
        scan = ScanQuery(MatchAllQuery(), 5, token, 0, splits.splits_size, alive_time=30)
        columns = ColumnsToGet(["size"], ColumnReturnType.SPECIFIED)
        page = client.parallel_scan(TABLE, INDEX, scan, splits.session_id, columns)
        seen += numbers(page)
        token = page.next_token
        if not token:
            break
    assert sorted(seen) == list(range(ROWS)), seen
    client.delete_search_index(TABLE, INDEX)
    assert client.list_search_index(TABLE) == []


for step in (index, queries, sorts, pages, hits, groups, scans):
    step()
    print(step.__name__)
