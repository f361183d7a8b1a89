//! What is taken from realistic prose, sentence by sentence, and what is left.

use super::Statement::{Decision, Effect, Next, Question};
use super::*;

fn kinds(text: &str) -> Vec<Statement> {
    in_assistant_text(text).into_iter().map(|(kind, _)| kind).collect()
}

/// One sentence, and what it states.
const SENTENCES: &[(&str, Option<Statement>)] = &[
    ("Let's use Redis for the rate limiter.", Some(Decision)),
    ("I picked a sliding window (not fixed buckets) since bursts at the boundary were the complaint.", Some(Decision)),
    ("I'm going to normalise everything to UTC at the boundary and keep the formatting layer local.", Some(Decision)),
    ("I also considered using Luxon, but it adds 70 KB and we only need two functions.", Some(Decision)),
    ("My recommendation is C.", Some(Decision)),
    ("I'll go ahead with C unless you object.", Some(Decision)),
    ("IDs will be ULIDs.", Some(Decision)),
    ("Timestamps are stored in UTC.", Some(Decision)),
    ("Fix: drop the sender before joining.", Some(Decision)),
    ("The issue is that `parseDate` treats naive timestamps as local time.", Some(Decision)),
    ("`Arc::strong_count` was 2 because the watcher task keeps a clone.", Some(Decision)),
    ("We are going with JSON instead of Protobuf for events: people read them.", Some(Decision)),
    ("Snapshots are written every 200 events because loading 200 takes 3 ms.", Some(Decision)),
    ("I also ruled out Kafka: it is one more thing to run.", Some(Decision)),
    ("The root cause of the double charge was the retry in charge_worker.", Some(Decision)),
    ("We decided on number 7.", Some(Decision)),
    ("Upgraded values are merged with the defaults because the API returns partial objects.", Some(Decision)),
    ("I won't touch `legacy/` as you asked.", Some(Decision)),
    ("Wir nehmen Postgres statt SQLite, weil zwei Prozesse gleichzeitig schreiben.", Some(Decision)),
    ("Ich habe mich für ULIDs entschieden.", Some(Decision)),
    ("Die Ursache war ein doppelter Retry.", Some(Decision)),
    ("On garde JSON au lieu de Protobuf.", Some(Decision)),
    ("Usaremos Postgres en lugar de SQLite.", Some(Decision)),
    ("I've now run `./scripts/migrate.sh staging` and it went through (schema version 47).", Some(Effect)),
    ("I've now run ./scripts/migrate.sh staging.", Some(Effect)),
    ("PR is up: https://github.com/acme/app/pull/482.", Some(Effect)),
    ("The seed script inserted 1,200 fake customers into the local DB, so don't seed again.", Some(Effect)),
    ("I started the dev server on port 5173 (pid 40211) and left it running.", Some(Effect)),
    ("There is a dev server on port 5173 (pid 40211).", Some(Effect)),
    ("I backfilled 1,204,331 invoices on staging, do not run it again.", Some(Effect)),
    ("Posted the announcement to #billing.", Some(Effect)),
    ("Pushed to origin/main.", Some(Effect)),
    ("I committed the parser and pushed the branch.", Some(Effect)),
    ("We've already deployed v1.4 to production.", Some(Effect)),
    ("The schema was migrated on staging.", Some(Effect)),
    ("The release has been published to npm.", Some(Effect)),
    ("I opened issue #12 for it.", Some(Effect)),
    ("Created the branch `feat/x`.", Some(Effect)),
    ("I deleted the old bucket, but not the new one.", Some(Effect)),
    ("v2 is now live.", Some(Effect)),
    ("Done: deployed to staging.", Some(Effect)),
    ("Ich habe die Migration auf Staging ausgeführt, bitte nicht noch einmal.", Some(Effect)),
    ("Version 2 wurde auf Produktion ausgerollt.", Some(Effect)),
    ("Den Branch habe ich gepusht.", Some(Effect)),
    ("J'ai déployé la version 2 en production.", Some(Effect)),
    ("In the meantime I'll carry on with the frontend part: first the form validation, then the toasts.", Some(Next)),
    ("First the form validation, then the error toasts.", Some(Next)),
    ("After the review agent comes back, I'll merge its comments and hand over to you.", Some(Next)),
    ("Currently half of the projector is written.", Some(Next)),
    ("Next I will handle refunds in the projector.", Some(Next)),
    ("Next: deploy.", Some(Next)),
    ("I still need to wire the cache.", Some(Next)),
    ("What's left: the docs.", Some(Next)),
    ("I'm currently working on the importer.", Some(Next)),
    ("Als Nächstes schreibe ich den Importer.", Some(Next)),
    ("Danach kommen die Tests.", Some(Next)),
    ("Noch offen: die Doku.", Some(Next)),
    ("Prochaine étape : écrire les tests.", Some(Next)),
    ("I'm blocked: the staging credentials in `.env.staging` have expired.", Some(Question)),
    ("Could you rotate them or point me to the vault path?", Some(Question)),
    ("Should refunds be their own stream?", Some(Question)),
    ("Soll ich die alten Tests löschen?", Some(Question)),
    ("The Next.js app router handles the redirect.", None),
    ("The TodoList component re-renders on every keystroke.", None),
    ("Currently the logout button calls `/api/logout`, which sends a 204.", None),
    ("The middleware is registered before the router.", None),
    ("The data is sent to the server by the `useSync` hook.", None),
    ("A listener is registered in `useEffect`.", None),
    ("Exceptions are reserved for programmer errors.", None),
    ("Options are merged with the defaults.", None),
    ("I emailed nobody; the SMTP config is a stub.", None),
    ("I pushed nothing.", None),
    ("Nothing was deployed to staging.", None),
    ("I haven't pushed the branch.", None),
    ("The migration has not been applied to production.", None),
    ("I ran `cargo test` and all is green.", None),
    ("I created a small type for it.", None),
    ("Events are posted to the queue by the worker.", None),
    ("Next page tokens are opaque.", None),
    ("The remaining bytes are copied.", None),
    ("It strips lines starting with a hash.", None),
    ("Let me know if you'd like me to adjust anything!", None),
    ("Let me look at module 3.", None),
    ("I'm going to look at the tests.", None),
    ("It has 111 lines and a test.", None),
    ("The iterator calls `next` and `decided` on it.", None),
    ("Ich habe nichts gepusht.", None),
    ("Production is untouched; you wanted to do that one yourself.", None),
    ("All done.", None),
    ("The table was created by migration 0012.", None),
    ("I added a migration file 0007_add_index.sql.", None),
    ("I created a new table component.", None),
    ("I updated the README and removed the unused table helper.", None),
    ("I ran into an issue with the parser.", None),
    ("I merged the two functions.", None),
    ("If the branch was merged, we skip it.", None),
    ("Users who were invited get an email once the account is created.", None),
    ("Ich habe noch nichts deployt.", None),
    ("Die Tabelle wird beim Start angelegt.", None),
    ("Der PR ist offen: https://github.com/a/b/pull/9.", Some(Effect)),
    ("I released 0.9.0 to crates.io this morning.", Some(Effect)),
    ("Rotated the API key too.", Some(Effect)),
    ("I updated the DNS record for production.", Some(Effect)),
    ("Please don't replay them again, the charge endpoint isn't idempotent.", Some(Effect)),
    ("Tomorrow: wire up the retry queue and remove the flag.", Some(Next)),
    ("I'll begin with the parser since everything depends on it.", Some(Next)),
    ("We'll go for at-least-once delivery and dedupe on event id.", Some(Decision)),
    ("I'm holding off on sharding; one Postgres is plenty until ~5k tenants.", Some(Decision)),
];

