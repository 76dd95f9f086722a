//! Random searches through the gateway equal a brute-force evaluation over the same resources, in
//! order and totals: after creation, after updates and deletes, and after a restart.

mod evaluate;
mod generate;
mod record;

use std::collections::BTreeMap;

use souk_e2e::data::{self, SeededRandom};
use souk_e2e::suite::{Layout, Suite};
use souk_proto::media::v1 as media;
use souk_proto::search::v1::{HitsMode, Query, Search, Sort, TotalRelation, TotalRequest, total_request};
use souk_proto::shop::v1 as shop;

use self::record::Record;
use crate::{SOUK, rounds, seed};

/// What the oracle needs of one kind of resource.
trait Kind {
    type Resource: Clone;
    const FIELDS: &'static [generate::Field];
    fn make(number: u64, random: &mut SeededRandom) -> Self::Resource;
    fn record(resource: &Self::Resource) -> Record;
    async fn create(suite: &Suite, resources: Vec<Self::Resource>) -> anyhow::Result<i64>;
    async fn replace(suite: &Suite, resource: Self::Resource) -> anyhow::Result<i64>;
    async fn delete(suite: &Suite, id: String) -> anyhow::Result<i64>;
    async fn search(suite: &Suite, search: Search) -> anyhow::Result<Page>;
}

/// One page as the oracle compares it.
struct Page {
    ids: Vec<String>,
    next_page_token: String,
    total: Option<(i64, TotalRelation)>,
}

fn everything() -> Option<prost_types::FieldMask> {
    Some(prost_types::FieldMask {
        paths: vec!["*".to_owned()],
    })
}

struct Shops;

impl Kind for Shops {
    type Resource = shop::Shop;
    const FIELDS: &'static [generate::Field] = generate::SHOP_FIELDS;

    fn make(number: u64, random: &mut SeededRandom) -> shop::Shop {
        data::shop(number, random)
    }

    fn record(shop: &shop::Shop) -> Record {
        Record::of_shop(shop)
    }

    async fn create(suite: &Suite, shops: Vec<shop::Shop>) -> anyhow::Result<i64> {
        let request = shop::BatchCreateShopsRequest {
            shops,
            omit_resources: true,
            ..Default::default()
        };
        Ok(suite
            .shops()?
            .batch_create_shops(request)
            .await?
            .into_inner()
            .sequence)
    }

    async fn replace(suite: &Suite, shop: shop::Shop) -> anyhow::Result<i64> {
        let request = shop::UpdateShopRequest {
            shop: Some(shop),
            update_mask: everything(),
            etag: String::new(),
        };
        Ok(suite.shops()?.update_shop(request).await?.into_inner().sequence)
    }

    async fn delete(suite: &Suite, shop_id: String) -> anyhow::Result<i64> {
        let request = shop::DeleteShopRequest {
            shop_id,
            etag: String::new(),
        };
        Ok(suite.shops()?.delete_shop(request).await?.into_inner().sequence)
    }

    async fn search(suite: &Suite, search: Search) -> anyhow::Result<Page> {
        let request = shop::SearchShopsRequest { search: Some(search) };
        let answer = suite.shops()?.search_shops(request).await?.into_inner();
        Ok(Page {
            ids: answer
                .hits
                .into_iter()
                .filter_map(|hit| hit.resource)
                .map(|shop| shop.shop_id)
                .collect(),
            next_page_token: answer.next_page_token,
            total: answer.total.map(|total| (total.value, total.relation())),
        })
    }
}

struct MediaItems;

impl Kind for MediaItems {
    type Resource = media::Media;
    const FIELDS: &'static [generate::Field] = generate::MEDIA_FIELDS;

    fn make(number: u64, random: &mut SeededRandom) -> media::Media {
        data::media(number, random)
    }

    fn record(item: &media::Media) -> Record {
        Record::of_media(item)
    }

    async fn create(suite: &Suite, media: Vec<media::Media>) -> anyhow::Result<i64> {
        let request = media::BatchCreateMediaRequest {
            media,
            omit_resources: true,
            ..Default::default()
        };
        Ok(suite
            .media()?
            .batch_create_media(request)
            .await?
            .into_inner()
            .sequence)
    }

    async fn replace(suite: &Suite, item: media::Media) -> anyhow::Result<i64> {
        let request = media::UpdateMediaRequest {
            media: Some(item),
            update_mask: everything(),
            ..Default::default()
        };
        Ok(suite.media()?.update_media(request).await?.into_inner().sequence)
    }

    async fn delete(suite: &Suite, media_id: String) -> anyhow::Result<i64> {
        let request = media::DeleteMediaRequest {
            media_id,
            etag: String::new(),
        };
        Ok(suite.media()?.delete_media(request).await?.into_inner().sequence)
    }

