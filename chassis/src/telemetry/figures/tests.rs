use opentelemetry::metrics::MeterProvider as _;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::metrics::SdkMeterProvider;

use super::super::instrument::{Histogram, Instrument, Kind};
use super::super::prometheus::Reader;
use super::*;

const SEATS: Instrument = Instrument {
    name: "souk.cafe.seats",
    kind: Kind::Gauge,
    unit: "{seat}",
    description: "Seats of a café",
    attributes: &["souk.cafe"],
};

const STAYS: Instrument = Instrument {
    name: "souk.cafe.stays",
    kind: Kind::Histogram(&[0.5, 2.0]),
    unit: "s",
    description: "How long guests stay",
    attributes: &[],
};

/// What is said of a stay, and the buckets that it came into.
async fn stay(source: &'static Source, stays: &Histogram, seconds: f64) -> FigureValue {
    stays.record(seconds, &[]);
    // Beyond the age up to which figures are told again.
    tokio::time::advance(FIGURES_AGE_MAX).await;
    let figures = source.read().await.expect("it lives");
    let found = figures.all.iter().find(|figure| figure.name == STAYS.name);
    let figure = found.expect("an instrument");
    assert_eq!(
        (figure.service.as_str(), figure.unit.as_str()),
        ("souk-test", "s")
    );
    assert_eq!(figure.bounds, [0.5, 2.0]);
    figure.values[0].1.clone()
}

/// Whether the histograms of the test would rest.
static RESTS: AtomicBool = AtomicBool::new(true);

#[tokio::test(start_paused = true)]
async fn values_are_sorted_while_somebody_asks() {
    let reader = Reader::default();
    let provider = SdkMeterProvider::builder()
        .with_resource(Resource::builder_empty().with_service_name("souk-test").build())
        .with_reader(reader.clone())
        .build();
    let meter = provider.meter("test");
    SEATS.observe(&meter, |now| {
        now.observe(12, &[KeyValue::new("souk.cafe", "north")])
    });
    let stays = STAYS.histogram(&meter);
    let source: &'static Source = Box::leak(Box::new(Source::new(
        Scraper::new(vec![(None, reader)]),
        Some(&RESTS),
    )));

    assert!(RESTS.load(Ordering::Relaxed));
    let first = source.read().await.expect("it lives");
    let seats = first.all.iter().find(|figure| figure.name == SEATS.name);
    let north = vec![("souk.cafe".to_owned(), "north".to_owned())];
    assert_eq!(
        seats.expect("an instrument").values,
        [(north, FigureValue::Number(12.0))]
    );
    let again = source.read().await.expect("it lives");
    assert!(Arc::ptr_eq(&first, &again), "read twice within its age");

    let buckets = |count, sum, counts: [u64; 3]| FigureValue::Buckets {
        count,
        sum,
        counts: counts.to_vec(),
    };
    assert_eq!(stay(source, &stays, 1.0).await, buckets(1, 1.0, [0, 1, 0]));
    tokio::time::sleep(WANTED / 2).await;
    assert_eq!(stay(source, &stays, 3.0).await, buckets(2, 4.0, [0, 1, 1]));
    // A minute from the last question, not from the first.
    tokio::time::sleep(WANTED * 3 / 4).await;
    assert!(!RESTS.load(Ordering::Relaxed));
    tokio::time::sleep(WANTED / 2).await;
    assert!(RESTS.load(Ordering::Relaxed));
    assert_eq!(stay(source, &stays, 0.5).await, buckets(3, 4.5, [1, 1, 1]));
    assert!(!RESTS.load(Ordering::Relaxed));
    // For one who hangs up, too, they are read once.
    tokio::time::advance(FIGURES_AGE_MAX).await;
    let asked_at = Instant::now();
    tokio::select! {
        biased;
        _ = source.read() => panic!("nothing is read at once"),
        () = std::future::ready(()) => {}
    }
    tokio::time::sleep(Duration::from_millis(1)).await;
    let read_at = source.last.lock().await.as_ref().map(|(at, _)| *at);
    assert!(read_at.is_some_and(|at| at >= asked_at));
    provider.shutdown().expect("nothing to send");
    tokio::time::advance(FIGURES_AGE_MAX).await;
    assert_eq!(source.read().await, None);
}
