use std::collections::BTreeMap;

use super::*;
use crate::cancel::Cancellation;
use crate::plan::doc_set::DocSetBuilder;

/// Documents with a score each.
struct Listed {
    docs: Vec<(DocId, Score)>,
    at: usize,
}

impl DocSet for Listed {
    fn advance(&mut self) -> DocId {
        self.at += 1;
        self.doc()
    }

    fn doc(&self) -> DocId {
        self.docs.get(self.at).map_or(TERMINATED, |(doc, _)| *doc)
    }

    fn size_hint(&self) -> u32 {
        self.docs.len() as u32
    }
}

impl Scorer for Listed {
    fn score(&mut self) -> Score {
        self.docs[self.at].1
    }
}

/// A clause, and its documents with their scores.
type Sample = (ClauseScorer, BTreeMap<DocId, Score>);

fn sample(random: &mut fastrand::Rng, max_doc: DocId, alike: bool) -> Sample {
    let score = if alike { 0.3 } else { random.f32() * 10.0 };
    if random.u8(..8) == 0 {
        return (
            ClauseScorer::Everything(score),
            (0..max_doc).map(|doc| (doc, score)).collect(),
        );
    }
    let share = [0.001, 0.02, 0.5, 0.97][random.usize(..4)];
    let docs: Vec<DocId> = (0..max_doc).filter(|_| random.f64() < share).collect();
    if alike || random.bool() {
        let mut gathered = DocSetBuilder::new(max_doc, &crate::allowance::Allowance::default());
        docs.iter().for_each(|doc| gathered.insert(*doc));
        let part = ClauseScorer::constant(gathered.into_scorer(score).expect("there is room"), score);
        return (part, docs.into_iter().map(|doc| (doc, score)).collect());
    }
    let docs: Vec<(DocId, Score)> = docs.into_iter().map(|doc| (doc, random.f32())).collect();
    let expected = docs.iter().copied().collect();
    (ClauseScorer::Scored(Box::new(Listed { docs, at: 0 })), expected)
}

/// Documents that enough clauses have, with the scores that are their clauses' in order.
fn expected(
    clauses: &[BTreeMap<DocId, Score>],
    needed: u32,
    together: Together,
    max_doc: DocId,
) -> Vec<(DocId, Score)> {
    let scores = |doc: DocId| clauses.iter().filter_map(move |clause| clause.get(&doc).copied());
    let entries = |doc: DocId| {
        let sum: f64 = scores(doc).map(f64::from).sum();
        let best = scores(doc).map(f64::from).fold(0.0, f64::max);
        (doc, together.of(sum, best))
    };
    let enough = (0..max_doc).filter(|doc| scores(*doc).count() >= needed as usize);
    enough.map(entries).collect()
}

#[test]
fn windows_find_what_is_counted_document_by_document() {
    let mut random = souk_seeds::random();
    for _ in 0..200 {
        let max_doc = random.u32(1..20_000);
        let alike = random.bool();
        let samples = (0..random.usize(1..9)).map(|_| sample(&mut random, max_doc, alike));
        let (parts, clauses): (Vec<_>, Vec<_>) = samples.unzip();
        let needed = random.u32(1..=parts.len() as u32);
        let together = [Together::Sum, Together::Best(0.25)][random.usize(..2)];
        let scoring = Scoring::of(&parts, Some(together));
        let run = Arc::new(Run::new(Cancellation::none()));
        let mut scorer = WindowScorer::new(parts, 1_000, needed, scoring, &run, max_doc);
        let expected = expected(&clauses, needed, together, max_doc);
        let mut from = 0;
        loop {
            let place = expected.partition_point(|(doc, _)| *doc < from);
            let Some((doc, score)) = expected.get(place) else {
                assert_eq!(scorer.doc(), TERMINATED);
                break;
            };
            assert_eq!((scorer.doc(), scorer.score()), (*doc, *score));
            from = if random.u8(..20) == 0 {
                doc + random.u32(1..6_000)
            } else {
                doc + 1
            };
            let next = if from == doc + 1 {
                scorer.advance()
            } else {
                scorer.seek(from)
            };
            assert_eq!(next, scorer.doc());
        }
        assert_eq!(
            (scorer.advance(), scorer.seek(TERMINATED)),
            (TERMINATED, TERMINATED)
        );
    }
}

#[test]
fn a_cancelled_tally_ends_and_says_why() {
    let cancellation = Cancellation::none();
    let run = Arc::new(Run::new(cancellation.clone()));
    let parts = vec![ClauseScorer::Everything(1.0)];
    let mut scorer = WindowScorer::new(parts, 100_000, 1, Scoring::Unasked, &run, 100_000);
    assert_eq!(scorer.advance(), 1);
    cancellation.cancel();
    let left = std::iter::from_fn(|| Some(scorer.advance())).take_while(|doc| *doc != TERMINATED);
    assert_eq!(left.count() as u32, SPAN_MIN - 2, "the window that was entries");
    assert!(matches!(run.outcome(), Err(crate::error::Error::Cancelled)));
}
