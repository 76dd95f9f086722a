//! What an index keeps: across restarts, crashes, and damage.

use std::fs;
use std::path::Path;

use souk_index::{
    Completeness, Error, Field, FieldValue, Index, IndexOptions, MergeRoom, MisfitReason, Object, Operation,
    Query, Schema, Sort, limits,
};

use super::{commit, find, keys, schema, upsert};

fn open(folder: &Path) -> Result<Index, Error> {
    Index::open(folder, schema(), IndexOptions::default())
}

fn numbered(n: i64) -> Operation {
    upsert(&format!("k{n}"), Object::new().with("n", n).with("kind", "one"))
}

#[test]
fn a_closed_index_resumes_where_it_was() {
    let folder = tempfile::tempdir().expect("a folder");
    let index = open(folder.path()).expect("the index opens");
    assert_eq!((index.applied_sequence(), index.durable_sequence()), (0, 0));
    let mut writer = index.writer().expect("the writer");
    commit(&mut writer, vec![numbered(1), numbered(2)], 41);
    assert_eq!((index.applied_sequence(), index.durable_sequence()), (41, 0));
    writer.checkpoint().expect("the checkpoint works");
    assert_eq!(index.durable_sequence(), 41);
    commit(&mut writer, vec![numbered(3)], 42);
    writer.close().expect("the writer closes");
    drop(index);
    let index = open(folder.path()).expect("the index opens");
    assert_eq!((index.applied_sequence(), index.durable_sequence()), (42, 42));
    assert_eq!(keys(&index, Query::MatchAll), ["k1", "k2", "k3"]);
    index.verify().expect("checksums match");
}

#[test]
fn a_crash_takes_back_what_no_checkpoint_made_durable() {
    let folder = tempfile::tempdir().expect("a folder");
    let index = open(folder.path()).expect("the index opens");
    let mut writer = index.writer().expect("the writer");
    commit(&mut writer, vec![numbered(1)], 1);
    writer.checkpoint().expect("the checkpoint works");
    commit(
        &mut writer,
        vec![numbered(2), Operation::Delete { key: b"k1".to_vec() }],
        2,
    );
    assert_eq!(keys(&index, Query::MatchAll), ["k2"]);
    drop(writer);
    drop(index);
    let index = open(folder.path()).expect("the index opens");
    assert_eq!((index.applied_sequence(), index.durable_sequence()), (1, 1));
    assert_eq!(keys(&index, Query::MatchAll), ["k1"]);
    // Applied again, as the change log does.
    let mut writer = index.writer().expect("the writer");
    commit(
        &mut writer,
        vec![numbered(2), Operation::Delete { key: b"k1".to_vec() }],
        2,
    );
    assert_eq!(keys(&index, Query::MatchAll), ["k2"]);
}

#[test]
fn an_index_that_isnt_open_tells_its_last_commit_and_moves_on() {
    let folder = tempfile::tempdir().expect("a folder");
    assert!(Index::last_commit(folder.path()).expect("no index").is_none());
    let mut options = IndexOptions::default();
    options.label = "a label".to_owned();
    let index = Index::open(folder.path(), schema(), options).expect("the index opens");
    let mut writer = index.writer().expect("the writer");
    commit(&mut writer, vec![numbered(1), numbered(2)], 41);
    let misfits = index.misfits();
    writer.close().expect("the writer closes");
    let size = index.size().expect("a size");
    drop(index);
    let last = Index::last_commit(folder.path())
        .expect("lists")
        .expect("a commit");
    assert_eq!((last.sequence, last.label.as_str()), (41, "a label"));
    assert_eq!(last.completeness, Completeness::Complete);
    assert_eq!(last.schema, format!("{:016x}", schema().fingerprint()));
    assert_eq!(
        (last.size.documents, last.size.segments),
        (size.documents, size.segments)
    );
    assert_eq!(last.misfits, misfits);

    Index::move_on(folder.path(), 77).expect("it moves on");
    Index::move_on(folder.path(), 50).expect("it never goes back");
    let index = open(folder.path()).expect("the index opens");
    assert_eq!((index.applied_sequence(), index.durable_sequence()), (77, 77));
    assert_eq!(keys(&index, Query::MatchAll), ["k1", "k2"]);
    index.verify().expect("checksums match");
    let mut writer = index.writer().expect("the writer");
    commit(&mut writer, vec![numbered(3)], 78);
    writer.close().expect("the writer closes");
    drop(index);
    assert_eq!(
        keys(&open(folder.path()).expect("it opens"), Query::MatchAll),
        ["k1", "k2", "k3"]
    );

    fs::write(folder.path().join("meta.json"), "{}").expect("damaged");
    assert!(matches!(
        Index::last_commit(folder.path()),
        Err(Error::Corrupt { .. })
    ));
    assert!(matches!(
        Index::move_on(folder.path(), 99),
        Err(Error::Corrupt { .. })
    ));
}

