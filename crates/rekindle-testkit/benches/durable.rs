//! The hot paths alone, with criterion's statistics, for comparing two versions of the code on one machine. Against the
//! limits of the machine they stand in the `ratios` benchmark, whose ground is used here.

#![expect(dead_code, reason = "the ground is shared with the ratios, which need more of it")]
#![expect(clippy::print_stdout, reason = "a benchmark talks to its terminal")]

#[path = "ratios/bed.rs"]
mod bed;
#[path = "ratios/floor.rs"]
mod floor;
#[path = "ratios/measure.rs"]
mod measure;

use std::sync::Arc;
use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use rekindle_engine::driver::Message;
use rekindle_engine::store::Store;

use bed::{DriverBed, open_store, scratch};
use floor::{RECORD_BYTES, RawDatabase, SyncedFile};

/// Lines of one iteration of ingest.
const LINES: usize = 2_000;

fn transition(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("transition");
    group.measurement_time(Duration::from_secs(5)).sample_size(30);
    let dir = scratch();
    let mut file = SyncedFile::new(dir.path());
    group.bench_function("write and fdatasync", |bencher| bencher.iter(|| file.write()));
    let mut raw = RawDatabase::new(dir.path());
    group.bench_function("raw commit", |bencher| bencher.iter(|| raw.commit_one()));
    let driven: Arc<dyn Store> = Arc::new(open_store(&dir.path().join("driven")));
    let mut bed = DriverBed::new(driven, 100);
    let mut number = 0;
    group.bench_function("driver", |bencher| {
        bencher.iter(|| {
            number += 1;
            let message = bed.checkpoint(number);
            bed.driver.handle([message]).expect("a transition");
        });
    });
    group.finish();
}

fn ingest(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("ingest");
    group.throughput(Throughput::Elements(LINES as u64)).measurement_time(Duration::from_secs(5)).sample_size(30);
    let dir = scratch();
    let mut raw = RawDatabase::new(dir.path());
    group.bench_function("raw rows, 100 a commit", |bencher| bencher.iter(|| raw.put_lines(LINES, 100)));
    let driven: Arc<dyn Store> = Arc::new(open_store(&dir.path().join("store")));
    let mut bed = DriverBed::new(driven, 1);
    let attempt = bed.at_work().0;
    let mut line = vec![b'x'; RECORD_BYTES - 1];
    line.push(b'\n');
    let more = line.repeat(LINES);
    group.bench_function("driver", |bencher| {
        bencher.iter(|| {
            bed.driver.world().output.extend_from_slice(&more);
            bed.driver.handle([Message::Grew { attempt }]).expect("ingest");
            while !bed.driver.unread().is_empty() {
                bed.driver.handle([Message::Grew { attempt }]).expect("ingest");
            }
        });
    });
    group.finish();
}

criterion_group!(benches, transition, ingest);
criterion_main!(benches);
