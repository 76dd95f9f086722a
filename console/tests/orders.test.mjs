// The orders' view: its numbers are the API's, its state is in the address, and an order tells its history.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { accessible, fits, launch, open, picture } from './browser.mjs';
import { load } from './module.mjs';
import { ask } from './server.mjs';
import { after as afterOf, ended, refused } from './streams.mjs';

const SEARCH = 'souk.order.v1.OrderService/SearchOrders';
/** More than one: what another test has just deleted is left out of a page. */
const SOME = { search: { pageSize: 20 } };
const whole = (value) => Number(value ?? 0).toLocaleString('en');
const money = (cents) => `CNY ${(BigInt(cents) / 100n).toLocaleString('en')}.${String(BigInt(cents) % 100n).padStart(2, '0')}`;
const sums = { terms: { field: 'currency_code', aggregations: { sum: { sum: { field: 'total_price_cents' } } } } };

let browser;
before(async () => (browser = await launch()));
after(() => browser.close());

/** The texts of a table's body. */
const cells = (page, table) => page.locator(`${table} tbody tr`).evaluateAll((rows) => rows.map((row) => [...row.cells].map((cell) => cell.textContent.trim())));

/** Waits until the page says that it found so many. */
const found = (page, total) => page.locator('[data-total]', { hasText: new RegExp(`^${whole(total)} orders$`) }).waitFor();

test('counts, sums, facets and rows are those of the API', async () => {
  const { page, end } = await open(browser, '#/orders');
  const api = await ask(SEARCH, {
    search: {
      total: { exact: true },
      pageSize: 20,
      sort: [{ field: { field: 'order_time', descending: true } }, { primaryKey: {} }],
      aggregations: {
        brand: { terms: { field: 'product_brand', size: 12, aggregations: { sums } } },
        type: { terms: { field: 'product_type', size: 12 } },
        paid: { terms: { field: 'paid' } },
        sums,
        times: { dateHistogram: { field: 'order_time', unit: 'CALENDAR_UNIT_MONTH' } },
      },
    },
  });
  await found(page, api.total.value);
  const groups = (name) => api.aggregations[name].groups.groups;
  assert.equal(await page.locator('[data-sum]').textContent(), `Total: ${money(groups('sums')[0].aggregations.sum.value.value.intValue)}`);
  for (const [facet, key] of [
    ['brand', (group) => group.keys[0].stringValue],
    ['type', (group) => group.keys[0].stringValue],
    ['paid', (group) => (group.keys[0].boolValue ? 'Yes' : 'No')],
  ]) {
    const shown = await page.locator(`[data-facet=${facet}] label`).evaluateAll((labels) => labels.map((label) => [...label.querySelectorAll('span')].map((span) => span.textContent)));
    assert.deepEqual(
      shown,
      groups(facet).map((group) => [key(group), whole(group.count)]),
      facet,
    );
  }
  assert.deepEqual(
    await cells(page, '.sums'),
    groups('brand').map((group) => [
      group.keys[0].stringValue,
      whole(group.count),
      money(group.aggregations.sums.groups.groups[0].aggregations.sum.value.value.intValue),
    ]),
  );
  await page.locator('[data-orders] tbody tr').nth(19).waitFor();
  assert.deepEqual(
    (await cells(page, '[data-orders]')).map(([id, , product, , , quantity, total]) => [id, product, quantity, total]),
    api.hits.map(({ resource }) => [resource.orderId, resource.productName, whole(resource.quantity), money(resource.totalPriceCents)]),
  );
  await page.getByText('As a table').click();
  assert.deepEqual(
    (await cells(page, '[data-times]')).map(([, count]) => count),
    groups('times').map((group) => whole(group.count)),
  );
  await accessible(page);
  await page.getByText('As a table').click();
  await picture(page, 'orders');
  await end();
});

