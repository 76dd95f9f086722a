//! What an index takes of memory while it is written.

use souk_index::{Document, Field, Index, IndexOptions, Object, Operation, Query, Schema};

use super::keys;

const DOCUMENTS: usize = 900;

fn documents(wrap: fn(Document) -> Operation, brand: &str) -> Vec<Operation> {
    let document = |nth| Document {
        key: format!("key-{nth:028}").into_bytes(),
        fields: Object::new().with("brand", brand),
    };
    (0..DOCUMENTS).map(document).map(wrap).collect()
}

#[test]
fn what_replaces_nothing_leaves_nothing_behind_and_removals_are_small_and_go() {
    let schema = Schema::new(vec![Field::keyword("brand")]).expect("the schema is valid");
    let index = Index::create_in_ram(schema, IndexOptions::default()).expect("an index");
    let mut writer = index.writer().expect("the writer");
    writer
        .apply(documents(Operation::Insert, "old"))
        .expect("taken in");
    let memory = index.memory();
    assert_eq!((memory.documents, memory.removals), (memory.writer_limit, 0));
    writer.commit(1).expect("committed");
    assert_eq!((index.memory().documents, index.memory().removals), (0, 0));

    writer
        .apply(documents(Operation::Upsert, "new"))
        .expect("taken in");
    let removals = index.memory().removals as usize;
    assert!(
        (DOCUMENTS * 100..DOCUMENTS * 200).contains(&removals),
        "{removals} bytes"
    );
    writer.commit(2).expect("committed");
    assert_eq!(keys(&index, Query::term("brand", "old")).len(), 0);
    assert_eq!(keys(&index, Query::term("brand", "new")).len(), DOCUMENTS);
    // The library lets go of what segments have applied when there is more.
    let one = documents(Operation::Upsert, "new").into_iter().take(1);
    writer.apply(one.collect()).expect("taken in");
    writer.commit(3).expect("committed");
    assert!(index.memory().removals < 200, "{} bytes", index.memory().removals);
}
