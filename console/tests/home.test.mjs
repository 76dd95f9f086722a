import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { accessible, fits, launch, open, picture } from './browser.mjs';
import { ask } from './server.mjs';

let browser;
before(async () => (browser = await launch()));
after(() => browser.close());

test('the first view tells of every index what the API tells', async () => {
  const { page, end } = await open(browser);
  const { indexes } = await ask('souk.index.v1.IndexService/ListIndexes', {});
  await page.getByRole('cell', { name: 'orders', exact: true }).waitFor();
  const rows = await page.locator('tbody tr').evaluateAll((rows) => rows.map((row) => [...row.cells].slice(0, 2).map((cell) => cell.textContent)));
  assert.deepEqual(
    rows,
    indexes.map(({ index, documents }) => [index, Number(documents).toLocaleString('en')]),
  );
  await accessible(page);
  await picture(page, 'overview');
  await end();
});

test('it is Chinese, dark and narrow, too', async () => {
  const { page, end } = await open(browser, '', { language: 'zh', theme: 'dark', width: 360 });
  await page.getByRole('heading', { name: '这里有什么' }).waitFor();
  await accessible(page);
  await fits(page);
  await end();
});
