//! What is left at the end: all that was acknowledged and nothing else, indexes that equal rebuilt ones, stores and backups that
//! are whole.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Context as _;
use serde_json::{Value, json};
use souk_e2e::data::{TAGS, WORDS};

use super::Run;
use super::calls::Failed;
use super::operator::{Operator, check, souk};
use super::searcher::term;
use super::tables::{TABLES, Table, index_call, list};

/// Until a suite that was started again serves.
const START_MAX: Duration = Duration::from_secs(120);
/// Hits of a page.
const PAGE: usize = 1_000;
/// Sort keys of one scan, below the most that a search takes.
const SORTS: usize = 16;
/// Figures of one search.
const AGGREGATIONS: usize = 5;

/// Judges what is left; the suite is stopped then.
pub(super) async fn pronounce(run: &mut Run, operator: &mut Operator) -> anyhow::Result<()> {
    // Stopped in order, and started again.
    operator.suite.stop().await?;
    start_again(run, operator).await?;
    for table in 0..TABLES.len() {
        rows(run, table).await?;
    }
    let followed = answers(run).await?;
    operator.suite.stop().await?;
    for table in &TABLES {
        std::fs::remove_dir_all(operator.suite.service_directory(table.process).join("index"))?;
    }
    start_again(run, operator).await?;
    let rebuilt = answers(run).await?;
    run.judge
        .add("answers of rebuilt indexes compared", rebuilt.len());
    for (question, answer) in &followed {
        let again = rebuilt.get(question).unwrap_or(&Value::Null);
        if again != answer {
            run.judge.wrong(format_args!(
                "{question}: the index that followed and the rebuilt one differ: {}",
                difference(answer, again)
            ));
        }
    }
    if followed.len() != rebuilt.len() {
        run.judge.wrong("the rebuilt indexes have other fields");
    }
    operator.suite.stop().await?;
    let restored = operator.backups().with_file_name("restored");
    for table in &TABLES {
        check(run, "--data", &operator.suite.service_directory(table.process)).await?;
    }
    operator.check_backups(run).await?;
    let (from, to) = (
        operator.backups().display().to_string(),
        restored.display().to_string(),
    );
    souk(run, &["restore", "--from", &from, "--data", &to]).await
}

async fn start_again(run: &mut Run, operator: &mut Operator) -> anyhow::Result<()> {
    let started = tokio::time::timeout(START_MAX, operator.suite.restart()).await;
    started.with_context(|| format!("the suite doesn't serve {START_MAX:?} after its start"))??;
    run.connect(operator.suite.channel()?)
}

/// The first place where two answers differ.
fn difference(one: &Value, other: &Value) -> String {
    match (one.as_array(), other.as_array()) {
        (Some(all), Some(others)) => {
            let at = all.iter().zip(others).position(|(one, other)| one != other);
            let at = at.unwrap_or(all.len().min(others.len()));
            format!(
                "{} and {} entries; at {at} {:?} and {:?}",
                all.len(),
                others.len(),
                all.get(at),
                others.get(at)
            )
        }
        _ => format!("{one} and {other}"),
    }
}

async fn ask(run: &Run, name: &str, request: &Value) -> anyhow::Result<Value> {
    match run.calls.call(name, request).await {
        Ok(answer) => Ok(answer),
        Err(Failed::Wrong(how)) => anyhow::bail!(how),
        Err(failed) => anyhow::bail!("{name} {request}: {failed:?} of a suite that is whole"),
    }
}

/// The rows of a table, read from the store and found by a search, are those of the model.
async fn rows(run: &Run, table: usize) -> anyhow::Result<()> {
    let (names, owners) = (&TABLES[table], run.model.owners_of(table));
    let expected = run.model.expect(&owners);
    let mut blocks = run
        .calls
        .dynamic
        .open_stream(&names.several("Export"), &json!({}))
        .await??;
    let mut stored = BTreeMap::new();
    while let Some(block) = blocks.message().await? {
        let rows = list(&block, names.items).iter();
        stored.extend(rows.map(|row| (names.id_of(row).to_owned(), row.clone())));
    }
    let search = json!({"sort": [{"primary_key": {}}], "min_sequence": expected.sequence.to_string()});
    let hits = scan(run, names, search).await?;
    let hits = hits.iter().map(|hit| &hit["resource"]);
    let searched: BTreeMap<_, _> = hits
        .map(|row| (names.id_of(row).to_owned(), row.clone()))
        .collect();
    run.judge.add("rows compared at the end", stored.len());
    for (what, found) in [("stored", &stored), ("found", &searched)] {
        for wrong in run.model.compare(&owners, &expected, found) {
            run.judge.wrong(format_args!("{what} at the end: {wrong}"));
        }
    }
    if stored != searched {
        let (stored, found, items) = (stored.len(), searched.len(), names.items);
        run.judge.wrong(format_args!(
            "of {items} {stored} are stored, and {found} are found, or they differ"
        ));
    }
    Ok(())
}

