import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { accessible, fits, launch, open, picture } from './browser.mjs';
import { load } from './module.mjs';
import { ask } from './server.mjs';
import { ended, isEmpty, refused } from './streams.mjs';

let browser;
before(async () => (browser = await launch()));
after(() => browser.close());

const digits = (text) => Number(text.replaceAll(',', ''));

test('calls are counted as they were made, and indexes are as the API tells', async () => {
  const { page, end } = await open(browser, '#/live');
  await page.getByRole('heading', { name: 'Live', exact: true }).waitFor();
  await page.getByText('Connections').waitFor();
  const { hits } = await ask('souk.shop.v1.ShopService/SearchShops', { search: { page_size: 7, hits_mode: 'HITS_MODE_KEYS' } });
  for (const { resource } of hits) await ask('souk.shop.v1.ShopService/GetShop', { shop_id: resource.shopId });
  await ask('souk.shop.v1.ShopService/GetShop', { shop_id: 'nobody' }).catch(() => {});
  const row = page.getByRole('row').filter({ hasText: 'souk.shop.v1.ShopService/GetShop' });
  await row.getByRole('cell', { name: '8', exact: true }).waitFor();
  assert.match(await row.textContent(), /[0-9.]+ (µs|ms)/);

  const { indexes } = await ask('souk.index.v1.IndexService/ListIndexes', {});
  const shown = await page
    .getByRole('group', { name: 'Indexes' })
    .locator('tbody tr')
    .evaluateAll((rows) => rows.map((row) => [row.cells[0].textContent, row.cells[1].textContent]));
  assert.deepEqual(
    shown.map(([name, documents]) => [name, digits(documents)]),
    indexes.map(({ index, documents }) => [index, Number(documents)]),
  );
  const { figures } = await ask('souk.figures.v1.FiguresService/GetFigures', { names: ['process.memory.usage'] });
  const told = Number(figures[0].values[0].number);
  const memory = await page.locator('.tile').filter({ hasText: 'Memory' }).locator('dd').textContent();
  const [, number, unit] = /([0-9.,]+) (MiB|GiB)/.exec(memory);
  const seen = digits(number) * { MiB: 2 ** 20, GiB: 2 ** 30 }[unit];
  assert.ok(Math.abs(seen - told) < told / 2, `${memory} is about ${told}`);
  await accessible(page);
  await picture(page, 'live');
  await end();
});

const SHOPS = 'souk.shop.v1.ShopService';
const WATCH = `**/${SHOPS}/WatchShops`;

/** Makes a shop and deletes it, and tells when it was made. */
const write = async (shop_id, name = shop_id) => {
  const { sequence } = await ask(`${SHOPS}/CreateShop`, { shop: { shop_id, name, position: { latitude: 1, longitude: 2 } } });
  await ask(`${SHOPS}/DeleteShop`, { shop_id });
  return Number(sequence);
};

/** Waits until the stream is open: what is written from then on is told. */
const follows = (page) => page.getByRole('status').filter({ hasText: /Following: sequence [0-9,]+ is reached/ }).waitFor();

/** What is shown of a shop, the latest first. */
const told = (page, shop_id) => page.locator('tbody tr').filter({ has: page.locator('code', { hasText: shop_id }) });

test('changes are shown as they come, and their texts as texts', async () => {
  const { page, end } = await open(browser, '#/live?of=shops');
  const name = `<img src=x onerror="document.title='run'"> tea`;
  const id = `live-${Date.now()}`;
  await follows(page);
  const sequence = await write(id, name);
  const rows = told(page, id);
  await rows.nth(1).waitFor();
  assert.match(await rows.nth(0).textContent(), /deleted/);
  assert.equal(await rows.nth(1).locator('td').first().textContent(), sequence.toLocaleString('en'));
  assert.ok((await rows.nth(1).textContent()).endsWith(`created ${id} ${name}`));
  assert.notEqual(await page.title(), 'run');
  await page.getByRole('status').filter({ hasText: '2 changes since this view was opened' }).waitFor();
  await end();
});

