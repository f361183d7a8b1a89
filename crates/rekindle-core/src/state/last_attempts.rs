//! The newest attempt at each stage of a task. It allocates nothing for a running task: a map with three entries would cost
//! every task of a long run a heap block of its own.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::ids::AttemptId;
use crate::review::Stage;

/// The newest attempt at each stage; stored as a map from stage to attempt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "BTreeMap<Stage, AttemptId>", into = "BTreeMap<Stage, AttemptId>")]
pub struct LastAttempts {
    implement: Option<AttemptId>,
    review: Option<AttemptId>,
    audit: Option<AttemptId>,
}

impl LastAttempts {
    /// The newest attempt at a stage.
    pub fn at(&self, stage: Stage) -> Option<AttemptId> {
        match stage {
            Stage::Implement => self.implement,
            Stage::Review => self.review,
            Stage::Audit => self.audit,
        }
    }

    /// The newest attempt at any stage.
    pub fn newest(&self) -> Option<AttemptId> {
        self.implement.max(self.review).max(self.audit)
    }

    pub fn is_empty(&self) -> bool {
        self.newest().is_none()
    }

    pub(crate) fn set(&mut self, stage: Stage, attempt: AttemptId) {
        let place = match stage {
            Stage::Implement => &mut self.implement,
            Stage::Review => &mut self.review,
            Stage::Audit => &mut self.audit,
        };
        *place = Some(attempt);
    }
}

impl From<BTreeMap<Stage, AttemptId>> for LastAttempts {
    fn from(map: BTreeMap<Stage, AttemptId>) -> Self {
        let mut last = Self::default();
        map.into_iter().for_each(|(stage, attempt)| last.set(stage, attempt));
        last
    }
}

impl From<LastAttempts> for BTreeMap<Stage, AttemptId> {
    fn from(last: LastAttempts) -> Self {
        let stages = [Stage::Implement, Stage::Review, Stage::Audit];
        stages.into_iter().filter_map(|stage| Some((stage, last.at(stage)?))).collect()
    }
}
