// Who calls: a server with keys asks for one, and then the page shows what its holder may see.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { generateKeyPairSync, sign } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

import { accessible, launch, open } from './browser.mjs';
import { BINARY, ask, start } from './server.mjs';

const SEARCH = 'souk.order.v1.OrderService/SearchOrders';

let browser;
let souk;
let folder;
const keys = {};

const ISSUER = 'https://issuer.test';
const issuer = generateKeyPairSync('ed25519');

/** A token of the issuer for an operator, which expires then: in seconds since the epoch. */
const token = (exp) => {
  const part = (value) => Buffer.from(JSON.stringify(value)).toString('base64url');
  const message = `${part({ alg: 'EdDSA', kid: 'k1' })}.${part({ iss: ISSUER, aud: 'souk', sub: 'o1', souk_role: 'operator', exp })}`;
  return `${message}.${sign(null, Buffer.from(message), issuer.privateKey).toString('base64url')}`;
};

before(async () => {
  browser = await launch();
  folder = mkdtempSync(join(tmpdir(), 'souk-keys-'));
  const file = join(folder, 'keys');
  for (const [role, ...subject] of [['admin'], ['reader'], ['consumer', '--subject', 'c1']]) {
    keys[role] = execFileSync(BINARY, ['make-key', '--id', role, '--role', role, ...subject, '--add-to', file], { encoding: 'utf8' }).trim();
  }
  const { kty, crv, x } = issuer.publicKey.export({ format: 'jwk' });
  const jwks = join(folder, 'jwks');
  writeFileSync(jwks, JSON.stringify({ keys: [{ kty, crv, x, kid: 'k1' }] }));
  const settings = { 'auth.keys': file, 'auth.jwt.jwks': jwks, 'auth.jwt.issuer': ISSUER, 'auth.jwt.audience': 'souk', 'auth.jwt.leeway': '0s' };
  souk = await start(['serve', ...Object.entries(settings).flatMap(([name, value]) => ['--set', `${name}=${value}`])]);
  const call = (path, body) => ask(path, body, { url: souk.url, headers: { 'x-api-key': keys.admin } });
  for (const id of ['c1', 'c2']) await call('souk.order.v1.ConsumerService/CreateConsumer', { consumer: { id, name: `Consumer ${id}` } });
  await call('souk.order.v1.SalespersonService/CreateSalesperson', { salesperson: { id: 's1', name: 'Seller' } });
  await call('souk.order.v1.ProductService/CreateProduct', { product: { productId: 'p1', name: 'kettle', brand: 'Tin', type: 'pot', unitPriceCents: '100' } });
  const { sequence } = await call('souk.order.v1.OrderService/BatchCreateOrders', {
    orders: Array.from({ length: 9 }, (_, n) => ({ orderId: `o${n}`, consumerId: n < 3 ? 'c1' : 'c2', salespersonId: 's1', productId: 'p1', quantity: '1' })),
  });
  await call(SEARCH, { search: { minSequence: sequence } });
});
after(async () => {
  await browser?.close();
  await souk?.stop();
  if (folder) rmSync(folder, { recursive: true, force: true });
});

const signIn = async (page, key, kind = 'key') => {
  const dialog = page.getByRole('dialog');
  await dialog.waitFor();
  await dialog.getByLabel('What it is').selectOption(kind);
  await dialog.getByLabel('Key or token').fill(key);
  await dialog.getByRole('button', { name: 'Sign in' }).click();
};

test('nobody sees nothing, and is asked who they are; a wrong key is said to be one', async () => {
  const { page, end } = await open(browser, '#/orders', { url: souk.url, faults: true });
  await page.getByRole('dialog').waitFor();
  await accessible(page);
  await signIn(page, 'wrong');
  await page.getByRole('dialog').waitFor();
  await page.getByRole('button', { name: 'Cancel' }).click();
  await page.getByRole('alert').getByText('The server doesn’t know who calls').first().waitFor();
  assert.equal(await page.locator('[data-orders]').count(), 0);
  await end();
});

for (const [role, orders] of [
  ['admin', 9],
  ['reader', 9],
  ['consumer', 3],
]) {
  test(`of ${role} it shows what they may see`, async () => {
    const { page, end } = await open(browser, '#/orders', { url: souk.url, faults: true });
    await signIn(page, keys[role]);
    const api = await ask(SEARCH, { search: { total: { exact: true } } }, { url: souk.url, headers: { 'x-api-key': keys[role] } });
    assert.equal(Number(api.total.value), orders);
    await page.locator('[data-total]').getByText(`${orders} orders`).waitFor();
    assert.equal(await page.locator('[data-orders] tbody tr').count(), orders);
    // Of somebody else's orders a consumer doesn't even hear that they exist.
    if (role === 'consumer') {
      await page.evaluate(() => (location.hash = '#/orders?id=o5'));
      await page.getByText('There is no order o5 now.').waitFor();
    }
    await page.evaluate(() => (location.hash = '#/tables?table=orders'));
    if (role === 'consumer') {
      await page.getByRole('alert').getByText('Your rights don’t allow this.').first().waitFor();
    } else {
      const panel = page.getByRole('region', { name: 'Index orders' });
      await panel.getByText('Change this index').click();
      await panel.getByRole('button', { name: 'Build anew as it is' }).click();
      const allowed = role === 'admin' ? panel.locator('[data-effect]') : panel.getByRole('alert').getByText('Your rights don’t allow this.');
      await allowed.waitFor();
      const form = page.locator('[data-create]');
      await form.getByText('A new index of this table').click();
      await form.getByLabel('Name of the index').fill('orders.trial');
      await form.getByLabel('Fields of').selectOption('orders');
      await form.getByRole('button', { name: 'Preview the cost' }).click();
      await (role === 'admin' ? form.locator('[data-effect]') : form.getByRole('alert').getByText('Your rights don’t allow this.')).waitFor();
    }
    // A key is nowhere but in the memory of the page.
    const kept = await page.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie, location.href]));
    assert.ok(!kept.includes(keys[role]), kept);
    await page.reload();
    await page.getByRole('dialog').waitFor();
    await end();
  });
}

