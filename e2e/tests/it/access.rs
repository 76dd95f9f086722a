//! Who may do what, through the gateway: every RPC, every role, own data and others', by the rules in the contract alone.

pub(crate) mod cells;
mod credentials;
mod escapes;
mod existence;
mod grants;
mod partitions;
mod unchecked;

use serde_json::Value;
use souk_access::{Role, RowAccess, Rules, Verdict};
use souk_e2e::dynamic::Dynamic;
use souk_e2e::guard::Guard;
use souk_e2e::rejection::Rejection;
use souk_e2e::suite::{Layout, Suite};
use tonic::{Code, Status};

use self::cells::{CELLS, Cell, Kind, OTHER, OWN, Whose, numbers, seed};
use crate::SOUK;

/// Whose rows are a role's own in these tests.
pub(crate) fn subject(role: Role) -> &'static str {
    match role {
        Role::Consumer => OWN.consumer,
        Role::Seller => OWN.seller,
        Role::User => OWN.user,
        Role::Admin | Role::Operator | Role::Reader => "",
    }
}

pub(crate) fn client(suite: &Suite, role: Role) -> anyhow::Result<Dynamic> {
    Dynamic::new(suite.channel()?)?.with("x-api-key", suite.guard().key(role))
}

fn reason(status: &Status) -> String {
    Rejection::of(status).expect("a whole error").reason
}

/// One cell of the matrix: an RPC, a role, and whose data.
async fn check(
    admin: &Dynamic,
    (caller, role): (&Dynamic, Role),
    cell: &Cell,
    verdict: Verdict,
    whose: &Whose,
    number: usize,
) -> anyhow::Result<()> {
    let sequences = seed(admin, number == 0).await?;
    let request = (cell.request)(&numbers(whose, &sequences, number).by(role));
    let (answer, _) = caller
        .responses(cell.method, &request, |answer| cell.is_last(answer, &sequences))
        .await?;
    let at = format!("{} {verdict:?} {request}", cell.method);
    let refused = |code: Code, why: &str| {
        let status = answer.as_ref().expect_err(&at);
        assert_eq!(
            (status.code(), reason(status).as_str()),
            (code, why),
            "{at}: {status}"
        );
    };
    let sees = verdict == Verdict::May(RowAccess::All) || whose == &OWN;
    match (verdict, cell.kind) {
        (Verdict::NoRule, _) => anyhow::bail!("{at}: no rule"),
        (Verdict::MayNot, _) => refused(Code::PermissionDenied, "ROLE_NOT_ALLOWED"),
        (Verdict::May(_), Kind::Open) => {
            if let Err(status) = &answer {
                let code = status.code();
                assert!(
                    !matches!(code, Code::PermissionDenied | Code::Unauthenticated),
                    "{at}: {status}"
                );
            }
        }
        (Verdict::May(_), Kind::Read | Kind::Remove) if !sees => {
            let status = answer.as_ref().expect_err(&at);
            assert_eq!(status.code(), Code::NotFound, "{at}: {status}");
        }
        (Verdict::May(_), Kind::Create) if !sees => refused(Code::PermissionDenied, "NOT_OWN"),
        (Verdict::May(_), Kind::Read | Kind::Remove | Kind::Create) => {
            assert!(answer.is_ok(), "{at}: {answer:?}");
        }
        (Verdict::May(_), Kind::List(found)) => {
            let answers = answer
                .as_ref()
                .map_err(|status| anyhow::anyhow!("{at}: {status}"))?;
            let has = answers
                .iter()
                .any(|answer| answer[found].to_string().contains(whose.mark));
            assert_eq!(has, sees, "{at}: {answers:?}");
        }
    }
    if cell.kind == Kind::Remove {
        seed(admin, true).await?;
    }
    Ok(())
}

async fn matrix(layout: Layout) -> anyhow::Result<()> {
    let suite = Suite::start_guarded(SOUK, layout, Guard::new(subject)?, None).await?;
    let rules = Rules::from_contract()?;
    let admin = client(&suite, Role::Admin)?;
    let mut names = admin.methods();
    names.sort();
    let mut covered: Vec<_> = CELLS.iter().map(|cell| cell.method.to_owned()).collect();
    covered.sort();
    assert_eq!(covered, names, "the matrix has every RPC once");
    let mut number = 0;
    for role in Role::ALL {
        let caller = client(&suite, role)?;
        for cell in CELLS {
            for whose in [&OWN, &OTHER] {
                let verdict = rules.verdict(&format!("/{}", cell.method), role);
                check(&admin, (&caller, role), cell, verdict, whose, number).await?;
                number += 1;
            }
        }
    }
    let stranger = Dynamic::new(suite.channel()?)?;
    for cell in CELLS {
        let status = stranger
            .call(cell.method, &Value::Object(Default::default()))
            .await?;
        let status = status.expect_err(cell.method);
        assert_eq!(
            (status.code(), reason(&status).as_str()),
            (Code::Unauthenticated, "CREDENTIALS_MISSING")
        );
        number += 1;
    }
    println!("{number} cells");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn every_rpc_by_every_role_on_own_and_others_data_in_one_process() -> anyhow::Result<()> {
    matrix(Layout::OneProcess).await
}

#[tokio::test(flavor = "multi_thread")]
async fn every_rpc_by_every_role_on_own_and_others_data_in_several_processes() -> anyhow::Result<()> {
    matrix(Layout::SeveralProcesses).await
}
