/** Shops on the map: clusters of many, single ones of few, and what is known of each. */
import { useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';

import { address, change, field } from '../address';
import { useAnswer } from '../answer';
import { client } from '../calls';
import { HitsMode } from '../contract/souk/search/v1/search_pb';
import type { ClusterShopsResponse, Shop } from '../contract/souk/shop/v1/shop_pb';
import { ShopService } from '../contract/souk/shop/v1/shop_pb';
import { Facts } from '../facts';
import { Field } from '../field';
import { count, money, number, short, time } from '../format';
import { language, texts } from '../language';
import type { Place, View } from '../map/mercator';
import { rectangleOf, valuesOf, viewOf } from '../map/mercator';
import { World } from '../map/lazy';
import type { Spot } from '../map/drawing';
import { Problem } from '../problem';
import type { Query } from '../queries';
import { all, atLeast, atMost, by, inside, realValue, term, textValue, wholeValue, words } from '../queries';
import { shown } from '../values';
import { Suggest } from './shops/suggest';
import './map.css';

const text = texts({
  en: {
    title: 'Shops on the map',
    type: 'Type',
    any: 'all',
    price: 'At most, per visit',
    rating: 'Rated at least',
    clear: 'Clear all',
    here: 'Nearest to the middle',
    everywhere: 'The whole world',
    map: 'Map of shops: arrow keys move it, plus and minus zoom',
    total: '{count} shops in view',
    clusters: 'in {count} clusters',
    fullest: '– {drawn} of them in the fullest {count} clusters, which are drawn: zoom in for the others',
    best: 'The best rated in view',
    nearest: 'The nearest to {place}',
    none: 'There are none here. Zoom out, or ask for less.',
    close: 'Close',
    meters: '{distance} m',
    km: '{distance} km',
    rated: 'Rating',
    cost: 'A visit costs',
    address: 'Address',
    city: 'City',
    phone: 'Telephone',
    hours: 'Opening hours',
    tags: 'Labels',
    position: 'Position',
    changed: 'Changed',
    revision: 'Revision',
    id: 'Id',
    show: 'Show on the map',
  },
  zh: {
    title: '地图上的店铺',
    type: '类型',
    any: '全部',
    price: '人均不超过',
    rating: '评分不低于',
    clear: '清除全部',
    here: '离中心最近的店铺',
    everywhere: '全世界',
    map: '店铺地图：方向键移动，加减键缩放',
    total: '视野内 {count} 家店铺',
    clusters: '分为 {count} 个聚合点',
    fullest: '– 仅绘制最大的 {count} 个聚合点，共 {drawn} 家：放大以查看其余店铺',
    best: '视野内评分最高',
    nearest: '距 {place} 最近',
    none: '此处没有店铺。请缩小地图或放宽条件。',
    close: '关闭',
    meters: '{distance} 米',
    km: '{distance} 公里',
    rated: '评分',
    cost: '人均消费',
    address: '地址',
    city: '城市',
    phone: '电话',
    hours: '营业时间',
    tags: '标签',
    position: '位置',
    changed: '修改时间',
    revision: '版本',
    id: '编号',
    show: '在地图上显示',
  },
});

/** The first view: where the demo has most shops. */
const BEGIN: View = { latitude: 31, longitude: 113, zoom: 3.5 };

const WORLD: View = { latitude: 20, longitude: 10, zoom: 0.8 };

/** Up to this many shops in view are drawn singly; more are clustered. */
const SINGLES = 300;

/** Shops in the list next to the map. */
const LISTED = 15;

/** Clusters drawn at most, the fullest ones. */
const CLUSTERS = 3000;

/** Zoom levels by which a click on a cluster zooms in. */
const NEARER = 2;

const shops = client(ShopService);

const distance = (meters: number): string =>
  meters < 1000 ? text('meters', { distance: number(meters, 0) }) : text('km', { distance: number(meters / 1000, 1) });

const placed = ({ latitude, longitude }: Place): string => `${latitude.toFixed(4)}, ${longitude.toFixed(4)}`;

const Details = ({ shop }: { shop: Shop }) => {
  const facts: [string, string][] = [
    [text('id'), shop.shopId],
    [text('type'), shop.type],
    [text('rated'), shop.rating === undefined ? '' : number(shop.rating, 1)],
    [text('cost'), shop.averagePriceCents === undefined ? '' : money(shop.averagePriceCents)],
    [text('address'), shop.address],
    [text('city'), shop.city],
    [text('phone'), shop.phone],
    [text('hours'), shop.openingHours],
    [text('tags'), shop.tags.join(', ')],
    [text('position'), shop.position === undefined ? '' : placed(shop.position)],
    ...Object.entries(shop.attributes).map(([name, value]): [string, string] => [name, shown(value)]),
    [text('changed'), time(shop.updateTime)],
    [text('revision'), count(shop.revision)],
  ];
  return <Facts facts={facts} />;
};

/** How the shops in view are gathered; some of them aren't, where there would be too many clusters. */
const gathered = ({ clusters, total }: ClusterShopsResponse): string => {
  const drawn = clusters.reduce((sum, cluster) => sum + cluster.count, 0n);
  return text(drawn < total ? 'fullest' : 'clusters', { count: count(clusters.length), drawn: count(drawn) });
};

const List = ({ found }: { found: readonly { shop: Shop; meters?: number }[] }) =>
  found.length === 0 ? (
    <p>{text('none')}</p>
  ) : (
    <ul class="shop-list">
      {found.map(({ shop, meters }) => (
        <li key={shop.shopId}>
          <button type="button" class="plain" onClick={() => change({ shop: shop.shopId })}>
            {shop.name}
          </button>{' '}
          <span class="quiet">
            {[shop.type, shop.rating === undefined ? '' : `★ ${number(shop.rating, 1)}`, meters === undefined ? '' : distance(meters)]
              .filter((part) => part !== '')
              .join(' · ')}
          </span>
        </li>
      ))}
    </ul>
  );

/** Beyond it a number of the address says nothing: cents of it are whole numbers still. */
const NUMBER_MAX = 1e12;

/** A number of the address; undefined when it isn't one, or is too large. */
const numeric = (value: string | undefined): number | undefined => {
  const read = Number(value || NaN);
  return read >= 0 && read <= NUMBER_MAX ? read : undefined;
};

const Shops = () => {
  const { values } = address.value;
  const view = viewOf(values, BEGIN);
  const frame = useRef<HTMLDivElement>(null);
  const [size, setSize] = useState<readonly [number, number] | undefined>(undefined);
  useLayoutEffect(() => {
    const box = frame.current;
    if (box === null) return;
    const measure = (): void => setSize([box.clientWidth, box.clientHeight]);
    measure();
    const watcher = new ResizeObserver(measure);
    watcher.observe(box);
    return () => watcher.disconnect();
  }, []);

  const [type = '', q = '', chosen = ''] = [values['type'], values['q'], values['shop']];
  const [price, rating] = [numeric(values['price']), numeric(values['rating'])];
  const near = useMemo((): Place | undefined => {
    const [latitude, longitude] = (values['near'] ?? '').split(',').map(Number);
    return latitude !== undefined && longitude !== undefined && Number.isFinite(latitude + longitude) ? { latitude, longitude } : undefined;
  }, [values['near']]);
  const others: (Query | undefined)[] = [
    q === '' ? undefined : words('name', q),
    price === undefined ? undefined : atMost('average_price_cents', wholeValue(BigInt(Math.round(price * 100)))),
    rating === undefined ? undefined : atLeast('rating', realValue(rating)),
  ];
  const filters = [...others, type === '' ? undefined : term('type', textValue(type))];
  const asked = [q, price, rating, type];

  const seen = size === undefined ? undefined : rectangleOf(view, size[0], size[1]);
  const key = seen === undefined ? undefined : JSON.stringify([valuesOf(view), size]);
  const question = key === undefined ? undefined : JSON.stringify([key, asked]);
  const query = seen === undefined ? undefined : all([inside('position', seen), ...filters]);
  const found = useAnswer(question, async (options) => {
    if (seen === undefined) throw new Error('nothing is asked before the map has a size');
    const [top, bottom] = [
      { latitude: seen.north, longitude: seen.west },
      { latitude: seen.south, longitude: seen.east },
    ];
    const clusters = await shops.clusterShops(
      {
        viewport: { topLeft: top, bottomRight: bottom },
        // The contract counts zoom levels of tiles of 256 pixels, the address of 512.
        size: { case: 'zoom', value: Math.min(Math.round(view.zoom) + 1, 22) },
        query: all(filters),
        maxClusters: CLUSTERS,
      },
      options,
    );
    const singly = clusters.total <= BigInt(SINGLES);
    const singles = singly && clusters.total > 0n ? await shops.searchShops({ search: { query, sort: [by('rating')], pageSize: SINGLES } }, options) : undefined;
    return { clusters, singles };
  });
  // What is beside the map is asked for once the map has its answer: the server does what is looked at first.
  const answered = useRef<{ question: string; query: Query; typesQuestion: string; untyped: Query } | undefined>(undefined);
  if (question !== undefined && seen !== undefined && query !== undefined && (found.error !== undefined || (found.value !== undefined && !found.old))) {
    const [typesQuestion, untyped] = [JSON.stringify([key, q, price, rating]), all([inside('position', seen), ...others])];
    answered.current = { question, query, typesQuestion, untyped };
  }
  const mapped = answered.current;
  const best = useAnswer(mapped?.question, (options) =>
    shops.searchShops({ search: { query: mapped?.query, sort: [by('rating')], pageSize: LISTED } }, options),
  );
  const types = useAnswer(mapped?.typesQuestion, async (options) => {
    const { aggregations } = await shops.searchShops(
      {
        search: {
          query: mapped?.untyped,
          hitsMode: HitsMode.NONE,
          aggregations: { types: { kind: { case: 'terms', value: { field: 'type', size: 50 } } } },
        },
      },
      options,
    );
    const kind = aggregations['types']?.kind;
    return kind?.case === 'groups' ? kind.value.groups.map(({ keys, count }) => [shown(keys[0]), count] as const) : [];
  });
  const nearest = useAnswer(near === undefined ? undefined : JSON.stringify([near, asked]), (options) =>
    shops.nearbyShops({ center: near ?? { latitude: 0, longitude: 0 }, query: all(filters), pageSize: LISTED }, options),
  );
  const one = useAnswer(chosen === '' ? undefined : chosen, (options) => shops.getShop({ shopId: chosen }, options));

  const spots = useMemo((): Spot[] => {
    if (found.value === undefined) return [];
    const { clusters, singles } = found.value;
    if (singles !== undefined) {
      return singles.hits.flatMap(({ resource }) =>
        resource?.position === undefined
          ? []
          : [{ id: resource.shopId, count: 1, label: '', latitude: resource.position.latitude, longitude: resource.position.longitude }],
      );
    }
    return clusters.clusters.flatMap(({ cell, center, count, bestShop }) => {
      if (center === undefined) return [];
      const single = count === 1n && bestShop !== undefined;
      return [
        {
          id: single ? bestShop.shopId : cell,
          count: Number(count),
          label: single ? '' : short(Number(count)),
          latitude: center.latitude,
          longitude: center.longitude,
        },
      ];
    });
  }, [found.value, language.value]);

  const retry = (): void => {
    found.again();
    best.again();
    types.again();
  };
  const shop = one.old ? undefined : one.value?.shop;
  const typesShown = [...(types.value ?? [])];
  if (type !== '' && !typesShown.some(([name]) => name === type)) typesShown.unshift([type, 0n]);
  return (
    <>
      <h1>{text('title')}</h1>
      <div class="row">
        <Suggest value={q} center={view} onSearch={(next, shopId = '') => change({ q: next, shop: shopId })} />
        <label>
          {text('type')}
          <select {...field('type')}>
            <option value="">{text('any')}</option>
            {typesShown.map(([name, shops]) => (
              <option key={name} value={name}>
                {`${name} (${count(shops)})`}
              </option>
            ))}
          </select>
        </label>
        <Field label={text('price')} name="price" type="number" min="0" step="5" />
        <Field label={text('rating')} name="rating" type="number" min="0" max="5" step="0.5" />
        <button type="button" onClick={() => change({ near: placed(view) })}>
          {text('here')}
        </button>
        <button type="button" onClick={() => change(valuesOf(WORLD))}>
          {text('everywhere')}
        </button>
        <button type="button" onClick={() => change({ q: '', type: '', price: '', rating: '', near: '', shop: '' })}>
          {text('clear')}
        </button>
      </div>
      <Problem
        error={found.error ?? best.error ?? types.error}
        again={retry}
        old={found.old || best.old || types.old}
      />
      <p class="quiet" role="status">
        {found.value === undefined ? '…' : text('total', { count: count(found.value.clusters.total) })}
        {found.value !== undefined && found.value.singles === undefined && found.value.clusters.total > 0n && (
          <> {gathered(found.value.clusters)}</>
        )}
        {found.waiting && found.value !== undefined && ' …'}
      </p>
      <div class="map-beside">
        <div class="frame" ref={frame}>
          <World
            label={text('map')}
            view={view}
            spots={spots}
            chosen={chosen}
            pin={near}
            onSettle={(next) => change(valuesOf(next), true)}
            onSpot={(spot) =>
              spot.count === 1
                ? change({ shop: spot.id })
                : change(valuesOf({ latitude: spot.latitude, longitude: spot.longitude, zoom: Math.max(view.zoom, Math.min(view.zoom + NEARER, 18)) }))
            }
            onGround={(place) => change({ near: placed(place), shop: '' })}
          />
        </div>
        <div class="panel side">
          {chosen !== '' && (
            <section aria-labelledby="shop">
              <h2 id="shop">{shop?.name ?? '…'}</h2>
              <Problem error={one.error} again={one.again} />
              {shop !== undefined && <Details shop={shop} />}
              <div class="row">
                {shop?.position !== undefined && (
                  <button
                    type="button"
                    onClick={() => shop.position !== undefined && change(valuesOf({ ...shop.position, zoom: Math.max(view.zoom, 16) }))}
                  >
                    {text('show')}
                  </button>
                )}
                <button type="button" onClick={() => change({ shop: '' })}>
                  {text('close')}
                </button>
              </div>
            </section>
          )}
          {near !== undefined && (
            <section aria-labelledby="nearest">
              <h2 id="nearest">{text('nearest', { place: placed(near) })}</h2>
              <Problem error={nearest.error} again={nearest.again} />
              {nearest.value !== undefined && !nearest.old && (
                <List found={nearest.value.hits.flatMap(({ resource, distanceMeters }) => (resource === undefined ? [] : [{ shop: resource, meters: distanceMeters }]))} />
              )}
              <button type="button" onClick={() => change({ near: '' })}>
                {text('close')}
              </button>
            </section>
          )}
          <section aria-labelledby="best">
            <h2 id="best">{text('best')}</h2>
            {best.value !== undefined && (
              <List found={best.value.hits.flatMap(({ resource }) => (resource === undefined ? [] : [{ shop: resource }]))} />
            )}
          </section>
        </div>
      </div>
    </>
  );
};

export default Shops;
