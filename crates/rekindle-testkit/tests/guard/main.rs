//! What guard's memory is worth: sessions that nobody wrote for it (`fixtures/guard`, see its README), compacted to a summary that
//! says nothing, and how many of the facts in them stand in what the session is told.

mod cases;
mod score;
mod session;
