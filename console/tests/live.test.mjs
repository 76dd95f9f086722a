import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { accessible, fits, launch, open, picture } from './browser.mjs';
import { ask } from './server.mjs';

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

test('changes are shown as they come, and their texts as texts', async () => {
  const { page, end } = await open(browser, '#/live?of=shops');
  const name = `<img src=x onerror="document.title='run'"> tea`;
  const shop_id = `live-${Date.now()}`;
  await page.getByRole('status').filter({ hasText: 'Following' }).waitFor();
  const write = () => ask('souk.shop.v1.ShopService/CreateShop', { shop: { shop_id, name, position: { latitude: 1, longitude: 2 } } });
  // The stream tells of what comes after it was opened: until it is, a write isn't told of.
  const { sequence } = await write();
  const cell = page.getByRole('cell', { name: shop_id }).first();
  const told = await cell.waitFor({ timeout: 3000 }).then(
    () => true,
    () => false,
  );
  await ask('souk.shop.v1.ShopService/DeleteShop', { shop_id });
  await cell.filter({ hasText: 'deleted' }).waitFor();
  if (told) {
    await page.getByText(name).first().waitFor();
    await page.getByRole('cell', { name: Number(sequence).toLocaleString('en'), exact: true }).waitFor();
  }
  assert.notEqual(await page.title(), 'run');
  await page.getByRole('button', { name: 'Pause' }).click();
  await page.getByText('Paused').waitFor();
  await page.getByRole('button', { name: 'Go on' }).click();
  await page.getByText('Following since').waitFor();
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
