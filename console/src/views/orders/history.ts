/** The history of an order: its changes as the change log tells them, and those that happen while it is shown. */
import { toJson } from '@bufbuild/protobuf';
import type { Timestamp } from '@bufbuild/protobuf/wkt';
import { Code, ConnectError } from '@connectrpc/connect';
import { useCallback, useEffect, useState } from 'preact/hooks';

import { client } from '../../calls';
import type { Order } from '../../contract/souk/order/v1/order_pb';
import { OrderSchema, OrderService } from '../../contract/souk/order/v1/order_pb';
import type { ChangeKind } from '../../contract/souk/type/v1/type_pb';
import { reason } from '../../reasons';
import { credentials } from '../../session';

const orders = client(OrderService);

/** One change of the order. */
export interface Change {
  readonly sequence: bigint;
  readonly at: Timestamp | undefined;
  readonly kind: ChangeKind;
  /** The order after it; its id alone when it was deleted. */
  readonly order: Order | undefined;
}

export interface History {
  /** In the order in which they happened. */
  readonly changes: readonly Change[];
  /** How far the log has been looked through. */
  readonly at: bigint;
  /** The last change of the log when it was begun with; undefined until that is known. */
  readonly until: bigint | undefined;
  /** Whether the changes that were asked for are no longer kept. */
  readonly trimmed: boolean;
  /** Whether the stream is open, or was. */
  readonly stream: 'none' | 'open' | 'ended';
  /** Why the stream ended; undefined when the server ended it. */
  readonly error: ConnectError | undefined;
  /** Opens the stream again. */
  readonly again: () => void;
}

/** Whether the log has been looked through, as far as it went when it was begun with. */
export const isThrough = ({ at, until, stream }: History): boolean => stream !== 'none' && until !== undefined && at >= until;

/** The last change of the log. */
const head = async (signal: AbortSignal): Promise<bigint> => {
  // A stream from now on begins with the sequence that has been reached.
  for await (const { sequence } of orders.watchOrders({}, { signal })) return sequence;
  throw new ConnectError('the stream has ended', Code.Unavailable);
};

/** Whether the log still has a change, which has happened. */
const isKept = async (sequence: bigint, signal: AbortSignal): Promise<boolean> => {
  // After 0 is never refused: it is everything that is kept.
  if (sequence <= 1n) return true;
  try {
    for await (const _ of orders.watchOrders({ afterSequence: sequence - 1n }, { signal })) return true;
  } catch (error) {
    if (reason(ConnectError.from(error)) === 'CHANGES_TRIMMED') return false;
    throw error;
  }
  throw new ConnectError('the stream has ended', Code.Unavailable);
};

/** Whether following failed since the log no longer is what it was when the order was read: that has to be read again, too. */
export const isOutdated = ({ error }: History): boolean => {
  const why = error === undefined ? '' : reason(error);
  return why === 'CHANGES_TRIMMED' || why === 'SEQUENCE_AHEAD';
};

const NOTHING: Omit<History, 'again'> = { changes: [], at: 0n, until: undefined, trimmed: false, stream: 'none', error: undefined };

/**
 * Follows the changes of an order after a sequence; `undefined` follows nothing. The log is that of all orders: those between are passed
 * over here. `last` is the last change that there was when the order was read, if that is known.
 */
export const useHistory = (id: string, after: bigint | undefined, last: bigint | undefined): History => {
  const [history, setHistory] = useState(NOTHING);
  const [round, setRound] = useState(0);
  const caller = credentials.value;
  useEffect(() => {
    setHistory(NOTHING);
    if (after === undefined) return;
    const abort = new AbortController();
    let found: Change[] = [];
    let drawn = 0;
    const follow = async (afterSequence: bigint, until: bigint, trimmed = false): Promise<void> => {
      // In a quiet service nothing is told for long: the stream is open when it is answered.
      const onHeader = (): void => {
        if (!abort.signal.aborted) setHistory((before) => ({ ...before, stream: 'open' }));
      };
      for await (const { sequence, commitTime, changes } of orders.watchOrders({ afterSequence }, { signal: abort.signal, onHeader })) {
        const own = changes.filter((change) => change.order?.orderId === id);
        found = [...found, ...own.map(({ kind, order }) => ({ sequence, at: commitTime, kind, order }))];
        // The log of a load has thousands of writes: drawing each would take longer than reading it.
        if (own.length === 0 && sequence < until && performance.now() - drawn < 100) continue;
        drawn = performance.now();
        setHistory({ changes: found, at: sequence, until, trimmed, stream: 'open', error: undefined });
      }
    };
    const run = async (): Promise<void> => {
      const until = last ?? (await head(abort.signal));
      if (abort.signal.aborted) return;
      setHistory((before) => ({ ...before, at: after, until }));
      try {
        // Where none of the changes is kept, a stream of all of them tells nothing until there is another.
        if (after > 0n || (await isKept(until, abort.signal))) return await follow(after, until);
      } catch (error) {
        if (reason(ConnectError.from(error)) !== 'CHANGES_TRIMMED') throw error;
      }
      if (abort.signal.aborted) return;
      setHistory({ changes: found, at: until, until, trimmed: true, stream: 'open', error: undefined });
      await follow(until, until, true);
    };
    const ended = (error: ConnectError | undefined): void => {
      if (!abort.signal.aborted) setHistory((before) => ({ ...before, stream: 'ended', error }));
    };
    run().then(
      () => ended(undefined),
      (error: unknown) => ended(ConnectError.from(error)),
    );
    return () => abort.abort();
  }, [id, after, last, caller, round]);
  return { ...history, again: useCallback(() => setRound((before) => before + 1), []) };
};

/** The fields of an order as they are written in JSON. */
export const fields = (order: Order | undefined): [string, string][] => {
  if (order === undefined) return [];
  const json = toJson(OrderSchema, order);
  if (json === null || typeof json !== 'object' || Array.isArray(json)) return [];
  return Object.entries(json).map(([name, value]) => [name, typeof value === 'string' ? value : JSON.stringify(value)]);
};

/** Fields that every write changes. */
const OF_WRITES = new Set(['updateTime', 'revision', 'etag']);

/** What differs between two changes: the field, what it was, and what it is. */
export const differences = (before: Order | undefined, now: Order | undefined): [string, string, string][] => {
  const [was, is] = [new Map(fields(before)), new Map(fields(now))];
  const names = [...new Set([...was.keys(), ...is.keys()])].filter((name) => !OF_WRITES.has(name));
  return names.filter((name) => was.get(name) !== is.get(name)).map((name) => [name, was.get(name) ?? '', is.get(name) ?? '']);
};
