//! The kinds of media files.

use souk_proto::media::v1::MediaType;

/// The kind of a media file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MediaKind {
    /// A still picture.
    Image,
    /// A moving picture.
    Video,
    /// Sound.
    Audio,
    /// Text.
    Document,
}

impl MediaKind {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Image, Self::Video, Self::Audio, Self::Document];

    /// The word in rows and queries: the name of the message's value, in lower case and without its prefix.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Image => "image",
            Self::Video => "video",
            Self::Audio => "audio",
            Self::Document => "document",
        }
    }

    /// The kind of a [`MediaKind::word`].
    #[must_use]
    pub fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.word() == word)
    }

    pub(super) fn from_wire(kind: i32) -> Option<Self> {
        match MediaType::try_from(kind).ok()? {
            MediaType::Unspecified => None,
            MediaType::Image => Some(Self::Image),
            MediaType::Video => Some(Self::Video),
            MediaType::Audio => Some(Self::Audio),
            MediaType::Document => Some(Self::Document),
        }
    }

    pub(super) fn to_wire(self) -> MediaType {
        match self {
            Self::Image => MediaType::Image,
            Self::Video => MediaType::Video,
            Self::Audio => MediaType::Audio,
            Self::Document => MediaType::Document,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{MediaKind, MediaType};

    #[test]
    fn words_are_the_names_of_the_values() {
        for kind in MediaKind::ALL {
            let name = format!("MEDIA_TYPE_{}", kind.word().to_uppercase());
            assert_eq!(kind.to_wire().as_str_name(), name);
            assert_eq!(MediaKind::from_wire(kind.to_wire().into()), Some(kind));
            assert_eq!(MediaKind::of_word(kind.word()), Some(kind));
        }
        assert_eq!(MediaKind::from_wire(MediaType::Unspecified.into()), None);
        assert_eq!(MediaKind::from_wire(99), None);
        assert_eq!(MediaKind::of_word("IMAGE"), None);
    }
}
