/** The world with points on it, by Leaflet: nothing is fetched from anywhere else. */
import type { LeafletMouseEvent } from 'leaflet';
import { Map, control } from 'leaflet';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';

import { texts } from '../language';
import { theme } from '../theme';
import type { Spot } from './drawing';
import { Drawing, loadOutlines } from './drawing';
import type { Place, View } from './mercator';
import { ZOOM_MAX, valuesOf, wrapped } from './mercator';
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

export type { Spot } from './drawing';

/** Leaflet's zoom at our zoom 0: its world has 256 pixels at its own, ours 512. */
const ZOOM = 1;

/** Wheel pixels of a zoom level, and milliseconds for which they are gathered. */
const WHEEL_PIXELS = 100;
const WHEEL_MS = 15;

/** Least time between two reports of where the map came to rest, in milliseconds. */
const SETTLE_MS = 100;

/** Not by whole pixels from where it is. */
const EXACTLY = { animate: false, reset: true };

/** A map that is shown. */
interface Shown {
  readonly map: Map;
  readonly drawing: Drawing;
  /** Moves it to a view, without a report but where it can't be there. */
  readonly go: (view: View) => void;
}

const started = (place: HTMLElement, { latitude, longitude, zoom }: View): Map => {
  const still = matchMedia('(prefers-reduced-motion: reduce)').matches;
  const map = new Map(place, {
    center: [latitude, longitude],
    zoom: zoom + ZOOM,
    minZoom: ZOOM,
    maxZoom: ZOOM_MAX + ZOOM,
    maxBounds: [
      [-90, -Infinity],
      [90, Infinity],
    ],
    maxBoundsViscosity: 1,
    zoomSnap: 0,
    wheelPxPerZoomLevel: WHEEL_PIXELS,
    wheelDebounceTime: WHEEL_MS,
    inertia: !still,
    // It is drawn anew as quickly.
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
  return { latitude: lat, longitude: wrapped(lng), zoom: map.getZoom() - ZOOM };
};

/** A view as the address has it: what the map is told, and tells, is compared by it. */
const told = (view: View): string => JSON.stringify(valuesOf(view));

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
  const place = useRef<HTMLDivElement>(null);
  const [shown, setShown] = useState<Shown | undefined>(undefined);
  const [failed, setFailed] = useState(false);
  const [bare, setBare] = useState(false);
  const latest = useRef({ view, onSettle, onSpot, onGround });
  latest.current = { view, onSettle, onSpot, onGround };
  /** The last view that the map was moved to, or has told of. */
  const known = useRef('');
  useEffect(() => {
    const box = place.current;
    if (box === null) return;
    const abort = new AbortController();
    const map = started(box, latest.current.view);
    known.current = told(latest.current.view);
    const drawing = new Drawing().addTo(map);
    setFailed(!drawing.works);
    let timer: ReturnType<typeof setTimeout> | undefined;
    let toldAt = 0;
    let quiet = false;
    const tell = (): void => {
      toldAt = performance.now();
      known.current = told(seen(map));
      latest.current.onSettle(seen(map));
    };
    const go = (next: View): void => {
      clearTimeout(timer);
      quiet = true;
      map.setView([next.latitude, next.longitude], next.zoom + ZOOM, EXACTLY);
      quiet = false;
      known.current = told(next);
      if (told(seen(map)) !== known.current) tell();
    };
    setShown({ map, drawing, go });
    loadOutlines(abort.signal).then(
      (outlines) => drawing.outline(outlines),
      () => !abort.signal.aborted && setBare(true),
    );
    const watcher = new ResizeObserver(() => {
      quiet = true;
      map.invalidateSize();
      quiet = false;
    });
    watcher.observe(box);
    map.on('moveend', () => {
      // Its end is one, too.
      if (quiet || abort.signal.aborted) return;
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
      if (originalEvent.buttons === 0) box.classList.toggle('on-spot', drawing.at(containerPoint) !== undefined);
    });
    return () => {
      abort.abort();
      clearTimeout(timer);
      watcher.disconnect();
      setShown(undefined);
      map.remove();
    };
  }, [label]);
  // Where the address says, unless the map itself has said so.
  const where = told(view);
  useEffect(() => {
    if (shown !== undefined && where !== known.current) shown.go(latest.current.view);
  }, [shown, where]);
  // Not after a frame without it.
  useLayoutEffect(() => {
    if (shown === undefined) return;
    shown.drawing.show({ spots, chosen, pin });
    if (place.current !== null) place.current.dataset['spots'] = `${spots.length}`;
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
        <div class="world" ref={place} role="region" aria-label={label} />
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
