// Which errors are told as a server that can't be reached.
import assert from 'node:assert/strict';
import { afterEach, before, test } from 'node:test';

import { Code, ConnectError } from '@connectrpc/connect';

import { load } from './module.mjs';
import { ended } from './streams.mjs';

const { fetch } = globalThis;
afterEach(() => (globalThis.fetch = fetch));

let modules;
before(async () => (modules = await load('calls.ts', 'problem.tsx', 'session.ts', 'contract/souk/shop/v1/shop_pb.ts')));

/** What calling fails with, once by a unary call and once by a stream. */
const failures = async () => {
  const shops = modules.client(modules.ShopService);
  const unary = await shops.getShop({ shopId: 'a' }).then(() => undefined, ConnectError.from);
  const stream = await (async () => {
    for await (const _ of shops.watchShops({}));
  })().then(() => undefined, ConnectError.from);
  return [unary, stream];
};

test('nobody answers', async () => {
  globalThis.fetch = async () => {
    throw new TypeError('Failed to fetch');
  };
  for (const error of await failures()) assert.equal(error.code, Code.Unavailable);
});

test('an answer ends before its end', async () => {
  globalThis.fetch = async () =>
    new Response(
      new ReadableStream({
        pull: (control) => control.error(new TypeError('network error')),
      }),
      { headers: { 'content-type': 'application/connect+proto' } },
    );
  const [, error] = await failures();
  assert.equal(error.code, Code.Unavailable);
});

test('an error of the page itself', () => {
  const text = JSON.stringify(modules.Problem({ error: ConnectError.from(new TypeError('x is not a function')) }));
  assert.match(text, /The call failed/);
  assert.match(text, /x is not a function/);
  assert.doesNotMatch(text, /reached/);
});

test('a stream whose caller isn’t known asks who they are, as a call does', async () => {
  const { contentType, body } = ended({ code: 'unauthenticated', message: 'the token has expired' });
  globalThis.fetch = async () => new Response(body, { headers: { 'content-type': contentType } });
  assert.equal(modules.asking.value, 'no');
  const [, error] = await failures();
  assert.equal(error.code, Code.Unauthenticated);
  assert.equal(modules.asking.value, 'yes');
});
