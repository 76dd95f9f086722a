"""Finds shops, writes an order and reads it back, follows changes, and is told what was wrong: by grpcio.

    clients/run python localhost:50051
"""

import sys
import uuid

import grpc

from souk.order.v1 import order_pb2, order_pb2_grpc
from souk.search.v1 import query_pb2, search_pb2
from souk.shop.v1 import shop_pb2, shop_pb2_grpc
from souk.type.v1 import type_pb2

TIMEOUT = 10  # seconds; sent along as grpc-timeout, so that the server stops then, too


def main(address: str) -> None:
    with grpc.insecure_channel(address) as channel:
        shops = shop_pb2_grpc.ShopServiceStub(channel)
        orders = order_pb2_grpc.OrderServiceStub(channel)

        # Milk tea within 20 kilometres, the best first.
        here = type_pb2.GeoPoint(latitude=30.2741, longitude=120.1551)
        tea = query_pb2.Query(
            bool=query_pb2.BoolQuery(
                must=[
                    query_pb2.Query(term=query_pb2.TermQuery(field="type", value=type_pb2.Value(string_value="奶茶"))),
                    query_pb2.Query(
                        geo_distance=query_pb2.GeoDistanceQuery(field="position", center=here, distance_meters=20_000)
                    ),
                ]
            )
        )
        best = query_pb2.Sort(field=query_pb2.FieldSort(field="rating", descending=True))
        search = search_pb2.Search(query=tea, sort=[best], page_size=3, total=search_pb2.TotalRequest(exact=True))
        found = shops.SearchShops(shop_pb2.SearchShopsRequest(search=search), timeout=TIMEOUT)
        for hit in found.hits:
            assert hit.resource.type == "奶茶"
            rating = f"{hit.resource.rating:.1f}" if hit.resource.HasField("rating") else "  –"
            print(f"{rating}  {hit.resource.name}")
        print(f"{found.total.value} shops sell milk tea there")

        # A search that waits for the write's sequence finds it; repeated with the same request id, the call wouldn't write twice.
        order = order_pb2.Order(
            order_id=f"python-{uuid.uuid4()}",
            consumer_id="c0001",
            salesperson_id="s0020",
            product_id="p0003004",
            quantity=2,
        )
        written = orders.CreateOrder(
            order_pb2.CreateOrderRequest(order=order, request_id=str(uuid.uuid4())), timeout=TIMEOUT
        )
        mine = query_pb2.Query(
            term=query_pb2.TermQuery(field="order_id", value=type_pb2.Value(string_value=order.order_id))
        )
        search = search_pb2.Search(query=mine, min_sequence=written.sequence)
        read = orders.SearchOrders(order_pb2.SearchOrdersRequest(search=search), timeout=TIMEOUT)
        assert [hit.resource.order_id for hit in read.hits] == [order.order_id]
        print(f"ordered {read.hits[0].resource.product_name}")

        # Every change after a sequence, as it comes.
        changes = orders.WatchOrders(order_pb2.WatchOrdersRequest(after_sequence=written.sequence - 1))
        first = next(changes)
        assert first.sequence == written.sequence
        changes.cancel()

        # An error says what was wrong.
        try:
            orders.GetOrder(order_pb2.GetOrderRequest(order_id="nobody's"), timeout=TIMEOUT)
            raise AssertionError("there is such an order")
        except grpc.RpcError as error:
            assert error.code() == grpc.StatusCode.NOT_FOUND
            print(f"refused: {error.details()}")
    print("done")


if __name__ == "__main__":
    main(sys.argv[1])
