//! Phrases in Chinese: every text that contains the characters of a phrase is found, whatever its words are.

use std::io::Read as _;

use flate2::read::GzDecoder;
use souk_index::analyze::{Phase, analyze};
use souk_index::{Analyzer, Field, FieldKind, Index, IndexOptions, Object, Query, Schema};

use crate::{commit, keys, random_numbers, upsert};

/// The places of the demonstration data.
const PLACES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../standalone/data/places.tsv.gz");
const NAME_ZH_COLUMN: usize = 2;
const TYPES: &[&str] = &[
    "奶茶店",
    "火锅",
    "超市",
    "大学",
    "科学技术馆",
    "人民医院",
    "咖啡",
    "面包房",
];

/// Chinese names of places.
fn places() -> Vec<String> {
    let file = std::fs::File::open(PLACES).expect("the places are there");
    let mut text = String::new();
    GzDecoder::new(file)
        .read_to_string(&mut text)
        .expect("it is text");
    let names = text
        .lines()
        .skip(1)
        .filter_map(|line| line.split('\t').nth(NAME_ZH_COLUMN));
    names.filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

#[test]
fn every_phrase_of_a_chinese_name_is_found() {
    let mut rng = random_numbers();
    let places = places();
    let names: Vec<String> = (0..3_000)
        .map(|_| {
            let [from, to] = [(); 2].map(|()| &places[rng.usize(..places.len())]);
            format!("{from}{}{to}", TYPES[rng.usize(..TYPES.len())])
        })
        .collect();
    let schema = Schema::new(vec![
        Field::text("max", Analyzer::MaxWord).sub_field("min", FieldKind::Text(Analyzer::MinWord)),
    ]);
    let index = Index::create_in_ram(schema.expect("valid"), IndexOptions::default()).expect("an index");
    let mut writer = index.writer().expect("a writer");
    let upserts = names
        .iter()
        .enumerate()
        .map(|(nth, name)| upsert(&format!("{nth:05}"), Object::new().with("max", name.as_str())));
    commit(&mut writer, upserts.collect(), 1);
    let mut missed_by_words = 0;
    for _ in 0..400 {
        let name: Vec<char> = names[rng.usize(..names.len())].chars().collect();
        let from = rng.usize(..name.len());
        let to = rng.usize(from + 1..=name.len().min(from + 6));
        let phrase: String = name[from..to].iter().collect();
        let expected: Vec<String> = (0..names.len())
            .filter(|nth| names[*nth].contains(&phrase))
            .map(|nth| format!("{nth:05}"))
            .collect();
        for field in ["max", "max.min"] {
            let found = keys(&index, Query::match_phrase(field, phrase.as_str()));
            // A page has at most 1,000 hits.
            let some = found.len().min(1_000);
            assert_eq!(
                found[..some],
                expected[..expected.len().min(1_000)],
                "{field} {phrase}"
            );
        }
        let words = |text: &str| -> Vec<String> {
            let tokens = analyze(&Analyzer::MinWord, Phase::Index, text).into_iter();
            tokens.map(|token| token.text).collect()
        };
        let (of_phrase, of_name) = (words(&phrase), words(&name.iter().collect::<String>()));
        let there = of_name.windows(of_phrase.len()).any(|run| run == of_phrase);
        missed_by_words += usize::from(!there);
    }
    println!("{missed_by_words} of 400 phrases aren't made of the words of the name that they are from");
    assert!(missed_by_words > 0, "otherwise nothing is shown");
}

#[test]
fn segmentation_does_not_hide_a_university() {
    let schema = Schema::new(vec![Field::text("name", Analyzer::MaxWord)]).expect("valid");
    let index = Index::create_in_ram(schema, IndexOptions::default()).expect("an index");
    let mut writer = index.writer().expect("a writer");
    let names = [
        "日本京都大学深造",
        "中国科学技术大学",
        "京都 大学, Kyoto University",
    ];
    let upserts = names
        .iter()
        .enumerate()
        .map(|(nth, name)| upsert(&nth.to_string(), Object::new().with("name", *name)));
    commit(&mut writer, upserts.collect(), 1);
    let found = |phrase: &str| keys(&index, Query::match_phrase("name", phrase));
    assert_eq!(
        found("京都大学"),
        ["0", "2"],
        "what separates words doesn't count"
    );
    assert_eq!(found("京都大学深造"), ["0"]);
    assert_eq!(found("国科"), ["1"]);
    assert_eq!(found("大学kyoto"), ["2"]);
    assert_eq!(found("大学京都"), [""; 0]);
}

/// The bytes of an index on the disk.
fn bytes(names: &[String], field: Field) -> u64 {
    let folder = tempfile::tempdir().expect("a folder");
    let schema = Schema::new(vec![field]).expect("valid");
    let index = Index::open(folder.path(), schema, IndexOptions::default()).expect("an index");
    let mut writer = index.writer().expect("a writer");
    let upserts = names
        .iter()
        .enumerate()
        .map(|(nth, name)| upsert(&format!("{nth:05}"), Object::new().with("name", name.as_str())));
    commit(&mut writer, upserts.collect(), 1);
    let files = std::fs::read_dir(folder.path()).expect("a folder");
    let sizes = files.map(|file| file.and_then(|file| file.metadata()).expect("a file").len());
    sizes.sum()
}

/// A field of single characters beside the words costs as much as a sub-field of single_word does.
#[test]
fn single_characters_cost_few_bytes() {
    let places = places();
    let names: Vec<String> = places.iter().map(|name| format!("{name}奶茶店")).collect();
    let words = bytes(&names, Field::text("name", Analyzer::MaxWord));
    let single = FieldKind::Text(Analyzer::single_word());
    let both = bytes(
        &names,
        Field::text("name", Analyzer::MaxWord).sub_field("single", single),
    );
    let each = (both - words) as f64 / names.len() as f64;
    let chars = names.iter().map(|name| name.chars().count()).sum::<usize>() as f64 / names.len() as f64;
    println!("{each:.1} bytes a name of {chars:.1} characters, beside {words} bytes of all else");
    assert!(each < 40.0, "{each}");
}
