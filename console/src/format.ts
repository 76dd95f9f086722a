/** Numbers and times as people of the page's language write them. */
import type { Timestamp } from '@bufbuild/protobuf/wkt';
import { timestampDate } from '@bufbuild/protobuf/wkt';

import { language } from './language';

const locale = (): string => (language.value === 'zh' ? 'zh-CN' : 'en');

/** A whole number with its groups of digits, exact at any size. */
export const count = (value: bigint | number): string => value.toLocaleString(locale());

/** A number with a few digits. */
export const number = (value: number, digits = 2): string =>
  value.toLocaleString(locale(), { maximumFractionDigits: digits });

/** An amount of money in its minor unit. */
export const money = (cents: bigint, currency = 'CNY'): string => {
  const [whole, part] = [cents / 100n, cents % 100n];
  return `${currency} ${whole.toLocaleString(locale())}.${part.toString().padStart(2, '0')}`;
};

/** A size in bytes. */
export const bytes = (value: bigint | number): string => {
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
