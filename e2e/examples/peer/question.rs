//! The questions of the file, each a call with its message.

use std::fs::File;
use std::io::BufReader;

use anyhow::Context as _;
use prost_reflect::{DescriptorPool, DynamicMessage};
use serde_json::Value as Json;
use souk_proto::FILE_DESCRIPTOR_SET;
use souk_proto::media::v1::SearchMediaRequest;
use souk_proto::order::v1::{GetOrderRequest, SearchOrdersRequest};
use souk_proto::search::v1::{FieldSort, HitsMode, Search, Sort, sort};
use souk_proto::shop::v1::{NearbyShopsRequest, SearchShopsRequest};

use super::setting;

/// A call with its message.
#[derive(Clone)]
pub(crate) enum Call {
    GetOrder(GetOrderRequest),
    SearchOrders(SearchOrdersRequest),
    SearchShops(SearchShopsRequest),
    NearbyShops(NearbyShopsRequest),
    SearchMedia(SearchMediaRequest),
}

impl Call {
    /// The message of `rpc` (`package.Service/Method`) from its JSON.
    fn from_json(pool: &DescriptorPool, rpc: &str, request: &Json) -> anyhow::Result<Self> {
        let (service, method) = rpc.split_once('/').context("not Service/Method")?;
        let service = pool.get_service_by_name(service).context("no such service")?;
        let input = service.methods().find(|found| found.name() == method);
        let input = input.context("no such method")?.input();
        let message = DynamicMessage::deserialize(input, request)?;
        Ok(match method {
            "GetOrder" => Self::GetOrder(message.transcode_to()?),
            "SearchOrders" => Self::SearchOrders(message.transcode_to()?),
            "SearchShops" => Self::SearchShops(message.transcode_to()?),
            "NearbyShops" => Self::NearbyShops(message.transcode_to()?),
            "SearchMedia" => Self::SearchMedia(message.transcode_to()?),
            _ => anyhow::bail!("this client doesn't make such calls"),
        })
    }

    /// Ends a given order in the id ascending, as the comparison's rules say and the other databases do. The messages of
    /// its file leave ties to Souk, whose orders end in the stored key, which begins with a hash of the id.
    fn end_in_id(&mut self) {
        let id = match self {
            Self::SearchOrders(_) => "order_id",
            Self::SearchShops(_) => "shop_id",
            Self::SearchMedia(_) => "media_id",
            Self::GetOrder(_) | Self::NearbyShops(_) => return,
        };
        if let Some(search) = self.search_mut().filter(|search| !search.sort.is_empty()) {
            let by_id = FieldSort {
                field: id.to_owned(),
                ..FieldSort::default()
            };
            search.sort.push(Sort {
                kind: Some(sort::Kind::Field(by_id)),
            });
        }
    }

    pub(crate) fn search_mut(&mut self) -> Option<&mut Search> {
        match self {
            Self::SearchOrders(request) => request.search.as_mut(),
            Self::SearchShops(request) => request.search.as_mut(),
            Self::SearchMedia(request) => request.search.as_mut(),
            Self::GetOrder(_) | Self::NearbyShops(_) => None,
        }
    }
}

/// One question of the file.
pub(crate) struct Question {
    pub(crate) class: String,
    pub(crate) n: u64,
    /// As written: equal texts have equal answers.
    pub(crate) text: String,
    pub(crate) call: Call,
}

impl Question {
    fn from_json(pool: &DescriptorPool, element: &Json) -> anyhow::Result<Self> {
        let text = |key| element[key].as_str().context("a question has class and rpc");
        let (class, rpc, request) = (text("class")?, text("rpc")?, &element["request"]);
        Ok(Self {
            class: class.to_owned(),
            n: element["n"].as_u64().context("a question has a number")?,
            text: request.to_string(),
            call: {
                let mut call =
                    Call::from_json(pool, rpc, request).with_context(|| format!("{rpc} {request}"))?;
                call.end_in_id();
                call
            },
        })
    }

    pub(crate) fn failed(&self) -> String {
        format!("{} {}", self.class, self.n)
    }
}

/// The questions by class, in the file's order.
pub(crate) fn read(queries: &str) -> anyhow::Result<Vec<Vec<Question>>> {
    let pool = DescriptorPool::decode(FILE_DESCRIPTOR_SET)?;
    let elements: Vec<Json> = serde_json::from_reader(BufReader::new(File::open(queries)?))?;
    let ids_only = setting("FETCH", String::new())? == "ids";
    let only = setting("CLASSES", String::new())?;
    let mut classes: Vec<Vec<Question>> = Vec::new();
    for element in &elements {
        let mut question = Question::from_json(&pool, element)?;
        if !only.is_empty() && !only.split(',').any(|class| class == question.class) {
            continue;
        }
        if let Some(search) = question
            .call
            .search_mut()
            .filter(|search| ids_only && search.hits_mode() == HitsMode::Unspecified)
        {
            search.set_hits_mode(HitsMode::Keys);
        }
        let same = |class: &&mut Vec<Question>| class.first().is_some_and(|q| q.class == question.class);
        match classes.iter_mut().find(same) {
            Some(class) => class.push(question),
            None => classes.push(vec![question]),
        }
    }
    Ok(classes)
}
