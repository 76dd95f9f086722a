// Measures the page through the browser, on the data of a server that runs: `SOUK_URL=http://127.0.0.1:50051 npm run measure`.
//
// The map is dragged over China from one place to the next: how long each frame takes while it moves, and how long it is from letting go
// until the new clusters are drawn. Then each view rests for a while: what the server spends, as it tells itself.
//
// SOUK_URL    the server
// SOUK_PAGE   where the page is, when not at the server
// SOUK_DRAGS  how often the map is dragged; 200 without
// SOUK_IDLE   seconds for which each view rests; 20 without
import { launch } from './browser.mjs';
import { ask } from './server.mjs';

const url = process.env.SOUK_URL;
const drags = Number(process.env.SOUK_DRAGS ?? 200);
const idle = Number(process.env.SOUK_IDLE ?? 20);
/** Pointer moves of a drag; the browser handles one a frame. */
const MOVES = 30;

const quantile = (values, part) => [...values].sort((a, b) => a - b)[Math.min(Math.floor(values.length * part), values.length - 1)];
const milliseconds = (values) => [0.5, 0.95, 0.99].map((part) => quantile(values, part).toFixed(1)).join(' / ');

const browser = await launch();
const open = async (place) => {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, reducedMotion: 'reduce', timezoneId: 'UTC' });
  const page = await context.newPage();
  page.setDefaultTimeout(20_000);
  await page.goto(`${process.env.SOUK_PAGE ?? url}/#/${place}`);
  return { page, close: () => context.close() };
};

/** Drags the map by so many pixels, and waits for what is drawn then. */
const drag = async (page, by) => {
  const box = await page.locator('.world').boundingBox();
  const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
  await page.mouse.move(x, y);
  await page.mouse.down();
  await page.evaluate(() => {
    const seen = { frames: [], moves: true, waited: undefined };
    const frame = (last) => (now) => {
      if (last !== undefined) seen.frames.push(now - last);
      if (seen.moves) requestAnimationFrame(frame(now));
    };
    requestAnimationFrame(frame(undefined));
    const world = document.querySelector('.world');
    seen.waited = new Promise((done) => {
      const released = () => {
        seen.moves = false;
        const from = performance.now();
        const watcher = new MutationObserver(() => {
          watcher.disconnect();
          // It is seen with the next frame, which is painted before the task that follows.
          requestAnimationFrame(() => setTimeout(() => done(performance.now() - from)));
        });
        watcher.observe(world, { attributeFilter: ['data-spots'] });
      };
      window.addEventListener('mouseup', released, { once: true, capture: true });
      setTimeout(() => done(Infinity), 10_000);
    });
    globalThis.seen = seen;
  });
  for (let move = 1; move <= MOVES; move += 1) await page.mouse.move(x + (by.x * move) / MOVES, y + (by.y * move) / MOVES);
  await page.mouse.up();
  return page.evaluate(async () => ({
    frames: globalThis.seen.frames,
    waited: await globalThis.seen.waited,
    spots: Number(document.querySelector('.world').dataset.spots),
  }));
};

const { total } = await ask('souk.shop.v1.ShopService/ClusterShops', {
  viewport: { top_left: { latitude: 85, longitude: -180 }, bottom_right: { latitude: -85, longitude: 179.999 } },
  zoom: 1,
});
console.log(`${Number(total).toLocaleString('en')} shops; milliseconds at p50 / p95 / p99`);
for (const zoom of [4, 6, 9]) {
  const { page, close } = await open(`map?lat=31.00000&lng=113.00000&z=${zoom}.00`);
  await page.locator('.world[data-spots]:not([data-spots="0"])').waitFor();
  const [frames, waited, spots] = [[], [], []];
  for (let nth = 0; nth < drags; nth += 1) {
    // Out in some direction and back, so that it stays where shops are.
    const [angle, way] = [Math.floor(nth / 2) * 2.4, nth % 2 === 0 ? 1 : -1];
    const found = await drag(page, { x: way * 220 * Math.cos(angle), y: way * 160 * Math.sin(angle) });
    frames.push(...found.frames);
    waited.push(found.waited);
    spots.push(found.spots);
  }
  const slow = frames.filter((took) => took > 1000 / 60 + 4).length;
  console.log(
    `zoom ${zoom}: frames ${milliseconds(frames)}, ${((100 * slow) / frames.length).toFixed(1)} % of ${frames.length} late; ` +
      `new clusters ${milliseconds(waited)}; ${quantile(spots, 0.5)} spots`,
  );
  await close();
}

const cpu = async () => {
  const { figures } = await ask('souk.figures.v1.FiguresService/GetFigures', { names: ['process.cpu.time'] });
  return figures.flatMap(({ values }) => values).reduce((sum, { number }) => sum + number, 0);
};
for (const view of ['', 'orders', 'map', 'media', 'tables', 'query', 'live']) {
  const { page, close } = await open(view);
  await page.waitForLoadState('networkidle', { timeout: 10_000 }).catch(() => undefined);
  await new Promise((done) => setTimeout(done, 2_000));
  const [before, begun] = [await cpu(), performance.now()];
  await new Promise((done) => setTimeout(done, idle * 1_000));
  const [after, ended] = [await cpu(), performance.now()];
  console.log(`${view || 'overview'}, at rest: ${((100 * (after - before)) / ((ended - begun) / 1_000)).toFixed(2)} % of a core`);
  await close();
}
await browser.close();
