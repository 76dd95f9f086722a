/** The views, in the order of the page's navigation. Each is loaded when it is first shown. */
import type { ComponentType } from 'preact';

import { texts } from './language';

const text = texts({
  en: {
    home: 'Overview',
    orders: 'Orders',
    map: 'Shops',
    media: 'Media',
    query: 'Query',
    live: 'Live',
    tables: 'Tables and indexes',
  },
  zh: {
    home: '概览',
    orders: '订单',
    map: '店铺',
    media: '媒体',
    query: '查询',
    live: '实时',
    tables: '表与索引',
  },
});

export interface View {
  /** Its name in the address; empty is the one that is shown first. */
  readonly name: string;
  readonly title: () => string;
  readonly load: () => Promise<{ default: ComponentType }>;
}

export const views: readonly View[] = [
  { name: '', title: () => text('home'), load: () => import('./views/home') },
  { name: 'orders', title: () => text('orders'), load: () => import('./views/orders') },
  { name: 'map', title: () => text('map'), load: () => import('./views/map') },
  { name: 'media', title: () => text('media'), load: () => import('./views/media') },
  { name: 'tables', title: () => text('tables'), load: () => import('./views/tables') },
  { name: 'query', title: () => text('query'), load: () => import('./views/query') },
  { name: 'live', title: () => text('live'), load: () => import('./views/live') },
];
