// Pages at any depth of more rows than a search skips: the last ones from the end, those in between by walking.
import assert from 'node:assert/strict';
import { before, test } from 'node:test';

import { load } from './module.mjs';

const HITS_NONE = 3;
const FIRST = 1;

let readPage;
let by;
before(async () => {
  ({ readPage, by } = await load('pages.ts', 'queries.ts'));
});

/** A service with `rows` rows, which are numbers in the order that is asked for, and what it was asked. */
const service = (rows) => {
  const asked = [];
  const ask = async (search) => {
    asked.push(search);
    const { skip = 0, pageSize, pageToken = '', sort, hitsMode } = search;
    assert.ok(skip <= 100_000 && (pageSize ?? 0) <= 1000);
    const [field, key] = sort.map(({ kind }) => kind);
    const backwards = !field.value.descending;
    assert.equal(key.value.descending ?? false, backwards);
    assert.equal(field.value.missing?.value, backwards ? FIRST : undefined);
    const from = pageToken === '' ? skip : Number(pageToken);
    const to = Math.min(from + pageSize, rows);
    const hits = [];
    for (let at = from; at < to; at += 1) hits.push(backwards ? rows - 1 - at : at);
    return { hits: hitsMode === HITS_NONE ? [] : hits, nextPageToken: to < rows ? String(to) : '', total: { value: BigInt(rows) } };
  };
  return { ask, asked };
};

const sorted = () => ({ sort: [by('order_time'), { kind: { case: 'primaryKey', value: {} } }] });

const numbers = (from, to) => Array.from({ length: to - from }, (_, at) => from + at);

test('the last page is read from the end', async () => {
  const { ask, asked } = service(250_007);
  const { hits, nextPageToken } = await readPage(ask, sorted(), 12_500, 20, new Map(), {});
  assert.deepEqual(hits, numbers(250_000, 250_007));
  assert.equal(nextPageToken, '');
  assert.equal(asked.length, 2);
});

test('one near the end is, too', async () => {
  const { ask } = service(250_007);
  assert.deepEqual((await readPage(ask, sorted(), 12_000, 20, new Map(), {})).hits, numbers(240_000, 240_020));
});

test('one far from both ends is walked to, and the next goes on from it', async () => {
  const { ask, asked } = service(500_000);
  const tokens = new Map();
  assert.deepEqual((await readPage(ask, sorted(), 6000, 20, tokens, {})).hits, numbers(120_000, 120_020));
  const before = asked.length;
  assert.deepEqual((await readPage(ask, sorted(), 6001, 20, tokens, {})).hits, numbers(120_020, 120_040));
  assert.equal(asked.length, before + 1);
});

test('a page behind the last one is empty', async () => {
  const { ask } = service(100_500);
  assert.deepEqual((await readPage(ask, sorted(), 9000, 20, new Map(), {})).hits, []);
});
