// Any table and index: what the API tells of them, rows by key, and a change of an index from its preview to the end of its build.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { accessible, fits, launch, open, picture } from './browser.mjs';
import { ask } from './server.mjs';

const INDEX = 'souk.index.v1.IndexService';
const TABLE = 'souk.table.v1.TableService';
const whole = (value) => Number(value ?? 0).toLocaleString('en');

let browser;
before(async () => (browser = await launch()));
after(() => browser.close());

test('every index is there with what the API tells of it', async () => {
  const { page, end } = await open(browser, '#/tables');
  const { indexes } = await ask(`${INDEX}/ListIndexes`, {});
  const names = [...new Set(indexes.map(({ table }) => table))];
  await page.getByRole('link', { name: 'shops', exact: true }).waitFor();
  const listed = await page.getByRole('navigation', { name: 'Tables', exact: true }).getByRole('link').allTextContents();
  for (const name of names) assert.ok(listed.includes(name), name);
  await page.getByRole('link', { name: 'shops', exact: true }).click();
  const panel = page.getByRole('region', { name: 'Index shops' });
  const { index } = await ask(`${INDEX}/GetIndex`, { index: 'shops' });
  assert.equal(await panel.locator('[data-documents]').textContent(), whole(index.documents));
  await panel.getByText(`Fields (${index.fields.length})`).click();
  assert.deepEqual(
    await panel.locator('[data-fields] tbody tr').evaluateAll((rows) => rows.map((row) => [...row.cells].slice(0, 2).map((cell) => cell.textContent))),
    index.fields.map(({ field, type }) => [field, type.replace('INDEX_FIELD_TYPE_', '')]),
  );
  await accessible(page);
  await picture(page, 'tables');
  await end();
});

test('rows of a service’s table are read by id and in the order of their ids', async () => {
  const { page, end } = await open(browser, '#/tables?table=shops', { faults: /404/ });
  const { hits } = await ask('souk.shop.v1.ShopService/SearchShops', { search: { sort: [{ primaryKey: {} }], pageSize: 10 } });
  await page.locator('.whole').nth(9).waitFor();
  assert.deepEqual(
    await page.locator('.whole summary').allTextContents(),
    hits.map(({ resource }) => resource.shopId),
  );
  const id = hits[3].resource.shopId;
  await page.getByLabel('Find by key').fill(id);
  await page.getByRole('button', { name: 'Find' }).click();
  const row = page.locator(`[data-row="${id}"]`);
  await row.waitFor();
  const { shop } = await ask('souk.shop.v1.ShopService/GetShop', { shopId: id });
  assert.deepEqual(JSON.parse(await row.textContent()), shop);
  await page.getByLabel('Find by key').fill('nobody’s');
  await page.getByRole('button', { name: 'Find' }).click();
  await page.getByRole('alert').getByText('SHOP_NOT_FOUND').waitFor();
  await end();
});

