// Keeps the messages of a conversation in a table, numbered by the server, reads the last ones, and searches them: by Tablestore's own package.
//
//     clients/run tablestore-node http://localhost:8087 demo demo-secret demo

import assert from "node:assert/strict";
import TableStore from "tablestore";

const [endpoint, accessKeyId, secretAccessKey, instancename] = process.argv.slice(2);
const client = new TableStore.Client({ endpoint, accessKeyId, secretAccessKey, instancename });
const { Condition, FieldType, QueryType, RowExistenceExpectation } = TableStore;

const tableName = "example_messages_node";
const indexName = "example_messages_node_index";
const deadline = 30_000; // milliseconds

// Asks until the answer is as wanted.
async function until(wanted, ask) {
  const end = Date.now() + deadline;
  for (;;) {
    const answer = await ask();
    if (wanted(answer)) return answer;
    assert.ok(Date.now() < end, "not in time");
  }
}

// A table that has a search index isn't deleted: the index goes first.
async function drop() {
  for (const { indexName } of (await client.listSearchIndex({ tableName })).indices) {
    await client.deleteSearchIndex({ tableName, indexName });
  }
  await client.deleteTable({ tableName });
}

// A key is written as [{ name: value }], but read as [{ name, value }].
const keyOf = (row) => row.primaryKey.map(({ name, value }) => ({ [name]: value }));
const numberOf = (row) => row.primaryKey[1].value.toNumber();
const messageOf = (row) => Object.fromEntries(row.attributes.map(({ columnName, columnValue }) => [columnName, columnValue]));

if ((await client.listTable()).tableNames.includes(tableName)) await drop();
await client.createTable({
  tableMeta: {
    tableName,
    primaryKey: [
      { name: "conversation", type: "STRING" },
      { name: "number", type: "INTEGER", option: "AUTO_INCREMENT" },
    ],
  },
  tableOptions: { timeToLive: -1, maxVersions: 1 },
  reservedThroughput: { capacityUnit: { read: 0, write: 0 } },
});
const fieldSchemas = [
  { fieldName: "sender", fieldType: FieldType.KEYWORD, index: true },
  { fieldName: "text", fieldType: FieldType.TEXT, index: true, analyzer: "max_word" },
  { fieldName: "number", fieldType: FieldType.LONG, index: true, enableSortAndAgg: true },
];
await client.createSearchIndex({ tableName, indexName, schema: { fieldSchemas } });
const isBuilt = ({ indexStatus }) => indexStatus.status === TableStore.IndexStatus.RUNNING;
await until(isBuilt, () => client.describeSearchIndex({ tableName, indexName }));

// The server numbers each message, above all earlier ones of its conversation.
const numbers = [];
for (const [sender, text] of [["小明", "奶茶？"], ["小红", "好"], ["小明", "6 点，奶茶店"], ["小红", "奶茶我请"]]) {
  const written = await client.putRow({
    tableName,
    condition: new Condition(RowExistenceExpectation.IGNORE, null),
    primaryKey: [{ conversation: "c1" }, { number: TableStore.PK_AUTO_INCR }],
    attributeColumns: [{ sender }, { text }],
    returnContent: { returnType: TableStore.ReturnType.Primarykey },
  });
  numbers.push(numberOf(written.row));
}
console.log(`wrote ${numbers}`);

// The last two, the newest first.
const { rows, nextStartPrimaryKey } = await client.getRange({
  tableName,
  direction: TableStore.Direction.BACKWARD,
  inclusiveStartPrimaryKey: [{ conversation: "c1" }, { number: TableStore.INF_MAX }],
  exclusiveEndPrimaryKey: [{ conversation: "c1" }, { number: TableStore.INF_MIN }],
  limit: 2,
});
for (const { sender, text } of rows.map(messageOf)) console.log(`${sender}: ${text}`);
assert.deepEqual(rows.map(numberOf), [numbers[3], numbers[2]]);
assert.ok(nextStartPrimaryKey);

// Milk tea after the first message, the newest first. Rows are found a moment after they are written, and the package has no way to
// wait for one: the search is repeated until it finds both. A number of JavaScript is a DOUBLE; an INTEGER is a Long.
const rangeFrom = TableStore.Long.fromNumber(numbers[0]);
const mustQueries = [
  { queryType: QueryType.MATCH_QUERY, query: { fieldName: "text", text: "奶茶" } },
  { queryType: QueryType.RANGE_QUERY, query: { fieldName: "number", rangeFrom, includeLower: false } },
];
const search = {
  tableName,
  indexName,
  searchQuery: {
    query: { queryType: QueryType.BOOL_QUERY, query: { mustQueries } },
    sort: { sorters: [{ fieldSort: { fieldName: "number", order: TableStore.SortOrder.SORT_ORDER_DESC } }] },
    limit: 10,
    getTotalCount: true,
  },
  columnToGet: { returnType: TableStore.ColumnReturnType.RETURN_ALL },
};
const found = await until(({ totalCounts }) => totalCounts === "2", () => client.search(search));
for (const { sender, text } of found.rows.map(messageOf)) console.log(`found: ${sender}: ${text}`);
assert.deepEqual(found.rows.map(numberOf), [numbers[3], numbers[2]]);

// An update that expects a row which doesn't exist is refused. The package has no code but that of HTTP: the server's is in the message.
const condition = new Condition(RowExistenceExpectation.EXPECT_EXIST, null);
const missing = [{ conversation: "c1" }, { number: TableStore.Long.fromNumber(1_000_000) }];
const update = { tableName, condition, primaryKey: missing, updateOfAttributeColumns: [{ PUT: [{ text: "?" }] }] };
await assert.rejects(client.updateRow(update), (error) => {
  const [, code] = error.message.match(/(OTS\w+)/);
  console.log(`refused: ${error.code}: ${code}`);
  return error.code === 403 && code === "OTSConditionCheckFail";
});

// The writes of a transaction take effect at its commit.
const { transactionId } = await client.startLocalTransaction({ tableName, primaryKey: [{ conversation: "c1" }] });
for (const primaryKey of rows.map(keyOf)) {
  const updateOfAttributeColumns = [{ PUT: [{ read: true }] }];
  await client.updateRow({ tableName, condition, primaryKey, updateOfAttributeColumns, transactionId });
}
await client.commitTransaction({ transactionId });

// Those of one that is aborted don't. A cell may be given its version, a time in milliseconds.
const aborted = await client.startLocalTransaction({ tableName, primaryKey: [{ conversation: "c1" }] });
const [primaryKey] = rows.map(keyOf);
const updateOfAttributeColumns = [{ PUT: [{ text: "…", timestamp: Date.now() }] }];
await client.updateRow({ tableName, condition, primaryKey, updateOfAttributeColumns, transactionId: aborted.transactionId });
await client.abortTransaction(aborted.transactionId);
const { row } = await client.getRow({ tableName, primaryKey });
assert.equal(messageOf(row).text, messageOf(rows[0]).text);
await drop();
console.log("done");
