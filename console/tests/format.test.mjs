// Numbers as people read them: what is small isn't nothing, and what isn't known isn't 0.
import assert from 'node:assert/strict';
import { before, test } from 'node:test';

import { load } from './module.mjs';

let format;
before(async () => (format = await load('format.ts')));

test('a number that isn’t 0 isn’t written as 0', () => {
  const { number } = format;
  assert.deepEqual(
    [0, 1.005, 1234.5678, 0.004, 0.005, 1e-5, 1e-7, -1e-7, 1e300].map((value) => number(value)),
    ['0', '1.01', '1,234.57', '0.004', '0.01', '0.00001', '1E-7', '-1E-7', '1E300'],
  );
  assert.equal(number(1e-7, 6), '1E-7');
  assert.equal(number(0.4, 0), '0.4');
});

test('times, sizes and money', () => {
  const { seconds, bytes, money } = format;
  assert.deepEqual([undefined, 0, 4e-7, 0.0005, 0.0015, 0.5, 2.25].map(seconds), ['–', '0 s', '0.4 µs', '500 µs', '1.5 ms', '500 ms', '2.3 s']);
  assert.deepEqual([undefined, 0, 1n, 1536].map(bytes), ['–', '0 B', '1 B', '1.5 KiB']);
  assert.deepEqual([0n, 5n, 123456n, -5n, -150n].map((cents) => money(cents, 'EUR')), ['EUR 0.00', 'EUR 0.05', 'EUR 1,234.56', 'EUR -0.05', 'EUR -1.50']);
});
