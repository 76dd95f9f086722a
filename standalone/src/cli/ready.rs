//! Waits until a suite is ready: everything serves, and searches see all that is stored.

use souk_chassis::client::Client;
use souk_proto::media::v1::media_service_client::MediaServiceClient;
use souk_proto::media::v1::{BatchGetMediaRequest, SearchMediaRequest};
use souk_proto::order::v1::order_service_client::OrderServiceClient;
use souk_proto::order::v1::{BatchGetOrdersRequest, SearchOrdersRequest};
use souk_proto::search::v1::{HitsMode, Search};
use souk_proto::shop::v1::shop_service_client::ShopServiceClient;
use souk_proto::shop::v1::{BatchGetShopsRequest, SearchShopsRequest};
use tonic::Status;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

/// An id that nobody has: reading it tells how far a service's store is.
const NOBODY: &str = "-";

/// Waits for the suite behind `target`.
///
/// # Errors
/// What a service answers instead.
pub(super) async fn wait(target: &Client) -> Result<(), Status> {
    serving(target.clone()).await?;
    let ids = || vec![NOBODY.to_owned()];

    let mut orders = OrderServiceClient::new(target.clone());
    let request = BatchGetOrdersRequest {
        order_ids: ids(),
        min_sequence: 0,
    };
    let sequence = orders.batch_get_orders(request).await?.into_inner().sequence;
    let search = seeing(sequence);
    orders.search_orders(SearchOrdersRequest { search }).await?;

    let mut shops = ShopServiceClient::new(target.clone());
    let request = BatchGetShopsRequest {
        shop_ids: ids(),
        min_sequence: 0,
    };
    let sequence = shops.batch_get_shops(request).await?.into_inner().sequence;
    let search = seeing(sequence);
    shops.search_shops(SearchShopsRequest { search }).await?;

    let mut media = MediaServiceClient::new(target.clone());
    let request = BatchGetMediaRequest {
        media_ids: ids(),
        min_sequence: 0,
    };
    let sequence = media.batch_get_media(request).await?.into_inner().sequence;
    let search = seeing(sequence);
    media.search_media(SearchMediaRequest { search }).await?;
    Ok(())
}

async fn serving(target: Client) -> Result<(), Status> {
    let everything = HealthCheckRequest {
        service: String::new(),
    };
    let mut states = HealthClient::new(target).watch(everything).await?.into_inner();
    while let Some(state) = states.message().await? {
        if state.status() == ServingStatus::Serving {
            return Ok(());
        }
    }
    Err(Status::unavailable("the services stopped before they served"))
}

/// A search that finds nothing, and waits until the index includes a write.
fn seeing(min_sequence: i64) -> Option<Search> {
    Some(Search {
        hits_mode: HitsMode::None.into(),
        min_sequence,
        ..Search::default()
    })
}
