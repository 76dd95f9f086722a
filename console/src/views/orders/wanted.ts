/** Which orders the view shows: read from the address, and turned into a search. */
import type { MessageInitShape } from '@bufbuild/protobuf';

import { address, change, list, listed, pageOf } from '../../address';
import type { AggregationSchema } from '../../contract/souk/search/v1/aggregation_pb';
import { CalendarUnit } from '../../contract/souk/search/v1/aggregation_pb';
import type { Query, Sort } from '../../queries';
import { by, term, textValue, timeValue, truthValue, words } from '../../queries';

export type AggregationInit = MessageInitShape<typeof AggregationSchema>;

/** The facets: fields whose values are chosen from. */
export const FACETS = ['brand', 'type', 'paid'] as const;
export type Facet = (typeof FACETS)[number];

export const FIELD: Record<Facet, string> = { brand: 'product_brand', type: 'product_type', paid: 'paid' };

/** What the table can be sorted by: the column, and the field behind it; '' is the id. */
export const SORTS = {
  id: '',
  time: 'order_time',
  product: 'product_name.keyword',
  brand: 'product_brand',
  consumer: 'consumer_name',
  quantity: 'quantity',
  total: 'total_price_cents',
} as const;
export type SortName = keyof typeof SORTS;

export const SIZES = [20, 50, 100] as const;

export interface Wanted {
  readonly text: string;
  readonly chosen: Readonly<Record<Facet, readonly string[]>>;
  /** The first and the last day, in UTC, as `2024-05-31`; empty is open. */
  readonly from: string;
  readonly to: string;
  readonly sort: SortName;
  readonly descending: boolean;
  /** From 0. */
  readonly page: number;
  readonly size: number;
  /** The id of the order beside the table. */
  readonly order: string;
}

/** The values of a facet that is true or not. */
const TRUTHS = ['true', 'false'];

const DAY_MS = 86_400_000;

const day = (text: string | undefined): string =>
  text !== undefined && /^\d{4}-\d\d-\d\d$/.test(text) && !Number.isNaN(Date.parse(text)) ? text : '';

/** What the address says; what it says wrongly is as if it weren't there. */
export const wanted = (): Wanted => {
  const { values } = address.value;
  const size = Number(values['size']);
  const sort = values['sort'] ?? '';
  return {
    text: values['q'] ?? '',
    chosen: { brand: list(values['brand']), type: list(values['type']), paid: list(values['paid']).filter((one) => TRUTHS.includes(one)) },
    from: day(values['from']),
    to: day(values['to']),
    sort: Object.hasOwn(SORTS, sort) ? (sort as SortName) : 'time',
    descending: values['order'] !== 'up',
    page: pageOf(values),
    size: SIZES.find((one) => one === size) ?? SIZES[0],
    order: values['id'] ?? '',
  };
};

/** Chooses other values of a facet, and goes to the first page. */
export const choose = (facet: Facet, values: readonly string[]): void =>
  change({ [facet]: listed(values), page: '' });

/** The bounds of the days. */
const range = ({ from, to }: Wanted): Query[] => {
  if (from === '' && to === '') return [];
  const lower = from === '' ? undefined : timeValue(new Date(from));
  const upper = to === '' ? undefined : timeValue(new Date(Date.parse(to) + DAY_MS));
  return [
    {
      kind: {
        case: 'range',
        value: {
          field: 'order_time',
          ...(lower && { lower: { case: 'gte' as const, value: lower } }),
          ...(upper && { upper: { case: 'lt' as const, value: upper } }),
        },
      },
    },
  ];
};

const among = (facet: Facet, values: readonly string[]): Query[] => {
  if (values.length === 0) return [];
  const value = facet === 'paid' ? (one: string) => truthValue(one === 'true') : textValue;
  return [{ kind: { case: 'terms', value: { field: FIELD[facet], values: values.map(value) } } }];
};

/** What was typed: words of the product's name, the beginning of a name, or an id. */
const typed = (text: string): Query[] => {
  const trimmed = text.trim();
  if (trimmed === '') return [];
  const id = (field: string): Query => term(field, textValue(trimmed));
  const begins = (field: string): Query => ({ kind: { case: 'prefix', value: { field, value: trimmed } } });
  const should: Query[] = [
    words('product_name', trimmed),
    ...['order_id', 'consumer_id', 'salesperson_id', 'product_id'].map(id),
    ...['consumer_name', 'salesperson_name'].map(begins),
  ];
  return [{ kind: { case: 'bool', value: { should } } }];
};

/** What has to match; all but a facet's own choice for the counts of that facet. */
export const query = (wanted: Wanted, without?: Facet): Query => {
  const chosen = FACETS.filter((facet) => facet !== without).flatMap((facet) => among(facet, wanted.chosen[facet]));
  return { kind: { case: 'bool', value: { must: typed(wanted.text), filter: [...range(wanted), ...chosen] } } };
};

/** The order of the table, which ends in the id. */
export const sort = ({ sort, descending }: Wanted): Sort[] => {
  const id: Sort = { kind: { case: 'primaryKey', value: { descending: sort === 'id' && descending } } };
  const field = SORTS[sort];
  return field === '' ? [id] : [by(field, descending), id];
};

/** The unit in which the histogram counts: such that it has some dozens of bars. */
export const unit = ({ from, to }: Wanted): CalendarUnit => {
  const days = from !== '' && to !== '' ? (Date.parse(to) - Date.parse(from)) / DAY_MS + 1 : Infinity;
  if (days > 400) return CalendarUnit.MONTH;
  return days > 90 ? CalendarUnit.WEEK : CalendarUnit.DAY;
};

/** Currencies whose sums are told. */
const CURRENCIES = 20;

/** Sums of money, apart for each currency. */
const sums: AggregationInit = {
  kind: {
    case: 'terms',
    value: { field: 'currency_code', size: CURRENCIES, aggregations: { sum: { kind: { case: 'sum', value: { field: 'total_price_cents' } } } } },
  },
};

const counts = (facet: Facet): AggregationInit => ({
  kind: { case: 'terms', value: { field: FIELD[facet], size: 12, ...(facet === 'brand' && { aggregations: { sums } }) } },
});

/** The counts of one facet. */
export const facet = (facet: Facet): Record<string, AggregationInit> => ({ [facet]: counts(facet) });

/** The figures over all orders that match. */
export const figures = (wanted: Wanted): Record<string, AggregationInit> => ({
  brand: counts('brand'),
  type: counts('type'),
  paid: counts('paid'),
  sums,
  times: { kind: { case: 'dateHistogram', value: { field: 'order_time', unit: unit(wanted) } } },
});
