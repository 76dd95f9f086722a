//! The files of the console, the page at the gateway's address: what `npm run build` in `console/` has written to
//! `console/dist`, which is checked in, so that a build needs no Node.
//!
//! Files below `/assets/` have a hash of their content in their names: what is there under a name never changes.

/// A file of the page.
#[derive(Clone, Copy, Debug)]
pub struct File {
    /// Where the page finds it: `/`, `/assets/index-BOhV9asT.css`.
    pub path: &'static str,
    /// The value of `content-type`.
    pub content_type: &'static str,
    /// Its content.
    pub plain: &'static [u8],
    /// Its content, packed by gzip.
    pub gzip: &'static [u8],
}

/// All files, in the order of their paths on the disk.
pub const FILES: &[File] = include!(concat!(env!("OUT_DIR"), "/files.rs"));

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_there_and_names_files_that_are_there() {
        let page = FILES.iter().find(|file| file.path == "/").expect("the page");
        let text = std::str::from_utf8(page.plain).expect("UTF-8");
        let named: Vec<&str> = text
            .split('"')
            .filter(|part| part.starts_with("/assets/"))
            .collect();
        assert!(!named.is_empty(), "{text}");
        for path in named {
            assert!(FILES.iter().any(|file| file.path == path), "{path}");
        }
    }

    #[test]
    fn nothing_is_written_into_the_page_that_its_policy_refuses() {
        let page = FILES.iter().find(|file| file.path == "/").expect("the page");
        let text = std::str::from_utf8(page.plain).expect("UTF-8");
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
