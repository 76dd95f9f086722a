/**
 * The world with points on it, by MapLibre. Outlines come with the page, and numbers are drawn with the fonts of the browser: nothing is
 * fetched from anywhere else.
 */
import type { GeoJSONSource, MapMouseEvent } from 'maplibre-gl';
import { Map as MapLibre, Marker, NavigationControl, ScaleControl, setWorkerUrl } from 'maplibre-gl';
import 'maplibre-gl/dist/maplibre-gl.css';
import worker from 'maplibre-gl/dist/maplibre-gl-worker.mjs?worker&url';
import { useEffect, useRef, useState } from 'preact/hooks';
import { feature, mesh } from 'topojson-client';
import type { GeometryCollection, Topology } from 'topojson-specification';
import outlines from 'world-atlas/countries-110m.json?url';

import { texts } from '../language';
import { colour, theme } from '../theme';
import type { Place, View } from './mercator';
import { ZOOM_MAX, valuesOf, wrapped } from './mercator';
import './world.css';

const text = texts({
  en: {
    failed: 'The map can’t be drawn: this browser has no WebGL. What it would show is told beside it.',
    outlines: 'The outlines of the countries couldn’t be loaded.',
  },
  zh: {
    failed: '无法绘制地图：此浏览器不支持 WebGL。旁边的列表包含相同内容。',
    outlines: '无法加载国家轮廓。',
  },
});

/** A circle on the map: one thing, or a cluster of several. */
export interface Spot extends Place {
  readonly id: string;
  readonly count: number;
  /** The text of its count; empty where none is drawn. */
  readonly label: string;
}

setWorkerUrl(worker);

/** CSS pixels by which a click may miss a spot. */
const MISS = 6;

type Atlas = Topology<{ countries: GeometryCollection; land: GeometryCollection }>;

const EMPTY: GeoJSON.FeatureCollection = { type: 'FeatureCollection', features: [] };

const colours = () => ({
  sea: colour('--raised'),
  land: colour('--ground'),
  line: colour('--line'),
  spot: colour('--accent'),
  onSpot: colour('--on-accent'),
  chosen: colour('--warn'),
});

const draw = (map: MapLibre): void => {
  const now = colours();
  map.setPaintProperty('sea', 'background-color', now.sea);
  map.setPaintProperty('land', 'fill-color', now.land);
  map.setPaintProperty('borders', 'line-color', now.line);
  map.setPaintProperty('spots', 'circle-color', now.spot);
  map.setPaintProperty('spots', 'circle-stroke-color', now.land);
  map.setPaintProperty('counts', 'text-color', now.onSpot);
  map.setPaintProperty('chosen', 'circle-stroke-color', now.chosen);
};

const started = (place: HTMLElement, { latitude, longitude, zoom }: View, label: string): MapLibre => {
  const none = 'rgb(0 0 0 / 0)';
  const map = new MapLibre({
    container: place,
    center: [longitude, latitude],
    zoom,
    maxZoom: ZOOM_MAX,
    dragRotate: false,
    pitchWithRotate: false,
    touchPitch: false,
    attributionControl: false,
    locale: { 'Map.Title': label },
    style: {
      version: 8,
      sources: {
        land: { type: 'geojson', data: EMPTY, attribution: 'Natural Earth' },
        borders: { type: 'geojson', data: EMPTY },
        spots: { type: 'geojson', data: EMPTY },
      },
      layers: [
        { id: 'sea', type: 'background', paint: { 'background-color': none } },
        { id: 'land', type: 'fill', source: 'land', paint: { 'fill-color': none } },
        { id: 'borders', type: 'line', source: 'borders', paint: { 'line-color': none } },
        {
          id: 'spots',
          type: 'circle',
          source: 'spots',
          paint: {
            'circle-color': none,
            'circle-stroke-width': 1,
            // From 5 px for one to 28 px for 100,000.
            'circle-radius': ['interpolate', ['linear'], ['log10', ['get', 'count']], 0, 5, 1, 11, 3, 18, 5, 28],
          },
        },
        {
          id: 'chosen',
          type: 'circle',
          source: 'spots',
          filter: ['==', ['get', 'id'], ''],
          paint: { 'circle-color': none, 'circle-radius': 9, 'circle-stroke-width': 3 },
        },
        {
          id: 'counts',
          type: 'symbol',
          source: 'spots',
          filter: ['>', ['get', 'count'], 1],
          layout: {
            'text-field': ['get', 'label'],
            'text-font': ['sans-serif'],
            'text-size': 11,
            'text-padding': 0,
            'symbol-sort-key': ['-', 0, ['get', 'count']],
          },
        },
      ],
    },
  });
  map.touchZoomRotate.disableRotation();
  map.keyboard.disableRotation();
  map.addControl(new NavigationControl({ showCompass: false }), 'top-right');
  map.addControl(new ScaleControl(), 'bottom-left');
  return map;
};

