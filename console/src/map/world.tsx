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
  en: { outlines: 'The outlines of the countries couldn’t be loaded.', nearer: 'Zoom in', farther: 'Zoom out' },
  zh: { outlines: '无法加载国家轮廓。', nearer: '放大', farther: '缩小' },
});

export type { Spot } from './drawing';

/** Leaflet's zoom at our zoom 0: its world has 256 pixels at its own, ours 512. */
const ZOOM = 1;

/** Wheel pixels of a zoom level, and milliseconds for which they are gathered. */
const WHEEL_PIXELS = 100;
const WHEEL_MS = 15;

const started = (place: HTMLElement, { latitude, longitude, zoom }: View): Map => {
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
    inertia: !matchMedia('(prefers-reduced-motion: reduce)').matches,
    // It is drawn anew as quickly.
    zoomAnimation: false,
    zoomControl: false,
    attributionControl: false,
  });
  control.zoom({ position: 'topright', zoomInTitle: text('nearer'), zoomOutTitle: text('farther') }).addTo(map);
  control.scale({ imperial: false }).addTo(map);
  return map;
};

const seen = (map: Map): View => {
  const { lat, lng } = map.getCenter();
  return { latitude: lat, longitude: wrapped(lng), zoom: map.getZoom() - ZOOM };
};

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
  const [shown, setShown] = useState<{ map: Map; drawing: Drawing } | undefined>(undefined);
  const [bare, setBare] = useState(false);
  const latest = useRef({ view, onSettle, onSpot, onGround });
  latest.current = { view, onSettle, onSpot, onGround };
  useEffect(() => {
    const box = place.current;
    if (box === null) return;
    const abort = new AbortController();
    const map = started(box, latest.current.view);
    const drawing = new Drawing().addTo(map);
    setShown({ map, drawing });
    loadOutlines(abort.signal).then(
      (outlines) => drawing.outline(outlines),
      () => !abort.signal.aborted && setBare(true),
    );
    const watcher = new ResizeObserver(() => map.invalidateSize({ pan: false }));
    watcher.observe(box);
    map.on('moveend', () => latest.current.onSettle(seen(map)));
    map.on('click', ({ containerPoint, latlng }: LeafletMouseEvent) => {
      const spot = drawing.at(containerPoint);
      if (spot !== undefined) latest.current.onSpot(spot);
      else latest.current.onGround?.({ latitude: latlng.lat, longitude: wrapped(latlng.lng) });
    });
    map.on('mousemove', ({ containerPoint }: LeafletMouseEvent) => {
      box.style.cursor = drawing.at(containerPoint) === undefined ? '' : 'pointer';
    });
    return () => {
      abort.abort();
      watcher.disconnect();
      setShown(undefined);
      map.remove();
    };
  }, [label]);
  // Where the address says, unless the map itself has said so.
  const where = JSON.stringify(valuesOf(view));
  useEffect(() => {
    if (shown === undefined || JSON.stringify(valuesOf(seen(shown.map))) === where) return;
    shown.map.setView([view.latitude, view.longitude], view.zoom + ZOOM, { animate: false });
  }, [shown, where]);
  // Not after a frame without it.
  useLayoutEffect(() => {
    if (shown === undefined) return;
    shown.drawing.show({ spots, chosen, pin });
    if (place.current !== null) place.current.dataset['spots'] = `${spots.length}`;
  }, [shown, spots, chosen, pin?.latitude, pin?.longitude, theme.value]);
  return (
    <>
      {bare && <p class="quiet">{text('outlines')}</p>}
      <div class="world" ref={place} role="region" aria-label={label} />
    </>
  );
};

export default World;
