/** The figures of the last five minutes, from the answers that the view got. */
import { durationMs } from '@bufbuild/protobuf/wkt';

import type { ListIndexesResponse } from '../../contract/souk/index/v1/index_pb';
import type { Calls, Kind, Sample } from './figures';
import { KINDS, between, calls, merged, quantile, total } from './figures';

/** Window of the quantiles of calls' times, in milliseconds. */
const WINDOW_MS = 10_000;

/** Points in a chart at most: five minutes, at one every two seconds. */
const POINTS = 150;

export const QUANTILES = [0.5, 0.95, 0.99];

/** Codes that count as failures: those of the server's fault. */
export const FAULTS = new Set(['UNKNOWN', 'DEADLINE_EXCEEDED', 'UNIMPLEMENTED', 'INTERNAL', 'UNAVAILABLE', 'DATA_LOSS']);

/** One moment in the charts. */
export interface Point {
  readonly at: number;
  /** Calls a second. */
  readonly rates: Readonly<Partial<Record<Kind, number>>>;
  readonly failed: number | undefined;
  /** Quantiles of the times of calls in the last ten seconds, in seconds, as in `QUANTILES`. */
  readonly times: Readonly<Record<'write' | 'search', readonly (number | undefined)[]>>;
  readonly memory: number | undefined;
  readonly cores: number | undefined;
}

export interface History {
  /** The samples of the last ten seconds. */
  readonly samples: readonly Sample[];
  readonly points: readonly Point[];
  /** The counters at the first sample; later ones are counted from there. */
  readonly first: readonly Calls[];
}

export const EMPTY: History = { samples: [], points: [], first: [] };

const kindOf = ({ method }: Calls): Kind | undefined => KINDS.get(method);

/** A point without values, where the lines of the charts are interrupted. */
const gap = (at: number): Point => ({ at, rates: {}, failed: undefined, times: { write: [], search: [] }, memory: undefined, cores: undefined });

const point = (oldest: Sample, before: Sample, now: Sample): Point => {
  const lasted = (now.at - before.at) / 1000;
  const ours = between(calls(before), calls(now));
  const window = between(calls(oldest), calls(now));
  const rate = (wanted: (one: Calls) => boolean): number => merged(ours.filter(wanted)).count / lasted;
  const times = (kind: Kind): (number | undefined)[] => {
    const buckets = merged(window.filter((one) => kindOf(one) === kind));
    return QUANTILES.map((part) => quantile(buckets, part));
  };
  const cpu = [total(before, 'process.cpu.time'), total(now, 'process.cpu.time')] as const;
  return {
    at: now.at,
    rates: {
      write: rate((one) => kindOf(one) === 'write'),
      search: rate((one) => kindOf(one) === 'search'),
      read: rate((one) => kindOf(one) === 'read'),
    },
    failed: rate(({ code }) => FAULTS.has(code)),
    times: { write: times('write'), search: times('search') },
    memory: total(now, 'process.memory.usage'),
    cores: cpu[0] === undefined || cpu[1] === undefined ? undefined : (cpu[1] - cpu[0]) / lasted,
  };
};

/**
 * The history with one more sample. A server that was restarted, or whose clock was set back, begins a new one. After a longer time without
 * samples, as while the page isn't visible, the new point is a gap: rates over that time wouldn't be those of now.
 */
export const grown = (history: History, now: Sample): History => {
  const last = history.samples.at(-1);
  const up = (sample: Sample): number => total(sample, 'process.uptime') ?? 0;
  if (last === undefined || up(now) < up(last) || now.at < last.at) return { samples: [now], points: [], first: calls(now) };
  if (now.at === last.at) return history;
  const samples = history.samples.filter(({ at }) => at >= now.at - WINDOW_MS);
  const [oldest] = samples;
  const next = oldest === undefined ? gap(now.at) : point(oldest, last, now);
  return { samples: [...samples, now], points: [...history.points, next].slice(-POINTS), first: history.first };
};

/** The lag of each index, in seconds, at the times of the answers, in milliseconds since the epoch. */
export interface Lags {
  readonly times: readonly number[];
  readonly all: readonly (readonly [string, readonly (number | undefined)[]])[];
}

export const NO_LAGS: Lags = { times: [], all: [] };

/** The lags with one more answer. A longer time without answers is a gap. */
export const lagged = (lags: Lags, answer: ListIndexesResponse, at: number): Lags => {
  const known = new Map(lags.all);
  const last = lags.times.at(-1);
  const missed = last !== undefined && at - last > WINDOW_MS;
  const all = answer.indexes.map(({ index, lag }) => {
    const values = known.get(index) ?? new Array<undefined>(lags.times.length).fill(undefined);
    const now = lag === undefined ? 0 : durationMs(lag) / 1000;
    return [index, [...values, ...(missed ? [undefined] : []), now].slice(-POINTS)] as const;
  });
  return { times: [...lags.times, ...(missed ? [(last + at) / 2] : []), at].slice(-POINTS), all };
};
