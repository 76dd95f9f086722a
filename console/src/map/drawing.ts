/**
 * What the map draws, on one canvas: outlines of land and countries, and spots with their counts. While the map is dragged the canvas is
 * moved, not drawn: it reaches beyond what is seen.
 */
import type { LeafletEventHandlerFn, Map, Point } from 'leaflet';
import { Bounds, DomUtil, Layer } from 'leaflet';
import { feature, mesh } from 'topojson-client';
import type { GeometryCollection, Topology } from 'topojson-specification';
import outlines from 'world-atlas/countries-110m.json?url';

import { colour } from '../theme';
import type { Place } from './mercator';
import { toX, toY } from './mercator';

/** A circle on the map: one thing, or a cluster of several. */
export interface Spot extends Place {
  readonly id: string;
  readonly count: number;
  /** The text of its count; empty where none is drawn. */
  readonly label: string;
}

/** What is drawn on the outlines. */
interface Content {
  readonly spots: readonly Spot[];
  /** The id of the spot with a ring around it; empty when there is none. */
  readonly chosen: string;
  /** A marked place. */
  readonly pin: Place | undefined;
}

type Atlas = Topology<{ countries: GeometryCollection; land: GeometryCollection }>;

/** Outlines on a world of width 1. */
interface Outlines {
  readonly land: Path2D;
  readonly borders: Path2D;
}

/** Widest world with borders, in CSS pixels: beyond it they are coarser than what is seen, and than what a browser's paths can tell apart. */
const BORDERS_MAX = 2 ** 22;

/** What is drawn beyond each edge of what is seen, of its width and height. */
const BEYOND = 0.25;

/** CSS pixels by which a click may miss a spot. */
const MISS = 6;

const FONT = '11px sans-serif';
const RING = 9;
const RING_WIDTH = 3;

/** Radii of circles in CSS pixels, by the decimal logarithm of their counts; what lies between is interpolated. */
const RADII = [
  [0, 5],
  [1, 11],
  [3, 18],
  [5, 28],
] as const;

const radius = (count: number): number => {
  const power = Math.log10(Math.max(count, 1));
  let [before, least] = RADII[0] as readonly [number, number];
  for (const [at, here] of RADII) {
    if (power < at) return least + ((power - before) / (at - before)) * (here - least);
    [before, least] = [at, here];
  }
  return least;
};

/** Traces a line, which goes on beyond the antimeridian where it crosses it; how often it goes around the world. */
const trace = (path: Path2D, line: readonly (readonly number[])[]): number => {
  let before: number | undefined;
  for (const [longitude = 0, latitude = 0] of line) {
    const x: number = before === undefined ? toX(longitude) : toX(longitude) + Math.round(before - toX(longitude));
    if (before === undefined) path.moveTo(x, toY(latitude));
    else path.lineTo(x, toY(latitude));
    before = x;
  }
  return before === undefined ? 0 : Math.round(before - toX(line[0]?.[0] ?? 0));
};

/** Fetches the outlines, which come with the page. */
export const loadOutlines = async (signal: AbortSignal): Promise<Outlines> => {
  const response = await fetch(outlines, { signal });
  if (!response.ok) throw new Error(`${response.status}`);
  const atlas = (await response.json()) as Atlas;
  const [land, borders] = [new Path2D(), new Path2D()];
  for (const { geometry } of feature(atlas, atlas.objects.land).features) {
    const polygons = geometry.type === 'MultiPolygon' ? geometry.coordinates : geometry.type === 'Polygon' ? [geometry.coordinates] : [];
    for (const ring of polygons.flat()) {
      const turns = trace(land, ring);
      // Around a pole: closed along the edge of the world.
      if (turns !== 0) {
        land.lineTo(toX(ring[0]?.[0] ?? 0) + turns, 1);
        land.lineTo(toX(ring[0]?.[0] ?? 0), 1);
      }
      land.closePath();
    }
  }
  for (const line of mesh(atlas, atlas.objects.countries).coordinates) trace(borders, line);
  return { land, borders };
};

/** The map's only layer. */
export class Drawing extends Layer {
  private readonly canvas = DomUtil.create('canvas');
  private readonly context = this.canvas.getContext('2d');
  private outlines: Outlines | undefined;
  private content: Content = { spots: [], chosen: '', pin: undefined };
  /** The canvas's bounds in Leaflet's pixel coordinates at `zoom`, and the circles drawn there, the topmost last. */
  private area = new Bounds([0, 0], [0, 0]);
  private zoom = NaN;
  private circles: { spot: Spot; x: number; y: number; radius: number }[] = [];

  override onAdd(map: Map): this {
    map.getPanes().overlayPane.append(this.canvas);
    this.draw();
    return this;
  }

  override onRemove(): this {
    this.canvas.remove();
    // Its memory is given back at once.
    this.canvas.width = 0;
    return this;
  }

