//! The attacks: where each comes from, how it may end, and how it has to.

use std::sync::Arc;

use tonic::Code;

use super::outcome::Outcome::{self, Cut, Ended, Http, Open, OverRate};
use super::raid::{Attack, Raid, Rounds};
use super::{insiders, strangers};

macro_rules! round {
    ($attack:path) => {
        |raid: Arc<Raid>| -> Rounds { Box::pin(async move { $attack(&raid).await }) }
    };
}

const INVALID: Outcome = Ended(Code::InvalidArgument);
const EXHAUSTED: Outcome = Ended(Code::ResourceExhausted);
const UNKNOWN_CALLER: Outcome = Ended(Code::Unauthenticated);

/// How anything that an attacker asks for may end.
pub(super) const REFUSED: &[Outcome] = &[EXHAUSTED, Http(429), OverRate, Cut];

/// All of them.
pub(super) const ATTACKS: &[Attack] = &[
    Attack {
        name: "health watches with names of 4 MiB",
        from: 101,
        round: round!(strangers::long_names),
        may: &[INVALID],
        must: &[INVALID, EXHAUSTED, Cut],
    },
    Attack {
        name: "health watches that never end",
        from: 102,
        round: round!(strangers::endless_watches),
        may: &[Open, Ended(Code::Ok), Ended(Code::NotFound)],
        must: &[EXHAUSTED, OverRate],
    },
    Attack {
        name: "connections with one refused call each",
        from: 103,
        round: round!(strangers::connections),
        may: &[Open, Http(401)],
        must: &[Cut],
    },
    Attack {
        name: "calls without credentials from the good callers' address",
        from: 1,
        round: round!(strangers::calls),
        may: &[UNKNOWN_CALLER],
        must: &[OverRate],
    },
    Attack {
        name: "paths of `/`, preflights, documents, paths that there aren't",
        from: 104,
        round: round!(strangers::front),
        may: &[
            Http(200),
            Http(204),
            Http(400),
            Http(401),
            Http(403),
            Http(404),
            Http(405),
            Http(414),
            Http(431),
        ],
        must: &[Http(429), OverRate],
    },
    Attack {
        name: "names of other hosts",
        from: 105,
        round: round!(strangers::other_hosts),
        may: &[Http(400), Http(401), Http(403), Http(421)],
        must: &[Http(400), Http(401), Http(403), Http(421)],
    },
    Attack {
        name: "calls that want to be recorded",
        from: 106,
        round: round!(strangers::recorded),
        may: &[UNKNOWN_CALLER],
        must: &[UNKNOWN_CALLER],
    },
    Attack {
        name: "16 connections of 256 idle watches",
        from: 107,
        round: round!(insiders::idle_watches),
        may: &[Open],
        must: &[EXHAUSTED],
    },
    Attack {
        name: "512 reads of a far sequence",
        from: 108,
        round: round!(insiders::far_sequences),
        may: &[Ended(Code::OutOfRange)],
        must: &[Ended(Code::OutOfRange)],
    },
    Attack {
        name: "2,048 calls without a body",
        from: 109,
        round: round!(insiders::without_bodies),
        may: &[
            Open,
            INVALID,
            Ended(Code::DeadlineExceeded),
            Ended(Code::Cancelled),
        ],
        must: &[EXHAUSTED, Ended(Code::DeadlineExceeded), Ended(Code::Cancelled)],
    },
    Attack {
        name: "two million empty elements",
        from: 110,
        round: round!(insiders::empty_elements),
        may: &[INVALID],
        must: &[INVALID, EXHAUSTED],
    },
    Attack {
        name: "two million empty clauses",
        from: 111,
        round: round!(insiders::empty_clauses),
        may: &[INVALID],
        must: &[INVALID, EXHAUSTED],
    },
    Attack {
        name: "350,000 empty clauses in JSON",
        from: 112,
        round: round!(insiders::empty_clauses_in_json),
        may: &[Http(400), Http(413)],
        must: &[Http(400), Http(413), Http(429)],
    },
    Attack {
        name: "exports that nobody reads",
        from: 113,
        round: round!(insiders::unread_exports),
        may: &[Open],
        must: &[EXHAUSTED],
    },
    Attack {
        name: "views that nobody reads on",
        from: 114,
        round: round!(insiders::left_views),
        may: &[Ended(Code::Ok)],
        must: &[],
    },
    Attack {
        name: "a flood of reads",
        from: 115,
        round: round!(insiders::flood),
        may: &[Ended(Code::Ok)],
        must: &[OverRate],
    },
];
