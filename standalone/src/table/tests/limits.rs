//! How large an answer may be, and of how many pieces a file is made.

use std::convert::Infallible;

use bytes::{BufMut as _, Bytes, BytesMut};
use http::header::CONTENT_TYPE;
use http_body_util::{BodyExt as _, Full};
use prost::Message as _;
use souk_api::testing::random;
use souk_chassis::client::Client;
use souk_chassis::methods::Methods;
use souk_proto::FILE_DESCRIPTOR_SET;
use souk_proto::table::v1::ExportRowsResponse;
use tonic::body::Body;
use tower::service_fn;

use super::{TestResult, all_types, any_row, plan, string, value};
use crate::load::progress::Progress;
use crate::table::columns::FileColumns;
use crate::table::export::{self, ANSWER_BYTES_MAX};
use crate::table::format::FileFormat;
use crate::table::parquet::{PIECES_MAX, Pieces};

/// A row whose answer has so many bytes.
fn answer_of(bytes: usize) -> ExportRowsResponse {
    let mut row = any_row(&mut random(), 1);
    let mut answer = |text: usize| {
        row.columns
            .insert("text".to_owned(), value(string(&"x".repeat(text))));
        ExportRowsResponse {
            rows: vec![row.clone()],
            ..ExportRowsResponse::default()
        }
    };
    // The lengths in front of it are as long for any text of this size.
    let text = bytes - 4_096;
    let over = answer(text).encoded_len() - text;
    answer(bytes - over)
}

/// A client whose calls are answered with a message.
fn answering(message: &ExportRowsResponse) -> Result<Client, Box<dyn std::error::Error>> {
    let mut frame = BytesMut::new();
    frame.put_u8(0);
    frame.put_u32(message.encoded_len().try_into()?);
    message.encode(&mut frame)?;
    let frame: Bytes = frame.freeze();
    let service = service_fn(move |_: http::Request<Body>| {
        let frame = frame.clone();
        async move {
            let trailers = async {
                let mut trailers = http::HeaderMap::new();
                trailers.insert("grpc-status", http::HeaderValue::from_static("0"));
                Some(Ok::<_, Infallible>(trailers))
            };
            let body = Full::new(frame).with_trailers(trailers);
            let mut response = http::Response::new(Body::new(body));
            let kind = http::HeaderValue::from_static("application/grpc");
            response.headers_mut().insert(CONTENT_TYPE, kind);
            Ok::<_, Infallible>(response)
        }
    });
    let methods = Methods::read(&[FILE_DESCRIPTOR_SET], |_| true)?;
    Ok(Client::local(service, "answering", methods))
}

#[tokio::test]
async fn an_answer_has_so_many_bytes() -> TestResult {
    let folder = tempfile::tempdir()?;
    let plan = || {
        plan(
            &all_types("large"),
            FileFormat::Ndjson,
            folder.path().join("rows"),
        )
    };
    let largest = answer_of(ANSWER_BYTES_MAX);
    assert_eq!(largest.encoded_len(), ANSWER_BYTES_MAX);
    let report = export::run(answering(&largest)?, plan(), &Progress::quiet()).await?;
    assert_eq!(report.rows, 1);
    let larger = answer_of(ANSWER_BYTES_MAX + 1);
    let refused = export::run(answering(&larger)?, plan(), &Progress::quiet()).await;
    let told = refused.expect_err("it is too large").to_string();
    assert!(told.contains(&ANSWER_BYTES_MAX.to_string()), "{told}");
    Ok(())
}

#[test]
fn a_file_is_of_so_many_pieces() -> TestResult {
    let folder = tempfile::tempdir()?;
    let columns = FileColumns::of_table(&all_types("long"), &[])?;
    let path = folder.path().join("rows.parquet");
    let mut pieces = Pieces::new(columns, &path, PIECES_MAX - 1)?;
    pieces.push(any_row(&mut random(), 1))?;
    pieces.end_piece()?;
    pieces.push(any_row(&mut random(), 2))?;
    let told = pieces.end_piece().expect_err("there are no more").to_string();
    assert!(told.contains("32767 pieces (PIECES_MAX)"), "{told}");
    Ok(())
}
