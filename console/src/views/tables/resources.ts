/** Rows of the tables that services declare: read by their ids, and in the order of these. */
import type { DescMessage, JsonValue, MessageShape } from '@bufbuild/protobuf';
import { toJson } from '@bufbuild/protobuf';
import type { CallOptions } from '@connectrpc/connect';

import { client } from '../../calls';
import { MediaSchema, MediaService } from '../../contract/souk/media/v1/media_pb';
import { ConsumerService } from '../../contract/souk/order/v1/consumer_pb';
import { OrderSchema, OrderService } from '../../contract/souk/order/v1/order_pb';
import { PersonSchema } from '../../contract/souk/order/v1/person_pb';
import { ProductSchema, ProductService } from '../../contract/souk/order/v1/product_pb';
import { SalespersonService } from '../../contract/souk/order/v1/salesperson_pb';
import { ShopSchema, ShopService } from '../../contract/souk/shop/v1/shop_pb';
import type { Found, SearchInit } from '../../pages';

/** A row: its id and its fields in JSON. */
export interface Resource {
  readonly id: string;
  readonly json: JsonValue;
}

export interface Resources {
  readonly get: (id: string, options: CallOptions) => Promise<Resource | undefined>;
  readonly search: (search: SearchInit, options: CallOptions) => Promise<Found<Resource>>;
}

/** A table by the messages of its rows, which have their id in the first field. */
const table = <Schema extends DescMessage>(
  schema: Schema,
  get: (id: string, options: CallOptions) => Promise<MessageShape<Schema> | undefined>,
  search: (search: SearchInit, options: CallOptions) => Promise<Found<{ resource?: MessageShape<Schema> | undefined }>>,
): Resources => {
  const read = (message: MessageShape<Schema>): Resource => {
    const json = toJson(schema, message);
    const fields = json as Record<string, JsonValue>;
    return { id: String(fields[schema.fields[0]?.jsonName ?? ''] ?? ''), json };
  };
  return {
    get: async (id, options) => {
      const message = await get(id, options);
      return message === undefined ? undefined : read(message);
    },
    search: async (wanted, options) => {
      const { hits, nextPageToken, total } = await search(wanted, options);
      return { hits: hits.flatMap(({ resource }) => (resource === undefined ? [] : [read(resource)])), nextPageToken, total };
    },
  };
};

const [orders, products, consumers, salespersons, shops, media] = [
  client(OrderService),
  client(ProductService),
  client(ConsumerService),
  client(SalespersonService),
  client(ShopService),
  client(MediaService),
];

/** The tables of the contract's services, by their names. */
export const RESOURCES: Readonly<Record<string, Resources>> = {
  orders: table(OrderSchema, async (orderId, o) => (await orders.getOrder({ orderId }, o)).order, (search, o) => orders.searchOrders({ search }, o)),
  products: table(ProductSchema, async (productId, o) => (await products.getProduct({ productId }, o)).product, (search, o) => products.searchProducts({ search }, o)),
  consumers: table(PersonSchema, async (id, o) => (await consumers.getConsumer({ id }, o)).consumer, (search, o) => consumers.searchConsumers({ search }, o)),
  salespersons: table(PersonSchema, async (id, o) => (await salespersons.getSalesperson({ id }, o)).salesperson, (search, o) => salespersons.searchSalespersons({ search }, o)),
  shops: table(ShopSchema, async (shopId, o) => (await shops.getShop({ shopId }, o)).shop, (search, o) => shops.searchShops({ search }, o)),
  media: table(MediaSchema, async (mediaId, o) => (await media.getMedia({ mediaId }, o)).media, (search, o) => media.searchMedia({ search }, o)),
};
