//! Work that is done apart: every task in a worktree of its own, accepted work on the run's branch, the user's checkout as it
//! was, also when the coordinator is killed in between.

use crate::rig::Rig;

const PLAN: &str = "---\nplan: apart\n---\n# Apart\n\n### T1: one\n- artifacts: t1\n- accept: `test -s t1`\n\nWork.\n\n\
    ### T2: two\n- artifacts: t2\n- accept: `test -s t2`\n\nWork.\n\n\
    ### T3: three\n- blocked by: T1, T2\n- accept: `test -s t1 && test -s t2`\n\nWork.\n";

/// Both first tasks change the same file; whoever comes second merges the run's branch and keeps both.
const AGENT: &str = "pwd >> \"$PROJECT/places\"\n\
    if grep -q 'git merge' \"$REKINDLE_PROMPT_FILE\"; then\n\
      git -c user.name=a -c user.email=a@a merge -q -X ours -m both rekindle/apart\n\
      git show rekindle/apart:shared >> shared\n\
    else\n\
      lower=$(echo $REKINDLE_TASK | tr T t); echo made > $lower; echo \"$REKINDLE_TASK\" >> shared\n\
    fi\n\
    [ \"$REKINDLE_TASK\" != T3 ] || \"$FAKE\" wait \"$PROJECT/go\"\n\
    rekindle task done $REKINDLE_TASK\n";

#[test]
fn accepted_work_is_merged_and_the_checkout_stays_as_it_was() {
    let agent = |rig: &Rig| AGENT.replace("$PROJECT", &rig.path("").to_string_lossy());
    let rig = Rig::new(PLAN, "true\n");
    rig.write("agent.sh", &agent(&rig));
    rig.write("shared", "base\n");
    rig.commit_first("shared");
    let (head, index) = (rig.git(&["rev-parse", "HEAD"]), rig.git(&["ls-files", "-s"]));
    let run = rig.run();
    rig.await_file("places");
    rig.until("both merged", || (rig.events_of("work_merged").len() >= 2).then_some(()));
    rig.until("the third", || (rig.events_of("agent_started").len() >= 3).then_some(()));
    run.kill();
    rig.touch("go");
    rig.finish();
    for id in ["T1", "T2", "T3"] {
        assert_eq!(rig.task(id)["state"], "complete", "{}", rig.story());
    }
    assert_eq!(rig.git(&["rev-parse", "HEAD"]), head, "the user's HEAD has moved");
    assert_eq!(rig.git(&["ls-files", "-s"]), index, "the user's index has changed");
    assert_eq!(std::fs::read_to_string(rig.path("shared")).expect("shared"), "base\n");
    let tree = rig.git(&["ls-tree", "-r", "--name-only", "rekindle/apart"]);
    assert_eq!(tree.lines().collect::<Vec<_>>(), ["shared", "t1", "t2", "t3"], "{}", rig.story());
    let merged = rig.git(&["show", "rekindle/apart:shared"]);
    assert!(merged.contains("T1") && merged.contains("T2") && merged.contains("T3"), "{merged}\n{}", rig.story());
    let places = std::fs::read_to_string(rig.path("places")).expect("places");
    assert!(places.lines().all(|place| place.contains("/.rekindle/worktrees/T")), "{places}");
    let kept = rig.ok(&["salvage", "--json"]);
    assert!(kept.contains("\"T1\"") && kept.contains("\"T2\""), "{kept}");
    rig.audit();
}

#[test]
fn the_notice_after_a_compaction_names_the_worktree_and_what_was_changed_in_it() {
    let plan = "# Apart\n\n### T1: one\n- accept: `test -s t1`\n\nWork.\n";
    let rig = Rig::new(plan, "true\n");
    let agent = "pwd > \"$PROJECT/place\"\necho made > t1\necho more >> shared\n\
        rekindle __context --format plain --bundle \"$REKINDLE_BUNDLE\" > \"$PROJECT/told\" < /dev/null\n\
        rekindle task done T1\n";
    rig.write("agent.sh", &agent.replace("$PROJECT", &rig.path("").to_string_lossy()));
    rig.write("shared", "base\n");
    rig.commit_first("shared");
    rig.finish();
    let (place, told) = (rig.lines("place").concat(), rig.lines("told").join("\n"));
    assert!(place.contains("/.rekindle/worktrees/T1"), "{place}");
    assert!(told.contains(&format!("Your workspace is {place}.")), "{place} is not named in\n{told}");
    assert!(told.contains("shared | 1 +") && told.contains("t1 | new, not committed"), "{told}");
    rig.audit();
}