test('a table that a user made is there with its schema, rows and misfits', async () => {
  const name = `console_${Date.now()}`;
  await ask(`${TABLE}/CreateTable`, {
    table: {
      name,
      key: [
        { name: 'place', type: 'KEY_TYPE_STRING' },
        { name: 'number', type: 'KEY_TYPE_INTEGER' },
      ],
      searchIndex: { fields: [{ field: 'size', type: 'INDEX_FIELD_TYPE_LONG' }] },
    },
  });
  for (let number = 0; number < 25; number += 1) {
    const size = number === 7 ? { stringValue: 'no number' } : { intValue: String(number) };
    await ask(`${TABLE}/PutRow`, {
      table: name,
      key: [{ stringValue: 'here' }, { intValue: String(number) }],
      columns: { size, note: { stringValue: `<i>${number}</i>` } },
    });
  }
  const { page, end } = await open(browser, `#/tables?table=${name}`);
  const rows = page.locator('[data-rows] tbody tr');
  await rows.nth(19).waitFor();
  assert.equal(await rows.count(), 20);
  assert.deepEqual(
    await rows.first().evaluate((row) => [...row.cells].slice(0, 3).map((cell) => cell.textContent)),
    ['here · 0', '<i>0</i>', '0'],
  );
  await page.getByRole('button', { name: 'Next page' }).click();
  await page.waitForFunction(() => document.querySelectorAll('[data-rows] tbody tr').length === 5);
  const [place, number] = [page.getByLabel('place (string)'), page.getByLabel('number (integer)')];
  await place.fill('here');
  await number.fill('many');
  await page.getByRole('button', { name: 'Find' }).click();
  await page.getByText('A whole number of 64 bits is needed.').waitFor();
  await number.fill('7');
  await page.getByRole('button', { name: 'Find' }).click();
  await page.locator('[data-row]').getByText('no number').waitFor();
  // The next row isn't there until it is read, and isn't the one before under another key.
  let answer;
  const slow = new Promise((go) => (answer = go));
  await page.route(`**/${TABLE}/GetRow`, async (route) => {
    await slow;
    await route.continue();
  });
  await number.fill('8');
  await page.getByRole('button', { name: 'Find' }).click();
  await page.waitForFunction(() => location.hash.includes('8'));
  await page.locator('[data-row]').waitFor({ state: 'detached' });
  answer();
  await page.locator('[data-row]').getByText('<i>8</i>').waitFor();
  await page.getByText('Values that don’t fit (1)').click();
  await page.locator('[data-misfits]').getByText('WRONG_TYPE').waitFor();
  await page.getByRole('button', { name: 'Measure rows and bytes' }).click();
  await page.getByText(/^25 rows, .* stored$/).waitFor();
  await accessible(page);
  await picture(page, 'tables-own');
  await end();
  await ask(`${TABLE}/DeleteTable`, { table: name });
});

test('a change of an index is previewed, applied, and its build watched to the end', async () => {
  const { page, end } = await open(browser, '#/tables?table=media', { faults: /400/ });
  const panel = page.getByRole('region', { name: 'Index media' });
  await panel.getByText('Change this index').click();
  const before = (await ask(`${INDEX}/GetIndex`, { index: 'media' })).index;
  await panel.getByLabel('Name').fill('colour');
  await panel.getByRole('button', { name: 'Add to the changes' }).click();
  await panel.getByRole('button', { name: 'Preview the cost' }).click();
  await panel.locator('[data-effect]').waitFor();
  const { effect } = await ask(`${INDEX}/UpdateIndex`, {
    index: 'media',
    changes: [{ addField: { field: 'colour', type: 'INDEX_FIELD_TYPE_KEYWORD' } }],
    validateOnly: true,
  });
  const told = await panel.locator('[data-effect]').textContent();
  if (effect.instant) assert.match(told, /at once/);
  else assert.match(told, new RegExp(`about ${whole(effect.rowsAbout)} rows`));
  // A preview changes nothing.
  assert.deepEqual((await ask(`${INDEX}/GetIndex`, { index: 'media' })).index.fields, before.fields);
  await accessible(page);
  await panel.getByRole('button', { name: 'Apply' }).click();
  await panel.getByText('Done: the change is durable.').waitFor();
  await panel.getByText(`Fields (${before.fields.length + 1})`).waitFor({ timeout: 30_000 });
  const after = (await ask(`${INDEX}/GetIndex`, { index: 'media' })).index;
  assert.ok(after.fields.some(({ field }) => field === 'colour'));

  // What can't be is said, and what was put together stays.
  await panel.getByLabel('Name').fill('colour');
  await panel.getByRole('button', { name: 'Add to the changes' }).click();
  await panel.getByRole('button', { name: 'Preview the cost' }).click();
  await panel.getByRole('alert').waitFor();
  await panel.getByRole('listitem').getByText('Add a field: colour KEYWORD').waitFor();
  await ask(`${INDEX}/UpdateIndex`, { index: 'media', changes: [{ dropField: { field: 'colour' } }] });
  await end();
});

