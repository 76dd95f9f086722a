/** The changes of a service as they come. */
import { ConnectError } from '@connectrpc/connect';
import type { Timestamp } from '@bufbuild/protobuf/wkt';
import { useEffect, useRef, useState } from 'preact/hooks';

import { address, change } from '../../address';
import { client } from '../../calls';
import { MediaService } from '../../contract/souk/media/v1/media_pb';
import { OrderService } from '../../contract/souk/order/v1/order_pb';
import { ShopService } from '../../contract/souk/shop/v1/shop_pb';
import { ChangeKind } from '../../contract/souk/type/v1/type_pb';
import { count, time } from '../../format';
import { texts } from '../../language';
import { Problem } from '../../problem';
import { credentials } from '../../session';

const text = texts({
  en: {
    title: 'Changes as they come',
    of: 'Changes of',
    orders: 'Orders',
    shops: 'Shops',
    media: 'Media',
    none: 'Nothing',
    pause: 'Pause',
    resume: 'Go on',
    paused: 'Paused: on “Go on” it goes on where it stopped.',
    follows: 'Following since sequence {sequence}.',
    begins: 'Following from now on.',
    retries: 'The stream has ended; it is opened again in {seconds} s, and goes on where it stopped.',
    sequence: 'Sequence',
    when: 'Committed',
    what: 'What',
    row: 'Row',
    created: 'created',
    updated: 'changed',
    deleted: 'deleted',
    more: 'and {count} more',
    empty: 'No change yet.',
    seen: '{count} changes since this view was opened.',
  },
  zh: {
    title: '实时变更',
    of: '变更来源',
    orders: '订单',
    shops: '店铺',
    media: '媒体',
    none: '无',
    pause: '暂停',
    resume: '继续',
    paused: '已暂停：点击“继续”将从停止处接着显示。',
    follows: '从序号 {sequence} 开始跟踪。',
    begins: '从现在开始跟踪。',
    retries: '数据流已断开；{seconds} 秒后重新连接，并从断开处继续。',
    sequence: '序号',
    when: '提交时间',
    what: '操作',
    row: '行',
    created: '新建',
    updated: '修改',
    deleted: '删除',
    more: '另有 {count} 条',
    empty: '暂无变更。',
    seen: '打开此视图以来共 {count} 条变更。',
  },
});

/** How many of the last writes are shown. */
const SHOWN = 50;

/** How many changes of one write are shown. */
const SHOWN_OF_A_WRITE = 5;

/** How often new ones are drawn, in milliseconds: a load writes thousands a second. */
const DRAW_MS = 250;

const RETRY_MAX_S = 15;

const orders = client(OrderService);
const shops = client(ShopService);
const media = client(MediaService);

interface Change {
  readonly kind: ChangeKind;
  readonly id: string;
  readonly name: string;
}

interface Write {
  readonly sequence: bigint;
  readonly at: Timestamp | undefined;
  readonly changes: readonly Change[];
  readonly count: number;
}

type Options = { signal: AbortSignal };

