import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { accessible, fits, launch, open, picture } from './browser.mjs';
import { ask } from './server.mjs';

let browser;
before(async () => (browser = await launch()));
after(() => browser.close());

const SHOPS = 'souk.shop.v1.ShopService';

const toY = (latitude) => {
  const angle = (latitude * Math.PI) / 180;
  return (1 - Math.log(Math.tan(angle) + 1 / Math.cos(angle)) / Math.PI) / 2;
};
const toLatitude = (y) => (Math.atan(Math.sinh(Math.PI * (1 - 2 * y))) * 180) / Math.PI;

/** The rectangle that the map shows, worked out apart from the page, and where on the page a place is. */
const projected = async (page) => {
  const values = new URLSearchParams(new URL(page.url()).hash.split('?')[1]);
  const [lat, lng, z] = ['lat', 'lng', 'z'].map((name) => Number(values.get(name)));
  const box = await page.locator('.frame').evaluate((frame) => {
    const { left, top } = frame.getBoundingClientRect();
    return { left: left + frame.clientLeft, top: top + frame.clientTop, width: frame.clientWidth, height: frame.clientHeight };
  });
  const world = 512 * 2 ** z;
  const wide = ((box.width / world) * 360) / 2;
  const high = box.height / world / 2;
  return {
    zoom: Math.round(z) + 1,
    viewport: {
      top_left: { latitude: toLatitude(toY(lat) - high), longitude: lng - wide },
      bottom_right: { latitude: toLatitude(toY(lat) + high), longitude: lng + wide },
    },
    at: ({ latitude, longitude }) => ({
      x: box.left + box.width / 2 + ((longitude - lng) / 360) * world,
      y: box.top + box.height / 2 + (toY(latitude) - toY(lat)) * world,
    }),
  };
};

const HANGZHOU = '#/map?lat=30.27410&lng=120.15510&z=9.00';

/** Far enough away for clusters. */
const CHINA = '#/map?lat=30.27410&lng=115.15510&z=4.00';

/** Waits until the map has drawn shops; how many, where that is known. */
const drawn = (page, spots) => page.locator(spots === undefined ? '.world[data-spots]:not([data-spots="0"])' : `.world[data-spots="${spots}"]`).waitFor();

/** A filter as the API takes it. */
const filtered = (...filters) => ({ bool: { filter: filters } });
const milkTea = { term: { field: 'type', value: { string_value: '奶茶' } } };

test('a price that no number of cents tells is none', async () => {
  const { page, end } = await open(browser, `${CHINA}&price=1e308`);
  await drawn(page);
  await end();
});

test('clusters and their sums are those of the API', async () => {
  const { page, end } = await open(browser, CHINA);
  await page.locator('.frame').waitFor();
  const { viewport, zoom } = await projected(page);
  const { clusters, total } = await ask(`${SHOPS}/ClusterShops`, { viewport, zoom });
  const status = page.getByRole('status').filter({ hasText: 'in view' });
  await status.filter({ hasText: `${Number(total).toLocaleString('en')} shops in view in ${clusters.length.toLocaleString('en')} clusters` }).waitFor();
  await drawn(page, clusters.length);
  const best = page.locator('section[aria-labelledby=best] li button');
  await best.first().waitFor();
  const found = await best.allTextContents();
  const { hits } = await ask(`${SHOPS}/SearchShops`, {
    search: {
      query: { geo_bounding_box: { field: 'position', ...viewport } },
      sort: [{ field: { field: 'rating', descending: true } }],
      page_size: 15,
    },
  });
  assert.deepEqual(found, hits.map(({ resource }) => resource.name));
  await accessible(page);
  await picture(page, 'map');

  await page.getByLabel('Type').selectOption('奶茶');
  const tea = await ask(`${SHOPS}/ClusterShops`, { viewport, zoom, query: filtered(milkTea) });
  await status.filter({ hasText: `${Number(tea.total).toLocaleString('en')} shops` }).waitFor();
  await page.getByLabel('At most, per visit').fill('30');
  await page.getByLabel('Rated at least').fill('4');
  await page.keyboard.press('Enter');
  const few = await ask(`${SHOPS}/ClusterShops`, {
    viewport,
    zoom,
    query: filtered(
      milkTea,
      { range: { field: 'average_price_cents', lte: { int_value: '3000' } } },
      { range: { field: 'rating', gte: { double_value: 4 } } },
    ),
  });
  await status.filter({ hasText: `${Number(few.total).toLocaleString('en')} shops` }).waitFor();
  // What is shown follows from the address alone.
  await page.reload();
  await status.filter({ hasText: `${Number(few.total).toLocaleString('en')} shops` }).waitFor();
  await end();
});

