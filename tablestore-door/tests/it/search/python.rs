//! The official Python package works with search indexes.

use crate::python::run;
use crate::server::Server;

#[tokio::test(flavor = "multi_thread")]
async fn the_package_works_with_search_indexes() {
    let server = Server::start().await;
    let endpoint = format!("http://{}", server.address);
    let arguments = [endpoint.as_str(), "demo", "demo-secret-of-tests", "demo"];
    if let Some(said) = run("search.py", &arguments).await {
        assert_eq!(said, "index\nqueries\nsorts\npages\nhits\ngroups\nscans\n");
    }
    server.end().await;
}