#[test]
fn changes_are_invisible_before_their_commit() {
    let index = Index::create_in_ram(schema(), IndexOptions::default()).expect("an index");
    let mut writer = index.writer().expect("the writer");
    writer.apply(vec![numbered(1)]).expect("the change is taken in");
    assert_eq!(keys(&index, Query::MatchAll), [""; 0]);
    writer.commit(5).expect("the commit works");
    assert_eq!(keys(&index, Query::MatchAll), ["k1"]);
    let back = writer.commit(4);
    assert!(
        matches!(
            back,
            Err(Error::SequenceWentBack {
                given: 4,
                committed: 5
            })
        ),
        "{back:?}"
    );
}

#[test]
fn another_schema_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    drop(open(folder.path()).expect("the index opens"));
    let other = Schema::new(vec![Field::keyword("kind")]).expect("the schema is valid");
    let result = Index::open(folder.path(), other.clone(), IndexOptions::default());
    match result {
        Err(Error::SchemaMismatch { expected, found }) => {
            assert_eq!((expected, found), (other.fingerprint(), schema().fingerprint()));
        }
        other => panic!("{other:?}"),
    }
    open(folder.path()).expect("the index opens");
}

#[test]
fn damaged_files_are_found_not_searched() {
    let build = |damage: &dyn Fn(&Path)| {
        let folder = tempfile::tempdir().expect("a folder");
        let index = open(folder.path()).expect("the index opens");
        let mut writer = index.writer().expect("the writer");
        commit(&mut writer, (0..50).map(numbered).collect(), 1);
        writer.close().expect("the writer closes");
        drop(index);
        damage(folder.path());
        let mut options = IndexOptions::default();
        options.verified_at_open = u64::MAX;
        Index::open(folder.path(), schema(), options).map(|_| ())
    };
    let file_with = |folder: &Path, extension: &str| {
        let files = fs::read_dir(folder)
            .expect("the folder is there")
            .map(|entry| entry.expect("an entry").path());
        let mut files = files.filter(|path| path.extension().is_some_and(|found| found == extension));
        files.next().expect("such a file")
    };
    build(&|_| {}).expect("an undamaged index opens");
    let flip = |extension: &'static str| {
        move |folder: &Path| {
            let path = file_with(folder, extension);
            let mut bytes = fs::read(&path).expect("the file is there");
            bytes[0] ^= 1;
            fs::write(path, bytes).expect("the file can be written");
        }
    };
    let damages: [&dyn Fn(&Path); 6] = [
        &flip("idx"),
        &flip("fast"),
        &|folder| fs::remove_file(file_with(folder, "term")).expect("the file is there"),
        &|folder| fs::remove_file(folder.join("meta.json")).expect("the file is there"),
        &|folder| fs::write(folder.join("meta.json"), b"{}").expect("the file can be written"),
        &|folder| fs::write(folder.join("souk-index.json"), b"{").expect("the file can be written"),
    ];
    for (nth, damage) in damages.into_iter().enumerate() {
        let result = build(damage);
        assert!(matches!(result, Err(Error::Corrupt { .. })), "{nth}: {result:?}");
    }
}

#[test]
fn there_is_one_writer_at_a_time() {
    let folder = tempfile::tempdir().expect("a folder");
    let index = open(folder.path()).expect("the index opens");
    let writer = index.writer().expect("the writer");
    assert!(matches!(index.writer(), Err(Error::WriterBusy)));
    let second = open(folder.path()).expect("the index opens");
    assert!(matches!(second.writer(), Err(Error::WriterBusy)));
    drop(writer);
    drop(second);
    index.writer().expect("the writer");
}