test('what no header can carry isn’t taken for a key, and one that isn’t sent isn’t kept', async () => {
  const { page, end } = await open(browser, '#/orders', { url: souk.url, faults: true });
  for (const key of ['ключ', `${keys.admin} x`, 'é']) {
    await signIn(page, key);
    await page.getByRole('dialog').getByRole('alert').getByText('ASCII').waitFor();
    assert.ok(await page.getByRole('dialog').isVisible());
  }
  await accessible(page);
  await page.getByRole('dialog').getByLabel('Key or token').fill(keys.admin);
  await page.keyboard.press('Escape');
  await page.getByRole('dialog').waitFor({ state: 'hidden' });
  await page.getByRole('button', { name: 'Sign in' }).click();
  assert.equal(await page.getByRole('dialog').getByLabel('Key or token').inputValue(), '');
  assert.equal(await page.getByRole('dialog').getByRole('alert').count(), 0);
  await end();
});

test('a token that expires while the page is open is asked for again, and all goes on where it was', async () => {
  const { page, end } = await open(browser, '#/orders?brand=%5B%22Tin%22%5D&size=50', { url: souk.url, faults: true });
  const now = () => Math.floor(Date.now() / 1000);
  const dialog = page.getByRole('dialog');
  const shown = page.locator('[data-total]').getByText('9 orders');
  const expires = now() + 10;
  await signIn(page, token(expires), 'token');
  await shown.waitFor();
  await dialog.waitFor({ state: 'hidden' });
  assert.ok(now() < expires, 'the token was good until here');

  // A view that looks again by itself finds out; what was on it stays.
  await page.evaluate(() => (location.hash = '#/live?of=shops'));
  await page.getByText('Connections').waitFor();
  await dialog.waitFor({ timeout: 20_000 });
  assert.ok(now() >= expires, 'it was asked for when it had expired');
  await page.getByRole('alert').getByText('TOKEN_EXPIRED').first().waitFor();
  assert.equal(await page.getByText('Connections').count(), 1);
  assert.equal(await page.evaluate(() => location.hash), '#/live?of=shops');
  const again = now() + 10;
  await signIn(page, token(again), 'token');
  await dialog.waitFor({ state: 'hidden' });
  await page.getByText('Connections').waitFor();
  await page.getByRole('alert').first().waitFor({ state: 'detached' });

  // So does one that is asked for something: what was chosen and typed stays.
  await page.goBack();
  await shown.waitFor();
  await dialog.waitFor({ state: 'hidden' });
  // A token is good in the second in which it expires.
  await page.waitForFunction((then) => Date.now() / 1000 > then + 1, again, { timeout: 20_000 });
  await page.getByRole('searchbox').fill('kettle');
  await dialog.waitFor();
  assert.equal(await page.getByRole('searchbox').inputValue(), 'kettle');
  await signIn(page, token(now() + 600), 'token');
  await shown.waitFor();
  await page.getByRole('alert').first().waitFor({ state: 'detached' });
  const values = await page.evaluate(() => Object.fromEntries(new URLSearchParams(location.hash.split('?')[1])));
  assert.deepEqual(values, { brand: '["Tin"]', size: '50', q: 'kettle' });
  assert.equal(await page.getByRole('searchbox').inputValue(), 'kettle');
  await end();
});

test('signing out leaves no figures', async () => {
  const { page, end } = await open(browser, '#/live', { url: souk.url, faults: true });
  await signIn(page, keys.admin);
  await page.getByText('Connections').waitFor();
  await page.getByRole('heading', { name: 'Calls by RPC' }).waitFor();
  await page.getByRole('button', { name: 'Sign out' }).click();
  await page.getByRole('dialog').waitFor();
  await page.getByText('Connections').waitFor({ state: 'detached' });
  assert.equal(await page.getByRole('heading', { name: 'Calls by RPC' }).count(), 0);
  await end();
});

test('signing out forgets who called', async () => {
  const { page, end } = await open(browser, '#/orders', { url: souk.url, faults: true });
  await signIn(page, keys.consumer);
  await page.locator('[data-total]').getByText('3 orders').waitFor();
  await page.getByRole('button', { name: 'Sign out' }).click();
  await page.getByRole('dialog').waitFor();
  assert.equal(await page.locator('[data-orders]').count(), 0);
  await end();
});
