use souk_index::{Document, Field, Index, IndexOptions, Object, Operation, Query, Schema};

use super::*;

/// An index with three documents.
fn index() -> Index {
    let schema = Schema::new(vec![Field::long("number")]).expect("a schema");
    let index = Index::create_in_ram(schema, IndexOptions::default()).expect("an index");
    let mut writer = index.writer().expect("the writer");
    let document = |number: i64| {
        Operation::Upsert(Document {
            key: number.to_be_bytes().to_vec(),
            fields: Object::new().with("number", number),
        })
    };
    writer.apply((0..3).map(document).collect()).expect("applied");
    writer.commit(1).expect("committed");
    index
}

fn all() -> SearchRequest {
    SearchRequest::new(Query::MatchAll)
}

fn within(time: Duration) -> Wait {
    Wait::new(Some(tokio::time::Instant::now() + time))
}

/// A pool with one place, which knows searches of [`all`] on this index to be brief; how long the thread of a call may search.
fn pool(brief_max: Duration, index: &Index) -> SearchPool {
    let pool = SearchPool {
        brief_max,
        ..SearchPool::new(1)
    };
    let class = pool.class(&index.searcher(), &all());
    pool.durations.note(class, Duration::from_micros(1), true);
    pool
}

/// Searches while the one place is taken. The clock that waiting goes by is the test's, the one of searches isn't.
async fn search_without_a_place(
    pool: &SearchPool,
    index: &Index,
) -> Result<Result<SearchResult, souk_index::Error>> {
    let _taken = pool.places.acquire().await.expect("the pool is open");
    pool.search(index.searcher(), all(), within(Duration::from_secs(60)))
        .await
}

#[tokio::test(start_paused = true)]
async fn what_is_brief_needs_no_place() {
    let index = index();
    let pool = pool(Duration::from_secs(60), &index);
    let found = search_without_a_place(&pool, &index).await;
    assert_eq!(found.expect("no place").expect("found").hits.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn what_is_brief_on_one_index_is_not_known_to_be_so_on_another() {
    let pool = pool(Duration::from_secs(60), &index());
    let refused = search_without_a_place(&pool, &index()).await;
    let refused = refused.expect_err("there is no place");
    assert!(
        matches!(refused, EngineError::DeadlineExceeded(Waiting::Searchers)),
        "{refused:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn what_turns_out_not_to_be_brief_begins_anew_on_a_place() {
    let index = index();
    let pool = pool(Duration::ZERO, &index);
    let refused = search_without_a_place(&pool, &index).await;
    let refused = refused.expect_err("there is no place");
    assert!(
        matches!(refused, EngineError::DeadlineExceeded(Waiting::Searchers)),
        "{refused:?}"
    );
    let found = pool.search(index.searcher(), all(), Wait::new(None)).await;
    assert_eq!(found.expect("a place").expect("found").hits.len(), 3);
    assert_eq!(pool.active(), 0, "the place is free again");
}

/// Where the time of the call is over, too, nothing begins anew.
#[tokio::test]
async fn whose_time_is_over_is_told_so_at_once() {
    let index = index();
    let pool = pool(Duration::from_secs(60), &index);
    let _taken = pool.places.acquire().await.expect("the pool is open");
    let over = pool.search(index.searcher(), all(), within(Duration::ZERO)).await;
    let over = over.expect("it isn't about places");
    assert!(
        matches!(over, Err(souk_index::Error::DeadlineExceeded { .. })),
        "{over:?}"
    );
}