test('single shops are shown close up, and what is known of one beside', async () => {
  const { hits } = await ask(`${SHOPS}/SearchShops`, { search: { query: filtered(milkTea), page_size: 1 } });
  const [{ resource: shop }] = hits;
  const { page, end } = await open(browser, `#/map?lat=${shop.position.latitude}&lng=${shop.position.longitude}&z=19.00`);
  await drawn(page);
  const { at } = await projected(page);
  const { x, y } = at(shop.position);
  await page.mouse.click(x, y);
  await page.getByRole('heading', { name: shop.name }).waitFor();
  await page.locator('dl.facts').getByText(shop.shopId, { exact: true }).waitFor();
  assert.match(page.url(), new RegExp(`shop=${shop.shopId}`));
  await accessible(page);
  await end();
});

test('the nearest shops are told of a click, and names while they are typed', async () => {
  const { page, end } = await open(browser, HANGZHOU);
  await drawn(page);
  await page.getByRole('button', { name: 'Nearest to the middle' }).click();
  const { hits } = await ask(`${SHOPS}/NearbyShops`, { center: { latitude: 30.2741, longitude: 120.1551 }, page_size: 15 });
  const list = page.locator('section[aria-labelledby=nearest] li button');
  await list.first().waitFor();
  assert.deepEqual(await list.allTextContents(), hits.map(({ resource }) => resource.name));

  await page.getByRole('combobox', { name: 'Name' }).fill('沈');
  const { suggestions } = await ask(`${SHOPS}/SuggestShops`, { prefix: '沈', size: 8, center: { latitude: 30.27, longitude: 120.16 } });
  const options = page.locator('.suggest').getByRole('option');
  await options.first().waitFor();
  assert.deepEqual(
    (await options.allTextContents()).map((text) => text.split(' ')[0]),
    suggestions.map(({ name }) => name.split(' ')[0]),
  );
  await accessible(page);
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: suggestions[0].name }).waitFor();
  await end();
});

test('the map is moved by keys, and what nobody waits for any more is cancelled', async () => {
  const { page, end } = await open(browser, HANGZHOU, { faults: true });
  await drawn(page);
  await page.getByRole('status').filter({ hasText: 'in view' }).waitFor();
  let held = 0;
  await page.route(`**/${SHOPS}/ClusterShops`, (route) => {
    // The first one is never answered.
    held += 1;
    if (held > 1) void route.continue();
  });
  const clusters = (event) => page.waitForEvent(event, (request) => request.url().endsWith('ClusterShops'));
  await page.locator('.world').focus();
  const [asked, cancelled] = [clusters('request'), clusters('requestfailed')];
  await page.keyboard.press('ArrowRight');
  await asked;
  await page.keyboard.press('ArrowRight');
  await cancelled;
  await page.locator('p[role=status]').filter({ hasNotText: '…' }).waitFor();
  await end();
});

const varint = (value) => {
  const bytes = [];
  let rest = value;
  while (rest > 127) {
    bytes.push((rest & 127) | 128);
    rest = Math.floor(rest / 128);
  }
  return [...bytes, rest];
};
const double = (value) => [...new Uint8Array(new Float64Array([value]).buffer)];
const bytesField = (number, bytes) => [(number << 3) | 2, ...varint(bytes.length), ...bytes];

