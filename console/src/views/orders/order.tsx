/** One order with all its fields, and its history. */
import { timestampMs } from '@bufbuild/protobuf/wkt';
import { Code } from '@connectrpc/connect';
import { useState } from 'preact/hooks';

import { change } from '../../address';
import { useAnswer } from '../../answer';
import { client } from '../../calls';
import { OrderService } from '../../contract/souk/order/v1/order_pb';
import { ChangeKind } from '../../contract/souk/type/v1/type_pb';
import { count, time } from '../../format';
import { Problem } from '../../problem';
import type { History } from './history';
import { differences, fields, useHistory } from './history';
import { text } from './words';

const orders = client(OrderService);

const kindName = (kind: ChangeKind): string => {
  if (kind === ChangeKind.CREATED) return text('created');
  return kind === ChangeKind.DELETED ? text('deleted') : text('updated');
};

const Changes = ({ history }: { history: History }) => (
  <ol class="changes">
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

export const OrderBeside = ({ id }: { id: string }) => {
  const answer = useAnswer(id, (options) => orders.getOrder({ orderId: id }, options));
  const order = answer.value?.order?.orderId === id ? answer.value.order : undefined;
  const isMissing = answer.error?.code === Code.NotFound;
  const [earlier, setEarlier] = useState(false);
  // Its last write is known, so that the log need not be looked through to find it.
  const last = order === undefined ? undefined : order.revision - 1n;
  const until = answer.value?.sequence ?? 0n;
  const history = useHistory(id, earlier || isMissing ? 0n : last, until);
  const neverChanged =
    order?.createTime !== undefined && order.updateTime !== undefined && timestampMs(order.createTime) === timestampMs(order.updateTime);
  return (
    <section class="panel order" aria-label={id}>
      <div class="row">
        <h2 class="grow">{id}</h2>
        <button type="button" onClick={() => change({ id: '' })}>
          {text('close')}
        </button>
      </div>
      {isMissing ? <p class="warn">{text('missing', { id })}</p> : <Problem error={answer.error} again={answer.again} />}
      {order !== undefined && (
        <dl class="facts">
          {fields(order).flatMap(([name, value]) => [<dt key={name}>{name}</dt>, <dd key={`${name} value`}>{value}</dd>])}
        </dl>
      )}
      <h3>{text('history')}</h3>
      <Problem error={history.error} />
      {history.trimmed && <p class="quiet">{text('trimmed')}</p>}
      <Changes history={history} />
      {history.changes.length === 0 && history.following && history.at >= until && history.at > 0n && (
        <p class="quiet">{text('noHistory')}</p>
      )}
      {order !== undefined && !earlier && (neverChanged ? <p class="quiet">{text('first_change')}</p> : (
        <button type="button" onClick={() => setEarlier(true)}>
          {text('earlier')}
        </button>
      ))}
      {earlier && history.following && history.at < until && (
        <p role="status">
          {text('looking', { at: count(history.at), to: count(until) })}{' '}
          <button type="button" onClick={() => setEarlier(false)}>
            {text('stop')}
          </button>
        </p>
      )}
      {history.following && history.at >= until && <p class="quiet">{text('following')}</p>}
      {!history.following && history.error !== undefined && <p class="quiet">{text('notFollowing')}</p>}
    </section>
  );
};