test('what is chosen and typed is in the address, and narrows everything', async () => {
  const { page, end } = await open(browser, '#/orders');
  const box = page.locator('[data-facet=brand] label').first();
  const brand = await box.locator('.value').textContent();
  await box.click();
  const filter = { terms: { field: 'product_brand', values: [{ stringValue: brand }] } };
  const one = await ask(SEARCH, { search: { query: filter, total: { exact: true } } });
  await found(page, one.total.value);
  // The other brands are still there to be chosen, too.
  assert.ok((await page.locator('[data-facet=brand] label').count()) > 1);

  const word = one.hits[0].resource.productName.split(' ').at(-1);
  await page.getByRole('searchbox').fill(word);
  const must = [{ match: { field: 'product_name', text: word, operator: 'OPERATOR_AND' } }];
  const two = await ask(SEARCH, { search: { query: { bool: { must, filter: [filter] } }, total: { exact: true } } });
  await found(page, two.total.value);
  assert.ok(Number(two.total.value) < Number(one.total.value));

  const place = new URL(page.url()).hash;
  assert.ok(place.includes(`q=${word}`));
  await end();

  const again = await open(browser, place);
  await found(again.page, two.total.value);
  assert.equal(await again.page.getByRole('searchbox').inputValue(), word);
  assert.ok(await again.page.locator('[data-facet=brand] input').first().isChecked());
  await again.page.getByRole('button', { name: 'Clear all filters' }).click();
  const all = await ask(SEARCH, { search: { total: { exact: true } } });
  await found(again.page, all.total.value);
  await again.end();
});

test('a time is chosen by dragging over the bars', async () => {
  const { page, end } = await open(browser, '#/orders');
  const plot = page.locator('.plot .u-over');
  await plot.waitFor();
  const { x, y, width, height } = await plot.boundingBox();
  await page.mouse.move(x + width * 0.4, y + height / 2);
  await page.mouse.down();
  await page.mouse.move(x + width * 0.6, y + height / 2, { steps: 8 });
  await page.mouse.up();
  await page.waitForFunction(() => /from=\d{4}-\d\d-01/.test(location.hash));
  const [from, to] = [await page.getByLabel('From', { exact: true }).inputValue(), await page.getByLabel('To', { exact: true }).inputValue()];
  const range = { field: 'order_time', gte: { timeValue: `${from}T00:00:00Z` }, lt: { timeValue: new Date(Date.parse(to) + 86_400_000).toISOString() } };
  const api = await ask(SEARCH, { search: { query: { range }, total: { exact: true } } });
  assert.ok(Number(api.total.value) > 0);
  await found(page, api.total.value);
  await end();
});

test('the table sorts, and has every page', async () => {
  const { page, end } = await open(browser, '#/orders');
  const all = async (skip, sort) => (await ask(SEARCH, { search: { sort, skip, pageSize: 20, total: { exact: true } } }));
  const byTotal = [{ field: { field: 'total_price_cents', descending: true } }, { primaryKey: {} }];
  const ids = async () => (await cells(page, '[data-orders]')).map(([id]) => id);
  const shows = async (answer) => {
    await page.locator('[data-orders] tbody tr').first().getByRole('link', { name: answer.hits[0].resource.orderId, exact: true }).waitFor();
    assert.deepEqual(await ids(), answer.hits.map(({ resource }) => resource.orderId));
  };
  const column = page.locator('[data-orders]').getByRole('columnheader', { name: 'Total' });
  await column.getByRole('button').click();
  const first = await all(0, byTotal);
  await shows(first);
  assert.equal(await column.getAttribute('aria-sort'), 'descending');
  const pages = Math.ceil(Number(first.total.value) / 20);
  await page.getByRole('button', { name: 'Next' }).click();
  await shows(await all(20, byTotal));
  await page.getByRole('button', { name: 'Last' }).click();
  await shows(await all((pages - 1) * 20, byTotal));
  assert.ok(await page.getByRole('button', { name: 'Next' }).isDisabled());
  await page.getByLabel('Page', { exact: true }).fill('7');
  await page.getByRole('button', { name: 'Go' }).click();
  await shows(await all(120, byTotal));
  await page.getByRole('button', { name: 'Previous' }).click();
  await shows(await all(100, byTotal));
  await page.goBack();
  await shows(await all(120, byTotal));
  await end();
});

