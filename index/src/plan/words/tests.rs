use std::sync::Arc;

use tantivy::query::Weight;
use tantivy::schema::{IndexRecordOption, Schema, TextFieldIndexing, TextOptions};
use tantivy::{Index, IndexWriter, TERMINATED, TantivyDocument, Term};

use super::{MinScore, WeighedWord, WordsWeight, raise_min_score};
use crate::bm25::Norms;
use crate::cancel::Cancellation;
use crate::run::Run;

/// A word that every document has, as `common` weighs it, and one that the text of the query repeats: what the first
/// scores is less than the rounding of the second.
#[test]
fn a_repeated_word_does_not_make_ties_of_a_common_one_lost() {
    let mut schema = Schema::builder();
    let indexing = TextFieldIndexing::default()
        .set_tokenizer("whitespace")
        .set_index_option(IndexRecordOption::WithFreqs);
    let field = schema.add_text_field("text", TextOptions::default().set_indexing_options(indexing));
    let index = Index::create_in_ram(schema.build());
    let mut writer: IndexWriter = index.writer_with_num_threads(1, 15_000_000).expect("a writer");
    for nth in 0..20 {
        let mut document = TantivyDocument::new();
        document.add_text(field, if nth == 7 { "common rare" } else { "common" });
        writer.add_document(document).expect("added");
    }
    writer.commit().expect("committed");
    let searcher = index.reader().expect("a reader").searcher();
    let reader = searcher.segment_reader(0);
    let run = Arc::new(Run::new(Cancellation::none()));
    for step in 1..200 {
        let common = step as f32 * 1e-10;
        let word = |word, count, weight| WeighedWord {
            word: Term::from_field_text(field, word),
            count,
            weight,
        };
        let weight = WordsWeight {
            words: vec![word("common", 1, common), word("rare", 1_000, 16_000.0)],
            field,
            needed: 1,
            average: 1.0,
            norms: Norms::new(1.0),
            run: Arc::clone(&run),
            _held: run.allowance().grant(),
        };
        let mut scorer = weight.scorer(reader, 1.0).expect("a scorer");
        let worst = scorer.score();
        // The page is full of documents like the first; the rare word's comes later.
        raise_min_score(&mut *scorer, MinScore::new(worst, true)).expect("the bounds are known");
        let mut found = 0;
        while scorer.doc() != TERMINATED {
            found += 1;
            scorer.advance();
        }
        assert_eq!(found, 20, "with a weight of {common:e}");
    }
}

/// How high a word's documents can score is found by walking over all of them.
#[test]
fn bounds_of_words_are_not_measured_for_a_search_that_has_to_stop() {
    let mut schema = Schema::builder();
    let indexing = TextFieldIndexing::default()
        .set_tokenizer("whitespace")
        .set_index_option(IndexRecordOption::WithFreqs);
    let field = schema.add_text_field("text", TextOptions::default().set_indexing_options(indexing));
    let index = Index::create_in_ram(schema.build());
    let mut writer: IndexWriter = index.writer_with_num_threads(1, 15_000_000).expect("a writer");
    for _ in 0..20 {
        let mut document = TantivyDocument::new();
        document.add_text(field, "one other");
        writer.add_document(document).expect("added");
    }
    writer.commit().expect("committed");
    let searcher = index.reader().expect("a reader").searcher();
    for needed in [1, 2] {
        let cancellation = Cancellation::none();
        let run = Arc::new(Run::new(cancellation.clone()));
        let word = |word| WeighedWord {
            word: Term::from_field_text(field, word),
            count: 1,
            weight: 1.0,
        };
        let weight = WordsWeight {
            words: vec![word("one"), word("other")],
            field,
            needed,
            average: 1.0,
            norms: Norms::new(1.0),
            run: Arc::clone(&run),
            _held: run.allowance().grant(),
        };
        let mut scorer = weight.scorer(searcher.segment_reader(0), 1.0).expect("a scorer");
        cancellation.cancel();
        assert!(
            raise_min_score(&mut *scorer, MinScore::new(0.0, true)).is_err(),
            "{needed} of two"
        );
    }
}