test('a hundred thousand clusters leave the page usable', async () => {
  const COUNT = 100_000;
  const { page, end } = await open(browser, HANGZHOU);
  const parts = [];
  for (let number = 0; number < COUNT; number += 1) {
    const center = [0x09, ...double(25 + (number % 400) / 40), 0x11, ...double(115 + Math.floor(number / 400) / 25)];
    const cluster = [...bytesField(1, Buffer.from(`c${number}`)), ...bytesField(2, center), 0x18, ...varint(1000 + number)];
    parts.push(Buffer.from(bytesField(1, cluster)));
  }
  parts.push(Buffer.from([0x18, ...varint(COUNT * 1000)]));
  const body = Buffer.concat(parts);
  await page.route(`**/${SHOPS}/ClusterShops`, (route) => route.fulfill({ contentType: 'application/proto', body }), { times: 1 });
  await page.getByLabel('Rated at least').fill('1');
  await page.keyboard.press('Enter');
  await page.locator(`.world[data-spots="${COUNT}"]`).waitFor({ timeout: 60_000 });
  const began = Date.now();
  await page.getByRole('combobox', { name: 'Name' }).fill('tea');
  await page.locator('.world').focus();
  await page.keyboard.press('ArrowRight');
  await page.waitForFunction(() => !location.hash.includes('lng=120.15510'));
  assert.equal(await page.getByRole('combobox', { name: 'Name' }).inputValue(), 'tea');
  await page.locator(`.world:not([data-spots="${COUNT}"])`).waitFor();
  assert.ok(Date.now() - began < 10_000, `${Date.now() - began} ms`);
  await end();
});

test('clusters that are left out are said to be', async () => {
  const { page, end } = await open(browser, HANGZHOU);
  await drawn(page);
  const center = [0x09, ...double(30.3), 0x11, ...double(120.2)];
  const clusters = [40, 20].map((count) => bytesField(1, [...bytesField(1, Buffer.from(`c${count}`)), ...bytesField(2, center), 0x18, count]));
  const body = Buffer.from([...clusters.flat(), 0x18, ...varint(9000)]);
  await page.route(`**/${SHOPS}/ClusterShops`, (route) => route.fulfill({ contentType: 'application/proto', body }), { times: 1 });
  await page.getByLabel('Rated at least').fill('1');
  await page.keyboard.press('Enter');
  await page.getByRole('status').filter({ hasText: '9,000 shops in view – 60 of them in the fullest 2 clusters, which are drawn' }).waitFor();
  await end();
});

test('a click opens the spot that it hits, not one beside that is above it', async () => {
  const { page, end } = await open(browser, HANGZHOU);
  await drawn(page);
  // 17 pixels apart, with radii of 12 and 13.
  const places = [
    { latitude: 30.3, longitude: 120.2, count: 40 },
    { latitude: 30.3, longitude: 120.2 + (17 * 360) / (512 * 2 ** 9), count: 20 },
  ];
  const clusters = places.map(({ latitude, longitude, count }) => {
    const center = [0x09, ...double(latitude), 0x11, ...double(longitude)];
    return bytesField(1, [...bytesField(1, Buffer.from(`c${count}`)), ...bytesField(2, center), 0x18, count]);
  });
  const body = Buffer.from([...clusters.flat(), 0x18, ...varint(9000)]);
  await page.route(`**/${SHOPS}/ClusterShops`, (route) => route.fulfill({ contentType: 'application/proto', body }), { times: 1 });
  await page.getByLabel('Rated at least').fill('1');
  await page.keyboard.press('Enter');
  await drawn(page, 2);
  const { at } = await projected(page);
  const { x, y } = at(places[1]);
  await page.mouse.click(x, y);
  await page.waitForFunction((longitude) => location.hash.includes(`lng=${longitude.toFixed(5)}&z=11.00`), places[1].longitude);
  await end();
});

