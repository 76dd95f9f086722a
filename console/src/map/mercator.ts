/** What a map shows, by the projection of the web: nothing of it needs the map itself. */

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

/** Pixels around the globe at zoom 0. */
const WORLD = 512;

/** Where the projection ends. */
const LATITUDE_MAX = 85.051129;

export const ZOOM_MAX = 20;

const clamped = (value: number, least: number, most: number): number => Math.min(Math.max(value, least), most);

/** A longitude from -180 to 180. */
export const wrapped = (longitude: number): number => {
  const turned = (((longitude + 180) % 360) + 360) % 360;
  return turned - 180;
};

const toY = (latitude: number): number => {
  const sine = Math.sin((clamped(latitude, -LATITUDE_MAX, LATITUDE_MAX) * Math.PI) / 180);
  return 0.5 - Math.log((1 + sine) / (1 - sine)) / (4 * Math.PI);
};

const toLatitude = (y: number): number => (Math.atan(Math.sinh(Math.PI * (1 - 2 * clamped(y, 0, 1)))) * 180) / Math.PI;

/** What a map of so many pixels shows. */
export const shown = ({ latitude, longitude, zoom }: View, width: number, height: number): Rectangle => {
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

/** A view as the address has it, or `otherwise` when it has none. */
export const viewOf = (values: Readonly<Record<string, string>>, otherwise: View): View => {
  const [latitude, longitude, zoom] = [Number(values['lat'] ?? NaN), Number(values['lng'] ?? NaN), Number(values['z'] ?? NaN)];
  if (![latitude, longitude, zoom].every(Number.isFinite)) return otherwise;
  return { latitude: clamped(latitude, -LATITUDE_MAX, LATITUDE_MAX), longitude: wrapped(longitude), zoom: clamped(zoom, 0, ZOOM_MAX) };
};

/** A view for the address: to about a metre. */
export const valuesOf = ({ latitude, longitude, zoom }: View): Record<string, string> => ({
  lat: latitude.toFixed(5),
  lng: wrapped(longitude).toFixed(5),
  z: zoom.toFixed(2),
});
