/** The writes of a service as its change log tells them, one after the other. */
import type { Timestamp } from '@bufbuild/protobuf/wkt';
import { Code, ConnectError } from '@connectrpc/connect';
import { useCallback, useEffect, useRef, useState } from 'preact/hooks';

import { client } from '../../calls';
import { MediaService } from '../../contract/souk/media/v1/media_pb';
import { OrderService } from '../../contract/souk/order/v1/order_pb';
import { ShopService } from '../../contract/souk/shop/v1/shop_pb';
import type { ChangeKind } from '../../contract/souk/type/v1/type_pb';
import { reason } from '../../reasons';
import { credentials } from '../../session';

/** How many of the last writes are held. */
export const SHOWN = 50;

/** How many changes of one write are held. */
const SHOWN_OF_A_WRITE = 5;

/** How often new ones are drawn, in milliseconds: a load writes thousands a second. */
const DRAW_MS = 250;

const RETRY_MAX_S = 15;

/** Errors that the same call meets again, however often it is made. */
const LASTING: ReadonlySet<Code> = new Set([Code.InvalidArgument, Code.NotFound, Code.PermissionDenied, Code.Unauthenticated, Code.Unimplemented]);

/** Whether an error ends the following, until it is asked for again. */
export const isLasting = ({ code }: ConnectError): boolean => LASTING.has(code);

const orders = client(OrderService);
const shops = client(ShopService);
const media = client(MediaService);

export const SOURCES = ['orders', 'shops', 'media'] as const;
export type Source = (typeof SOURCES)[number];

export interface Change {
  readonly kind: ChangeKind;
  readonly id: string;
  readonly name: string;
}

export interface Write {
  readonly sequence: bigint;
  readonly at: Timestamp | undefined;
  /** The first few. */
  readonly changes: readonly Change[];
  /** How many there are. */
  readonly count: number;
}

/** The writes of a service after a sequence, or from now on; also sequences that were reached without any. */
async function* writes(source: Source, after: bigint | undefined, options: { signal: AbortSignal; onHeader: () => void }): AsyncIterable<Write> {
  const from = after === undefined ? {} : { afterSequence: after };
  const told = (sequence: bigint, at: Timestamp | undefined, changes: Change[]): Write => ({
    sequence,
    at,
    changes: changes.slice(0, SHOWN_OF_A_WRITE),
    count: changes.length,
  });
  if (source === 'orders') {
    for await (const { sequence, commitTime, changes } of orders.watchOrders(from, options)) {
      yield told(
        sequence,
        commitTime,
        changes.map(({ kind, order }) => ({ kind, id: order?.orderId ?? '', name: order?.productName ?? '' })),
      );
    }
  } else if (source === 'shops') {
    for await (const { sequence, commitTime, changes } of shops.watchShops(from, options)) {
      yield told(
        sequence,
        commitTime,
        changes.map(({ kind, shop }) => ({ kind, id: shop?.shopId ?? '', name: shop?.name ?? '' })),
      );
    }
  } else {
    for await (const { sequence, commitTime, changes } of media.watchMedia(from, options)) {
      yield told(
        sequence,
        commitTime,
        changes.map(({ kind, media }) => ({ kind, id: media?.mediaId ?? '', name: media?.title ?? '' })),
      );
    }
  }
}

/** Where the stream couldn't go on after what it had told. */
export interface Missed {
  /** The sequence after which changes aren't told of. */
  readonly after: bigint;
  /** Whether they are no longer kept; else the server's log ends before, as of one that was restored. */
  readonly trimmed: boolean;
}

export interface Followed {
  /** The latest first. */
  readonly last: readonly Write[];
  readonly count: number;
  /** The sequence that the stream has reached: what comes after it is told of. Undefined until the stream is open. */
  readonly reached: bigint | undefined;
  readonly missed: Missed | undefined;
  readonly error: ConnectError | undefined;
  /** Seconds until the stream is opened again. */
  readonly retryS: number | undefined;
}

const EMPTY: Followed = { last: [], count: 0, reached: undefined, missed: undefined, error: undefined, retryS: undefined };

/**
 * Follows the writes of a service while `runs`; then it goes on where it stopped. A stream that breaks is opened again, unless that would
 * end as before: `again` opens it then.
 */
export const useWrites = (source: Source | undefined, runs: boolean): Followed & { again: () => void } => {
  const [state, setState] = useState<Followed>(EMPTY);
  const [round, setRound] = useState(0);
  const reached = useRef<bigint | undefined>(undefined);
  const caller = credentials.value;
  useEffect(() => {
    reached.current = undefined;
    setState(EMPTY);
  }, [source, caller]);
  useEffect(() => {
    if (source === undefined || !runs) return;
    const abort = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    let waitS = 1;
    let more = 0;
    const fresh: Write[] = [];
    const draw = (): void => {
      const [drawn, added, at] = [fresh.splice(0).reverse(), more, reached.current];
      more = 0;
      setState((before) =>
        drawn.length === 0 && before.reached === at
          ? before
          : { ...before, last: [...drawn, ...before.last].slice(0, SHOWN), count: before.count + added, reached: at },
      );
    };
    const drawing = setInterval(draw, DRAW_MS);
    const follow = async (): Promise<void> => {
      setState((before) => ({ ...before, retryS: undefined }));
      let problem: ConnectError | undefined;
      try {
        // A stream that goes on tells nothing before there is another write: it is open when it is answered.
        const onHeader = (): void => {
          if (!abort.signal.aborted) setState((before) => ({ ...before, error: undefined }));
        };
        for await (const write of writes(source, reached.current, { signal: abort.signal, onHeader })) {
          waitS = 1;
          reached.current = write.sequence;
          if (write.count === 0) continue;
          more += write.count;
          fresh.push(write);
          if (fresh.length > SHOWN) fresh.shift();
        }
      } catch (error) {
        problem = ConnectError.from(error);
      }
      if (abort.signal.aborted) return;
      const [why, after] = [problem === undefined ? '' : reason(problem), reached.current];
      if (after !== undefined && (why === 'CHANGES_TRIMMED' || why === 'SEQUENCE_AHEAD')) {
        // To ask for the same again would end in the same: from now on it is.
        draw();
        reached.current = undefined;
        const trimmed = why === 'CHANGES_TRIMMED';
        // Another log counts anew: its writes aren't among those of the one before.
        setState((before) => ({ ...before, last: trimmed ? before.last : [], reached: undefined, missed: { after, trimmed } }));
        return follow();
      }
      if (problem !== undefined && isLasting(problem)) {
        setState((before) => ({ ...before, error: problem }));
        return;
      }
      setState((before) => ({ ...before, error: problem, retryS: waitS }));
      timer = setTimeout(() => void follow(), waitS * 1000);
      waitS = Math.min(waitS * 2, RETRY_MAX_S);
    };
    void follow();
    return () => {
      abort.abort();
      clearTimeout(timer);
      clearInterval(drawing);
      // It won't be told again.
      draw();
    };
  }, [source, runs, caller, round]);
  return { ...state, again: useCallback(() => setRound((before) => before + 1), []) };
};
