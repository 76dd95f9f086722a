//! Errors as text, with what caused them.

use std::error::Error;

/// An error and its causes in one text, outermost first.
pub fn chain(error: &dyn Error) -> String {
    let mut texts: Vec<String> = Vec::new();
    let mut next = Some(error);
    while let Some(error) = next {
        let text = error.to_string();
        // Some errors show only the text of their cause.
        if texts.last() != Some(&text) {
            texts.push(text);
        }
        next = error.source();
    }
    texts.join(": ")
}
