/** One order with all its fields, and its history. */
import { timestampMs } from '@bufbuild/protobuf/wkt';
import { Code } from '@connectrpc/connect';
import { useState } from 'preact/hooks';

import { change } from '../../address';
import { useAnswer } from '../../answer';
import { client } from '../../calls';
import { OrderService } from '../../contract/souk/order/v1/order_pb';
import { ChangeKind } from '../../contract/souk/type/v1/type_pb';
import { Facts } from '../../facts';
import { count, time } from '../../format';
import { Problem } from '../../problem';
import type { History } from './history';
import { differences, fields, isOutdated, isThrough, useHistory } from './history';
import { text } from './words';

const orders = client(OrderService);

const kindName = (kind: ChangeKind): string => {
  if (kind === ChangeKind.CREATED) return text('created');
  return kind === ChangeKind.DELETED ? text('deleted') : text('updated');
};

const Changes = ({ history }: { history: History }) => (
  <ol class="order-changes">
    {history.changes.map((one, place) => {
      const before = history.changes[place - 1]?.order;
      const differing = before === undefined || one.kind === ChangeKind.DELETED ? undefined : differences(before, one.order);
      return (
        <li key={`${one.sequence} ${place}`}>
          <strong>{kindName(one.kind)}</strong> {time(one.at)} <span class="quiet">{text('change', { sequence: count(one.sequence) })}</span>
          {differing?.length === 0 && <p class="quiet">{text('sameValues')}</p>}
          {differing !== undefined && differing.length > 0 && (
            <ul>
              {differing.map(([name, was, is]) => (
                <li key={name}>
                  <code>{name}</code>: <del>{was || '∅'}</del> → <ins>{is || '∅'}</ins>
                </li>
              ))}
            </ul>
          )}
        </li>
      );
    })}
  </ol>
);

/** What is known of the history beside the changes themselves: nothing that isn't so, and that it isn't told any further. */
const Standing = ({ history, earlier, isWhole, again }: { history: History; earlier: boolean; isWhole: boolean; again: () => void }) => {
  const { changes, trimmed, stream, error } = history;
  const through = isThrough(history);
  const isCut = trimmed || (earlier && through && changes[0] !== undefined && changes[0].kind !== ChangeKind.CREATED);
  return (
    <>
      {changes.length === 0 && through && <p class="quiet">{text('noHistory')}</p>}
      {isCut && <p class="quiet">{text('trimmed')}</p>}
      {isWhole && <p class="quiet">{text('unchanged')}</p>}
      {stream === 'open' && through && <p class="quiet">{text('following')}</p>}
      {stream === 'ended' && (
        <>
          {error === undefined ? null : <Problem error={error} />}
          <p class="warn">
            {text('notFollowing')}{' '}
            <button type="button" onClick={again}>
              {text('followAgain')}
            </button>
          </p>
        </>
      )}
    </>
  );
};

export const OrderBeside = ({ id }: { id: string }) => {
  const answer = useAnswer(id, (options) => orders.getOrder({ orderId: id }, options));
  const read = answer.value?.order;
  const isMissing = answer.error?.code === Code.NotFound;
  const [earlier, setEarlier] = useState(false);
  // Its last write is known, so that the log need not be looked through to find it.
  const last = read === undefined ? undefined : read.revision - 1n;
  const looksBack = earlier || isMissing;
  const history = useHistory(id, looksBack ? 0n : last, isMissing ? undefined : answer.value?.sequence);
  // What has happened since it was read is in its history.
  const latest = history.changes.at(-1);
  const isNewer = latest !== undefined && (read === undefined || latest.sequence > read.revision);
  const isDeleted = isNewer ? latest.kind === ChangeKind.DELETED : isMissing;
  const now = isNewer ? latest.order : read;
  const order = isDeleted ? undefined : now;
  const isFirst =
    read?.createTime !== undefined && read.updateTime !== undefined && timestampMs(read.createTime) === timestampMs(read.updateTime) && !isNewer;
  const isLooking = looksBack && history.stream !== 'ended' && !isThrough(history);
  const again = (): void => {
    if (isOutdated(history)) answer.again();
    history.again();
  };
  return (
    <section class="panel order" aria-label={id}>
      <div class="row">
        <h2 class="grow">{id}</h2>
        <button type="button" onClick={() => change({ id: '' })}>
          {text('close')}
        </button>
      </div>
      {isMissing ? null : <Problem error={answer.error} again={answer.again} />}
      {isDeleted && <p class="warn">{text('missing', { id })}</p>}
      {order !== undefined && <Facts facts={fields(order)} />}
      <h3>{text('history')}</h3>
      <Changes history={history} />
      <Standing history={history} earlier={looksBack} isWhole={isFirst && !earlier} again={again} />
      {read !== undefined && !earlier && !isFirst && (
        <button type="button" onClick={() => setEarlier(true)}>
          {text('earlier')}
        </button>
      )}
      {isLooking && history.until !== undefined && (
        <p role="status">
          {text('looking', { at: count(history.at), to: count(history.until) })}{' '}
          {earlier && (
            <button type="button" onClick={() => setEarlier(false)}>
              {text('stop')}
            </button>
          )}
        </p>
      )}
    </section>
  );
};