#[test]
fn a_sentence_states_what_it_says() {
    let wrong: Vec<String> = SENTENCES
        .iter()
        .filter_map(|(sentence, wanted)| {
            let found = kinds(sentence);
            (found != Vec::from_iter(*wanted)).then(|| format!("{sentence}: {found:?}, not {wanted:?}"))
        })
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn prose_states_decisions_effects_and_next_steps() {
    let text = "I looked at both. We will use Postgres instead of SQLite because two writers are needed. \
                The schema was migrated on staging, do not run it again. Next I will write the importer.";
    let found = in_assistant_text(text);
    assert_eq!(found.len(), 3, "{found:?}");
    assert_eq!(found[0].0, Decision);
    assert!(found[0].1.ends_with("two writers are needed."), "{found:?}");
    assert_eq!((found[1].0, found[2].0), (Effect, Next));
}

#[test]
fn a_reason_stays_with_its_decision() {
    let found = in_assistant_text("Decision: tokens are opaque. Reason: they must be revocable.");
    assert_eq!(found, [(Decision, "Decision: tokens are opaque. Reason: they must be revocable.".into())]);
}

#[test]
fn items_below_a_heading_state_what_it_says() {
    let text = "## Next steps\n- wire the cache\n- measure it\n\nSome prose here.\n\n**Decisions**\n1. ids are ULIDs\n";
    let found = in_assistant_text(text);
    let next = |words: &str| (Next, words.to_owned());
    assert_eq!(found, [next("wire the cache"), next("measure it"), (Decision, "ids are ULIDs".into())]);
}

#[test]
fn a_box_says_what_is_done_and_what_is_left() {
    let text = "Plan for the rest of the session:\n- [x] extract the parser\n- [ ] move the tests\n* [X] read it\n";
    let found = in_assistant_text(text);
    let texts: Vec<(Statement, &str)> = found.iter().map(|(kind, text)| (*kind, text.as_str())).collect();
    assert_eq!(texts, [(Effect, "extract the parser"), (Next, "move the tests"), (Effect, "read it")]);
}

#[test]
fn code_and_small_talk_state_nothing() {
    assert_eq!(kinds("```\nnext decided because\n```\nSure, I can do that. The file has 30 lines."), []);
    assert_eq!(kinds("It is in src/v1.2/context.rs and the text is fine."), [], "inside a word there is no cue");
}

#[test]
fn a_person_says_what_to_keep_to() {
    let text = "Please build it.\n- never touch legacy/\n- the API must stay compatible. Have fun.";
    assert_eq!(constraints(text), ["never touch legacy/", "the API must stay compatible."]);
    assert_eq!(constraints("Bau es. Die Tabelle darf nie geändert werden."), ["Die Tabelle darf nie geändert werden."]);
}

#[test]
fn a_person_says_that_the_context_was_lost() {
    let prompts = [
        ("you were compacted", true),
        ("you were compacted, go on", true),
        ("You were compacted. Where were we?", true),
        ("your context was compacted", true),
        ("Your context was lost.", true),
        ("I think your context has been truncated", true),
        ("the conversation was just summarised", true),
        ("Where were we?", true),
        ("what were we doing", true),
        ("you forgot everything", true),
        ("you lost the thread", true),
        ("you have been compacted, look at the state", true),
        ("recover your state", true),
        ("Wo waren wir?", true),
        ("du hast den Faden verloren", true),
        ("make the compact view smaller", false),
        ("you forgot the semicolon", false),
        ("the output was truncated, show all", false),
        ("Write a test for log compaction in RocksDB", false),
        ("why is the table compacted on delete?", false),
        ("the tokens you were given are compressed with zstd, right?", false),
        ("Add a reset button to the session page", false),
        ("the log was summarized by the cron job", false),
    ];
    let wrong: Vec<_> = prompts.iter().filter(|(prompt, wanted)| says_compacted(prompt) != *wanted).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

proptest::proptest! {
    #[test]
    fn any_text_is_read(text in "\\PC{0,80}", cue in "(I ran|pid|first|don't|your context|PR|- \\[ \\])") {
        let text = format!("{cue} {text}");
        proptest::prop_assert!(in_assistant_text(&text).iter().all(|(_, said)| said.len() <= STATEMENT_MAX_BYTES + 8));
        let _ = (says_compacted(&text), constraints(&text));
    }
}
