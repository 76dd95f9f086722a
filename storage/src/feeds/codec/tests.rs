use std::time::Duration;

use super::*;
use crate::value::PrimaryKey;

fn definition(delivers: Delivers) -> FeedDefinition {
    FeedDefinition {
        created: 1_700_000_000_000_000_000,
        delivers,
        tables: vec![TableId(1), TableId(300)],
        hold: Duration::from_secs(3600),
        shard: None,
    }
}

fn checkpoints() -> Vec<Checkpoint> {
    let row = BaseCursor::row(TableId(300), &PrimaryKey::string("a\0b").unwrap());
    let stages = [
        Stage::Base {
            cursor: BaseCursor::start(),
        },
        Stage::Base { cursor: row },
        Stage::Changes,
        Stage::Finished,
        Stage::Lost,
    ];
    let at = |stage: &Stage, rows| Checkpoint {
        stage: stage.clone(),
        position: 7,
        rows,
    };
    let checkpoints = stages.iter().flat_map(|stage| [at(stage, 0), at(stage, 300)]);
    checkpoints.collect()
}

#[test]
fn reads_what_it_wrote_and_nothing_shorter() {
    let whole = definition(Delivers::BaseAndChanges);
    let shard = Some(FeedShard { index: 2, count: 300 });
    let part = FeedDefinition {
        shard,
        ..whole.clone()
    };
    for definition in [whole, part] {
        for checkpoint in checkpoints() {
            let bytes = encode(&definition, &checkpoint);
            let found = decode("f", &bytes).unwrap();
            assert_eq!(found, (definition.clone(), checkpoint));
            for end in 0..bytes.len() {
                assert!(decode("f", &bytes[..end]).is_err(), "{end} of {}", bytes.len());
            }
        }
    }
}

#[test]
fn takes_tokens_of_its_feed_and_history_only() {
    let mut histories = Histories::default();
    histories.begin(0);
    let mut forked = histories.clone();
    forked.begin(8);
    let mut restored = histories.clone();
    restored.begin(7);
    for delivers in [Delivers::Base, Delivers::Changes, Delivers::BaseAndChanges] {
        let definition = definition(delivers);
        let other = FeedDefinition {
            created: 0,
            ..definition.clone()
        };
        for checkpoint in checkpoints() {
            let token = FeedToken::new(&definition, &checkpoint, &histories);
            let fits = match checkpoint.stage {
                Stage::Base { .. } => delivers != Delivers::Changes,
                Stage::Changes => delivers != Delivers::Base,
                Stage::Finished => delivers == Delivers::Base,
                Stage::Lost => false,
            };
            let found = token.checkpoint(&definition, &histories);
            assert_eq!(found.is_ok(), fits, "{delivers:?} {checkpoint:?}");
            // The change that it is within is of the fork.
            let is_before = checkpoint.rows == 0;
            assert_eq!(token.checkpoint(&definition, &forked).is_ok(), fits && is_before);
            assert!(token.checkpoint(&definition, &restored).is_err());
            assert!(found.is_err() || found.unwrap() == checkpoint);
            assert!(token.checkpoint(&other, &histories).is_err());
            for end in 0..token.as_bytes().len() {
                let cut = FeedToken::from_bytes(token.as_bytes()[..end].to_vec());
                assert!(cut.checkpoint(&definition, &histories).is_err());
            }
        }
    }
}

#[test]
fn orders_cuts_like_rows() {
    let low = PrimaryKey::integer(-5);
    let high = PrimaryKey::integer(5);
    let cursor = BaseCursor::row(TableId(2), &high);
    assert!(cursor.is_above(TableId(1), &high.encode()));
    assert!(cursor.is_above(TableId(2), &low.encode()));
    assert!(!cursor.is_above(TableId(2), &high.encode()));
    assert!(!cursor.is_above(TableId(3), &low.encode()));
    assert!(!BaseCursor::table(TableId(2)).is_above(TableId(2), &low.encode()));
    assert_eq!(cursor.place(), (TableId(2), Some(high)));
    assert_eq!(BaseCursor::table(TableId(2)).place(), (TableId(2), None));
}
