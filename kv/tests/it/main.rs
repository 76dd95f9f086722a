//! The engines through the public API, in one binary.

#![expect(clippy::expect_used, reason = "a test that can't go on says why and fails")]

mod contract;
