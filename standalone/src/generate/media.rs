//! Metadata of media: tags, users and people by Zipf's law, positions around real towns.
//!
//! The files don't exist: addresses and checksums are invented.

use std::sync::LazyLock;

use prost_types::{Duration, Timestamp};
use souk_proto::media::v1::{Box as FaceBox, Face, Media, MediaType, Tag};

use super::random::{RowRandom, WeightedIndex};
use super::towns::TOWNS;
use crate::data::{PEOPLE, TAGS};

/// Number of users; `u0001` has the most media.
const USERS: usize = 1_000;
/// 2016-01-01T00:00:00Z.
const FIRST_SECOND: i64 = 1_451_606_400;
/// Ten years until 2026-01-01T00:00:00Z, in seconds.
const SPAN_SECONDS: f64 = 3_653.0 * 86_400.0;
/// The most frequent tag; the ranks of the others are shuffled.
const FIRST_TAG: &str = "开心";

const CAMERAS: [&str; 8] = [
    "Canon EOS R6",
    "Nikon Z 6",
    "Sony A7 IV",
    "Fujifilm X-T5",
    "iPhone 15",
    "HUAWEI Mate 60",
    "vivo X100",
    "DJI Mini 4",
];

/// The weights of the users by rank.
static USER_RANKS: LazyLock<WeightedIndex> = LazyLock::new(|| WeightedIndex::zipf(USERS, 1.0));
/// Tags as id, English and Chinese name, by rank, with the weights of the ranks.
static TAG_RANKS: LazyLock<(Vec<[&'static str; 3]>, WeightedIndex)> = LazyLock::new(|| {
    let mut ranked: Vec<_> = TAGS.rows::<3>().collect();
    ranked.sort_by_key(|[id, _, chinese]| (*chinese != FIRST_TAG, shuffled(id)));
    let weights = WeightedIndex::zipf(ranked.len(), 0.9);
    (ranked, weights)
});
/// Chinese names of people by rank, with the weights of the ranks.
static PEOPLE_RANKS: LazyLock<(Vec<&'static str>, WeightedIndex)> = LazyLock::new(|| {
    let people: Vec<_> = PEOPLE.rows::<3>().map(|[_, _, chinese]| chinese).collect();
    let weights = WeightedIndex::zipf(people.len(), 0.8);
    (people, weights)
});

/// Sort key that shuffles ids, the same way in each run.
fn shuffled(id: &str) -> u64 {
    RowRandom::new(0, "tags", id.parse().unwrap_or(0)).next_u64()
}

/// A random score from `min` thousandths to 1, in steps of 0.001.
fn score(min: u64, random: &mut RowRandom) -> f64 {
    (min + random.below(1_001 - min)) as f64 / 1_000.0
}

fn tags(random: &mut RowRandom) -> Vec<(&'static str, &'static str, f64)> {
    let (ranked, weights) = &*TAG_RANKS;
    let mut tags: Vec<(&str, &str, f64)> = Vec::new();
    for _ in 0..1 + random.below(6) {
        let Some(&[_, english, chinese]) = ranked.get(weights.draw(random)) else {
            continue;
        };
        let score = score(300, random);
        if tags.iter().all(|(_, known, _)| *known != chinese) {
            tags.push((english, chinese, score));
        }
    }
    tags
}

fn face(random: &mut RowRandom) -> Option<Face> {
    let (people, weights) = &*PEOPLE_RANKS;
    let person = *people.get(weights.draw(random))?;
    Some(Face {
        person: person.to_owned(),
        similarity: Some(score(600, random)),
        r#box: Some(FaceBox {
            left: score(0, random) * 0.7,
            top: score(0, random) * 0.7,
            width: 0.05 + score(0, random) * 0.25,
            height: 0.05 + score(0, random) * 0.25,
        }),
    })
}

/// The properties that depend on the type of the file.
struct FileInfo {
    kind: MediaType,
    format: &'static str,
    /// Width and height; `None` for audio and documents.
    pixels: Option<(i32, i32)>,
    seconds: Option<i64>,
    bytes: u64,
}

fn file_info(random: &mut RowRandom) -> FileInfo {
    let pixels = *random
        .pick(&[
            (4_032, 3_024),
            (1_920, 1_080),
            (3_840, 2_160),
            (3_024, 4_032),
            (1_280, 720),
        ])
        .unwrap_or(&(1_920, 1_080));
    let still = FileInfo {
        kind: MediaType::Image,
        format: "jpeg",
        pixels: Some(pixels),
        seconds: None,
        bytes: 200_000 + random.below(9_000_000),
    };
    let seconds = 3 + random.below(900);
    match random.below(100) {
        0..70 => FileInfo {
            format: random.word(&["jpeg", "jpeg", "heic", "png"]),
            ..still
        },
        70..90 => FileInfo {
            kind: MediaType::Video,
            format: random.word(&["mp4", "mov"]),
            seconds: Some(seconds as i64),
            bytes: seconds * 1_500_000,
            ..still
        },
        90..96 => FileInfo {
            kind: MediaType::Audio,
            format: random.word(&["mp3", "flac"]),
            pixels: None,
            seconds: Some(seconds as i64),
            bytes: seconds * 40_000,
        },
        _ => FileInfo {
            kind: MediaType::Document,
            format: "pdf",
            pixels: None,
            ..still
        },
    }
}

/// Media item `index`.
#[must_use]
pub fn row(seed: u64, index: u64) -> Media {
    let mut random = RowRandom::new(seed, "media", index);
    let user = 1 + USER_RANKS.draw(&mut random);
    let file = file_info(&mut random);
    let tags = tags(&mut random);
    let town = TOWNS.draw(&mut random);
    let position = town.filter(|_| random.percent(80));
    let position = position.map(|town| town.around(&mut random));
    // The square root makes later years more frequent.
    let seconds = FIRST_SECOND + (random.fraction().sqrt() * SPAN_SECONDS) as i64;
    let visual = file.pixels.is_some();
    // 0, 0, 1 or 2.
    let faces = if visual {
        random.below(4).saturating_sub(1)
    } else {
        0
    };
    let title = match (town, tags.first()) {
        (Some(town), Some((_, chinese, _))) if town.country == "CN" => {
            format!("{}的{chinese}", town.any_chinese_name())
        }
        (Some(town), Some((english, _, _))) => format!("{english} in {}", town.name),
        _ => String::new(),
    };
    let media_id = format!("m{index:010}");
    Media {
        user_id: format!("u{user:04}"),
        r#type: file.kind.into(),
        title,
        format: file.format.to_owned(),
        size_bytes: Some(file.bytes as i64),
        width: file.pixels.map(|(width, _)| width),
        height: file.pixels.map(|(_, height)| height),
        duration: file.seconds.map(|seconds| Duration { seconds, nanos: 0 }),
        created_at: Some(Timestamp { seconds, nanos: 0 }),
        position,
        camera: if visual {
            random.word(&CAMERAS).to_owned()
        } else {
            String::new()
        },
        uri: format!("oss://souk-demo/u{user:04}/{media_id}.{}", file.format),
        md5: format!("{:016x}{:016x}", random.next_u64(), random.next_u64()),
        tags: tags
            .into_iter()
            .map(|(_, tag, score)| Tag {
                tag: tag.to_owned(),
                score: Some(score),
            })
            .collect(),
        faces: (0..faces).filter_map(|_| face(&mut random)).collect(),
        media_id,
        ..Media::default()
    }
}