test('what comes during a pause is told after it', async () => {
  const { page, end } = await open(browser, '#/live?of=shops');
  await follows(page);
  await page.getByRole('button', { name: 'Pause' }).click();
  await page.getByText('goes on where it stopped').waitFor();
  const id = `paused-${Date.now()}`;
  await write(id);
  await page.getByRole('button', { name: 'Go on' }).click();
  await told(page, id).nth(1).waitFor();
  await follows(page);
  await end();
});

test('a pause before the stream is open is said to miss what comes', async () => {
  const { page, end } = await open(browser, '#/live', { faults: true });
  await page.route(WATCH, () => {});
  await page.getByLabel('Changes of').selectOption('Shops');
  await page.getByText('The stream is being opened').waitFor();
  await page.getByRole('button', { name: 'Pause' }).click();
  await page.getByText('isn’t told of here').waitFor();
  await end();
});

for (const [reason, words] of [
  ['CHANGES_TRIMMED', 'the server no longer keeps all of them'],
  ['SEQUENCE_AHEAD', 'it is another one, or has been restored'],
]) {
  test(`where the log can’t be gone on with (${reason}), that is said, and the present is followed`, async () => {
    const { page, end } = await open(browser, '#/live?of=shops', { faults: true });
    await follows(page);
    await page.getByRole('button', { name: 'Pause' }).click();
    await page.getByText('goes on where it stopped').waitFor();
    const empty = [];
    await page.route(WATCH, async (route) => {
      empty.push(isEmpty(route.request()));
      if (empty.length === 1) await route.fulfill(refused(reason));
      else await route.continue();
    });
    await page.getByRole('button', { name: 'Go on' }).click();
    await page.getByText(words).waitFor();
    await follows(page);
    const id = `anew-${reason.toLowerCase()}-${Date.now()}`;
    await write(id);
    await told(page, id).nth(1).waitFor();
    // From where it was, and then from now on; no third time.
    assert.deepEqual(empty, [false, true]);
    await end();
  });
}

test('a stream that breaks is opened again, and one that is refused isn’t', async () => {
  const { page, end } = await open(browser, '#/live', { faults: true });
  let asked = 0;
  await page.route(WATCH, async (route) => {
    asked += 1;
    if (asked === 1) await route.fulfill(ended());
    else await route.fulfill(ended({ code: 'permission_denied', message: 'a reader may not' }));
  });
  await page.getByLabel('Changes of').selectOption('Shops');
  await page.getByText('it is opened again in 1 s').waitFor();
  const alert = page.getByRole('alert').filter({ hasText: 'a reader may not' });
  await alert.waitFor();
  await page.getByText('Changes aren’t followed.').waitFor();
  assert.equal(asked, 2);
  await page.unroute(WATCH);
  await alert.getByRole('button', { name: 'Try again' }).click();
  await follows(page);
  await alert.waitFor({ state: 'detached' });
  await end();
});

test('after a break it says that it follows, also when nothing is written', async () => {
  const { page, end } = await open(browser, '#/live?of=shops', { faults: true });
  await follows(page);
  await page.getByRole('button', { name: 'Pause' }).click();
  await page.getByText('goes on where it stopped').waitFor();
  let asked = 0;
  await page.route(WATCH, async (route) => {
    asked += 1;
    if (asked === 1) await route.fulfill(ended({ code: 'unavailable', message: 'it goes away' }));
    else await route.continue();
  });
  await page.getByRole('button', { name: 'Go on' }).click();
  const alert = page.getByRole('alert').filter({ hasText: 'it goes away' });
  await alert.waitFor();
  await follows(page);
  await alert.waitFor({ state: 'detached' });
  assert.equal(await page.getByText('Changes aren’t followed').count(), 0);
  await end();
});

