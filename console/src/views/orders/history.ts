/** The history of an order: its changes as the change log tells them, and those that happen while it is shown. */
import { toJson } from '@bufbuild/protobuf';
import type { Timestamp } from '@bufbuild/protobuf/wkt';
import { ConnectError } from '@connectrpc/connect';
import { useEffect, useState } from 'preact/hooks';

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
  /** Whether changes that were asked for are no longer kept. */
  readonly trimmed: boolean;
  /** Whether further changes are being waited for. */
  readonly following: boolean;
  readonly error: ConnectError | undefined;
}

/**
 * Follows the changes of an order after a sequence; `undefined` follows nothing. The log is that of all orders: those between are passed
 * over here. `until` is the last one that there was when the order was read.
 */
export const useHistory = (id: string, after: bigint | undefined, until: bigint): History => {
  const [history, setHistory] = useState<History>({ changes: [], at: 0n, trimmed: false, following: false, error: undefined });
  const caller = credentials.value;
  useEffect(() => {
    if (after === undefined) return;
    const abort = new AbortController();
    let found: Change[] = [];
    let drawn = 0;
    /** Follows after a sequence, or from now on. */
    const follow = async (afterSequence: bigint | undefined): Promise<void> => {
      const trimmed = afterSequence === undefined;
      const request = trimmed ? {} : { afterSequence };
      for await (const { sequence, commitTime, changes } of orders.watchOrders(request, { signal: abort.signal })) {
        const own = changes.filter((change) => change.order?.orderId === id);
        found = [...found, ...own.map(({ kind, order }) => ({ sequence, at: commitTime, kind, order }))];
        // The log of a load has thousands of writes: drawing each would take longer than reading it.
        if (own.length === 0 && sequence < until && performance.now() - drawn < 100) continue;
        drawn = performance.now();
        setHistory({ changes: found, at: sequence, trimmed, following: true, error: undefined });
      }
    };
    const run = async (): Promise<void> => {
      try {
        await follow(after);
      } catch (error) {
        if (reason(ConnectError.from(error)) !== 'CHANGES_TRIMMED') throw error;
        setHistory((before) => ({ ...before, trimmed: true }));
        await follow(undefined);
      }
    };
    setHistory({ changes: [], at: after, trimmed: false, following: true, error: undefined });
    run().then(
      () => setHistory((before) => ({ ...before, following: false })),
      (error: unknown) => {
        if (!abort.signal.aborted) setHistory((before) => ({ ...before, following: false, error: ConnectError.from(error) }));
      },
    );
    return () => abort.abort();
  }, [id, after, until, caller]);
  return history;
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
