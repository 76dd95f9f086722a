/** Numbers and times as people of the page's language write them. */
import type { Timestamp } from '@bufbuild/protobuf/wkt';
import { timestampDate } from '@bufbuild/protobuf/wkt';

import { language } from './language';

const locale = (): string => (language.value === 'zh' ? 'zh-CN' : 'en');

/** Made once: to make one takes as long as to write a hundred numbers with it. */
const formats = new Map<string, Intl.NumberFormat>();

const written = (value: bigint | number, options: Intl.NumberFormatOptions = {}): string => {
  const key = locale() + JSON.stringify(options);
  const format = formats.get(key) ?? new Intl.NumberFormat(locale(), options);
  formats.set(key, format);
  return format.format(value);
};

/** A whole number with its groups of digits, exact at any size. */
export const count = (value: bigint | number): string => written(value);

/** A number where there is little room: 4.8K. */
export const short = (value: number): string => written(value, { notation: 'compact', maximumFractionDigits: 1 });

/** What stands where nothing is known. */
const UNKNOWN = '–';

/** A number with so many digits behind the point, or with so many at all where those would say that it is 0. */
export const number = (value: number, digits = 2): string => {
  const size = Math.abs(value);
  if (size === 0 || (size >= 0.5 / 10 ** digits && size < 1e15)) return written(value, { maximumFractionDigits: digits });
  const notation = size >= 1e-6 && size < 1e15 ? 'standard' : 'scientific';
  return written(value, { notation, maximumSignificantDigits: Math.max(digits, 1) });
};

/** An amount of money in its minor unit. */
export const money = (cents: bigint, currency = 'CNY'): string => {
  const size = cents < 0n ? -cents : cents;
  return `${currency} ${cents < 0n ? '-' : ''}${count(size / 100n)}.${(size % 100n).toString().padStart(2, '0')}`;
};

/** How long something takes, in seconds. */
export const seconds = (value: number | undefined): string => {
  if (value === undefined) return UNKNOWN;
  if (value === 0) return '0 s';
  if (value < 0.001) return `${number(value * 1e6, 0)} µs`;
  return value < 1 ? `${number(value * 1000, value < 0.01 ? 1 : 0)} ms` : `${number(value, 1)} s`;
};

/** A size in bytes. */
export const bytes = (value: bigint | number | undefined): string => {
  if (value === undefined) return UNKNOWN;
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let size = Number(value);
  let unit = 0;
  while (size >= 1024 && unit < units.length - 1) {
    size /= 1024;
    unit += 1;
  }
  return `${number(size, unit === 0 ? 0 : 1)} ${units[unit]}`;
};

/** A time to the second, in the browser's time zone. */
export const time = (value: Timestamp | Date | undefined): string => {
  if (value === undefined) return '';
  const date = value instanceof Date ? value : timestampDate(value);
  return date.toLocaleString(locale(), { dateStyle: 'medium', timeStyle: 'medium' });
};

/** A day, in UTC. */
export const day = (value: Date): string => value.toLocaleDateString(locale(), { dateStyle: 'medium', timeZone: 'UTC' });