    async fn search(suite: &Suite, search: Search) -> anyhow::Result<Page> {
        let request = media::SearchMediaRequest { search: Some(search) };
        let answer = suite.media()?.search_media(request).await?.into_inner();
        Ok(Page {
            ids: answer
                .hits
                .into_iter()
                .filter_map(|hit| hit.resource)
                .map(|item| item.media_id)
                .collect(),
            next_page_token: answer.next_page_token,
            total: answer.total.map(|total| (total.value, total.relation())),
        })
    }
}

/// Walks all pages of a search and compares them with the oracle's answer.
async fn compare<K: Kind>(
    suite: &Suite,
    records: &BTreeMap<String, Record>,
    query: &Query,
    sort: &[Sort],
    page_size: usize,
    min_sequence: i64,
) -> anyhow::Result<()> {
    let mut expected: Vec<_> = records.values().filter(|r| evaluate::matches(r, query)).collect();
    expected.sort_by(|a, b| evaluate::compare(a, b, sort));
    let expected: Vec<_> = expected.into_iter().map(|record| record.id.clone()).collect();
    let mut ids = Vec::new();
    let mut page_token = String::new();
    loop {
        let search = Search {
            query: Some(query.clone()),
            sort: sort.to_vec(),
            page_size: page_size as i32,
            page_token,
            total: Some(TotalRequest {
                kind: Some(total_request::Kind::Exact(true)),
            }),
            hits_mode: HitsMode::Keys.into(),
            min_sequence,
            ..Search::default()
        };
        let page = K::search(suite, search).await?;
        assert_eq!(
            page.total,
            Some((expected.len() as i64, TotalRelation::Equal)),
            "{query:?}"
        );
        assert!(page.ids.len() <= page_size);
        ids.extend(page.ids);
        page_token = page.next_page_token;
        if page_token.is_empty() {
            break;
        }
    }
    assert_eq!(ids, expected, "{query:?}\n{sort:?}");
    Ok(())
}

async fn compare_many<K: Kind>(
    suite: &Suite,
    resources: &BTreeMap<String, K::Resource>,
    random: &mut SeededRandom,
    searches: usize,
    min_sequence: i64,
) -> anyhow::Result<usize> {
    let records: BTreeMap<_, _> = resources
        .iter()
        .map(|(id, r)| (id.clone(), K::record(r)))
        .collect();
    let mut found = 0;
    for _ in 0..searches {
        let query = generate::query(K::FIELDS, random, 3);
        let sort = generate::sort(K::FIELDS, random);
        // Small pages over few hits, large ones over many.
        let hits = records.values().filter(|r| evaluate::matches(r, &query)).count();
        found += usize::from(hits > 0);
        let page_size = (hits / 4).max(1 + random.below(20) as usize).min(1_000);
        compare::<K>(suite, &records, &query, &sort, page_size, min_sequence).await?;
    }
    Ok(found)
}

async fn equals_brute_force<K: Kind>(name: &str, layout: Layout, usual: usize) -> anyhow::Result<()> {
    let mut random = SeededRandom::new(seed(name));
    let searches = rounds("SOUK_ORACLE_SEARCHES", usual);
    let mut suite = Suite::start(SOUK, layout).await?;
    let mut resources: BTreeMap<String, K::Resource> = BTreeMap::new();
    let mut sequence = 0;
    for batch in 0..4_u64 {
        let made: Vec<_> = (0..200)
            .map(|number| K::make(batch * 200 + number, &mut random))
            .collect();
        resources.extend(
            made.iter()
                .map(|resource| (K::record(resource).id, resource.clone())),
        );
        sequence = K::create(&suite, made).await?;
    }
    let mut found = compare_many::<K>(&suite, &resources, &mut random, searches, sequence).await?;

    let ids: Vec<_> = resources.keys().cloned().collect();
    for (number, id) in ids.iter().enumerate() {
        match random.below(4) {
            0 => {
                sequence = K::delete(&suite, id.clone()).await?;
                resources.remove(id);
            }
            1 => {
                let changed = K::make(number as u64, &mut random);
                sequence = K::replace(&suite, changed.clone()).await?;
                resources.insert(id.clone(), changed);
            }
            _ => {}
        }
    }
    found += compare_many::<K>(&suite, &resources, &mut random, searches, sequence).await?;

    suite.stop().await?;
    suite.restart().await?;
    found += compare_many::<K>(&suite, &resources, &mut random, searches, sequence).await?;
    println!("{name}: {} searches, {found} of them with hits", 3 * searches);
    assert!(found > searches / 2, "the queries hardly find anything");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn searches_of_shops_equal_brute_force() -> anyhow::Result<()> {
    equals_brute_force::<Shops>("oracle of shops", Layout::OneProcess, 400).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn searches_of_media_equal_brute_force() -> anyhow::Result<()> {
    equals_brute_force::<MediaItems>("oracle of media", Layout::OneProcess, 400).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn searches_equal_brute_force_in_several_processes() -> anyhow::Result<()> {
    equals_brute_force::<Shops>("oracle of shops in four processes", Layout::SeveralProcesses, 50).await?;
    equals_brute_force::<MediaItems>("oracle of media in four processes", Layout::SeveralProcesses, 50).await
}