/** The writes of a service after a sequence, or from now on; also sequences that were reached without any. */
async function* writes(source: Source, after: bigint | undefined, options: Options): AsyncIterable<Write> {
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

const SOURCES = ['orders', 'shops', 'media'] as const;
type Source = (typeof SOURCES)[number];

const word = (kind: ChangeKind): string =>
  kind === ChangeKind.CREATED ? text('created') : kind === ChangeKind.DELETED ? text('deleted') : text('updated');

/** Whether the page is seen: one that isn't holds no stream. */
const useSeen = (): boolean => {
  const [seen, setSeen] = useState(document.visibilityState === 'visible');
  useEffect(() => {
    const look = (): void => setSeen(document.visibilityState === 'visible');
    document.addEventListener('visibilitychange', look);
    return () => document.removeEventListener('visibilitychange', look);
  }, []);
  return seen;
};

interface State {
  readonly last: readonly Write[];
  readonly count: number;
  /** The sequence that the stream has reached. */
  readonly reached: bigint | undefined;
  readonly error: ConnectError | undefined;
  /** Seconds until the stream is opened again. */
  readonly retryS: number | undefined;
}

const EMPTY: State = { last: [], count: 0, reached: undefined, error: undefined, retryS: undefined };

const useWrites = (source: Source | undefined, runs: boolean): State => {
  const [state, setState] = useState<State>(EMPTY);
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
    const fresh: Write[] = [];
    let more = 0;
    const draw = setInterval(() => {
      if (fresh.length === 0) return;
      const [drawn, added] = [fresh.splice(0).reverse(), more];
      more = 0;
      setState((before) => ({
        ...before,
        last: [...drawn, ...before.last].slice(0, SHOWN),
        count: before.count + added,
        reached: reached.current,
      }));
    }, DRAW_MS);
    const follow = async (): Promise<void> => {
      setState((before) => ({ ...before, retryS: undefined }));
      let problem: ConnectError | undefined;
      try {
        for await (const write of writes(source, reached.current, { signal: abort.signal })) {
          if (reached.current === undefined || waitS > 1) setState((before) => ({ ...before, error: undefined, reached: write.sequence }));
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
      setState((before) => ({ ...before, error: problem, retryS: waitS }));
      timer = setTimeout(() => void follow(), waitS * 1000);
      waitS = Math.min(waitS * 2, RETRY_MAX_S);
    };
    void follow();
    return () => {
      abort.abort();
      clearTimeout(timer);
      clearInterval(draw);
    };
  }, [source, runs, caller]);
  return state;
};

export const Changes = () => {
  const chosen = address.value.values['of'] ?? 'orders';
  const source = SOURCES.find((one) => one === chosen);
  const [paused, setPaused] = useState(false);
  const seen = useSeen();
  const { last, count: all, reached, error, retryS } = useWrites(source, seen && !paused);
  return (
    <section>
      <h2 id="changes">{text('title')}</h2>
      <div class="row">
        <label>
          {text('of')}
          <select value={source ?? 'none'} onChange={(event) => change({ of: event.currentTarget.value === 'orders' ? '' : event.currentTarget.value })}>
            {SOURCES.map((one) => (
              <option key={one} value={one}>
                {text(one)}
              </option>
            ))}
            <option value="none">{text('none')}</option>
          </select>
        </label>
        {source !== undefined && (
          <button type="button" aria-pressed={paused} onClick={() => setPaused(!paused)}>
            {text(paused ? 'resume' : 'pause')}
          </button>
        )}
      </div>
      {source !== undefined && (
        <>
          <Problem error={error} />
          <p class="quiet" role="status">
            {paused
              ? text('paused')
              : retryS !== undefined
                ? text('retries', { seconds: retryS })
                : reached === undefined
                  ? text('begins')
                  : text('follows', { sequence: count(reached) })}{' '}
            {text('seen', { count: count(all) })}
          </p>
          {last.length === 0 ? (
            <p>{text('empty')}</p>
          ) : (
            <div class="scroll changes" tabIndex={0} role="region" aria-labelledby="changes">
              <table>
                <thead>
                  <tr>
                    <th class="number">{text('sequence')}</th>
                    <th>{text('when')}</th>
                    <th>{text('what')}</th>
                  </tr>
                </thead>
                <tbody>
                  {last.map((write) => (
                    <tr key={String(write.sequence)}>
                      <td class="number">{count(write.sequence)}</td>
                      <td>{time(write.at)}</td>
                      <td>
                        {write.changes.map(({ kind, id, name }) => (
                          <div key={id}>
                            <span class={kind === ChangeKind.DELETED ? 'bad' : 'good'}>{word(kind)}</span> <code>{id}</code> {name}
                          </div>
                        ))}
                        {write.count > write.changes.length && <div class="quiet">{text('more', { count: count(write.count - write.changes.length) })}</div>}
                      </td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </div>
          )}
        </>
      )}
    </section>
  );
};