test('a preview is given up with the change that it is of, and what is noted while one is applied stays', async () => {
  const { page, end } = await open(browser, '#/tables?table=media');
  const panel = page.getByRole('region', { name: 'Index media' });
  await panel.getByText('Change this index').click();
  const note = async (field) => {
    await panel.getByLabel('Name').fill(field);
    await panel.getByRole('button', { name: 'Add to the changes' }).click();
  };
  /** Has the next change wait until what is given back is called. */
  const hold = async () => {
    let go;
    const held = new Promise((gone) => (go = gone));
    const continued = async (route) => {
      await held;
      // One that nobody waits for any more is gone.
      await route.continue().catch(() => {});
    };
    await page.route(`**/${INDEX}/UpdateIndex`, continued, { times: 1 });
    return go;
  };
  const preview = panel.getByRole('button', { name: 'Preview the cost' });
  const apply = panel.getByRole('button', { name: 'Apply', exact: true });
  const first = await hold();
  await note('colour');
  await preview.click();
  await note('shape');
  // Nobody waits for the first one, and its end is no failure.
  await preview.click();
  await apply.waitFor();
  first();
  assert.equal(await panel.getByRole('alert').count(), 0);

  const applied = await hold();
  await apply.click();
  await note('finish');
  applied();
  await panel.getByText('Done: the change is durable.').waitFor();
  assert.equal(await apply.count(), 0);
  const noted = await panel.getByRole('listitem').allTextContents();
  assert.deepEqual(
    noted.map((text) => text.replace(/ Take back$/, '')),
    ['Add a field: finish KEYWORD'],
  );
  await ask(`${INDEX}/UpdateIndex`, { index: 'media', changes: ['colour', 'shape'].map((field) => ({ dropField: { field } })) });
  await end();
});

