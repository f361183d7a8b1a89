//! The store under test: the contract on every engine, and what only real files, real processes and real disks show.

mod bed;
mod contract;
mod damage;
mod files;
mod kill;
mod planted;
mod postgres;
mod proxy;
mod space;
mod speed;
mod syncs;
mod views;