const loadOutlines = async (map: MapLibre, signal: AbortSignal): Promise<void> => {
  const response = await fetch(outlines, { signal });
  if (!response.ok) throw new Error(`${response.status}`);
  const atlas = (await response.json()) as Atlas;
  (map.getSource('land') as GeoJSONSource | undefined)?.setData(feature(atlas, atlas.objects.land));
  (map.getSource('borders') as GeoJSONSource | undefined)?.setData(mesh(atlas, atlas.objects.countries));
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
  const [map, setMap] = useState<MapLibre | undefined>(undefined);
  const [failed, setFailed] = useState(false);
  const [bare, setBare] = useState(false);
  const latest = useRef({ view, spots, onSettle, onSpot, onGround });
  latest.current = { view, spots, onSettle, onSpot, onGround };
  useEffect(() => {
    if (place.current === null) return;
    const abort = new AbortController();
    let drawn: MapLibre;
    try {
      drawn = started(place.current, latest.current.view, label);
    } catch {
      setFailed(true);
      return;
    }
    drawn.on('load', () => {
      draw(drawn);
      setMap(drawn);
      loadOutlines(drawn, abort.signal).catch(() => !abort.signal.aborted && setBare(true));
    });
    drawn.on('moveend', () => {
      const { lat, lng } = drawn.getCenter();
      latest.current.onSettle({ latitude: lat, longitude: wrapped(lng), zoom: drawn.getZoom() });
    });
    const at = (event: MapMouseEvent): Spot | undefined => {
      const { x, y } = event.point;
      const [found] = drawn.queryRenderedFeatures(
        [
          [x - MISS, y - MISS],
          [x + MISS, y + MISS],
        ],
        { layers: ['spots'] },
      );
      const id: unknown = found?.properties['id'];
      return latest.current.spots.find((spot) => spot.id === id);
    };
    drawn.on('click', (event) => {
      const spot = at(event);
      if (spot !== undefined) latest.current.onSpot(spot);
      else latest.current.onGround?.({ latitude: event.lngLat.lat, longitude: wrapped(event.lngLat.lng) });
    });
    drawn.on('mousemove', (event) => {
      drawn.getCanvas().style.cursor = at(event) === undefined ? '' : 'pointer';
    });
    return () => {
      abort.abort();
      setMap(undefined);
      drawn.remove();
    };
  }, [label]);
  // Where the address says, unless the map itself has said so.
  const where = JSON.stringify(valuesOf(view));
  useEffect(() => {
    if (map === undefined) return;
    const { lat, lng } = map.getCenter();
    const now = JSON.stringify(valuesOf({ latitude: lat, longitude: lng, zoom: map.getZoom() }));
    if (now !== where) map.jumpTo({ center: [view.longitude, view.latitude], zoom: view.zoom });
  }, [map, where]);
  useEffect(() => {
    if (map === undefined) return;
    (map.getSource('spots') as GeoJSONSource | undefined)?.setData({
      type: 'FeatureCollection',
      features: spots.map(({ id, count, label, longitude, latitude }) => ({
        type: 'Feature',
        properties: { id, count, label },
        geometry: { type: 'Point', coordinates: [longitude, latitude] },
      })),
    });
    const idle = (): void => {
      if (place.current !== null) place.current.dataset['spots'] = `${spots.length}`;
    };
    map.once('idle', idle);
    map.triggerRepaint();
    return () => {
      map.off('idle', idle);
    };
  }, [map, spots]);
  useEffect(() => {
    map?.setFilter('chosen', ['==', ['get', 'id'], chosen]);
  }, [map, chosen]);
  useEffect(() => {
    if (map !== undefined) draw(map);
  }, [map, theme.value]);
  useEffect(() => {
    if (map === undefined || pin === undefined) return;
    const marker = new Marker({ color: colour('--warn') }).setLngLat([pin.longitude, pin.latitude]).addTo(map);
    return () => {
      marker.remove();
    };
  }, [map, pin?.latitude, pin?.longitude, theme.value]);
  return (
    <>
      {failed && (
        <p class="problem" role="alert">
          {text('failed')}
        </p>
      )}
      {bare && <p class="quiet">{text('outlines')}</p>}
      <div class="world" ref={place} hidden={failed} />
    </>
  );
};

export default World;
