//! Scans the frames of a connection (RFC 9113, 4.1), to tell a flood from work.
//!
//! h2 bounds the memory that a peer takes, but not its control frames: pings, settings, window updates and resets cost their sender a few
//! bytes each, and the server a response or a call begun in vain. So they are budgeted against the frames of responses.

use bytes::Buf as _;
use tokio::time::Instant;

const HEADER: usize = 9;

pub(super) const DATA: u8 = 0;
pub(super) const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const CONTINUATION: u8 = 9;

/// Flag of an answer to SETTINGS or PING.
const ACK: u8 = 1;

/// Overhead that is allowed anew each second.
const REFILL_PER_SECOND: u64 = 100;

/// Overhead that each frame of a response allows: window updates for the stream and the connection, and a ping of clients that
/// measure the round trip.
const PER_ANSWER_FRAME: u32 = 3;

#[derive(Debug)]
pub(super) struct FrameScan {
    header: [u8; HEADER],
    /// Bytes of the header that are here.
    have: usize,
    /// Bytes to come that aren't a header.
    rest: usize,
}

impl FrameScan {
    /// Before a frame, but for `rest` bytes that come first.
    pub(super) fn after(rest: usize) -> Self {
        let (header, have) = ([0; HEADER], 0);
        Self { header, have, rest }
    }

    pub(super) fn is_between(&self) -> bool {
        self.have == 0 && self.rest == 0
    }

    /// Goes over the next `bytes` and tells type and flags of each frame that begins in them.
    pub(super) fn over(&mut self, mut bytes: &[u8], mut seen: impl FnMut(u8, u8)) {
        loop {
            let skipped = self.rest.min(bytes.len());
            self.rest -= skipped;
            bytes.advance(skipped);
            if bytes.is_empty() {
                return;
            }
            let taken = (HEADER - self.have).min(bytes.len());
            bytes.copy_to_slice(&mut self.header[self.have..self.have + taken]);
            self.have += taken;
            if self.have == HEADER {
                let [a, b, c, kind, flags, ..] = self.header;
                self.have = 0;
                self.rest = usize::from(a) << 16 | usize::from(b) << 8 | usize::from(c);
                seen(kind, flags);
            }
        }
    }
}

/// Does a frame from a client ask for nothing of its own? What carries a call isn't meant, nor answers to our own frames.
pub(super) fn is_overhead(kind: u8, flags: u8) -> bool {
    match kind {
        DATA | HEADERS | CONTINUATION => false,
        SETTINGS | PING => flags & ACK == 0,
        _ => true,
    }
}

#[derive(Debug)]
pub(super) struct OverheadBudget {
    left: u32,
    max: u32,
    filled: Instant,
}

impl OverheadBudget {
    pub(super) fn new(max: u32) -> Self {
        let (left, filled) = (max, Instant::now());
        Self { left, max, filled }
    }

    /// Takes `count`; false when that is too much.
    pub(super) fn spend(&mut self, count: u32) -> bool {
        if self.left < count {
            let elapsed = u64::try_from(self.filled.elapsed().as_millis()).unwrap_or(u64::MAX);
            let refill = elapsed.saturating_mul(REFILL_PER_SECOND) / 1000;
            self.filled = Instant::now();
            self.earn(u32::try_from(refill).unwrap_or(u32::MAX));
        }
        let enough = self.left >= count;
        self.left = self.left.saturating_sub(count);
        enough
    }

    pub(super) fn answered(&mut self, count: u32) {
        self.earn(count.saturating_mul(PER_ANSWER_FRAME));
    }

    fn earn(&mut self, count: u32) {
        self.left = self.left.saturating_add(count).min(self.max);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn frame(kind: u8, flags: u8, payload: usize) -> Vec<u8> {
        let length = u32::try_from(payload).expect("short").to_be_bytes();
        let mut bytes = length[1..].to_vec();
        bytes.extend([kind, flags, 0, 0, 0, 1]);
        bytes.resize(HEADER + payload, 0xff);
        bytes
    }

    #[test]
    fn frames_are_seen_however_they_are_cut() {
        let mut bytes = vec![7; 24];
        for (kind, payload) in [(SETTINGS, 0), (HEADERS, 300), (DATA, 70_000), (PING, 8)] {
            bytes.extend(frame(kind, 0, payload));
        }
        for size in [1, 2, 8, 9, 10, 23, 1000, bytes.len()] {
            let mut scan = FrameScan::after(24);
            let mut kinds = Vec::new();
            for part in bytes.chunks(size) {
                scan.over(part, |kind, _| kinds.push(kind));
            }
            assert_eq!(kinds, [SETTINGS, HEADERS, DATA, PING], "{size}");
            assert!(scan.is_between());
        }
        let mut scan = FrameScan::after(0);
        scan.over(&frame(DATA, 0, 5)[..12], |_, _| {});
        assert!(!scan.is_between());
    }

    #[tokio::test(start_paused = true)]
    async fn overhead_is_paid_for_by_answers_and_by_time() {
        let mut budget = OverheadBudget::new(10);
        assert!(budget.spend(10) && !budget.spend(1));
        budget.answered(1);
        assert!(budget.spend(3) && !budget.spend(1));
        tokio::time::advance(Duration::from_millis(50)).await;
        assert!(budget.spend(5) && !budget.spend(1));
        tokio::time::advance(Duration::from_secs(3600)).await;
        assert!(budget.spend(10) && !budget.spend(1), "no more than the maximum");
    }

    #[test]
    fn answers_to_us_and_what_carries_calls_are_no_overhead() {
        for (kind, flags) in [
            (DATA, 0),
            (HEADERS, 0),
            (CONTINUATION, 0),
            (SETTINGS, ACK),
            (PING, ACK),
        ] {
            assert!(!is_overhead(kind, flags), "{kind}");
        }
        // PRIORITY, RST_STREAM, SETTINGS, PING, WINDOW_UPDATE, and what nobody knows.
        for kind in [2, 3, SETTINGS, PING, 8, 200] {
            assert!(is_overhead(kind, 0), "{kind}");
        }
    }
}
