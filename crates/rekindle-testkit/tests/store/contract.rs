//! Every engine keeps the contract.

use rekindle_engine::store::{MemoryStore, Store};
use rekindle_testkit::contract::store::{Subject, check};

use crate::bed::OnDisk;

struct InMemory(MemoryStore);

impl Subject for InMemory {
    fn store(&self) -> &dyn Store {
        &self.0
    }

    fn killed(&self) -> Box<dyn Subject> {
        Box::new(InMemory(self.0.restarted()))
    }
}

#[test]
fn the_store_in_memory_keeps_the_contract() {
    check(&|| Box::new(InMemory(MemoryStore::new())));
}

#[test]
fn the_store_on_sqlite_keeps_the_contract() {
    check(&OnDisk::make);
}
