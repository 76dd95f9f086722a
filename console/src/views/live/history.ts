/** The last minutes of the server, as the answers to the view tell them. */
import { durationMs } from '@bufbuild/protobuf/wkt';

import type { ListIndexesResponse } from '../../contract/souk/index/v1/index_pb';
import type { Calls, Kind, Sample } from './figures';
import { KINDS, between, calls, merged, quantile, total } from './figures';

/** How long calls are looked back at for their times, in milliseconds. */
const WINDOW_MS = 10_000;

/** Points of the charts: five minutes of one each two seconds. */
const POINTS = 150;

export const QUANTILES = [0.5, 0.95, 0.99];

/** Refused calls aren't failures of the server. */
export const FAULTS = new Set(['UNKNOWN', 'DEADLINE_EXCEEDED', 'UNIMPLEMENTED', 'INTERNAL', 'UNAVAILABLE', 'DATA_LOSS']);

/** One moment in the charts. */
export interface Point {
  readonly at: number;
  /** Calls a second. */
  readonly rates: Readonly<Partial<Record<Kind, number>>>;
  readonly failed: number | undefined;
  /** Of calls of the last ten seconds, in seconds. */
  readonly times: Readonly<Record<'write' | 'search', readonly (number | undefined)[]>>;
  readonly memory: number | undefined;
  readonly cores: number | undefined;
}

export interface History {
  /** Those of the last ten seconds. */
  readonly samples: readonly Sample[];
  readonly points: readonly Point[];
  /** The first calls that were seen: what came since is counted. */
  readonly first: readonly Calls[];
}

export const EMPTY: History = { samples: [], points: [], first: [] };

const kindOf = ({ method }: Calls): Kind | undefined => KINDS.get(method);

/** What isn't known of a time. */
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
 * The history with one more sample. A server that was started again, or whose clock was set back, begins another. After a longer time without samples, as while the
 * page isn't seen, nothing is said of that time, nor of now: what came in it isn't what comes now.
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

/** How far each index was behind, in seconds, at the times when that was asked for, in milliseconds since the epoch. */
export interface Lags {
  readonly times: readonly number[];
  readonly all: readonly (readonly [string, readonly (number | undefined)[]])[];
}

export const NO_LAGS: Lags = { times: [], all: [] };

/** The lags with one more answer. Nothing is said of a longer time without answers. */
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
