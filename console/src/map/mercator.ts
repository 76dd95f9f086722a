/** Web Mercator: views of a map and the rectangles that they show, computed without the map itself. */

export interface Place {
  readonly latitude: number;
  readonly longitude: number;
}

export interface View extends Place {
  readonly zoom: number;
}

/** Between two parallels and two meridians; with `west` above `east` it crosses the antimeridian. */
export interface Rectangle {
  readonly north: number;
  readonly west: number;
  readonly south: number;
  readonly east: number;
}

/** Width of the world at zoom 0, in CSS pixels. */
const WORLD = 512;

/** Largest latitude of the projection, in degrees: it makes the world a square. */
const LATITUDE_MAX = 85.051129;

export const ZOOM_MAX = 20;

const clamped = (value: number, least: number, most: number): number => Math.min(Math.max(value, least), most);

/** Wraps a longitude to -180 ≤ x < 180 degrees. */
export const wrapped = (longitude: number): number => {
  const turned = (((longitude + 180) % 360) + 360) % 360;
  return turned - 180;
};

/** Where a longitude is on the world, from 0 in the west to 1. */
export const toX = (longitude: number): number => longitude / 360 + 0.5;

/** Where a latitude is on the world, from 0 in the north to 1. */
export const toY = (latitude: number): number => {
  const sine = Math.sin((clamped(latitude, -LATITUDE_MAX, LATITUDE_MAX) * Math.PI) / 180);
  return 0.5 - Math.log((1 + sine) / (1 - sine)) / (4 * Math.PI);
};

const toLatitude = (y: number): number => (Math.atan(Math.sinh(Math.PI * (1 - 2 * clamped(y, 0, 1)))) * 180) / Math.PI;

/** The rectangle that a map of `width` × `height` CSS pixels shows. */
export const rectangleOf = ({ latitude, longitude, zoom }: View, width: number, height: number): Rectangle => {
  const world = WORLD * 2 ** zoom;
  const wide = (width / world) * 360;
  const y = toY(latitude);
  const whole = wide >= 360;
  return {
    north: toLatitude(y - height / 2 / world),
    south: toLatitude(y + height / 2 / world),
    west: whole ? -180 : wrapped(longitude - wide / 2),
    east: whole ? 180 : wrapped(longitude + wide / 2),
  };
};

/** Reads a view from the values of the address; `otherwise` when they have none. */
export const viewOf = (values: Readonly<Record<string, string>>, otherwise: View): View => {
  const [latitude, longitude, zoom] = [Number(values['lat'] ?? NaN), Number(values['lng'] ?? NaN), Number(values['z'] ?? NaN)];
  if (![latitude, longitude, zoom].every(Number.isFinite)) return otherwise;
  return { latitude: clamped(latitude, -LATITUDE_MAX, LATITUDE_MAX), longitude: wrapped(longitude), zoom: clamped(zoom, 0, ZOOM_MAX) };
};

/** A view as values of the address, precise to about a metre. */
export const valuesOf = ({ latitude, longitude, zoom }: View): Record<string, string> => ({
  lat: latitude.toFixed(5),
  lng: wrapped(longitude).toFixed(5),
  z: zoom.toFixed(2),
});
