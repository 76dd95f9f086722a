#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| souk_fuzz::targets::tablestore_search(data));