/// All hits of a search, page by page.
async fn scan(run: &Run, table: &Table, mut search: Value) -> anyhow::Result<Vec<Value>> {
    search["page_size"] = json!(PAGE);
    let mut hits = Vec::new();
    loop {
        let request = json!({"search": search});
        let answer = ask(run, &table.several("Search"), &request).await?;
        hits.extend_from_slice(list(&answer, "hits"));
        search["page_token"] = answer["next_page_token"].clone();
        if search["page_token"].as_str().unwrap_or_default().is_empty() {
            return Ok(hits);
        }
    }
}

/// All that the indexes hold, as far as searches tell: each document's values by sorting, the documents of each word, and figures
/// over all of them.
async fn answers(run: &Run) -> anyhow::Result<BTreeMap<String, Value>> {
    let mut answers = BTreeMap::new();
    for table in &TABLES {
        let index = ask(run, &index_call("Get"), &json!({"index": table.items})).await?;
        let described = list(&index["index"], "fields");
        let whole = |field: &&Value| !field["array"].as_bool().unwrap_or_default();
        let of_types = |types: &[&str]| {
            let fields = described.iter().filter(whole);
            let typed = fields.filter(|field| {
                let of = field["type"].as_str().unwrap_or_default();
                types.contains(&of.trim_start_matches("INDEX_FIELD_TYPE_"))
            });
            let named = typed.filter_map(|field| field["field"].as_str().map(str::to_owned));
            // Of nested objects there may be several.
            named
                .filter(|name| !name.starts_with("tags.") && !name.starts_with("faces."))
                .collect::<Vec<_>>()
        };
        let numbers = of_types(&["LONG"]);
        let mut sorts: Vec<_> = of_types(&["KEYWORD", "LONG", "DOUBLE", "BOOLEAN", "DATE"]);
        sorts.extend(["attributes.colour".to_owned(), "attributes.level".to_owned()]);
        let mut sorts: Vec<_> = sorts
            .iter()
            .map(|field| json!({"field": {"field": field}}))
            .collect();
        let places = of_types(&["GEO_POINT"]).into_iter();
        sorts.extend(places.map(|field| {
            json!({"geo_distance": {"field": field, "points": [{"latitude": 30.3, "longitude": 120.1}]}})
        }));
        for sorts in sorts.chunks(SORTS) {
            let search = json!({"sort": sorts, "hits_mode": "HITS_MODE_KEYS"});
            let hits = scan(run, table, search).await?;
            answers.insert(format!("{} by {sorts:?}", table.items), Value::Array(hits));
        }
        let words = WORDS.map(|word| json!({"match": {"field": table.text, "text": word}}));
        let tags = TAGS.map(|tag| match table.process {
            "media" => json!({"nested": {"path": "tags", "query": term("tags.tag", tag)}}),
            "shop" => term("tags", tag),
            _ => term("attributes.colour", tag),
        });
        for query in words.into_iter().chain(tags) {
            let question = format!("{} of {query}", table.items);
            let search =
                json!({"query": query, "sort": [{"primary_key": {}}], "hits_mode": "HITS_MODE_KEYS"});
            answers.insert(question, Value::Array(scan(run, table, search).await?));
        }
        let groups = of_types(&["KEYWORD"]).into_iter().map(|field| {
            let order = json!([{"key": true}]);
            (
                field.clone(),
                json!({"terms": {"field": field, "size": 2_000, "order": order}}),
            )
        });
        let figures = numbers
            .into_iter()
            .map(|field| (field.clone(), json!({"stats": {"field": field}})));
        let figures: Vec<_> = groups.chain(figures).collect();
        for figures in figures.chunks(AGGREGATIONS) {
            let named = figures.iter().cloned().collect::<serde_json::Map<_, _>>();
            let search =
                json!({"aggregations": named, "hits_mode": "HITS_MODE_NONE", "total": {"exact": true}});
            let answer = ask(run, &table.several("Search"), &json!({"search": search})).await?;
            let (figures, total) = (&answer["aggregations"], &answer["total"]);
            answers.insert(format!("{} in {named:?}", table.items), json!([figures, total]));
        }
    }
    Ok(answers)
}
