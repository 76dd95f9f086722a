/** What is made of the figures of the server: rates between two answers, and quantiles of what was sorted into buckets in between. */
import { MethodOptions_IdempotencyLevel, timestampMs } from '@bufbuild/protobuf/wkt';

import type { Figure, GetFiguresResponse } from '../../contract/souk/figures/v1/figures_pb';
import { IndexService } from '../../contract/souk/index/v1/index_pb';
import { MediaService } from '../../contract/souk/media/v1/media_pb';
import { ConsumerService } from '../../contract/souk/order/v1/consumer_pb';
import { OrderService } from '../../contract/souk/order/v1/order_pb';
import { ProductService } from '../../contract/souk/order/v1/product_pb';
import { SalespersonService } from '../../contract/souk/order/v1/salesperson_pb';
import { ShopService } from '../../contract/souk/shop/v1/shop_pb';
import { TableService } from '../../contract/souk/table/v1/table_service_pb';

/** What the view shows; the server leaves all else out. */
export const NAMES = [
  'rpc.server.call.duration',
  'souk.server.connections',
  'souk.server.calls.active',
  'process.memory.usage',
  'process.cpu.time',
  'process.uptime',
  'souk.store.writable',
  'souk.search.active',
  'souk.search.waiting',
  'souk.watch.streams',
  'souk.gateway.backend.processes',
  'souk.gateway.backend.serving',
];

export type Kind = 'write' | 'search' | 'read';

const SERVICES = [
  OrderService,
  ConsumerService,
  SalespersonService,
  ProductService,
  ShopService,
  MediaService,
  TableService,
  IndexService,
];

/** What each RPC does, by its full name: the contract says which change nothing. Those of the figures themselves aren't among them. */
export const KINDS: ReadonlyMap<string, Kind> = new Map(
  SERVICES.flatMap((service) =>
    service.methods.map(({ name, idempotency }): [string, Kind] => {
      const reads = idempotency === MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS;
      const searches = /^(Search|Nearby|Suggest|Cluster)/.test(name);
      return [`${service.typeName}/${name}`, !reads ? 'write' : searches ? 'search' : 'read'];
    }),
  ),
);

/** The figures as they were at one time. */
export interface Sample {
  /** In milliseconds since the epoch, by the server's clock. */
  readonly at: number;
  readonly figures: readonly Figure[];
}

export const sampled = (answer: GetFiguresResponse): Sample | undefined =>
  answer.time === undefined ? undefined : { at: timestampMs(answer.time), figures: answer.figures };

type Attributes = Readonly<Record<string, string>>;

/** The sum of the numbers of a name; undefined when there are none. */
export const total = (
  sample: Sample,
  name: string,
  wanted: (attributes: Attributes, service: string) => boolean = () => true,
): number | undefined => {
  let sum: number | undefined;
  for (const figure of sample.figures) {
    if (figure.name !== name) continue;
    for (const { attributes, kind } of figure.values) {
      if (kind.case === 'number' && wanted(attributes, figure.service)) sum = (sum ?? 0) + kind.value;
    }
  }
  return sum;
};

/** How many values there were of which size. */
export interface Buckets {
  readonly bounds: readonly number[];
  readonly counts: readonly number[];
  readonly count: number;
}

/** What calls the front door served: by RPC, and whether they failed. */
export interface Calls {
  readonly method: string;
  readonly code: string;
  readonly buckets: Buckets;
}

/** The front door among the services of its process: it has the figures of the process. */
export const door = (sample: Sample): string | undefined => sample.figures.find(({ name }) => name === 'process.uptime')?.service;

export const calls = (sample: Sample): Calls[] =>
  sample.figures
    .filter((figure) => figure.name === 'rpc.server.call.duration' && figure.service === door(sample))
    .flatMap((figure) =>
      figure.values.flatMap(({ attributes, kind }) =>
        kind.case !== 'buckets'
          ? []
          : [
              {
                method: attributes['rpc.method'] ?? '',
                code: attributes['rpc.status_code'] ?? '',
                buckets: { bounds: figure.bounds, counts: kind.value.counts.map(Number), count: Number(kind.value.count) },
              },
            ],
      ),
    );

/** What came between two samples; all of the later one where the earlier one knows nothing of it. */
export const between = (before: readonly Calls[], after: readonly Calls[]): Calls[] => {
  const known = new Map(before.map((one) => [`${one.method} ${one.code}`, one.buckets]));
  return after.map(({ method, code, buckets }) => {
    const old = known.get(`${method} ${code}`);
    return {
      method,
      code,
      buckets: {
        bounds: buckets.bounds,
        counts: buckets.counts.map((count, at) => count - (old?.counts[at] ?? 0)),
        count: buckets.count - (old?.count ?? 0),
      },
    };
  });
};

/** All of them together. */
export const merged = (all: readonly Calls[]): Buckets => {
  const bounds = all[0]?.buckets.bounds ?? [];
  const counts = new Array<number>(bounds.length + 1).fill(0);
  let count = 0;
  for (const { buckets } of all) {
    buckets.counts.forEach((more, at) => (counts[at] = (counts[at] ?? 0) + more));
    count += buckets.count;
  }
  return { bounds, counts, count };
};

/**
 * The value that a part of all values, 0 to 1, isn't above: told from the buckets, as if values lay evenly in each. Above the last
 * bound it is that bound. Undefined without values.
 */
export const quantile = ({ bounds, counts, count }: Buckets, part: number): number | undefined => {
  if (count <= 0) return undefined;
  const place = part * count;
  let below = 0;
  for (const [at, more] of counts.entries()) {
    if (below + more >= place && more > 0) {
      const upper = bounds[at];
      const lower = at === 0 ? 0 : (bounds[at - 1] ?? 0);
      return upper === undefined ? lower : lower + ((upper - lower) * (place - below)) / more;
    }
    below += more;
  }
  return bounds.at(-1);
};
