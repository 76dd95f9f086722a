//! Every RPC of every service through the gateway, in one process and in several: each that the descriptors have once, and the ways
//! that a marketplace takes through them.

mod every_rpc;
mod media_items;
mod orders;
mod people;
mod shops;
mod tables;

use souk_e2e::suite::{Layout, Suite};
use souk_proto::search::v1::{Query, Search, TermQuery, query};
use souk_proto::r#type::v1::{Value, value};

use crate::SOUK;

fn mask(paths: &[&str]) -> Option<prost_types::FieldMask> {
    Some(prost_types::FieldMask {
        paths: paths.iter().map(|&path| path.to_owned()).collect(),
    })
}

fn term(field: &str, text: &str) -> Option<Query> {
    let value = Some(Value {
        kind: Some(value::Kind::StringValue(text.to_owned())),
    });
    Some(Query {
        kind: Some(query::Kind::Term(TermQuery {
            field: field.to_owned(),
            value,
            weight: None,
        })),
    })
}

fn search(query: Option<Query>, min_sequence: i64) -> Option<Search> {
    Some(Search {
        query,
        min_sequence,
        ..Search::default()
    })
}

fn id() -> String {
    uuid::Uuid::new_v4().to_string()
}

async fn walk(layout: Layout) -> anyhow::Result<()> {
    let mut suite = Suite::start(SOUK, layout).await?;
    people::people_and_products(&suite).await?;
    orders::orders(&suite).await?;
    shops::shops(&suite).await?;
    media_items::media_items(&suite).await?;
    tables::tables(&suite).await?;
    suite.stop().await
}

async fn every_rpc(layout: Layout) -> anyhow::Result<()> {
    let mut suite = Suite::start(SOUK, layout).await?;
    every_rpc::every_rpc(&suite).await?;
    suite.stop().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_rpc_answers_in_one_process() -> anyhow::Result<()> {
    every_rpc(Layout::OneProcess).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_rpc_answers_in_several_processes() -> anyhow::Result<()> {
    every_rpc(Layout::SeveralProcesses).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_marketplace_works_in_one_process() -> anyhow::Result<()> {
    walk(Layout::OneProcess).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_marketplace_works_in_several_processes() -> anyhow::Result<()> {
    walk(Layout::SeveralProcesses).await
}
