//! A product service for tests: keeps products in memory and makes the trouble that it is told to.

use std::net::SocketAddr;

use souk_proto::order::v1::product_service_server::{ProductService, ProductServiceServer};
use souk_proto::order::v1::*;
use tokio::net::TcpListener;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::transport::Server;
use tonic::{Request, Response};
use tonic_types::{ErrorDetails, StatusExt as _};

use super::*;

/// What goes wrong.
#[derive(Clone, Debug, Default)]
pub(super) struct Trouble {
    /// Products with these numbers are refused.
    pub(super) bad: Vec<u64>,
    /// Whether the refusal names them.
    pub(super) names_rows: bool,
    /// So many calls are shed, with this delay.
    pub(super) busy_calls: u64,
    pub(super) busy_for: Duration,
    /// So many calls are carried out without an answer.
    pub(super) lost_answers: u64,
    /// Calls after so many fail for good.
    pub(super) dies_after_calls: Option<u64>,
}

#[derive(Debug, Default)]
struct State {
    trouble: Trouble,
    products: BTreeMap<String, Product>,
    requests: BTreeMap<String, Vec<Product>>,
    calls: u64,
}

/// The service, and where it listens.
#[derive(Clone, Debug)]
pub(super) struct Shelf {
    state: Arc<Mutex<State>>,
    address: SocketAddr,
}

impl Shelf {
    pub(super) async fn start(trouble: Trouble) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let state = State {
            trouble,
            ..State::default()
        };
        let shelf = Self {
            state: Arc::new(Mutex::new(state)),
            address,
        };
        let service = ProductServiceServer::new(shelf.clone());
        let incoming = TcpListenerStream::new(listener);
        tokio::spawn(
            Server::builder()
                .add_service(service)
                .serve_with_incoming(incoming),
        );
        shelf
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    fn with<T>(&self, use_it: impl FnOnce(&mut State) -> T) -> T {
        use_it(&mut self.state.lock().expect("no test panics in it"))
    }

    pub(super) fn len(&self) -> usize {
        self.with(|state| state.products.len())
    }

    pub(super) fn calls(&self) -> u64 {
        self.with(|state| state.calls)
    }

    pub(super) fn get(&self, id: &str) -> Option<Product> {
        self.with(|state| state.products.get(id).cloned())
    }

    pub(super) fn put(&self, product: Product) {
        self.with(|state| state.products.insert(product.product_id.clone(), product));
    }

    pub(super) fn recover(&self) {
        self.with(|state| state.trouble = Trouble::default());
    }
}

impl State {
    fn create(&mut self, request: BatchCreateProductsRequest) -> Result<(), Status> {
        self.calls += 1;
        if self
            .trouble
            .dies_after_calls
            .is_some_and(|after| self.calls > after)
        {
            return Err(Status::internal("the disk is gone"));
        }
        if self.trouble.busy_calls > 0 {
            self.trouble.busy_calls -= 1;
            let details = ErrorDetails::with_retry_info(Some(self.trouble.busy_for));
            return Err(Status::with_error_details(
                tonic::Code::ResourceExhausted,
                "busy",
                details,
            ));
        }
        assert!(request.products.len() <= BATCH_ROWS && request.omit_resources);
        match self.requests.get(&request.request_id) {
            Some(before) if *before == request.products => return self.answer(),
            Some(_) => return Err(Status::invalid_argument("the request id was used for other rows")),
            None => {}
        }
        let bad: Vec<String> = self
            .trouble
            .bad
            .iter()
            .map(|number| product(*number).product_id)
            .collect();
        let mut details = ErrorDetails::new();
        for (index, row) in request.products.iter().enumerate() {
            if bad.contains(&row.product_id) {
                details.add_bad_request_violation(format!("products[{index}].name"), "bad");
            }
        }
        if details.has_bad_request_violations() {
            let details = if self.trouble.names_rows {
                details
            } else {
                ErrorDetails::new()
            };
            return Err(Status::with_error_details(
                tonic::Code::InvalidArgument,
                "bad rows",
                details,
            ));
        }
        if request
            .products
            .iter()
            .any(|row| self.products.contains_key(&row.product_id))
        {
            return Err(Status::already_exists("one exists"));
        }
        for row in &request.products {
            self.products.insert(row.product_id.clone(), row.clone());
        }
        self.requests.insert(request.request_id, request.products);
        self.answer()
    }

    fn answer(&mut self) -> Result<(), Status> {
        if self.trouble.lost_answers > 0 {
            self.trouble.lost_answers -= 1;
            return Err(Status::unavailable("the answer is lost"));
        }
        Ok(())
    }
}

/// What no load calls.
fn unused<T>() -> Result<Response<T>, Status> {
    Err(Status::unimplemented("a load doesn't call it"))
}

#[tonic::async_trait]
impl ProductService for Shelf {
    async fn batch_create_products(
        &self,
        request: Request<BatchCreateProductsRequest>,
    ) -> Result<Response<BatchCreateProductsResponse>, Status> {
        self.with(|state| state.create(request.into_inner()))?;
        Ok(Response::new(BatchCreateProductsResponse::default()))
    }

    async fn create_product(
        &self,
        _: Request<CreateProductRequest>,
    ) -> Result<Response<CreateProductResponse>, Status> {
        unused()
    }

    async fn get_product(
        &self,
        _: Request<GetProductRequest>,
    ) -> Result<Response<GetProductResponse>, Status> {
        unused()
    }

    async fn batch_get_products(
        &self,
        _: Request<BatchGetProductsRequest>,
    ) -> Result<Response<BatchGetProductsResponse>, Status> {
        unused()
    }

    async fn update_product(
        &self,
        _: Request<UpdateProductRequest>,
    ) -> Result<Response<UpdateProductResponse>, Status> {
        unused()
    }

    async fn delete_product(
        &self,
        _: Request<DeleteProductRequest>,
    ) -> Result<Response<DeleteProductResponse>, Status> {
        unused()
    }

    async fn search_products(
        &self,
        _: Request<SearchProductsRequest>,
    ) -> Result<Response<SearchProductsResponse>, Status> {
        unused()
    }

    async fn suggest_products(
        &self,
        _: Request<SuggestProductsRequest>,
    ) -> Result<Response<SuggestProductsResponse>, Status> {
        unused()
    }
}