#[test]
fn values_that_do_not_fit_are_counted_and_their_documents_found() {
    let folder = tempfile::tempdir().expect("a folder");
    let index = open(folder.path()).expect("the index opens");
    let mut writer = index.writer().expect("the writer");
    let fields = Object::new()
        .with("kind", "x".repeat(limits::MAX_KEYWORD_BYTES + 1))
        .with("n", "no number")
        .with_all("m", [1, 2])
        .with_all("price", [f64::NAN, 2.0])
        .with("flag", true)
        .with("items", FieldValue::Long(3))
        .with("unknown", "fields that the schema doesn't name are nobody's");
    commit(&mut writer, vec![upsert("k", fields)], 1);
    let report = index.misfits();
    let found: Vec<(&str, MisfitReason)> = report
        .recent
        .iter()
        .map(|misfit| (misfit.field.as_str(), misfit.reason))
        .collect();
    let expected = [
        ("kind", MisfitReason::TooLong),
        ("n", MisfitReason::WrongType),
        ("m", MisfitReason::TooMany),
        ("price", MisfitReason::NotFinite),
        ("items", MisfitReason::WrongType),
    ];
    assert_eq!((found.as_slice(), report.count), (&expected[..], 5));
    assert_eq!(keys(&index, Query::term("flag", true)), ["k"]);
    assert_eq!(keys(&index, Query::term("price", 2.0)), ["k"]);
    assert_eq!(keys(&index, Query::term("m", 1)), ["k"]);
    assert_eq!(keys(&index, Query::exists("kind")), [""; 0]);
    writer.close().expect("the writer closes");
    drop(index);
    assert_eq!(open(folder.path()).expect("the index opens").misfits(), report);
}

#[test]
fn an_empty_key_is_refused_before_anything_is_taken_in() {
    let index = Index::create_in_ram(schema(), IndexOptions::default()).expect("an index");
    let mut writer = index.writer().expect("the writer");
    let result = writer.apply(vec![numbered(1), Operation::Delete { key: Vec::new() }]);
    assert!(matches!(result, Err(Error::EmptyKey)), "{result:?}");
    commit(&mut writer, Vec::new(), 1);
    assert_eq!(keys(&index, Query::MatchAll), [""; 0]);
}

/// It can't be an error: whoever follows a log would meet it again and again.
#[test]
fn a_document_whose_key_is_too_long_is_listed_and_the_others_are_found() {
    let index = Index::create_in_ram(schema(), IndexOptions::default()).expect("an index");
    let mut writer = index.writer().expect("the writer");
    let (longest, long) = (
        "k".repeat(limits::MAX_KEY_BYTES),
        "l".repeat(limits::MAX_KEY_BYTES + 1),
    );
    let delete = Operation::Delete {
        key: long.clone().into_bytes(),
    };
    let operations = vec![
        upsert(&long, Object::new()),
        upsert(&longest, Object::new()),
        upsert(&long, Object::new()),
        delete,
    ];
    commit(&mut writer, operations, 1);
    assert_eq!(keys(&index, Query::MatchAll), [longest]);
    let misfits = index.misfits();
    assert_eq!(misfits.count, 2);
    let [_, last] = misfits.recent.as_slice() else {
        panic!("two: {misfits:?}");
    };
    assert_eq!(
        (last.key.as_slice(), last.reason),
        (long.as_bytes(), MisfitReason::TooLong)
    );
    assert_eq!(last.message, "1001 bytes, 1000 allowed");
}

#[test]
fn tokens_outlive_the_process() {
    let folder = tempfile::tempdir().expect("a folder");
    let index = open(folder.path()).expect("the index opens");
    let mut writer = index.writer().expect("the writer");
    for n in 0..6 {
        commit(&mut writer, vec![numbered(n)], n as u64 + 1);
    }
    let sort = vec![Sort::field("kind", true), Sort::field("n", true)];
    let request = souk_index::SearchRequest::new(Query::MatchAll)
        .sorted(sort)
        .page_size(2);
    let first = find(&index.searcher(), &request);
    writer.merge_all().expect("the merge works");
    writer.close().expect("the writer closes");
    drop(index);
    let index = open(folder.path()).expect("the index opens");
    let second = find(&index.searcher(), &request.after(first.next_page_token));
    let keys: Vec<Vec<u8>> = second.hits.into_iter().map(|hit| hit.key).collect();
    assert_eq!(keys, [b"k3", b"k2"]);
}