test('an order tells its changes, and those that happen meanwhile', async () => {
  const name = '<b>kettle</b><img src=x onerror=alert(1)>';
  const { hits } = await ask(SEARCH, SOME);
  const { order: made } = await ask('souk.order.v1.OrderService/CreateOrder', {
    order: { ...hits[0].resource, orderId: `console-${Date.now()}`, productName: name, quantity: '3' },
  });
  const update = (quantity) => ask('souk.order.v1.OrderService/UpdateOrder', { order: { orderId: made.orderId, quantity }, updateMask: 'quantity' });
  await update('4');
  const { page, end } = await open(browser, `#/orders?id=${made.orderId}`);
  const beside = page.getByRole('region', { name: made.orderId });
  const changes = beside.locator('.order-changes > li');
  await changes.first().waitFor();
  assert.equal(await changes.count(), 1);
  await beside.getByRole('button', { name: 'Look for earlier changes in the log' }).click();
  await changes.nth(1).waitFor();
  assert.match(await changes.nth(0).textContent(), /^Created/);
  assert.match(await changes.nth(1).textContent(), /^Changed.*quantity: 3 → 4/);
  // What looks like a page of its own is text.
  assert.ok((await beside.locator('dd').allTextContents()).includes(name));
  assert.equal(await beside.locator('img, b').count(), 0);
  await accessible(page);
  await picture(page, 'order');

  await update('5');
  await changes.nth(2).waitFor();
  assert.match(await changes.nth(2).textContent(), /quantity: 4 → 5/);
  // The order itself is as it is now, too.
  const quantity = beside.locator('dt', { hasText: /^quantity$/ }).locator('+ dd');
  assert.equal(await quantity.textContent(), '5');
  await ask('souk.order.v1.OrderService/DeleteOrder', { orderId: made.orderId });
  await changes.nth(3).waitFor();
  assert.match(await changes.nth(3).textContent(), /^Deleted/);
  await beside.getByText(`There is no order ${made.orderId} now.`).waitFor();
  assert.equal(await beside.locator('dd').count(), 0);
  await end();
});

const WATCH = '**/souk.order.v1.OrderService/WatchOrders';

test('the history says nothing before the log has told it, and that it has ended', async () => {
  const { page, end } = await open(browser, '#/orders', { faults: true });
  let answer;
  const slow = new Promise((go) => (answer = go));
  await page.route(WATCH, async (route) => {
    await slow;
    await route.continue();
  });
  await page.evaluate(() => (location.hash = '#/orders?id=nobody'));
  const beside = page.getByRole('region', { name: 'nobody' });
  await beside.getByText('There is no order nobody now.').waitFor();
  const [none, further, ends] = ['No change of this order is in the log', 'Further changes appear here', 'Changes aren’t followed any more'].map((words) => beside.getByText(words));
  for (const claim of [none, further, ends]) assert.equal(await claim.count(), 0);
  answer();
  for (const claim of [none, further]) await claim.waitFor();
  await page.unroute(WATCH);

  await page.route(WATCH, (route) => route.fulfill(ended()));
  const { hits } = await ask(SEARCH, SOME);
  await page.evaluate((id) => (location.hash = `#/orders?id=${id}`), hits[0].resource.orderId);
  const other = page.getByRole('region', { name: hits[0].resource.orderId, exact: true });
  await other.getByText('Changes aren’t followed any more').waitFor();
  assert.equal(await other.getByText('Further changes appear here').count(), 0);
  await page.unroute(WATCH);
  await other.getByRole('button', { name: 'Follow again' }).click();
  await other.getByText('Further changes appear here').waitFor();
  await end();
});

test('of an old order it is said at once that the log no longer keeps its changes, and that it is followed', async () => {
  const { page, end } = await open(browser, '#/orders', { faults: true });
  const { hits } = await ask(SEARCH, SOME);
  const orderId = `console-old-${Date.now()}`;
  await ask('souk.order.v1.OrderService/CreateOrder', { order: { ...hits[0].resource, orderId, quantity: '3' } });
  const { order } = await ask('souk.order.v1.OrderService/UpdateOrder', { order: { orderId, quantity: '4' }, updateMask: 'quantity' });
  const { revision } = order;
  const asked = [];
  let isTrimmed = (after) => after === Number(revision) - 1;
  await page.route(WATCH, async (route) => {
    asked.push(afterOf(route.request()));
    if (isTrimmed(asked.at(-1))) await route.fulfill(refused('CHANGES_TRIMMED'));
    else await route.continue();
  });
  // Nothing is written meanwhile: the stream tells nothing.
  await page.evaluate((id) => (location.hash = `#/orders?id=${id}`), orderId);
  const beside = page.getByRole('region', { name: orderId, exact: true });
  const says = () => Promise.all(['Changes before are missing', 'No change of this order is in the log', 'Further changes appear here'].map((words) => beside.getByText(words).waitFor()));
  await says();
  const until = asked[1];
  assert.deepEqual(asked, [Number(revision) - 1, until]);

  // Where the log keeps nothing at all, it isn't looked through for ever.
  isTrimmed = (after) => after !== 0 && after < until;
  await beside.getByRole('button', { name: 'Look for earlier changes in the log' }).click();
  await says();
  assert.equal(await beside.getByText('Looking').count(), 0);
  assert.deepEqual(asked.slice(2), [until - 1, until]);
  await ask('souk.order.v1.OrderService/DeleteOrder', { orderId });
  await end();
});

