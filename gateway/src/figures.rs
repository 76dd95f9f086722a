//! `souk.figures.v1.FiguresService`: what this process measures.

use std::collections::HashSet;

use souk_chassis::status::StatusBuilder;
use souk_chassis::telemetry::figures::{self, Figure, FigureValue};
use souk_proto::figures::v1 as pb;
use souk_proto::figures::v1::figures_service_server::{FiguresService, FiguresServiceServer, SERVICE_NAME};
use tokio::sync::watch;
use tonic::{Code, Request, Response, Status};

use crate::auth::LimitedCaller;

pub(crate) const NAME: &str = SERVICE_NAME;

/// The service, and that it serves.
pub(crate) fn service() -> (FiguresServiceServer<impl FiguresService>, watch::Receiver<bool>) {
    let (_serving, serving) = watch::channel(true);
    (FiguresServiceServer::new(FiguresApi { _serving }), serving)
}

struct FiguresApi {
    /// Health is that of what is there.
    _serving: watch::Sender<bool>,
}

#[tonic::async_trait]
impl FiguresService for FiguresApi {
    async fn get_figures(
        &self,
        request: Request<pb::GetFiguresRequest>,
    ) -> Result<Response<pb::GetFiguresResponse>, Status> {
        if request.extensions().get::<LimitedCaller>().is_some() {
            let message = "figures are of all tables; use credentials that aren't limited to some";
            return Err(StatusBuilder::new(Code::PermissionDenied, "TABLE_NOT_ALLOWED", message).build());
        }
        let names: HashSet<String> = request.into_inner().names.into_iter().collect();
        let wanted = |figure: &&Figure| names.is_empty() || names.contains(&figure.name);
        let figures = figures::read().await;
        let all = figures.iter().flat_map(|figures| &figures.all);
        Ok(Response::new(pb::GetFiguresResponse {
            time: figures.as_ref().map(|figures| figures.read_at.into()),
            figures: all.filter(wanted).map(to_wire).collect(),
        }))
    }
}

fn to_wire(figure: &Figure) -> pb::Figure {
    let values = figure.values.iter().map(|(attributes, value)| pb::FigureValue {
        attributes: attributes.iter().cloned().collect(),
        kind: Some(match value {
            FigureValue::Number(number) => pb::figure_value::Kind::Number(*number),
            FigureValue::Buckets { count, sum, counts } => pb::figure_value::Kind::Buckets(pb::Buckets {
                count: signed(*count),
                sum: *sum,
                counts: counts.iter().copied().map(signed).collect(),
            }),
        }),
    });
    pb::Figure {
        service: figure.service.clone(),
        name: figure.name.clone(),
        unit: figure.unit.clone(),
        bounds: figure.bounds.clone(),
        values: values.collect(),
    }
}

fn signed(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