#[test]
fn segments_are_merged_when_there_is_room_for_what_they_become() {
    const COMMITS: i64 = 6;
    let folder = tempfile::tempdir().expect("a folder");
    // Each opening asks for more room than there is, until there is room for anything; merges end with the writer.
    for (spare, merges) in [(0, false), (1, false), (u64::MAX, true)] {
        let mut options = IndexOptions::default().merging_eagerly(2);
        options.merge_room = MergeRoom::new(move |bytes| bytes <= spare);
        let index = Index::open(folder.path(), schema(), options).expect("the index opens");
        let mut writer = index.writer().expect("the writer");
        let before = (index.applied_sequence(), index.size().expect("a size").segments);
        for n in 1..=COMMITS {
            let sequence = before.0 + n.unsigned_abs();
            commit(
                &mut writer,
                vec![numbered(n + i64::try_from(before.0).expect("small"))],
                sequence,
            );
        }
        let consolidates = writer.consolidate().expect("it can be written");
        assert!(consolidates || merges, "there is something to merge");
        writer.close().expect("the writer closes");
        let segments = index.size().expect("a size").segments;
        assert_eq!(index.merges().done > 0, merges, "{segments} segments");
        assert_eq!(segments > before.1, !merges, "{segments} segments");
    }
}

#[test]
fn a_merge_for_which_there_was_no_room_for_a_moment_is_asked_for_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let asked = std::sync::atomic::AtomicUsize::new(0);
    let mut options = IndexOptions::default();
    // There is room when the writer asks, and none when the library then does, once.
    options.merge_room =
        MergeRoom::new(move |_| asked.fetch_add(1, std::sync::atomic::Ordering::SeqCst) != 1);
    let index = Index::open(folder.path(), schema(), options).expect("the index opens");
    let mut writer = index.writer().expect("the writer");
    for n in 1..=2 {
        commit(&mut writer, vec![numbered(n)], n.unsigned_abs());
    }
    for _ in 0..2 {
        assert!(writer.consolidate().expect("it can be written"));
    }
    writer.close().expect("the writer closes");
    assert!(index.merges().done > 0, "{:?}", index.merges());
}

/// The library numbers the first operation after an opening as the last commit, whose removals a merge takes for done in the
/// segments that have them: a merge that begins with the commit of that operation brought back what it had removed.
#[test]
fn what_the_first_change_after_an_opening_replaces_isnt_brought_back_by_a_merge() {
    const COMMITS: i64 = 8;
    // In which order segments are merged is up to their names, which are random.
    for _ in 0..8 {
        let folder = tempfile::tempdir().expect("a folder");
        let open = |has_room: bool| {
            let mut options = IndexOptions::default();
            options.merge_room = MergeRoom::new(move |_| has_room);
            Index::open(folder.path(), schema(), options).expect("the index opens")
        };
        let index = open(false);
        let mut writer = index.writer().expect("the writer");
        for n in 0..COMMITS {
            let operations = (3 * n..3 * n + 3).map(numbered).collect();
            commit(&mut writer, operations, n.unsigned_abs() + 1);
        }
        // Of the first segment's documents one is replaced by the last commit, another by the next.
        commit(&mut writer, vec![numbered(0)], 10);
        writer.checkpoint().expect("the checkpoint works");
        drop((writer, index));
        let index = open(true);
        let mut writer = index.writer().expect("the writer");
        commit(&mut writer, vec![numbered(1)], 11);
        writer.close().expect("the writer closes");
        assert!(index.merges().done > 0, "{:?}", index.merges());
        let mut expected: Vec<_> = (0..3 * COMMITS).map(|n| format!("k{n}")).collect();
        expected.sort();
        assert_eq!(keys(&index, Query::MatchAll), expected);
    }
}
