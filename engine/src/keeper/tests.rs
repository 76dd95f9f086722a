//! What only the inside can bring about: moments between two steps, and damage.

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use souk_index::{Field, FieldKind, Query, SearchRequest};
use souk_storage::FreeSpace;
use tempfile::TempDir;

use super::*;
use crate::collection::Collection;
use crate::columns::{ColumnReader, Columns, CorruptRow};
use crate::definition::{SearchIndexDefinition, TableDefinition};
use crate::engine::{Engine, EngineConfig, Health, Tables};
use crate::index_admin::weigh;
use crate::index_change::IndexChange;
use crate::kept_changes;
use crate::resource::Resource;
use crate::table::Search;

/// A name on a tree.
#[derive(Clone, Debug, PartialEq)]
struct Leaf(String);

impl Resource for Leaf {
    type Record = Self;
    const TABLE: &'static str = "leaves";
    const NAME: &'static str = "leaf";
    const ID_FIELD: &'static str = "leaf_id";

    fn definition() -> TableDefinition {
        TableDefinition::hashed(Self::TABLE).id_field(Field::keyword("leaf_id").key())
    }

    fn id(record: &Self) -> &str {
        &record.0
    }

    fn to_columns(record: &Self) -> Columns {
        Columns::new().string("name", &record.0)
    }

    fn from_columns(id: &str, _: &ColumnReader<'_>) -> Result<Self, CorruptRow> {
        Ok(Self(id.to_owned()))
    }
}

/// Free bytes as a test wants them, for indexes; the store has room.
#[derive(Debug)]
struct Scripted(AtomicU64);

impl FreeSpace for Scripted {
    fn free_bytes(&self, directory: &Path) -> io::Result<u64> {
        let is_store = directory.iter().any(|part| part == "store");
        Ok(if is_store {
            u64::MAX
        } else {
            self.0.load(Ordering::SeqCst)
        })
    }
}

struct Tree {
    engine: Engine,
    leaves: Collection<Leaf>,
    disk: Arc<Scripted>,
    _directory: TempDir,
}

impl Tree {
    async fn grown() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let disk = Arc::new(Scripted(u64::MAX.into()));
        let mut config = EngineConfig::new(directory.path());
        config.storage.fjall.free_space = Arc::clone(&disk) as _;
        let engine = Engine::open(config, Tables::new().table::<Leaf>()).await;
        let engine = engine.expect("the engine opens");
        let mut health = engine.health();
        health.wait_for(Health::is_serving).await.expect("it serves");
        let leaves = engine.collection().expect("declared");
        let tree = Self {
            engine,
            leaves,
            disk,
            _directory: directory,
        };
        tree.sprouts("l0").await;
        tree
    }

    /// Writes a leaf, and waits until searches see it.
    async fn sprouts(&self, id: &str) {
        let leaf = Leaf(id.to_owned());
        let written = self.leaves.create(leaf, None, false).await.expect("created");
        let mut search = everything();
        search.min_sequence = written.sequence.unsigned_abs();
        let seen = async {
            loop {
                match self.leaves.search(search.clone()).await {
                    Ok(page) => return page.hits.into_iter().any(|hit| hit.id == id),
                    Err(EngineError::IndexStalled { .. } | EngineError::IndexBuilding { .. }) => {
                        tokio::task::yield_now().await;
                    }
                    Err(error) => panic!("{error:?}"),
                }
            }
        };
        assert!(in_time(seen).await, "{id}");
    }

    fn table(&self) -> Arc<OpenTable> {
        self.engine.opened("leaves").expect("a table")
    }

    fn index(&self) -> Arc<OpenIndex> {
        self.table().index("leaves").expect("an index")
    }

    async fn changes(&self, change: IndexChange) {
        let mut redesign = self.engine.redesign("leaves").await.expect("a table");
        redesign.add(&change).expect("a change");
        redesign.make(false).await.expect("changed");
    }

    async fn rebuilds(&self) {
        let mut redesign = self.engine.redesign("leaves").await.expect("a table");
        redesign.rebuild();
        redesign.make(false).await.expect("built anew");
    }

    async fn closes(self) {
        let deadline = tokio::time::Instant::now() + Duration::from_secs(30);
        self.engine.close(deadline).await.expect("the engine closes");
    }
}

async fn in_time<T>(future: impl Future<Output = T>) -> T {
    let ended = tokio::time::timeout(Duration::from_secs(60), future).await;
    ended.expect("it comes by itself")
}

fn everything() -> Search {
    Search::new(SearchRequest::new(Query::MatchAll))
}

fn add(field: &str) -> IndexChange {
    IndexChange::AddField {
        field: field.to_owned(),
        kind: FieldKind::Keyword,
        source: "name".to_owned(),
    }
}

