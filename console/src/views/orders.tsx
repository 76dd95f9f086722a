/** Orders: searched, counted by their values and over time, in a table of any depth, each with its history. */
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';

import { change, paged } from '../address';
import { useAnswer } from '../answer';
import { client } from '../calls';
import type { SearchOrdersResponse } from '../contract/souk/order/v1/order_pb';
import { OrderService } from '../contract/souk/order/v1/order_pb';
import { HitsMode } from '../contract/souk/search/v1/search_pb';
import { count } from '../format';
import { Pager } from '../pager';
import type { Ask } from '../pages';
import { Places, readPage } from '../pages';
import { Problem } from '../problem';
import { FacetBox } from './orders/facets';
import { Histogram } from './orders/histogram';
import { OrderBeside } from './orders/order';
import './orders/style.css';
import { BrandSums, sums } from './orders/sums';
import { OrderTable } from './orders/table';
import type { Facet, Wanted } from './orders/wanted';
import { FACETS, facet, figures, query, sort, SIZES, unit, wanted } from './orders/wanted';
import { text } from './orders/words';

const orders = client(OrderService);
const ask: Ask<SearchOrdersResponse['hits'][number], SearchOrdersResponse> = (search, options) => orders.searchOrders({ search }, options);

/** How long typing has to rest before it is searched for. */
const REST_MS = 300;

/** The search box: what is typed goes to the address when typing rests. */
const SearchBox = ({ value }: { value: string }) => {
  const [typed, setTyped] = useState(value);
  const sent = useRef(value);
  useEffect(() => {
    // What comes back from here is older than what has been typed since.
    if (value !== sent.current) setTyped(value);
    sent.current = value;
  }, [value]);
  useEffect(() => {
    if (typed === value) return;
    const timer = setTimeout(() => {
      sent.current = typed;
      change({ q: typed, page: '' }, true);
    }, REST_MS);
    return () => clearTimeout(timer);
  }, [typed]);
  return (
    <label class="grow">
      {text('search')}
      <input type="search" value={typed} placeholder={text('searchHint')} onInput={(event) => setTyped(event.currentTarget.value)} />
    </label>
  );
};

/** The counts of a facet whose values are chosen: those of the other values, too, as if none were. */
const useFacet = (wanted: Wanted, name: Facet) => {
  const chosen = wanted.chosen[name].length > 0;
  const key = JSON.stringify([name, wanted.text, wanted.from, wanted.to, FACETS.filter((other) => other !== name).map((other) => wanted.chosen[other])]);
  const answer = useAnswer(chosen ? key : undefined, (options) =>
    orders.searchOrders({ search: { query: query(wanted, name), aggregations: facet(name), hitsMode: HitsMode.NONE } }, options),
  );
  return chosen ? answer.value?.aggregations[name] : undefined;
};

const Orders = () => {
  const now = wanted();
  const { text: typed, chosen, from, to } = now;
  const matching = JSON.stringify([typed, chosen, from, to]);
  const found = useAnswer(`figures ${matching}`, (options) =>
    orders.searchOrders(
      { search: { query: query(now), aggregations: figures(now), hitsMode: HitsMode.NONE, total: { kind: { case: 'exact', value: true } } } },
      options,
    ),
  );
  const places = useMemo(() => new Places(), []);
  const ordered = JSON.stringify([matching, now.sort, now.descending, now.size]);
  const page = useAnswer(`page ${ordered} ${now.page}`, (options) =>
    readPage(ask, { query: query(now), sort: sort(now) }, now.page, now.size, places.of(ordered), options),
  );
  const own = { brand: useFacet(now, 'brand'), type: useFacet(now, 'type'), paid: useFacet(now, 'paid') };
  const figuresNow = found.value?.aggregations ?? {};
  const total = found.value?.total?.value;
  const pages = Math.ceil(Number(page.value?.total?.value ?? total ?? 0n) / now.size);
  const again = (): void => {
    found.again();
    page.again();
  };
  const filtered = from !== '' || to !== '' || typed !== '' || FACETS.some((name) => chosen[name].length > 0);
  return (
    <>
      <h1>{text('title')}</h1>
      <div class="row">
        <SearchBox value={typed} />
        <label>
          {text('from')}
          <input type="date" value={from} onChange={(event) => change({ from: event.currentTarget.value, page: '' })} />
        </label>
        <label>
          {text('to')}
          <input type="date" value={to} onChange={(event) => change({ to: event.currentTarget.value, page: '' })} />
        </label>
        {filtered && (
          <button type="button" onClick={() => change({ q: '', from: '', to: '', brand: '', type: '', paid: '', page: '' })}>
            {text('clearAll')}
          </button>
        )}
      </div>
      <Problem error={found.error ?? page.error} again={again} old={found.old || page.old} />
      <p class="outcome" role="status">
        {total !== undefined && (
          <>
            <strong data-total>{text('found', { count: count(total) })}</strong> <span data-sum>{text('sum')}: {sums(figuresNow['sums'])}</span>
          </>
        )}{' '}
        {(found.waiting || page.waiting) && <span class="quiet">{text('waiting')}</span>}
      </p>
      <div class="beside">
        <section aria-label={text('filters')}>
          {FACETS.map((name) => (
            <FacetBox key={name} facet={name} chosen={chosen[name]} result={own[name] ?? figuresNow[name]} />
          ))}
        </section>
        <div>
          <section class="panel" aria-label={text('overTime')}>
            <Histogram
              result={figuresNow['times']}
              unit={unit(now)}
              onRange={(from, to) => change({ from, to, page: '' })}
            />
            <p class="quiet">{text('brush')}</p>
          </section>
          <BrandSums result={figuresNow['brand']} />
          {now.order !== '' && <OrderBeside key={now.order} id={now.order} />}
          {page.value?.hits.length === 0 && <p>{text('none')}</p>}
          {page.value !== undefined && page.value.hits.length > 0 && <OrderTable hits={page.value.hits} wanted={now} />}
          <Pager
            page={now.page}
            pages={pages}
            size={now.size}
            sizes={SIZES}
            onPage={(page) => change(paged(page))}
            onSize={(size) => change({ size: size === SIZES[0] ? '' : String(size), page: '' })}
          />
        </div>
      </div>
    </>
  );
};

export default Orders;
