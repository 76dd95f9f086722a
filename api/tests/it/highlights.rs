//! What matched is marked in hits, from the rows behind them.

use souk_api::Error;
use souk_proto::search::v1 as pb;

use crate::note::{self, Note};

fn search(field: &str, sequence: i64) -> pb::Search {
    let phrase = pb::MatchPhraseQuery {
        field: "text".to_owned(),
        text: "of ada".to_owned(),
        ..Default::default()
    };
    pb::Search {
        query: Some(pb::Query {
            kind: Some(pb::query::Kind::MatchPhrase(phrase)),
        }),
        highlight: Some(pb::Highlight {
            fields: vec![field.to_owned()],
            pre_tag: "[".to_owned(),
            post_tag: "]".to_owned(),
            ..Default::default()
        }),
        min_sequence: sequence,
        ..Default::default()
    }
}

#[tokio::test]
async fn hits_show_what_matched_with_and_without_their_rows() {
    let directory = tempfile::tempdir().expect("a directory");
    let (engine, notes) = note::open(directory.path()).await;
    let batch = vec![Note::new("n1", "ada", 1), Note::new("n2", "ben", 2)];
    let written = notes.create_batch(batch, None, true).await.expect("created");
    for (mode, full) in [(pb::HitsMode::Full, true), (pb::HitsMode::Keys, false)] {
        let search = pb::Search {
            hits_mode: mode.into(),
            ..search("text", written.sequence)
        };
        let page = notes.search(Some(search), "search").await.expect("a page");
        let [hit] = page.hits.as_slice() else {
            panic!("{page:?}")
        };
        assert_eq!((hit.id.as_str(), hit.resource.is_some()), ("n1", full));
        let shown = hit.highlights.get("text").expect("the field matched");
        assert_eq!(shown.fragments, ["note 1 [of] [ada]"]);
    }
    let refused = notes.search(Some(search("rank", 0)), "search").await;
    match refused.expect_err("rank is no TEXT") {
        Error::InvalidQuery(violations) => {
            let all = format!("{violations:?}");
            assert!(all.contains("search.highlight.fields[0]"), "{all}");
        }
        other => panic!("{other:?}"),
    }
    note::close(engine).await;
}
