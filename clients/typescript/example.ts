// Finds shops, writes an order and reads it back, follows changes, and is told what was wrong: with Connect's client, by its
// own protocol or by gRPC-Web.
//
//     clients/run typescript http://localhost:50051 [connect | grpc-web]
//
// In a browser only the transport differs: createConnectTransport or createGrpcWebTransport of @connectrpc/connect-web, and the
// page's origin has to be one of the gateway's `web.origins`.

import { strict as assert } from "node:assert";
import { randomUUID } from "node:crypto";

import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { createConnectTransport, createGrpcWebTransport } from "@connectrpc/connect-node";

import { OrderService } from "./gen/souk/order/v1/order_pb.js";
import { ShopService } from "./gen/souk/shop/v1/shop_pb.js";

const baseUrl = process.argv[2] ?? "http://localhost:50051";
const options = { baseUrl, httpVersion: "1.1", defaultTimeoutMs: 10_000 } as const;
// By Connect's protocol, calls without side effects are GETs, which proxies can cache.
const transport =
  process.argv[3] === "grpc-web"
    ? createGrpcWebTransport(options)
    : createConnectTransport({ ...options, useHttpGet: true });
const shops = createClient(ShopService, transport);
const orders = createClient(OrderService, transport);

// The nearest shops.
const center = { latitude: 30.2741, longitude: 120.1551 };
const nearby = await shops.nearbyShops({ center, pageSize: 3 });
assert.equal(nearby.hits.length, 3);
for (const { resource, distanceMeters } of nearby.hits) {
  console.log(`${Math.round(distanceMeters)} m  ${resource?.name}`);
}

// Milk tea, the best first.
const found = await shops.searchShops({
  search: {
    query: {
      kind: { case: "term", value: { field: "type", value: { kind: { case: "stringValue", value: "奶茶" } } } },
    },
    sort: [{ kind: { case: "field", value: { field: "rating", descending: true } } }],
    pageSize: 3,
  },
});
assert.ok(found.hits.every((hit) => hit.resource?.type === "奶茶"));

// A read that waits for the write's sequence finds it; repeated with the same request id, the call wouldn't write twice.
const orderId = `typescript-${randomUUID()}`;
const order = { orderId, consumerId: "c0001", salespersonId: "s0020", productId: "p0003004", quantity: 2n };
const written = await orders.createOrder({ order, requestId: randomUUID() });
const read = await orders.getOrder({ orderId, minSequence: written.sequence });
assert.equal(read.order?.orderId, orderId);
console.log(`ordered ${read.order?.productName}`);

// Every change after a sequence, as it comes. Leaving the loop doesn't end the call; aborting it does, else it runs until its deadline.
const enough = new AbortController();
for await (const change of orders.watchOrders({ afterSequence: written.sequence - 1n }, { signal: enough.signal })) {
  assert.equal(change.sequence, written.sequence);
  break;
}
enough.abort();

// An error says what was wrong.
const refusal = await orders.getOrder({ orderId: "nobody's" }).then(
  () => assert.fail("there is such an order"),
  (error: unknown) => ConnectError.from(error),
);
assert.equal(refusal.code, Code.NotFound);
console.log(`refused: ${refusal.rawMessage}`);
console.log("done");
