// What goes wrong: the page says it, keeps what was typed, and goes on.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { launch, open } from './browser.mjs';
import { start } from './server.mjs';

let browser;
before(async () => (browser = await launch()));
after(() => browser.close());

const ORDERS = '**/souk.order.v1.OrderService/SearchOrders';
const refusal = (code, message, status) => ({
  status,
  contentType: 'application/json',
  body: JSON.stringify({ code, message }),
});

test('a service behind the gateway that fails is told of, and the rest goes on', async () => {
  const { page, end } = await open(browser, '#/orders', { faults: true });
  await page.locator('[data-orders] tbody tr').first().waitFor();
  await page.route(ORDERS, (route) => route.fulfill(refusal('unavailable', 'backend order: no process answers', 503)));
  await page.getByRole('searchbox').fill('khaki');
  await page.getByRole('alert').getByText('backend order: no process answers').waitFor();
  assert.equal(await page.getByRole('searchbox').inputValue(), 'khaki');
  // What was found before is still there, and said to be that.
  assert.ok((await page.locator('[data-orders] tbody tr').count()) > 0);
  await page.getByRole('alert').getByText('still the answer to what was asked before').waitFor();
  await page.getByRole('link', { name: 'Tables and indexes' }).click();
  await page.getByRole('link', { name: 'shops', exact: true }).waitFor();
  await page.goBack();
  assert.equal(await page.getByRole('searchbox').inputValue(), 'khaki');
  await page.getByRole('alert').waitFor();
  await page.unroute(ORDERS);
  await page.getByRole('button', { name: 'Try again' }).click();
  await page.getByRole('alert').waitFor({ state: 'detached' });
  await page.locator('[data-orders] tbody tr').first().waitFor();
  await end();
});

test('a server that goes away and comes back is told of', async () => {
  const first = await start(['serve']);
  const { page, end } = await open(browser, '#/orders', { url: first.url, faults: true });
  await page.getByText('No order matches.').waitFor();
  await first.stop();
  await page.getByRole('searchbox').fill('kettle');
  await page.getByRole('alert').getByText('The server can’t be reached').waitFor();
  const second = await start(['serve', '--listen', `127.0.0.1:${first.port}`]);
  await page.getByRole('button', { name: 'Try again' }).click();
  await page.getByText('No order matches.').waitFor();
  await page.getByRole('alert').waitFor({ state: 'detached' });
  assert.equal(await page.getByRole('searchbox').inputValue(), 'kettle');
  await end();
  await second.stop();
});

test('a slow server is waited for, and only its last answer counts', async () => {
  const { page, end } = await open(browser, '#/orders', { faults: true });
  await page.locator('[data-orders] tbody tr').first().waitFor();
  let answer;
  const slow = new Promise((go) => (answer = go));
  await page.route(ORDERS, async (route) => {
    await slow;
    // One that nobody waits for any more is gone.
    await route.continue().catch(() => {});
  });
  await page.getByRole('searchbox').fill('khaki');
  await page.getByText('Asking…').waitFor();
  await page.getByRole('searchbox').fill('no such word at all');
  await page.waitForFunction(() => location.hash.includes('such'));
  answer();
  await page.getByText('No order matches.').waitFor();
  await page.getByText('Asking…').waitFor({ state: 'detached' });
  assert.equal(await page.locator('[data-total]').textContent(), '0 orders');
  await end();
});

test('a query that is refused is said with its reasons', async () => {
  const { page, end } = await open(browser, `#/orders?q=${'a'.repeat(2000)}`, { faults: true });
  const alert = page.getByRole('alert');
  await alert.getByText('The server refused this request.').waitFor();
  assert.ok((await alert.locator('li').count()) > 0);
  assert.equal((await page.getByRole('searchbox').inputValue()).length, 2000);
  await end();
});

test('a key that has expired is asked for again', async () => {
  const { page, end } = await open(browser, '#/orders', { faults: true });
  await page.locator('[data-orders] tbody tr').first().waitFor();
  await page.route(ORDERS, (route) => route.fulfill(refusal('unauthenticated', 'the token has expired', 401)));
  await page.getByRole('searchbox').fill('khaki');
  await page.getByRole('dialog').waitFor();
  await page.unroute(ORDERS);
  await page.getByLabel('Key or token').fill('another');
  await page.getByRole('dialog').getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('alert').waitFor({ state: 'detached' });
  assert.equal(await page.getByRole('searchbox').inputValue(), 'khaki');
  await end();
});

test('an address that says nonsense shows what it can', async () => {
  const { page, end } = await open(browser, '#/orders?page=minus&size=7&sort=__proto__&brand=%7B%7D&paid=%5B%22x%22%5D&from=never');
  await page.locator('[data-orders] tbody tr').first().waitFor();
  assert.equal(await page.getByRole('button', { name: 'Clear all filters' }).count(), 0);
  await page.evaluate(() => (location.hash = '#/nowhere'));
  await page.getByText('There is no view “nowhere”.').waitFor();
  await end();
});
