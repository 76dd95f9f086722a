//! What can be loaded: each kind's row and its batch call.

use std::borrow::Cow;

use prost::Message;
use souk_chassis::client::Client;
use souk_proto::media::v1::media_service_client::MediaServiceClient;
use souk_proto::media::v1::{BatchCreateMediaRequest, Media};
use souk_proto::order::v1::consumer_service_client::ConsumerServiceClient;
use souk_proto::order::v1::order_service_client::OrderServiceClient;
use souk_proto::order::v1::product_service_client::ProductServiceClient;
use souk_proto::order::v1::salesperson_service_client::SalespersonServiceClient;
use souk_proto::order::v1::{
    BatchCreateConsumersRequest, BatchCreateOrdersRequest, BatchCreateProductsRequest,
    BatchCreateSalespersonsRequest, Order, Person, Product,
};
use souk_proto::shop::v1::shop_service_client::ShopServiceClient;
use souk_proto::shop::v1::{BatchCreateShopsRequest, Shop};
use tonic::{Request, Status};

/// A kind of rows.
pub trait Kind: Send + Sync + 'static {
    /// One row.
    type Row: Message + Default + Clone + Send + Sync + 'static;
    /// Its name on the command line.
    const NAME: &'static str;
    /// The full name of its message.
    const MESSAGE: &'static str;

    /// The row's id.
    fn id(row: &Self::Row) -> Cow<'_, str>;

    /// Creates all rows or none.
    fn create(
        target: Client,
        rows: Vec<Self::Row>,
        request_id: String,
    ) -> impl Future<Output = Result<(), Status>> + Send;
}

/// Time that the service has for one batch.
const CALL_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(30);

/// A call of that much time.
pub(crate) fn timed<T>(message: T) -> Request<T> {
    let mut request = Request::new(message);
    request.set_timeout(CALL_TIMEOUT);
    request
}

/// Orders.
#[derive(Clone, Copy, Debug)]
pub struct Orders;

impl Kind for Orders {
    type Row = Order;
    const NAME: &'static str = "orders";
    const MESSAGE: &'static str = "souk.order.v1.Order";

    fn id(row: &Order) -> Cow<'_, str> {
        (&row.order_id).into()
    }

    async fn create(target: Client, orders: Vec<Order>, request_id: String) -> Result<(), Status> {
        let request = BatchCreateOrdersRequest {
            orders,
            request_id,
            omit_resources: true,
        };
        let answer = OrderServiceClient::new(target)
            .batch_create_orders(timed(request))
            .await;
        answer.map(drop)
    }
}

/// Products.
#[derive(Clone, Copy, Debug)]
pub struct Products;

impl Kind for Products {
    type Row = Product;
    const NAME: &'static str = "products";
    const MESSAGE: &'static str = "souk.order.v1.Product";

    fn id(row: &Product) -> Cow<'_, str> {
        (&row.product_id).into()
    }

    async fn create(target: Client, products: Vec<Product>, request_id: String) -> Result<(), Status> {
        let request = BatchCreateProductsRequest {
            products,
            request_id,
            omit_resources: true,
        };
        let answer = ProductServiceClient::new(target)
            .batch_create_products(timed(request))
            .await;
        answer.map(drop)
    }
}

/// Consumers.
#[derive(Clone, Copy, Debug)]
pub struct Consumers;

impl Kind for Consumers {
    type Row = Person;
    const NAME: &'static str = "consumers";
    const MESSAGE: &'static str = "souk.order.v1.Person";

    fn id(row: &Person) -> Cow<'_, str> {
        (&row.id).into()
    }

    async fn create(target: Client, consumers: Vec<Person>, request_id: String) -> Result<(), Status> {
        let request = BatchCreateConsumersRequest {
            consumers,
            request_id,
            omit_resources: true,
        };
        let answer = ConsumerServiceClient::new(target)
            .batch_create_consumers(timed(request))
            .await;
        answer.map(drop)
    }
}

/// Salespersons.
#[derive(Clone, Copy, Debug)]
pub struct Salespersons;

impl Kind for Salespersons {
    type Row = Person;
    const NAME: &'static str = "salespersons";
    const MESSAGE: &'static str = "souk.order.v1.Person";

    fn id(row: &Person) -> Cow<'_, str> {
        (&row.id).into()
    }

    async fn create(target: Client, salespersons: Vec<Person>, request_id: String) -> Result<(), Status> {
        let request = BatchCreateSalespersonsRequest {
            salespersons,
            request_id,
            omit_resources: true,
        };
        let mut client = SalespersonServiceClient::new(target);
        client.batch_create_salespersons(timed(request)).await.map(drop)
    }
}

/// Shops.
#[derive(Clone, Copy, Debug)]
pub struct Shops;

impl Kind for Shops {
    type Row = Shop;
    const NAME: &'static str = "shops";
    const MESSAGE: &'static str = "souk.shop.v1.Shop";

    fn id(row: &Shop) -> Cow<'_, str> {
        (&row.shop_id).into()
    }

    async fn create(target: Client, shops: Vec<Shop>, request_id: String) -> Result<(), Status> {
        let request = BatchCreateShopsRequest {
            shops,
            request_id,
            omit_resources: true,
        };
        let answer = ShopServiceClient::new(target)
            .batch_create_shops(timed(request))
            .await;
        answer.map(drop)
    }
}

/// Media items.
#[derive(Clone, Copy, Debug)]
pub struct MediaItems;

impl Kind for MediaItems {
    type Row = Media;
    const NAME: &'static str = "media";
    const MESSAGE: &'static str = "souk.media.v1.Media";

    fn id(row: &Media) -> Cow<'_, str> {
        (&row.media_id).into()
    }

    async fn create(target: Client, media: Vec<Media>, request_id: String) -> Result<(), Status> {
        let request = BatchCreateMediaRequest {
            media,
            request_id,
            omit_resources: true,
        };
        let answer = MediaServiceClient::new(target)
            .batch_create_media(timed(request))
            .await;
        answer.map(drop)
    }
}
