//! Metadata of media: tags, users and people by Zipf's law, positions around real towns.
//!
//! The files don't exist: addresses and checksums are invented.

use std::sync::LazyLock;

use prost_types::{Duration, Timestamp};
use souk_proto::media::v1::{Box as FaceBox, Face, Media, MediaType, Tag};

use super::numbers::{Numbers, Weighted};
use super::places::TOWNS;
use crate::data::{PEOPLE, TAGS};

/// Users have a thousand ids, `u0001` with the most media.
const USERS: usize = 1_000;
/// 2016-01-01T00:00:00Z.
const FIRST_SECOND: i64 = 1_451_606_400;
/// Ten years until 2026-01-01T00:00:00Z, in seconds.
const SPAN_SECONDS: f64 = 3_653.0 * 86_400.0;
/// The tag that is drawn most; the other ranks are shuffled.
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

static USER_RANKS: LazyLock<Weighted> = LazyLock::new(|| Weighted::zipf(USERS, 1.0));
/// Tags by rank, with the weights of the ranks.
static TAG_RANKS: LazyLock<(Vec<[&'static str; 3]>, Weighted)> = LazyLock::new(|| {
    let mut ranked: Vec<_> = TAGS.rows::<3>().collect();
    ranked.sort_by_key(|[id, _, name]| (*name != FIRST_TAG, shuffled(id)));
    let weights = Weighted::zipf(ranked.len(), 0.9);
    (ranked, weights)
});
static PEOPLE_RANKS: LazyLock<(Vec<&'static str>, Weighted)> = LazyLock::new(|| {
    let people: Vec<_> = PEOPLE.rows::<3>().map(|[_, _, name]| name).collect();
    let weights = Weighted::zipf(people.len(), 0.8);
    (people, weights)
});

/// A number that orders ids differently than their size does.
fn shuffled(id: &str) -> u64 {
    Numbers::new(0, "tags", id.parse().unwrap_or(0)).bits()
}

fn thousandths(least: u64, numbers: &mut Numbers) -> f64 {
    (least + numbers.below(1_001 - least)) as f64 / 1_000.0
}

fn tags(numbers: &mut Numbers) -> Vec<(&'static str, &'static str, f64)> {
    let (ranked, weights) = &*TAG_RANKS;
    let mut tags: Vec<(&str, &str, f64)> = Vec::new();
    for _ in 0..1 + numbers.below(6) {
        let Some(&[_, english, chinese]) = ranked.get(weights.draw(numbers)) else {
            continue;
        };
        let score = thousandths(300, numbers);
        if tags.iter().all(|(_, known, _)| *known != chinese) {
            tags.push((english, chinese, score));
        }
    }
    tags
}

fn face(numbers: &mut Numbers) -> Option<Face> {
    let (people, weights) = &*PEOPLE_RANKS;
    let person = *people.get(weights.draw(numbers))?;
    Some(Face {
        person: person.to_owned(),
        similarity: Some(thousandths(600, numbers)),
        r#box: Some(FaceBox {
            left: thousandths(0, numbers) * 0.7,
            top: thousandths(0, numbers) * 0.7,
            width: 0.05 + thousandths(0, numbers) * 0.25,
            height: 0.05 + thousandths(0, numbers) * 0.25,
        }),
    })
}

/// What depends on the kind of file.
struct Shape {
    kind: MediaType,
    format: &'static str,
    /// Width and height; what is only heard or read has none.
    pixels: Option<(i32, i32)>,
    seconds: Option<i64>,
    bytes: u64,
}

fn shape(numbers: &mut Numbers) -> Shape {
    let pixels = *numbers
        .pick(&[
            (4_032, 3_024),
            (1_920, 1_080),
            (3_840, 2_160),
            (3_024, 4_032),
            (1_280, 720),
        ])
        .unwrap_or(&(1_920, 1_080));
    let still = Shape {
        kind: MediaType::Image,
        format: "jpeg",
        pixels: Some(pixels),
        seconds: None,
        bytes: 200_000 + numbers.below(9_000_000),
    };
    let seconds = 3 + numbers.below(900);
    match numbers.below(100) {
        0..70 => Shape {
            format: numbers.word(&["jpeg", "jpeg", "heic", "png"]),
            ..still
        },
        70..90 => Shape {
            kind: MediaType::Video,
            format: numbers.word(&["mp4", "mov"]),
            seconds: Some(seconds as i64),
            bytes: seconds * 1_500_000,
            ..still
        },
        90..96 => Shape {
            kind: MediaType::Audio,
            format: numbers.word(&["mp3", "flac"]),
            pixels: None,
            seconds: Some(seconds as i64),
            bytes: seconds * 40_000,
        },
        _ => Shape {
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
    let mut numbers = Numbers::new(seed, "media", index);
    let user = 1 + USER_RANKS.draw(&mut numbers);
    let shape = shape(&mut numbers);
    let tags = tags(&mut numbers);
    let place = TOWNS.draw(&mut numbers);
    let position = place.filter(|_| numbers.percent(80));
    let position = position.map(|place| place.around(&mut numbers));
    // More and more are made: the square root leans to the later years.
    let seconds = FIRST_SECOND + (numbers.fraction().sqrt() * SPAN_SECONDS) as i64;
    let visual = shape.pixels.is_some();
    let faces = if visual {
        numbers.below(4).saturating_sub(1)
    } else {
        0
    };
    let title = match (place, tags.first()) {
        (Some(place), Some((_, chinese, _))) if place.country == "CN" => {
            format!("{}的{chinese}", place.any_chinese_name())
        }
        (Some(place), Some((english, _, _))) => format!("{english} in {}", place.name),
        _ => String::new(),
    };
    let media_id = format!("m{index:010}");
    Media {
        user_id: format!("u{user:04}"),
        r#type: shape.kind.into(),
        title,
        format: shape.format.to_owned(),
        size_bytes: Some(shape.bytes as i64),
        width: shape.pixels.map(|(width, _)| width),
        height: shape.pixels.map(|(_, height)| height),
        duration: shape.seconds.map(|seconds| Duration { seconds, nanos: 0 }),
        created_at: Some(Timestamp { seconds, nanos: 0 }),
        position,
        camera: if visual {
            numbers.word(&CAMERAS).to_owned()
        } else {
            String::new()
        },
        uri: format!("oss://souk-demo/u{user:04}/{media_id}.{}", shape.format),
        md5: format!("{:016x}{:016x}", numbers.bits(), numbers.bits()),
        tags: tags
            .into_iter()
            .map(|(_, tag, score)| Tag {
                tag: tag.to_owned(),
                score: Some(score),
            })
            .collect(),
        faces: (0..faces).filter_map(|_| face(&mut numbers)).collect(),
        media_id,
        ..Media::default()
    }
}
