/** The world with points on it, by Leaflet: nothing is fetched from anywhere else. */
import type { LeafletMouseEvent } from 'leaflet';
import { Map, control } from 'leaflet';
import { useLayoutEffect, useRef, useState } from 'preact/hooks';

import { texts } from '../language';
import { theme } from '../theme';
import type { Spot } from './drawing';
import { Drawing, loadOutlines } from './drawing';
import type { Place, View } from './mercator';
import { ZOOM_MAX, valuesOf, viewOf, wrapped } from './mercator';
import './world.css';

const text = texts({
  en: {
    failed: 'The map can’t be drawn by this browser. What it would show is told beside it.',
    outlines: 'The outlines of the countries couldn’t be loaded.',
    nearer: 'Zoom in',
    farther: 'Zoom out',
  },
  zh: {
    failed: '此浏览器无法绘制地图。旁边的列表包含相同内容。',
    outlines: '无法加载国家轮廓。',
    nearer: '放大',
    farther: '缩小',
  },
});

/** Leaflet's zoom at our zoom 0: its world has 256 pixels at its own, ours 512. */
const ZOOM_OFFSET = 1;

/** Wheel pixels of a zoom level, and milliseconds for which they are gathered. */
const WHEEL_PIXELS = 100;
const WHEEL_MS = 15;

/** Least time between two reports of where the map came to rest, in milliseconds. */
const SETTLE_MS = 100;

/** A map that is shown. */
interface Shown {
  readonly map: Map;
  readonly drawing: Drawing;
  /** Moves it to a view, unless it has told of that itself. */
  readonly go: (view: View) => void;
}

const started = (box: HTMLElement): Map => {
  const still = matchMedia('(prefers-reduced-motion: reduce)').matches;
  const map = new Map(box, {
    minZoom: ZOOM_OFFSET,
    maxZoom: ZOOM_MAX + ZOOM_OFFSET,
    maxBounds: [
      [-90, -Infinity],
      [90, Infinity],
    ],
    maxBoundsViscosity: 1,
    zoomSnap: 0,
    wheelPxPerZoomLevel: WHEEL_PIXELS,
    wheelDebounceTime: WHEEL_MS,
    inertia: !still,
    // A zoom is redrawn at each step: there are no tiles to scale meanwhile.
    zoomAnimation: false,
    // A pinch beyond the limits would show many worlds.
    bounceAtZoomLimits: false,
    boxZoom: false,
    trackResize: false,
    zoomControl: false,
    attributionControl: false,
  });
  if (still) {
    const glide = map.panBy.bind(map);
    map.panBy = (by, options) => glide(by, { ...options, animate: false });
  }
  control.scale({ imperial: false }).addTo(map);
  return map;
};

const seen = (map: Map): View => {
  const { lat, lng } = map.getCenter();
  return { latitude: lat, longitude: wrapped(lng), zoom: map.getZoom() - ZOOM_OFFSET };
};

/** A view as the address keeps it: views are compared by it. */
const keyOf = (view: View): string => JSON.stringify(viewOf(valuesOf(view), view));

/** The map at `view`. `onSettle` gets the view where a move ended, `onSpot` a clicked spot, `onGround` a clicked place without one. */
const World = ({
  label,
  view,
  spots,
  chosen = '',
  pin,
  onSettle,
  onSpot,
  onGround,
}: {
  label: string;
  view: View;
  spots: readonly Spot[];
  chosen?: string;
  pin?: Place | undefined;
  onSettle: (view: View) => void;
  onSpot: (spot: Spot) => void;
  onGround?: (place: Place) => void;
}) => {
  const box = useRef<HTMLDivElement>(null);
  const [shown, setShown] = useState<Shown | undefined>(undefined);
  const [failed, setFailed] = useState(false);
  const [bare, setBare] = useState(false);
  const latest = useRef({ view, onSettle, onSpot, onGround });
  latest.current = { view, onSettle, onSpot, onGround };
  // Layout effects, before the next paint: between it and a click the map would move on, and tell of it.
  useLayoutEffect(() => {
    const element = box.current;
    if (element === null) return;
    const abort = new AbortController();
    const map = started(element);
    const drawing = new Drawing().addTo(map);
    setFailed(!drawing.works);
    let timer: ReturnType<typeof setTimeout> | undefined;
    let toldAt = -Infinity;
    let quiet = false;
    /** The last view that it was moved to, or has told of. */
    let known = '';
    const tell = (): void => {
      toldAt = performance.now();
      known = keyOf(seen(map));
      latest.current.onSettle(seen(map));
    };
    const go = (next: View): void => {
      if (keyOf(next) === known) return;
      clearTimeout(timer);
      quiet = true;
      // Without `reset`, Leaflet pans by whole pixels.
      const exactly = { animate: false, reset: true };
      map.setView([next.latitude, next.longitude], next.zoom + ZOOM_OFFSET, exactly);
      quiet = false;
      known = keyOf(next);
      // It doesn't show what lies beyond a pole.
      if (keyOf(seen(map)) !== known) tell();
    };
    go(latest.current.view);
    setShown({ map, drawing, go });
    loadOutlines(abort.signal).then(
      (outlines) => drawing.outline(outlines),
      () => !abort.signal.aborted && setBare(true),
    );
    const watcher = new ResizeObserver(() => map.invalidateSize());
    watcher.observe(element);
    // A glide begins with the first, and ends with the second.
    map.on('dragend moveend', () => {
      if (quiet || keyOf(seen(map)) === known) return;
      clearTimeout(timer);
      // At once, but not at each step of a key that is held down.
      const wait = toldAt + SETTLE_MS - performance.now();
      if (wait > 0) timer = setTimeout(tell, wait);
      else tell();
    });
    map.on('click', ({ containerPoint, latlng }: LeafletMouseEvent) => {
      const spot = drawing.at(containerPoint);
      if (spot !== undefined) latest.current.onSpot(spot);
      else latest.current.onGround?.({ latitude: latlng.lat, longitude: wrapped(latlng.lng) });
    });
    map.on('mousemove', ({ containerPoint, originalEvent }: LeafletMouseEvent) => {
      if (originalEvent.buttons === 0) element.classList.toggle('on-spot', drawing.at(containerPoint) !== undefined);
    });
    return () => {
      abort.abort();
      clearTimeout(timer);
      watcher.disconnect();
      // It ends a glide, which is a move.
      quiet = true;
      map.remove();
    };
  }, []);
  useLayoutEffect(() => shown?.go(view), [shown, keyOf(view)]);
  useLayoutEffect(() => {
    if (shown === undefined) return;
    shown.drawing.show({ spots, chosen, pin });
    if (box.current !== null) box.current.dataset['spots'] = `${spots.length}`;
  }, [shown, spots, chosen, pin?.latitude, pin?.longitude, theme.value]);
  return (
    <>
      {failed && (
        <p class="problem" role="alert">
          {text('failed')}
        </p>
      )}
      {bare && <p class="quiet">{text('outlines')}</p>}
      <div class="globe" hidden={failed}>
        <div class="world" ref={box} role="region" aria-label={label} />
        <div class="zoom">
          <button type="button" aria-label={text('nearer')} onClick={() => shown?.map.zoomIn()}>
            +
          </button>
          <button type="button" aria-label={text('farther')} onClick={() => shown?.map.zoomOut()}>
            −
          </button>
        </div>
      </div>
    </>
  );
};

export default World;