for (const why of ['CHANGES_TRIMMED', 'SEQUENCE_AHEAD']) {
  test(`an order whose log can’t be gone on with (${why}) is read again to be followed again`, async () => {
    const { page, end } = await open(browser, '#/orders', { faults: true });
    const { hits } = await ask(SEARCH, SOME);
    const { orderId } = hits[0].resource;
    let until = Infinity;
    // What was reached when the order was read is no longer there.
    await page.route(WATCH, async (route) => {
      if (afterOf(route.request()) < until) await route.fulfill(refused(why));
      else await route.continue();
    });
    await page.evaluate((id) => (location.hash = `#/orders?id=${id}`), orderId);
    const beside = page.getByRole('region', { name: orderId, exact: true });
    await beside.getByText('Changes aren’t followed any more').waitFor();
    const { order } = await ask('souk.order.v1.OrderService/CreateOrder', { order: { ...hits[0].resource, orderId: `console-again-${Date.now()}` } });
    until = Number(order.revision) - 1;
    await ask('souk.order.v1.OrderService/UpdateOrder', { order: { orderId, quantity: String(Number(hits[0].resource.quantity) + 1) }, updateMask: 'quantity' });
    await beside.getByRole('button', { name: 'Follow again' }).click();
    await beside.getByText('Further changes appear here').waitFor();
    await ask('souk.order.v1.OrderService/DeleteOrder', { orderId: order.orderId });
    await end();
  });
}

test('an order that is changed while it is shown isn’t said to be as it was made', async () => {
  const { hits } = await ask(SEARCH, SOME);
  const orderId = `console-new-${Date.now()}`;
  await ask('souk.order.v1.OrderService/CreateOrder', { order: { ...hits[0].resource, orderId, quantity: '3' } });
  const { page, end } = await open(browser, `#/orders?id=${orderId}`);
  const beside = page.getByRole('region', { name: orderId });
  const claim = beside.getByText('has not been changed since it was created');
  await claim.waitFor();
  await beside.getByText('Further changes appear here').waitFor();
  await ask('souk.order.v1.OrderService/UpdateOrder', { order: { orderId, quantity: '4' }, updateMask: 'quantity' });
  await claim.waitFor({ state: 'detached' });
  await beside.getByRole('button', { name: 'Look for earlier changes in the log' }).waitFor();
  await ask('souk.order.v1.OrderService/DeleteOrder', { orderId });
  await end();
});

test('a letter that is typed while the search before is sent isn’t lost', async () => {
  const { page, end } = await open(browser, '#/orders');
  await page.locator('[data-orders] tbody tr').first().waitFor();
  await page.evaluate(() => {
    const replace = history.replaceState.bind(history);
    history.replaceState = (...args) => {
      history.replaceState = replace;
      replace(...args);
      const box = document.querySelector('input[type=search]');
      box.value += 'i';
      box.dispatchEvent(new InputEvent('input', { bubbles: true }));
    };
  });
  await page.getByRole('searchbox').fill('khak');
  await page.waitForFunction(() => location.hash.includes('q=khaki'));
  assert.equal(await page.getByRole('searchbox').inputValue(), 'khaki');
  await page.getByRole('button', { name: 'Clear all filters' }).click();
  await page.waitForFunction(() => document.querySelector('input[type=search]').value === '');
  await end();
});

test('sums of more currencies than are told are said to be missing', async () => {
  const { sums } = await load('views/orders/sums.tsx');
  const group = (code, cents) => ({
    keys: [{ kind: { case: 'stringValue', value: code } }],
    count: 1n,
    aggregations: { sum: { kind: { case: 'value', value: { value: { kind: { case: 'intValue', value: cents } } } } } },
  });
  const result = (otherCount) => ({ kind: { case: 'groups', value: { groups: [group('CNY', 150n), group('USD', 5n)], otherCount } } });
  assert.equal(sums(result(0n)), 'CNY 1.50 + USD 0.05');
  assert.equal(sums(result(3n)), 'CNY 1.50 + USD 0.05 + 3 orders in other currencies');
});

test('it is Chinese, dark and narrow, too', async () => {
  const { page, end } = await open(browser, '#/orders', { language: 'zh', theme: 'dark', width: 360 });
  await page.getByRole('heading', { name: '订单', exact: true }).waitFor();
  await page.locator('[data-orders] tbody tr').first().waitFor();
  await accessible(page);
  await fits(page);
  await picture(page, 'orders-zh');
  await end();
});
