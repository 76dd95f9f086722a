// Measures the page through the browser, on the data of a server that runs: `SOUK_URL=http://127.0.0.1:50051 npm run measure`.
//
// The map is dragged over China from one place to the next: how long each frame takes while it moves, and how long it is from letting go
// until the new clusters are drawn. Then each view rests for a while: what the server spends, as it tells itself.
//
// SOUK_URL    the server
// SOUK_DRAGS  how often the map is dragged; 200 without
// SOUK_IDLE   seconds for which each view rests; 20 without
import { launch } from './browser.mjs';
import { ask } from './server.mjs';

const url = process.env.SOUK_URL;
const drags = Number(process.env.SOUK_DRAGS ?? 200);
const idle = Number(process.env.SOUK_IDLE ?? 20);
/** Pointer moves of a drag, one a frame. */
const MOVES = 30;

const quantile = (values, part) => [...values].sort((a, b) => a - b)[Math.min(Math.floor(values.length * part), values.length - 1)];
const milliseconds = (values) => [0.5, 0.95, 0.99].map((part) => quantile(values, part).toFixed(1)).join(' / ');

const browser = await launch();
const open = async (place) => {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, reducedMotion: 'reduce', timezoneId: 'UTC' });
  const page = await context.newPage();
  await page.goto(`${url}/#/${place}`);
  return { page, close: () => context.close() };
};

/** Drags the map by so many pixels within the page, frame by frame, and waits for what is drawn then. */
const drag = (page, by) =>
  page.evaluate(
    async ({ by, MOVES }) => {
      const world = document.querySelector('.world');
      const canvas = world.querySelector('canvas');
      const box = canvas.getBoundingClientRect();
      const from = { x: box.left + box.width / 2, y: box.top + box.height / 2 };
      const send = (type, part, target) =>
        target.dispatchEvent(
          new MouseEvent(type, {
            bubbles: true,
            cancelable: true,
            view: window,
            button: 0,
            buttons: type === 'mouseup' ? 0 : 1,
            clientX: from.x + by.x * part,
            clientY: from.y + by.y * part,
          }),
        );
      const frame = () => new Promise(requestAnimationFrame);
      send('mousedown', 0, canvas);
      const frames = [];
      let last = await frame();
      for (let move = 1; move <= MOVES; move += 1) {
        send('mousemove', move / MOVES, window);
        const now = await frame();
        frames.push(now - last);
        last = now;
      }
      const drawn = new Promise((done) => {
        const watcher = new MutationObserver(() => {
          watcher.disconnect();
          done(performance.now());
        });
        watcher.observe(world, { attributeFilter: ['data-spots'] });
      });
      const released = performance.now();
      send('mouseup', 1, window);
      return { frames, waited: (await drawn) - released, spots: Number(world.dataset.spots) };
    },
    { by, MOVES },
  );

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
    const angle = nth * 2.4;
    // Out and back, so that it stays where shops are.
    const way = nth % 2 === 0 ? 1 : -1;
    const before = Math.floor(nth / 2) * 2 * 2.4;
    const found = await drag(page, { x: way * 220 * Math.cos(before || angle), y: way * 160 * Math.sin(before || angle) });
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
