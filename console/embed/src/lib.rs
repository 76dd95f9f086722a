//! The files of the console, the page at the gateway's address: what `npm run build` in `console/` has written to
//! `console/dist`, which is checked in, so that a build needs no Node.
//!
//! Files below `/assets/` have a hash of their content in their names: what is there under a name never changes.

/// A file of the page.
#[derive(Clone, Copy, Debug)]
pub struct File {
    /// The path of its URL: `/`, `/assets/index-BOhV9asT.css`.
    pub path: &'static str,
    /// The value of `content-type`.
    pub content_type: &'static str,
    /// Its content, uncompressed.
    pub plain: &'static [u8],
    /// Its content, compressed by gzip.
    pub gzip: &'static [u8],
}

/// All files, in the order of their paths on the disk.
pub const FILES: &[File] = include!(concat!(env!("OUT_DIR"), "/files.rs"));

#[cfg(test)]
mod tests {
    use super::*;

    fn page() -> &'static str {
        let page = FILES.iter().find(|file| file.path == "/").expect("the page");
        std::str::from_utf8(page.plain).expect("UTF-8")
    }

    #[test]
    fn the_page_is_there_and_names_files_that_are_there() {
        let text = page();
        let named: Vec<&str> = text
            .split('"')
            .filter(|part| part.starts_with("/assets/"))
            .collect();
        assert!(!named.is_empty(), "{text}");
        for path in named {
            assert!(FILES.iter().any(|file| file.path == path), "{path}");
        }
    }

    /// The Content-Security-Policy of the gateway refuses inline styles and scripts.
    #[test]
    fn nothing_is_written_into_the_page_that_its_policy_refuses() {
        let text = page();
        assert!(!text.contains("<style") && !text.contains("style="), "{text}");
        for script in text.split("<script").skip(1) {
            let (head, rest) = script.split_once('>').expect("a whole tag");
            assert!(
                head.contains("src=") && rest.trim_start().starts_with("</script>"),
                "{script}"
            );
        }
    }
}
