// The page itself: how large it is, that it can be used by the keyboard, and that it isn't there when it is off.
import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';

import { accessible, launch, open } from './browser.mjs';
import { start } from './server.mjs';

const KB = 1000;

let browser;
before(async () => (browser = await launch()));
after(() => browser.close());

/** Bytes of the page's files as they came over the network. */
const bytes = (page) =>
  page.evaluate(() => {
    const files = performance.getEntriesByType('resource').filter(({ name }) => name.includes('/assets/'));
    return [...files, ...performance.getEntriesByType('navigation')].reduce((sum, { encodedBodySize }) => sum + encodedBodySize, 0);
  });

test('the first page has less than 200 KB', { skip: process.env.SOUK_PAGE !== process.env.SOUK_URL }, async () => {
  const { page, end } = await open(browser);
  await page.locator('tbody tr').first().waitFor();
  const size = await bytes(page);
  assert.ok(size > KB && size < 200 * KB, `${size} bytes`);
  await end();
});

test('it is used by the keyboard', async () => {
  const { page, end } = await open(browser);
  await page.locator('tbody tr').first().waitFor();
  await page.keyboard.press('Tab');
  assert.equal(await page.evaluate(() => document.activeElement.textContent), 'Skip to the content');
  await page.keyboard.press('Enter');
  assert.equal(await page.evaluate(() => document.activeElement.id), 'content');
  await page.getByRole('link', { name: 'Orders', exact: true }).focus();
  await page.keyboard.press('Enter');
  await page.getByRole('searchbox').waitFor();
  await page.getByRole('button', { name: 'Sign in' }).focus();
  await page.keyboard.press('Enter');
  await page.getByRole('dialog').waitFor();
  await page.keyboard.press('Escape');
  await page.getByRole('dialog').waitFor({ state: 'hidden' });
  await end();
});

test('language and theme are chosen, and kept', async () => {
  const { page, end } = await open(browser);
  await page.getByRole('button', { name: '中文' }).click();
  await page.getByRole('button', { name: '深色' }).click();
  await page.reload();
  await page.getByRole('heading', { name: '这里有什么' }).waitFor();
  assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), 'dark');
  assert.equal(await page.evaluate(() => document.documentElement.lang), 'zh-CN');
  await accessible(page);
  await end();
});

test('the style of a view is its own: it stays when another view is shown', () => {
  const src = fileURLToPath(new URL('../src/', import.meta.url));
  const owners = new Map();
  const files = readdirSync(src, { recursive: true }).filter((name) => name.endsWith('.css'));
  assert.ok(files.length > 5);
  for (const file of files) {
    const text = readFileSync(src + file, 'utf8').replace(/\/\*[^]*?\*\//g, '');
    for (const [, selectors] of text.matchAll(/([^{}]+)\{/g)) {
      for (const selector of selectors.trim().startsWith('@') ? [] : selectors.split(',')) {
        const [first] = selector.trim().split(/[\s>]+/);
        const name = /\.([\w-]+)/.exec(first)?.[1];
        // Only the style of the whole page is about elements as such.
        if (name === undefined) assert.equal(file, 'style.css', `${selector} in ${file}`);
        else {
          assert.equal(owners.get(name) ?? file, file, `.${name} has a style in both`);
          owners.set(name, file);
        }
      }
    }
  }
});

test('there is no page with --console=off', async () => {
  const souk = await start(['serve', '--console', 'off']);
  const answer = await fetch(souk.url);
  assert.equal(answer.status, 404);
  await souk.stop();
});