test('a server that goes away is told of, and the page goes on when it is back', async () => {
  const { page, end } = await open(browser, '#/live', { faults: true });
  await page.getByText('Connections').waitFor();
  await page.route('**/souk.figures.v1.*/**', (route) => route.abort());
  await page.getByRole('alert').filter({ hasText: 'can’t be reached' }).waitFor();
  await page.getByText('The figures stand still since').waitFor();
  await page.unroute('**/souk.figures.v1.*/**');
  await page.getByRole('alert').waitFor({ state: 'detached' });
  await end();
});

test('it is Chinese, dark and narrow, too', async () => {
  const { page, end } = await open(browser, '#/live', { language: 'zh', theme: 'dark', width: 360 });
  await page.getByText('连接数').waitFor();
  await accessible(page);
  await fits(page);
  await end();
});

/** A sample of the server's figures: so many seconds after the first, with so many searches of 1 ms until then. */
const sample = (seconds, searches, uptime = 100 + seconds) => ({
  at: 1_700_000_000_000 + seconds * 1000,
  figures: [
    { name: 'process.uptime', service: 'door', bounds: [], values: [{ attributes: {}, kind: { case: 'number', value: uptime } }] },
    {
      name: 'rpc.server.call.duration',
      service: 'door',
      bounds: [0.001, 1],
      values: [
        {
          attributes: { 'rpc.method': `${SHOPS}/SearchShops`, 'rpc.status_code': 'OK' },
          kind: { case: 'buckets', value: { count: BigInt(searches), counts: [BigInt(searches), 0n, 0n] } },
        },
      ],
    },
  ],
});

test('calls a second are those of the server’s times, and nothing is said of a time without samples', async () => {
  const { EMPTY, grown } = await load('views/live/history.ts');
  const after = (...samples) => samples.reduce(grown, EMPTY);
  const rates = ({ points }) => points.map((point) => point.rates.search);
  assert.deepEqual(rates(after(sample(0, 0))), []);
  // An answer that took longer isn't more calls.
  assert.deepEqual(rates(after(sample(0, 0), sample(2, 20), sample(6, 60))), [10, 10]);
  // The same answer again is none.
  assert.deepEqual(rates(after(sample(0, 0), sample(2, 20), sample(2, 20))), [10]);
  const hidden = after(sample(0, 0), sample(2, 20), sample(302, 9020), sample(304, 9024));
  assert.deepEqual(rates(hidden), [10, undefined, 2]);
  // The times of calls are those of the last ten seconds, and what was counted since the view was opened stays counted.
  assert.equal(hidden.samples.length, 2);
  assert.equal(hidden.first[0].buckets.count, 0);
  const long = after(...Array.from({ length: 20 }, (_, n) => sample(2 * n, n)));
  assert.deepEqual(long.samples.map(({ at }) => (at - long.samples.at(-1).at) / 1000), [-10, -8, -6, -4, -2, 0]);
  // Another process begins anew.
  assert.deepEqual(rates(after(sample(0, 50), sample(2, 60), sample(4, 1, 1), sample(6, 5, 3))), [2]);
  // A clock that is set back does, too.
  assert.deepEqual(rates(after(sample(10, 50), sample(12, 60), sample(4, 61, 114), sample(6, 65, 116))), [2]);
});

test('lags have a gap where nobody asked for them', async () => {
  const { NO_LAGS, lagged } = await load('views/live/history.ts');
  const answer = (index) => ({ indexes: [{ index, lag: { seconds: 1n, nanos: 500_000_000 } }] });
  const [first, second] = [lagged(NO_LAGS, answer('a'), 0), lagged(lagged(NO_LAGS, answer('a'), 0), answer('a'), 2000)];
  assert.deepEqual(first, { times: [0], all: [['a', [1.5]]] });
  assert.deepEqual(second, { times: [0, 2000], all: [['a', [1.5, 1.5]]] });
  assert.deepEqual(lagged(second, answer('b'), 302_000), { times: [0, 2000, 152_000, 302_000], all: [['b', [undefined, undefined, undefined, 1.5]]] });
});
