import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { accessible, fits, launch, open, picture } from './browser.mjs';
import { ask } from './server.mjs';

let browser;
before(async () => (browser = await launch()));
after(() => browser.close());

const SEARCH = 'souk.media.v1.MediaService/SearchMedia';

const nested = (tag, score) => ({
  nested: {
    path: 'tags',
    query: {
      bool: {
        filter: [
          { term: { field: 'tags.tag', value: { string_value: tag } } },
          ...(score === undefined ? [] : [{ range: { field: 'tags.score', gte: { double_value: score } } }]),
        ],
      },
    },
  },
});

const total = async (query) => Number((await ask(SEARCH, { search: { query, total: { exact: true }, hits_mode: 'HITS_MODE_NONE' } })).total?.value ?? 0);

const titles = (page) => page.locator('.card h2').allTextContents();

test('the wall, its tags and its filters are those of the API', async () => {
  const { page, end } = await open(browser, '#/media');
  const status = page.getByRole('status').filter({ hasText: 'found' });
  const count = (number) => status.filter({ hasText: `${number.toLocaleString('en')} found` }).waitFor();
  await count(await total({ match_all: {} }));
  const newest = await ask(SEARCH, { search: { sort: [{ field: { field: 'created_at', descending: true } }], page_size: 24 } });
  assert.deepEqual(await titles(page), newest.hits.map(({ resource }) => resource.title || resource.mediaId));

  const { aggregations } = await ask(SEARCH, {
    search: { hits_mode: 'HITS_MODE_NONE', aggregations: { tags: { terms: { field: 'tags.tag', size: 60 } } } },
  });
  const groups = aggregations.tags.groups.groups.map(({ keys, count }) => [keys[0].stringValue, Number(count)]);
  const shown = await page.locator('.cloud button').evaluateAll((tags) =>
    tags.map((tag) => [tag.firstChild.textContent, Number(tag.querySelector('small').textContent.replaceAll(',', '')), parseFloat(tag.style.fontSize)]),
  );
  assert.deepEqual(shown.map(([tag, count]) => [tag, count]), groups);
  for (const [at, [, , size]] of shown.entries()) assert.ok(at === 0 || size <= shown[at - 1][2], `${shown[at]} is larger than a more frequent one`);
  await accessible(page);
  await picture(page, 'media');

  const [[tag]] = groups;
  await page.locator('.cloud').getByRole('button', { name: new RegExp(`^${tag},`) }).click();
  await count(await total(nested(tag)));
  await page.getByLabel('Tags at least this sure').fill('0.9');
  await page.keyboard.press('Enter');
  await count(await total(nested(tag, 0.9)));
  await page.getByLabel('Order').selectOption('surest of the tag first');
  const surest = await ask(SEARCH, {
    search: {
      query: { bool: { filter: [nested(tag, 0.9)] } },
      sort: [
        {
          field: {
            field: 'tags.score',
            descending: true,
            mode: 'SORT_MODE_MAX',
            nested: { path: 'tags', filter: { terms: { field: 'tags.tag', values: [{ string_value: tag }] } } },
          },
        },
      ],
      page_size: 24,
    },
  });
  const wanted = surest.hits.map(({ resource }) => resource.title || resource.mediaId);
  await page.waitForFunction((wanted) => [...document.querySelectorAll('.card h2')].map((title) => title.textContent).join() === wanted.join(), wanted);
  // A tag that is on some of them, but not on all.
  const { aggregations: beside } = await ask(SEARCH, {
    search: {
      query: { bool: { filter: [nested(tag, 0.9)] } },
      hits_mode: 'HITS_MODE_NONE',
      aggregations: { tags: { terms: { field: 'tags.tag', size: 60 } } },
    },
  });
  const [one, both] = [await total(nested(tag, 0.9)), (other) => total({ bool: { filter: [nested(tag, 0.9), nested(other, 0.9)] } })];
  let other;
  for (const { keys } of beside.tags.groups.groups) {
    const found = await both(keys[0].stringValue);
    if (found > 0 && found < one) other = keys[0].stringValue;
  }
  assert.ok(other !== undefined, `a tag that stands beside ${tag}`);
  await page.locator('.cloud').getByRole('button', { name: new RegExp(`^${other},`) }).click();
  await count(await both(other));
  // What is shown follows from the address alone.
  const before = await status.textContent();
  await page.reload();
  await status.filter({ hasText: before }).waitFor();
  await end();
});

test('more are shown, where they were made, and all of one; texts stay texts', async () => {
  const media_id = `media-${Date.now()}`;
  const title = `<img src=x onerror="document.title='run'"> 海`;
  const { sequence } = await ask('souk.media.v1.MediaService/CreateMedia', {
    media: {
      media_id,
      user_id: 'u-console',
      type: 'MEDIA_TYPE_IMAGE',
      title,
      width: 10,
      height: 20,
      position: { latitude: 30, longitude: 120 },
      uri: 'oss://x',
      tags: [{ tag: '<b>sea</b>', score: 0.5 }],
    },
  });
  await ask(SEARCH, { search: { min_sequence: sequence, page_size: 1 } });
  const { page, end } = await open(browser, '#/media?user=u-console&where=1');
  await page.getByRole('button', { name: title }).click();
  await page.locator('dl.facts').getByText(media_id, { exact: true }).waitFor();
  await page.locator('dl.facts').getByText('<b>sea</b>').waitFor();
  await page.getByText('1 of the 1 that are shown have a place.').waitFor();
  await page.locator('.world[data-spots="1"]').waitFor();
  assert.notEqual(await page.title(), 'run');
  await accessible(page);
  await ask('souk.media.v1.MediaService/DeleteMedia', { media_id });

  await page.goto(`${process.env.SOUK_PAGE}/#/media`);
  await page.getByRole('button', { name: 'Show more' }).click();
  await page.waitForFunction(() => document.querySelectorAll('.card').length === 48);
  await end();
});

test('an address that says nonsense shows what it can, and a tag is any text', async () => {
  const { page, end } = await open(browser, '#/media?tags=100%25');
  await page.getByRole('status').filter({ hasText: 'found' }).waitFor();
  await page.evaluate((tags) => (location.hash = `#/media?tags=${encodeURIComponent(JSON.stringify(tags))}`), ['100%', 'a,b']);
  for (const tag of ['100%', 'a,b']) await page.locator('.cloud').getByRole('button', { name: `${tag}, 0 media`, pressed: true }).waitFor();
  await page.locator('.cloud').getByRole('button', { name: '100%, 0 media' }).click();
  await page.waitForFunction(() => new URLSearchParams(location.hash.split('?')[1]).get('tags') === '["a,b"]');
  await end();
});

test('a refused search is told of, and goes on', async () => {
  const { page, end } = await open(browser, '#/media', { faults: true });
  await page.getByRole('status').filter({ hasText: 'found' }).waitFor();
  await page.route(`**/${SEARCH}`, (route) => route.abort());
  await page.getByLabel('Words of the title').fill('sea');
  await page.keyboard.press('Enter');
  await page.getByRole('alert').waitFor();
  assert.equal(await page.getByLabel('Words of the title').inputValue(), 'sea');
  await page.unroute(`**/${SEARCH}`);
  await page.getByRole('button', { name: 'Try again' }).click();
  await page.getByRole('alert').waitFor({ state: 'detached' });
  await end();
});

test('it is Chinese, dark and narrow, too', async () => {
  const { page, end } = await open(browser, '#/media', { language: 'zh', theme: 'dark', width: 360 });
  await page.locator('.card').first().waitFor();
  await accessible(page);
  await fits(page);
  await end();
});
