//! The comments of the `.proto` files.

use std::collections::BTreeMap;

use prost_reflect::{DescriptorPool, FileDescriptor};

/// Comments by file and by place in it, as `SourceCodeInfo` numbers places.
#[derive(Debug)]
pub(super) struct Comments(BTreeMap<String, BTreeMap<Vec<i32>, String>>);

impl Comments {
    /// All comments that stand in front of something.
    pub(super) fn read(pool: &DescriptorPool) -> Self {
        let file = |file: FileDescriptor| {
            let places = file.file_descriptor_proto().source_code_info.iter();
            let places = places.flat_map(|info| &info.location).filter_map(|place| {
                let text = place.leading_comments.as_deref().map(unindented)?;
                Some((place.path.clone(), text))
            });
            (file.name().to_owned(), places.collect())
        };
        Self(pool.files().map(file).collect())
    }

    /// The comment on what is at `path` of `file`; empty without one.
    pub(super) fn of(&self, file: &FileDescriptor, path: &[i32]) -> &str {
        let comment = self.0.get(file.name()).and_then(|places| places.get(path));
        comment.map_or("", String::as_str)
    }
}

fn unindented(comment: &str) -> String {
    let lines: Vec<&str> = comment.lines().map(str::trim).collect();
    lines.join("\n").trim().to_owned()
}
