// A browser that the page is shown in, and what holds of every page: no error on its console, no call of another host, no violation
// that axe finds.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';

import { chromium } from 'playwright-core';

export const CHROMIUM = process.env.CHROMIUM ?? '/usr/bin/chromium';
const AXE = createRequire(import.meta.url).resolve('axe-core/axe.min.js');

/** Starts the browser; close it after the tests. */
export const launch = () =>
  chromium.launch({
    executablePath: CHROMIUM,
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
    ],
  });

/** Gives a server the page that is being worked on: it may have another one, or none. */
const lend = (context, url) =>
  context.route(
    (asked) => asked.origin === url && !asked.pathname.startsWith('/souk.'),
    async (route) => {
      const { pathname, search } = new URL(route.request().url());
      await route.fulfill({ response: await route.fetch({ url: `${process.env.SOUK_PAGE}${pathname}${search}` }) });
    },
  );

/**
 * Opens the page at a place, as `#/orders?q=tea`. `faults` takes errors on the console as they come, or those that it matches: of calls that a test makes fail.
 * `end` closes it, and holds it against what holds of every page.
 */
export const open = async (browser, place = '', { language = 'en', theme = 'light', width = 1280, height = 800, url, faults = false } = {}) => {
  const home = url ?? process.env.SOUK_PAGE;
  const context = await browser.newContext({
    viewport: { width, height },
    locale: language === 'zh' ? 'zh-CN' : 'en-GB',
    timezoneId: 'UTC',
    colorScheme: theme,
    reducedMotion: 'reduce',
  });
  if (url !== undefined && process.env.SOUK_PAGE !== process.env.SOUK_URL) await lend(context, url);
  const page = await context.newPage();
  page.setDefaultTimeout(10_000);
  const errors = [];
  const strangers = [];
  page.on('console', (message) => message.type() === 'error' && errors.push(message.text()));
  page.on('pageerror', (error) => errors.push(String(error)));
  page.on('request', (request) => {
    const asked = new URL(request.url());
    if (['http:', 'https:', 'ws:'].includes(asked.protocol) && asked.host !== new URL(home).host) strangers.push(request.url());
  });
  await page.goto(`${home}/${place}`);
  const end = async () => {
    await context.close();
    const expected = (error) => faults === true || (faults && faults.test(error));
    assert.deepEqual(errors.filter((error) => !expected(error)), []);
    assert.deepEqual(strangers, []);
  };
  return { page, context, errors, end };
};

/** Holds a page against the rules of axe. */
export const accessible = async (page) => {
  // The page's policy refuses scripts of strangers; this one comes through the debugger.
  const session = await page.context().newCDPSession(page);
  const { readFileSync } = await import('node:fs');
  await session.send('Runtime.evaluate', { expression: readFileSync(AXE, 'utf8') });
  const result = await page.evaluate(async () => {
    const { violations } = await globalThis.axe.run(document, { resultTypes: ['violations'] });
    return violations.map(({ id, nodes }) => ({ id, nodes: nodes.map((node) => `${node.html} ${node.failureSummary}`) }));
  });
  assert.deepEqual(result, []);
};

/** Nothing on the page is wider than the page. */
export const fits = async (page) => {
  const [content, window] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
  assert.ok(content <= window, `${content} pixels of content in ${window}`);
};

/** Takes the picture of a view for the documentation, when SOUK_PICTURES=1. */
export const picture = async (page, name) => {
  if (process.env.SOUK_PICTURES !== '1') return;
  await page.screenshot({ path: fileURLToPath(new URL(`../../docs/console/${name}.png`, import.meta.url)) });
};