test('an index is created beside another, weighed, and dropped once that is confirmed', async () => {
  const { page, end } = await open(browser, '#/tables?table=consumers', { faults: /400|404|412/ });
  const NAME = 'consumers.console';
  const weights = async () => Object.fromEntries((await ask(`${INDEX}/ListIndexes`, {})).indexes.filter(({ table }) => table === 'consumers').map(({ index, weight }) => [index, weight ?? 0]));
  assert.deepEqual(await weights(), { consumers: 100 });
  const form = page.locator('[data-create]');
  await form.getByText('A new index of this table').click();
  const name = form.getByLabel('Name of the index');
  assert.equal(await name.inputValue(), 'consumers.');

  // What can't be is said by the server's violations, and what was put together stays.
  await name.fill('consumers.No Name');
  await form.getByRole('button', { name: 'Preview the cost' }).click();
  const alert = form.getByRole('alert');
  await alert.locator('li code').getByText('index', { exact: true }).waitFor();
  assert.equal(await name.inputValue(), 'consumers.No Name');
  assert.equal(await form.getByRole('button', { name: 'Create it' }).count(), 0);

  await name.fill(NAME);
  await form.getByLabel('Fields of').selectOption('consumers');
  await form.getByLabel('Name', { exact: true }).fill('colour');
  await form.getByRole('button', { name: 'Add to the changes' }).click();
  await form.getByRole('button', { name: 'Preview the cost' }).click();
  const effect = form.locator('[data-effect]');
  await effect.waitFor();
  const changes = [{ addField: { field: 'colour', type: 'INDEX_FIELD_TYPE_KEYWORD' } }];
  const preview = await ask(`${INDEX}/CreateIndex`, { index: NAME, sourceIndex: 'consumers', changes, validateOnly: true });
  assert.match(await effect.textContent(), new RegExp(`about ${whole(preview.effect.rowsAbout)} rows`));
  assert.deepEqual(await weights(), { consumers: 100 });
  await accessible(page);
  await form.getByRole('button', { name: 'Create it' }).click();
  await effect.getByText(`Done: ${NAME} is durable`).waitFor();
  const panel = page.getByRole('region', { name: `Index ${NAME}`, exact: true });
  await panel.getByText('answers', { exact: true }).waitFor();
  assert.deepEqual(await weights(), { consumers: 100, [NAME]: 0 });
  const { index } = await ask(`${INDEX}/GetIndex`, { index: NAME });
  assert.ok(index.fields.some(({ field }) => field === 'colour'));
  assert.ok(index.fields.length > 1);

  const shares = page.getByRole('region', { name: 'Weights of the indexes' });
  const share = (of) => shares.getByLabel(of, { exact: true });
  assert.deepEqual([await share('consumers').inputValue(), await share(NAME).inputValue()], ['100', '0']);
  await share('consumers').fill('0');
  await shares.getByRole('button', { name: 'Set the weights' }).click();
  await shares.getByRole('alert').waitFor();
  assert.equal(await share('consumers').inputValue(), '0');
  assert.deepEqual(await weights(), { consumers: 100, [NAME]: 0 });
  await share('consumers').fill('60');
  await share(NAME).fill('40');
  await shares.getByRole('button', { name: 'Set the weights' }).click();
  await shares.getByRole('alert').waitFor({ state: 'detached' });
  await shares.getByRole('button', { name: 'Set the weights', disabled: true }).waitFor();
  assert.deepEqual(await weights(), { consumers: 60, [NAME]: 40 });

  // The first index of a service's table can't be dropped: the server's words are in the dialog.
  const first = page.getByRole('region', { name: 'Index consumers', exact: true });
  const dialog = page.getByRole('dialog');
  await first.getByRole('button', { name: 'Drop this index…' }).click();
  await dialog.getByRole('heading', { name: 'Drop the index consumers?' }).waitFor();
  await dialog.getByRole('button', { name: 'Drop it' }).click();
  await dialog.getByRole('alert').getByText('INDEX_NEEDED').waitFor();
  await accessible(page);
  await dialog.getByRole('button', { name: 'Cancel' }).click();

  await panel.getByRole('button', { name: 'Drop this index…' }).click();
  await dialog.getByRole('heading', { name: `Drop the index ${NAME}?` }).waitFor();
  assert.equal(await dialog.getByRole('alert').count(), 0);
  await dialog.getByRole('button', { name: 'Cancel' }).click();
  await dialog.waitFor({ state: 'hidden' });
  assert.deepEqual(Object.keys(await weights()), ['consumers', NAME]);
  await panel.getByRole('button', { name: 'Drop this index…' }).click();
  await page.keyboard.press('Escape');
  await dialog.waitFor({ state: 'hidden' });
  // While it is under way nothing closes it.
  let answer;
  const slow = new Promise((go) => (answer = go));
  await page.route(`**/${INDEX}/DeleteIndex`, async (route) => {
    await slow;
    await route.continue();
  });
  await panel.getByRole('button', { name: 'Drop this index…' }).click();
  await dialog.getByRole('button', { name: 'Drop it' }).click();
  await dialog.getByRole('button', { name: 'Drop it', disabled: true }).waitFor();
  await page.keyboard.press('Escape');
  await page.keyboard.press('Escape');
  assert.ok(await dialog.isVisible());
  answer();
  await panel.waitFor({ state: 'detached' });
  await dialog.waitFor({ state: 'hidden' });
  assert.deepEqual(Object.keys(await weights()), ['consumers']);
  await ask(`${INDEX}/UpdateIndex`, { index: 'consumers', weights: [{ index: 'consumers', weight: 100 }] });
  await end();
});

test('it is Chinese, dark and narrow, too', async () => {
  const { page, end } = await open(browser, '#/tables?table=orders', { language: 'zh', theme: 'dark', width: 360 });
  await page.getByRole('heading', { name: '索引 orders' }).waitFor();
  await page.getByText('为此表新建索引').click();
  await accessible(page);
  await fits(page);
  await page.getByRole('button', { name: '删除此索引…' }).click();
  await page.getByRole('dialog').getByRole('heading', { name: '删除索引 orders？' }).waitFor();
  await accessible(page);
  await fits(page);
  await end();
});