test('what is being typed stays when the map tells of something else', async () => {
  const { page, end } = await open(browser, HANGZHOU);
  await drawn(page);
  let answer;
  const slow = new Promise((go) => (answer = go));
  await page.route(`**/${SHOPS}/ClusterShops`, async (route) => {
    await slow;
    await route.continue();
  });
  const status = page.locator('p[role=status]').filter({ hasText: '…' });
  await page.getByLabel('Type').selectOption('奶茶');
  await status.waitFor();
  await page.getByLabel('At most, per visit').pressSequentially('3');
  answer();
  await status.waitFor({ state: 'detached' });
  await page.getByLabel('At most, per visit').pressSequentially('0');
  await page.keyboard.press('Enter');
  await page.waitForFunction(() => new URLSearchParams(location.hash.split('?')[1]).get('price') === '30');
  assert.equal(await page.getByLabel('At most, per visit').inputValue(), '30');
  await end();
});

test('a service that fails is told of; nothing that was chosen is lost, and it goes on', async () => {
  const { page, end } = await open(browser, `${HANGZHOU}&type=奶茶`, { faults: true });
  await page.getByRole('status').filter({ hasText: 'in view' }).waitFor();
  await page.route(`**/${SHOPS}/ClusterShops`, (route) =>
    route.fulfill({ status: 503, contentType: 'application/json', body: JSON.stringify({ code: 'unavailable', message: 'shop is away' }) }),
  );
  await page.getByLabel('Rated at least').fill('2');
  await page.keyboard.press('Enter');
  const alert = page.getByRole('alert').filter({ hasText: 'shop is away' });
  await alert.waitFor();
  assert.equal(await page.getByLabel('Rated at least').inputValue(), '2');
  assert.equal(await page.getByLabel('Type').inputValue(), '奶茶');
  await page.unroute(`**/${SHOPS}/ClusterShops`);
  await alert.getByRole('button', { name: 'Try again' }).click();
  await alert.waitFor({ state: 'detached' });
  await end();
});

test('a browser that draws no maps tells the same beside it', async () => {
  const { page, context, end } = await open(browser, '', { faults: true });
  await context.addInitScript(() => {
    HTMLCanvasElement.prototype.getContext = () => null;
  });
  await page.reload();
  await page.goto(`${process.env.SOUK_PAGE}/${HANGZHOU}`);
  await page.getByRole('alert').filter({ hasText: 'The map can’t be drawn' }).waitFor();
  await page.locator('section[aria-labelledby=best] li button').first().waitFor();
  await end();
});

test('where a click leads while the map glides, it stays', async () => {
  const { page, end } = await open(browser, CHINA);
  await page.emulateMedia({ reducedMotion: 'no-preference' });
  await page.reload();
  await drawn(page);
  await page.locator('.world').focus();
  await page.keyboard.press('ArrowRight');
  await page.getByRole('button', { name: 'The whole world' }).click();
  // For as many frames as a glide has.
  await page.evaluate(async () => {
    for (let frame = 0; frame < 40; frame += 1) await new Promise(requestAnimationFrame);
  });
  assert.equal(new URL(page.url()).hash, '#/map?lat=20.00000&lng=10.00000&z=0.80');
  await page.locator('.world').focus();
  await page.keyboard.press('ArrowRight');
  await page.getByRole('link', { name: 'Orders', exact: true }).click();
  await page.getByRole('heading', { name: 'Orders', exact: true }).waitFor();
  assert.equal(new URL(page.url()).hash, '#/orders');
  await end();
});

test('it is Chinese, dark and narrow, too', async () => {
  const { page, end } = await open(browser, HANGZHOU, { language: 'zh', theme: 'dark', width: 360 });
  await drawn(page);
  await page.getByRole('heading', { name: '地图上的店铺' }).waitFor();
  await accessible(page);
  await fits(page);
  await end();
});
