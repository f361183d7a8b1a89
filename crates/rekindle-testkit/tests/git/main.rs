//! Git torture on real repositories: no byte that was on disk is lost, whatever is killed, locked, deleted or in the way.

mod bed;
mod branch;
mod changes;
mod crash;
mod declared;
mod hostile;
mod locks;
mod merging;
mod salvage;
mod snapshots;
mod workspaces;
