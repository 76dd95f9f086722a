/** The orders that were found, a page of them. */
import { address, change, link } from '../../address';
import type { OrderHit } from '../../contract/souk/order/v1/order_pb';
import { count, money, time } from '../../format';
import { Scroll } from '../../scroll';
import type { SortName, Wanted } from './wanted';
import { text } from './words';

const COLUMNS: readonly { name: SortName; number?: boolean }[] = [
  { name: 'id' },
  { name: 'time' },
  { name: 'product' },
  { name: 'brand' },
  { name: 'consumer' },
  { name: 'quantity', number: true },
  { name: 'total', number: true },
];

const Head = ({ name, number, wanted }: { name: SortName; number?: boolean; wanted: Wanted }) => {
  const sorted = wanted.sort === name;
  const order = wanted.descending ? 'descending' : 'ascending';
  // The first choice of a column is its highest values first, of texts their lowest.
  const descending = sorted ? !wanted.descending : number === true || name === 'time';
  return (
    <th class={number ? 'number' : undefined} aria-sort={sorted ? order : undefined}>
      <button type="button" class="plain" onClick={() => change({ sort: name === 'time' ? '' : name, order: descending ? '' : 'up', page: '' })}>
        {text(name)}
        {sorted && <span aria-hidden="true">{wanted.descending ? ' ↓' : ' ↑'}</span>}
      </button>
    </th>
  );
};

export const OrderTable = ({ hits, wanted }: { hits: readonly OrderHit[]; wanted: Wanted }) => (
  <Scroll label={text('title')}>
    <table data-orders>
      <thead>
        <tr>
          {COLUMNS.map(({ name, number }) => (
            <Head key={name} name={name} wanted={wanted} {...(number && { number })} />
          ))}
        </tr>
      </thead>
      <tbody>
        {hits.map(({ resource: order }) =>
          order === undefined ? null : (
            <tr key={order.orderId} class={order.orderId === wanted.order ? 'chosen' : undefined}>
              <td>
                <a href={link('orders', { ...address.value.values, id: order.orderId })} aria-current={order.orderId === wanted.order ? 'true' : undefined}>
                  {order.orderId}
                </a>
              </td>
              <td>{time(order.orderTime)}</td>
              <td>{order.productName}</td>
              <td>{order.productBrand}</td>
              <td>{order.consumerName || order.consumerId}</td>
              <td class="number">{count(order.quantity)}</td>
              <td class="number">{order.totalPriceCents === undefined ? '' : money(order.totalPriceCents, order.currencyCode)}</td>
            </tr>
          ),
        )}
      </tbody>
    </table>
  </Scroll>
);
