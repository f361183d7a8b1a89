//! The shortest run there is.

use crate::rig::Rig;

#[test]
fn a_plan_of_one_task_is_finished() {
    let rig = Rig::new(
        "# P\n\n### T1: make it\n- artifacts: made\n- accept: `test -s made`\n\nMake it.\n",
        "echo working; echo yes > made; rekindle task done $REKINDLE_TASK\n",
    );
    rig.finish();
    assert_eq!(rig.task("T1")["state"], "complete");
    rig.audit();
}