  /** Whether the browser draws at all. */
  get works(): boolean {
    return this.context !== null;
  }

  override getEvents(): Record<string, LeafletEventHandlerFn> {
    return { move: this.follow };
  }

  outline(found: Outlines): void {
    this.outlines = found;
    this.draw();
  }

  show(content: Content): void {
    // Counts of the fullest stay readable.
    this.content = { ...content, spots: content.spots.toSorted((a, b) => a.count - b.count) };
    this.draw();
  }

  /** The spot at a point of the map's container: the topmost that is hit, or else the nearest. */
  at(point: Point): Spot | undefined {
    const { x, y } = point.add(this._map.getPixelBounds().getTopLeft());
    let [found, least]: [Spot | undefined, number] = [undefined, MISS];
    for (const circle of this.circles) {
      const by = Math.max(Math.hypot(circle.x - x, circle.y - y) - circle.radius, 0);
      if (by <= least) [found, least] = [circle.spot, by];
    }
    return found;
  }

  private follow(): void {
    const isSharp = this.canvas.width === Math.round(this.area.getSize().x * window.devicePixelRatio);
    if (isSharp && this._map.getZoom() === this.zoom && this.area.contains(this._map.getPixelBounds())) this.lay();
    else this.draw();
  }

  /** Puts the canvas where its area is. */
  private lay(): void {
    DomUtil.setPosition(this.canvas, this.area.getTopLeft().subtract(this._map.getPixelOrigin()));
  }

  /** Draws everything, with the colours that the page has now. */
  private draw(): void {
    const [map, context] = [this._map as Map | null, this.context];
    if (map === null || context === null) return;
    const beyond = map.getSize().multiplyBy(BEYOND).ceil();
    const size = map.getSize().add(beyond.multiplyBy(2));
    // Whole pixels stay sharp.
    const from = map.getPixelBounds().getTopLeft().subtract(beyond).floor();
    this.area = new Bounds(from, from.add(size));
    this.zoom = map.getZoom();
    const sharp = window.devicePixelRatio;
    // Setting a size clears it.
    [this.canvas.width, this.canvas.height] = [Math.round(size.x * sharp), Math.round(size.y * sharp)];
    [this.canvas.style.width, this.canvas.style.height] = [`${size.x}px`, `${size.y}px`];
    this.lay();

    const world = map.getPixelWorldBounds().getSize().x;
    // Where copies of the world begin: those beside what is seen have outlines that reach into it.
    const copies: number[] = [];
    for (let copy = Math.floor(from.x / world) - 1; (copy - 1) * world < from.x + size.x; copy += 1) copies.push(copy * world - from.x);
    if (this.outlines !== undefined) {
      context.fillStyle = colour('--ground');
      context.strokeStyle = colour('--line');
      context.lineWidth = 1 / world;
      for (const west of copies) {
        context.setTransform(sharp * world, 0, 0, sharp * world, sharp * west, -sharp * from.y);
        context.fill(this.outlines.land, 'evenodd');
        if (world <= BORDERS_MAX) context.stroke(this.outlines.borders);
      }
    }
    context.setTransform(sharp, 0, 0, sharp, 0, 0);
    this.circles = [];
    const places = (place: Place, reach: number): [number, number][] => {
      const y = toY(place.latitude) * world - from.y;
      if (y < -reach || y > size.y + reach) return [];
      const all = copies.map((west): [number, number] => [west + toX(place.longitude) * world, y]);
      return all.filter(([x]) => x >= -reach && x <= size.x + reach);
    };
    context.font = FONT;
    context.textAlign = 'center';
    context.textBaseline = 'middle';
    context.lineWidth = 1;
    const [fill, edge, letters] = [colour('--accent'), colour('--ground'), colour('--on-accent')];
    context.strokeStyle = edge;
    for (const spot of this.content.spots) {
      const wide = radius(spot.count);
      for (const [x, y] of places(spot, wide)) {
        context.beginPath();
        context.arc(x, y, wide, 0, 2 * Math.PI);
        context.fillStyle = fill;
        context.fill();
        context.stroke();
        if (spot.label !== '') {
          context.fillStyle = letters;
          context.fillText(spot.label, x, y);
        }
        this.circles.push({ spot, x: x + from.x, y: y + from.y, radius: wide });
      }
    }
    context.lineWidth = RING_WIDTH;
    context.strokeStyle = context.fillStyle = colour('--warn');
    const { chosen, pin, spots } = this.content;
    const ringed = chosen === '' ? undefined : spots.find(({ id }) => id === chosen);
    for (const place of [ringed, pin]) {
      for (const [x, y] of place === undefined ? [] : places(place, RING)) {
        context.beginPath();
        context.arc(x, y, RING, 0, 2 * Math.PI);
        context.stroke();
        if (place !== pin) continue;
        context.beginPath();
        context.arc(x, y, RING_WIDTH, 0, 2 * Math.PI);
        context.fill();
      }
    }
  }
}