/// Has a build chosen to take the place of the index that answers, before it is as far; then designs the index otherwise.
async fn redesigned_in_between(next: IndexChange) {
    let tree = Tree::grown().await;
    tree.disk.0.store(1, Ordering::SeqCst);
    tree.changes(add("name")).await;
    let state = Arc::clone(&tree.index().state);
    let waits = || state.build().is_some_and(|build| build.waiting.is_some());
    in_time(async {
        while !waits() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    let chosen = tree.index().wanted().fingerprint();
    let keeper = tree.engine.keeper("leaves").expect("a keeper");
    let promoted = tokio::task::spawn_blocking(move || {
        matches!(keeper.keeping.promote(chosen), Promotion::Alone { .. })
    });
    assert!(
        promoted.await.expect("no panic"),
        "the old one doesn't follow any more"
    );
    tree.changes(next).await;
    tree.disk.0.store(u64::MAX, Ordering::SeqCst);
    tree.sprouts("l1").await;
    let wanted = tree.index().wanted().fingerprint();
    in_time(async {
        let serving = || state.serving().map(|serving| serving.design.fingerprint());
        while serving() != Some(wanted) {
            tokio::task::yield_now().await;
        }
    })
    .await;
    tree.sprouts("l2").await;
    tree.closes().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redesign_between_promotion_and_serving_freezes_nothing() {
    redesigned_in_between(add("other")).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redesign_back_between_promotion_and_serving_freezes_nothing() {
    let field = "name".to_owned();
    redesigned_in_between(IndexChange::DropField { field }).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_condemned_index_is_built_anew_and_refuses_until_then() {
    let tree = Tree::grown().await;
    let index = tree.index();
    let folder = tree._directory.path().join("index/leaves");
    let folder = folder::of(&folder, index.wanted().fingerprint());
    std::fs::write(folder.join("of the old one"), "").expect("written");
    // No draft goes on before searches have been refused.
    tree.disk.0.store(1, Ordering::SeqCst);
    let serving = index.state.serving().expect("it answers");
    index.state.condemn(serving.index.opening(), "bytes of the test");
    drop(serving);
    let refused = tree.leaves.search(everything()).await;
    assert!(
        matches!(refused, Err(EngineError::IndexBuilding { .. })),
        "{refused:?}"
    );
    let mut health = tree.engine.health();
    let told =
        |health: &Health| matches!(health, Health::NotServing { reason } if reason.contains("bytes of"));
    in_time(health.wait_for(told)).await.expect("the engine lives");
    tree.disk.0.store(u64::MAX, Ordering::SeqCst);
    in_time(health.wait_for(Health::is_serving))
        .await
        .expect("it serves");
    tree.sprouts("l1").await;
    assert!(!folder.join("of the old one").exists());
    tree.closes().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_index_is_built_anew_once_however_often_that_is_asked_for_meanwhile() {
    let tree = Tree::grown().await;
    let index = tree.index();
    let wanted = || index.wanted().fingerprint();
    let first = wanted();
    tree.disk.0.store(1, Ordering::SeqCst);
    tree.rebuilds().await;
    let second = wanted();
    assert_ne!(first, second);
    tree.rebuilds().await;
    assert_eq!(wanted(), second, "it is being built already");
    tree.disk.0.store(u64::MAX, Ordering::SeqCst);
    in_time(async {
        let serving = || index.state.serving().map(|serving| serving.design.fingerprint());
        while serving() != Some(second) {
            tokio::task::yield_now().await;
        }
    })
    .await;
    tree.sprouts("l1").await;
    tree.rebuilds().await;
    assert!(![first, second].contains(&wanted()));
    tree.closes().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_whose_caller_has_left_is_made_to_its_end() {
    let tree = Tree::grown().await;
    let (table, index) = (tree.table(), tree.index());
    let first = index.wanted().fingerprint();
    let mut redesign = tree.engine.redesign("leaves").await.expect("a table");
    redesign.rebuild();
    let mut made = Box::pin(redesign.make(false));
    assert!(futures_util::poll!(&mut made).is_pending());
    drop(made);
    // Whoever changes something next waits for it.
    let next = tree.engine.redesign("leaves").await.expect("a table");
    let written = kept_changes::read(tree.engine.database(), "leaves")
        .await
        .expect("kept");
    assert_eq!((written.builds, table.kept.read().builds), (1, 1));
    assert_ne!(index.wanted().fingerprint(), first);
    drop(next);
    tree.closes().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_asks_for_an_index_that_isnt_there_waits_for_no_change() {
    let tree = Tree::grown().await;
    let change = tree.engine.redesign("leaves").await.expect("a table");
    let missing = in_time(tree.engine.redesign("twigs")).await.map(drop);
    assert!(
        matches!(missing, Err(EngineError::NotFound { .. })),
        "{missing:?}"
    );
    drop(change);
    tree.closes().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_index_that_cant_be_built_harms_neither_the_others_nor_health() {
    let tree = Tree::grown().await;
    tree.disk.0.store(1, Ordering::SeqCst);
    let trial = SearchIndexDefinition::new("leaves.trial")
        .weight(50)
        .field(Field::keyword("name"));
    tree.engine.create_index(trial).await.expect("created");
    let index = tree.table().index("leaves.trial").expect("it is there");
    let waits = || index.state.build().is_some_and(|build| build.waiting.is_some());
    in_time(async {
        while !waits() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    // Searches aren't left to it alone.
    let mut weighed = tree.engine.redesign("leaves").await.expect("an index");
    weighed.weigh("leaves", 0).expect("an index of the table");
    let refused = weighed.check_weights().expect_err("it doesn't answer");
    assert_eq!(refused.reason, "NOT_SERVING");
    drop(weighed);
    // Half of the searches would go to it, if it answered.
    for nth in 0..4 {
        tree.sprouts(&format!("m{nth}")).await;
    }
    assert!(tree.engine.health().borrow().is_serving());
    let named = tree
        .leaves
        .for_search(Some("leaves.trial"), None)
        .expect("it is there");
    let refused = named.search(everything()).await;
    assert!(
        matches!(refused, Err(EngineError::IndexBuilding { .. })),
        "{refused:?}"
    );
    // One that has failed for good is passed over alike.
    index
        .state
        .set_phase(Phase::Failed("a panic of the test".to_owned()));
    for nth in 0..4 {
        tree.sprouts(&format!("n{nth}")).await;
    }
    assert!(tree.engine.health().borrow().is_serving());
    tree.engine.drop_index("leaves.trial").await.expect("dropped");
    tree.disk.0.store(u64::MAX, Ordering::SeqCst);
    tree.sprouts("l1").await;
    tree.closes().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn weights_change_between_two_searches() {
    let tree = Tree::grown().await;
    let trial = SearchIndexDefinition::new("leaves.trial").field(Field::keyword("name"));
    tree.engine.create_index(trial).await.expect("created");
    let (engine, table) = (tree.engine.clone(), tree.table());
    let weighing = std::thread::spawn(move || {
        let defined = table.definition();
        for _ in 0..1_000 {
            for weights in [[0, 1], [1, 0]] {
                let mut weighed = (*defined).clone();
                for (index, weight) in weighed.indexes.iter_mut().zip(weights) {
                    index.weight = weight;
                }
                table.define(weighed);
                weigh(&engine, &table);
            }
        }
    });
    let table = tree.table();
    while !weighing.is_finished() {
        table.pick_index().expect("one has a weight at any time");
    }
    weighing.join().expect("it weighs");
    tree.closes().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_index_whose_files_are_damaged_doesnt_keep_another_one_from_being_built() {
    let tree = Tree::grown().await;
    let index = tree.index();
    let folder = tree.engine.inner().folder.join("leaves");
    let folder = folder.join(format!("{:016x}", index.wanted().fingerprint()));
    let mut damaged = 0;
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.extension().is_some_and(|extension| extension == "store") {
            // In place: what has opened the file sees it.
            let mut file = std::fs::File::options().write(true).open(&path).expect("a file");
            let length = file.metadata().expect("its length").len();
            io::Write::write_all(&mut file, &vec![0xff; length as usize]).expect("written");
            damaged += 1;
        }
    }
    assert!(damaged > 0);
    let serving = index.state.serving().expect("it serves");
    serving.index.size().expect_err("it can't be measured");
    let trial = SearchIndexDefinition::new("leaves.trial").field(Field::keyword("name"));
    tree.engine.create_index(trial).await.expect("created");
    let trial = tree.table().index("leaves.trial").expect("it is there");
    in_time(async {
        while trial.state.serving().is_none() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    tree.closes().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_index_isnt_dropped_whose_searches_none_would_answer() {
    let tree = Tree::grown().await;
    let trial = |name: &str, weight| {
        SearchIndexDefinition::new(name)
            .weight(weight)
            .field(Field::keyword("name"))
    };
    let able = trial("leaves.able", 50);
    tree.engine.create_index(able).await.expect("created");
    let able = tree.table().index("leaves.able").expect("it is there");
    in_time(async {
        while !able.is_able() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    tree.disk.0.store(1, Ordering::SeqCst);
    let waiting = trial("leaves.waiting", 50);
    tree.engine.create_index(waiting).await.expect("created");
    let mut weighed = tree.engine.redesign("leaves").await.expect("an index");
    weighed.weigh("leaves", 0).expect("an index of the table");
    weighed.check_weights().expect("one of the others answers");
    weighed.make(false).await.expect("weighed");
    let needed = tree.engine.drop_index("leaves.able").await;
    assert!(
        matches!(needed, Err(EngineError::IndexNeeded { .. })),
        "{needed:?}"
    );
    tree.engine.drop_index("leaves.waiting").await.expect("dropped");
    tree.closes().await;
}
