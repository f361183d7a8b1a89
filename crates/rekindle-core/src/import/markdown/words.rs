//! The words by which documents are read, in one place: the names of headings and labels that are about tasks, groups of
//! tasks, checks, order, or none of these. Structure decides first; these tables only settle what structure leaves open.
//! Entries are separated by commas, in lower case, as [`plain`] returns them.

/// What a marked heading or item is, by the word before its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rank {
    /// `Phase 1`: it contains tasks; it is a task itself only if it contains none.
    Group,
    /// `Task 1`.
    Task,
    /// `Step 1`: a task unless it is inside one.
    Step,
    /// `US-001`, `T3`.
    Id,
    /// `1.`, `2.3`.
    Number,
}

/// What a label or a heading says about the task that contains it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum About {
    After,
    /// How to verify that it is complete.
    Checks,
    Status,
    /// Whether it may run in parallel with others.
    Parallel,
    /// Anything else that belongs to a task and is not a task.
    Detail,
}

/// What a heading without a number is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Topic {
    /// What is below it are tasks.
    Tasks,
    /// Requirements and stories: tasks only if there is nothing else.
    Wishes,
    /// Part of a task, or of the whole document if it is inside none.
    About(About),
    /// Nothing below it is a task.
    Context,
    /// Unknown from its words.
    Open,
}

const GROUPS: &str = "phase, milestone, stage, epic, sprint, week, day, part, wave, iteration, track, stream, workstream, \
    theme, chapter, release, module, section, group, quarter, meilenstein, etappe, fase, lot, block, pillar";

const TASKS: &str = "task, story, user story, ticket, issue, item, feature, requirement, req, todo, pr, change, deliverable, \
    action, work item, work package, job, chunk, slice, activity, aufgabe, tâche, tache, tarea, tarefa, taak, bug, fix, patch";

const STEPS: &str = "step, subtask, sub-task, schritt, étape, paso, passo, stap";

/// Words before a number that do not number tasks.
const NO_MARKS: &str = "option, version, appendix, table, figure, risk, question, decision, goal, alternative, example, note, \
    annex, layer, level, tier, scenario, case, persona, assumption, constraint, finding, q, rfc, adr, v, test, criterion, rule, \
    principle, hypothesis, idea, problem, meeting, year, chapter, slide, line, page";

/// Letters before a number that need no separator after it: `T3 do this`.
const ID_LETTERS: &str = "t, us, fr, nfr, req, task, story, r, rf, wp";

/// Letters before a number that mark a group: `M1`, `Q3`.
const GROUP_LETTERS: &str = "m, q, p, e, ph";

/// Letters before a number that mark no task: criteria and tests.
const OTHER_LETTERS: &str = "ac, tc, v, nfr, adr, rfc, kpi, okr, q, appendix";

/// Headings whose items are tasks.
const TASK_LISTS: &str = "tasks, task list, task breakdown, todo, to do, todos, to-do, to-dos, steps, plan, implementation plan, \
    implementation steps, implementation tasks, implementation, work breakdown, work items, work packages, action items, \
    actions, next steps, what to do, checklist, milestones, phases, roadmap, backlog, subtasks, issues, tickets, execution plan, \
    migration plan, rollout plan, work plan, project plan, development plan, in order, order of work, remaining work, \
    what is left, open tasks, procedure, migration steps, breakdown, epics, sequence, work, bugs, fixes, punch list, runbook, \
    to dos, task overview, action plan, jobs, aufgaben, schritte, arbeitspakete, vorgehen, umsetzung, umsetzungsplan, tâches, étapes, \
    plan d'action, tareas, pasos, plan de trabajo, plan de trabalho, tarefas, passos, por hacer, pendientes, à faire, zu tun, taken, now, next, later, must have, must haves, \
    should have, could have, nice to have";

/// Headings whose items are tasks only if no others are.
const WISHES: &str = "user stories, stories, requirements, functional requirements, features, deliverables, key features, core features, \
    feature list, product requirements, use cases, capabilities, anforderungen, exigences, requisitos, historias de usuario, scope of work, \
    mvp, mvp scope";

/// Headings below which nothing is a task.
const CONTEXT: &str = "overview, summary, executive summary, tl dr, tldr, goal, goals, objective, objectives, background, context, introduction, \
    intro, problem, problem statement, motivation, purpose, vision, scope, in scope, risks, risk, assumptions, constraints, architecture, \
    design, tech stack, technology, stack, references, links, resources, glossary, appendix, notes, open questions, questions, \
    open points, open issues, decisions, log, changelog, history, timeline, schedule, metrics, success metrics, kpis, stakeholders, team, \
    people, contacts, contact, hardware, data model, api, endpoints, personas, users, target users, audience, alternatives, \
    budget, estimate, estimates, effort, faq, conventions, guidelines, principles, rules, out of scope, non-goals, non goals, nongoals, \
    ideas, parking lot, table of contents, contents, rollback, rollback plan, file structure, project structure, structure, \
    current state, status quo, mitigations, technical considerations, design considerations, considerations, important, warning, \
    tools, tooling, environment, owners, owner, meeting notes, attendees, technical notes, implementation notes, what we know, \
    findings, definitions, legend, key, limitations, known issues, non-functional requirements, nonfunctional requirements, \
    quality requirements, pitfalls, unresolved questions, drawbacks, consequences, agenda, discussion, minutes, inventory, materials, \
    useful commands, commands, see also, further reading, related work, prior art, thanks, license, contributing, installation, usage, \
    how it works, reading list, reading, released, releases, release history, self-review, prior releases, done in, random thoughts, thoughts, observations, lessons learned, retrospective, glossar, hintergrund, ausgangslage, ziele, ziel, \
    risiken, offene fragen, offene punkte, notizen, contexte, objectifs, objectif, risques, questions ouvertes, contexto, objetivos, riesgos, \
    preguntas abiertas, notas, anhang, annexe, anexo, costs, cost, communication, communication plan, approach, strategy, philosophy, \
    key decisions, dependencies between tasks, progress notes, journal, diary, ressources, scope cuts, format, parallel example, parallel examples";

/// Words anywhere in a heading that mean that what is below is left out.
const LEFT_OUT: &str = "not, never, no, non, maybe, future, ideas, against, deferred, excluded, rejected, parked, postponed, won't, \
    wont, dropped, cancelled, someday, don't, dont, appendix, wishlist, nicht, hors, fuera, kein, keine, pas, non-goals, ideen, idées";

/// Labels of what must come before.
const AFTER: &str = "depends on, depend on, depends, dependencies, dependency, deps, blocked by, blocked on, blockers, after, requires, \
    needs, prerequisite, prerequisites, prereqs, predecessors, predecessor, waits for, wait for, starts after, follows, preconditions, \
    abhängig von, abhängigkeiten, abhängigkeit, voraussetzung, voraussetzungen, nach, dépend de, dépendances, dépendance, après, prérequis, \
    depende de, dependencias, después de, requiere, dependências, depois de, hangt af van, blocked-by, depends-on";

/// Labels of how to verify that something is complete.
const CHECKS: &str = "verification, verify, verified by, verify with, verify by, how to verify, acceptance, acceptance criteria, \
    acceptance criterion, acceptance test, acceptance tests, acceptance checks, accept, ac, success criteria, exit criteria, completion criteria, \
    definition of done, dod, done when, done if, complete when, finished when, test, tests, testing, test command, test plan, how to test, tested by, test with, check, checks, \
    check with, how to check, validation, validate, validation steps, proof, prove, proven by, run, verification steps, verification command, verification commands, quality gate, gate, \
    acceptance checklist, validation checklist, review checklist, quality checklist, test checklist, qa checklist, qa, \
    prüfung, prüfen, abnahme, abnahmekriterien, akzeptanzkriterien, fertig wenn, vérification, vérifier, critères d'acceptation, recette, terminé quand, verificación, verificar, \
    comprobación, prueba, pruebas, criterios de aceptación, hecho cuando, verificação, critérios de aceitação, teste, controle";

const STATUS: &str = "status, state, done, completed, stand, statut, estado, état";

const PARALLEL_LABELS: &str = "parallel, parallelizable, parallelisable, can run in parallel, can be done in parallel, parallel with, independent";

/// Labels of anything else that belongs to a task.
const DETAILS: &str = "files, files to create, files to modify, files to change, artifacts, outputs, output, inputs, description, details, \
    implementation details, what, why, how, rationale, priority, assignee, estimate, estimated time, time, duration, expected, example, \
    examples, hints, hint, note, tip, caution, commit, deliverable, technical details, edge cases, size, complexity, effort, subtasks, \
    test data, reference, type, labels, requirements covered, story points, points, area, component";

/// Words for something that is done.
const DONE: &str = "done, complete, completed, finished, shipped, merged, closed, yes, ✅, ☑, ✔, ✓, x, [x], 100%, resolved, implemented, \
    fixed, fertig, erledigt, fait, terminé, hecho, terminado, listo, feito, klaar";

/// Words for something that is not done yet.
const OPEN: &str = "open, todo, to do, in progress, wip, pending, blocked, not started, planned, ongoing, started, offen, in arbeit, en cours";

/// Marks in brackets that mean that something may run in parallel with others.
const BESIDE: &str = "[p], p, parallel, in parallel, independent, independently, concurrently, any order, no particular order, parallelizable, \
    can be done in parallel, can run in parallel, can be parallel, parallel ok, ∥";

/// Sentences that mean the same.
const BESIDE_SENTENCES: &str = "in parallel, independent of each other, independent of one another, in any order, independently, concurrently, \
    order does not matter, order doesn't matter, no particular order, are independent, side by side, at the same time, the order is free, parallelised, parallelized, \
    any order is fine, simultaneously";

/// Sentences that deny it.
const IN_ORDER_SENTENCES: &str =
    "not in parallel, not parallel, no parallel, not independent, cannot run in parallel, can't run in parallel";

fn has(table: &str, word: &str) -> bool {
    table.split(',').any(|entry| entry.trim() == word)
}

fn any(table: &str, test: impl Fn(&str) -> bool) -> bool {
    table.split(',').any(|entry| test(entry.trim()))
}

/// The rank of a word, or of two.
pub(super) fn rank(word: &str) -> Option<Rank> {
    let word = word.to_lowercase();
    match () {
        () if has(GROUPS, &word) => Some(Rank::Group),
        () if has(TASKS, &word) => Some(Rank::Task),
        () if has(STEPS, &word) => Some(Rank::Step),
        () => None,
    }
}

/// Whether a word that is in no table may number tasks if several headings start with it and a number.
pub(super) fn may_count(word: &str) -> bool {
    let word = word.to_lowercase();
    !has(NO_MARKS, &word) && !has(LEFT_OUT, &word) && !is_order(&word)
}

/// Whether letters make an id with a number although nothing separates it from the title.
pub(super) fn is_id_prefix(letters: &str) -> bool {
    has(ID_LETTERS, &letters.to_lowercase())
}

/// The rank that the letters of an id give; `None` if they mark no task.
pub(super) fn id_rank(letters: &str) -> Option<Rank> {
    let letters = letters.to_lowercase();
    match () {
        () if has(GROUP_LETTERS, &letters) => Some(Rank::Group),
        () if has(OTHER_LETTERS, &letters) => None,
        () => Some(Rank::Id),
    }
}

/// What a heading or a lead-in is about, by its words alone and as a whole.
pub(super) fn whole_topic(text: &str) -> Topic {
    let plain = plain(text);
    if plain.is_empty() {
        return Topic::Open;
    }
    // A question introduces what is to be known, not what is to be done.
    if text.trim_end().ends_with('?') {
        return Topic::Context;
    }
    let first = plain.split(' ').next().unwrap_or("");
    if matches!(first, "dependencies" | "dependency") {
        return Topic::About(About::After);
    }
    match about(text) {
        // Tasks under `Done` are tasks.
        Some(About::Status) => return Topic::Open,
        Some(about) => return Topic::About(about),
        None => {}
    }
    match () {
        () if has(CONTEXT, &plain) => Topic::Context,
        () if has(WISHES, &plain) => Topic::Wishes,
        () if plain.split(' ').any(|word| has(LEFT_OUT, word)) => Topic::Context,
        () if has(TASK_LISTS, &plain) => Topic::Tasks,
        () => Topic::Open,
    }
}

/// Whether a heading says that what is below it is left out.
pub(super) fn is_left_out(text: &str) -> bool {
    plain(text).split(' ').any(|word| has(LEFT_OUT, word)) || plain(text).starts_with("out of")
}

/// What a heading or a lead-in is about, with a few words more: `Risks and mitigations`, `Detailed implementation plan`.
pub(super) fn topic(text: &str) -> Topic {
    let whole = whole_topic(text);
    let plain = plain(text);
    let words: Vec<&str> = plain.split(' ').collect();
    if whole != Topic::Open || words.len() > 5 || is_order(words[0]) {
        return whole;
    }
    let starts = |table: &str| any(table, |entry| plain.strip_prefix(entry).is_some_and(|rest| rest.starts_with(' ')));
    let ends = |table: &str| any(table, |entry| plain.strip_suffix(entry).is_some_and(|rest| rest.ends_with(' ')));
    match () {
        () if ends(WISHES) => Topic::Wishes,
        () if ends(TASK_LISTS) => Topic::Tasks,
        () if starts(CONTEXT) => Topic::Context,
        () if starts(WISHES) => Topic::Wishes,
        () if starts(TASK_LISTS) => Topic::Tasks,
        () if ends(CONTEXT) => Topic::Context,
        () => Topic::Open,
    }
}

/// What a label says about its task.
pub(super) fn about(text: &str) -> Option<About> {
    let plain = plain(text);
    let tables = [
        (AFTER, About::After),
        (CHECKS, About::Checks),
        (STATUS, About::Status),
        (PARALLEL_LABELS, About::Parallel),
        (DETAILS, About::Detail),
    ];
    if let Some((_, about)) = tables.iter().find(|(table, _)| has(table, &plain)) {
        return Some(*about);
    }
    // `Definition of done for every item`, `API acceptance criteria`.
    let words = plain.split(' ').count();
    let long = |entry: &str| {
        words <= 7 && entry.contains(' ') && plain.strip_prefix(entry).is_some_and(|rest| rest.starts_with(' '))
    };
    let found = tables.iter().find(|(table, _)| any(table, long)).map(|(_, about)| *about);
    let ends = |entry: &str| {
        words <= 4 && entry.contains(' ') && plain.strip_suffix(entry).is_some_and(|rest| rest.ends_with(' '))
    };
    found.or_else(|| any(CHECKS, ends).then_some(About::Checks))
}

/// Whether a text begins with something to do.
pub(super) fn is_order(text: &str) -> bool {
    crate::plan::looks_like_order(text)
}

/// Whether a mark in brackets, or a value, says that something may run in parallel with others.
pub(super) fn is_parallel(text: &str) -> bool {
    let text = text.trim().to_lowercase();
    let bare = text.trim_matches(['(', ')', '.', '*', ' ']);
    any(BESIDE, |word| word == bare || word.len() > 1 && bare.starts_with(&format!("{word} ")))
}

/// Whether a sentence says that things may run in parallel.
pub(super) fn says_parallel(text: &str) -> bool {
    let text = text.to_lowercase();
    any(BESIDE_SENTENCES, |phrase| text.contains(phrase)) && !any(IN_ORDER_SENTENCES, |phrase| text.contains(phrase))
}

/// Whether a value of a status says that it is done.
pub(super) fn is_done(text: &str) -> bool {
    let text = text.trim().to_lowercase();
    let first = text.split([' ', ',', '(', ';', '.']).find(|word| !word.is_empty()).unwrap_or("");
    let first = first.trim_matches(['*', '`', '_', ':', '\u{fe0f}']);
    has(DONE, first) && !first.is_empty() || text.starts_with(['✅', '☑', '✔'])
}

/// Whether a mark says that something is not done yet.
pub(super) fn is_open(text: &str) -> bool {
    has(OPEN, text.trim())
}

/// Words in the form for comparison: lower case, without marks and brackets around them, separated by one blank, without
/// small words.
pub(super) fn plain(text: &str) -> String {
    let text = text.split('(').next().unwrap_or(text).to_lowercase();
    let kept = |c: char| c.is_alphanumeric() || matches!(c, '-' | '\'' | '’');
    let words: Vec<String> = text
        .split(|c: char| !kept(c))
        .map(|word| word.replace('’', "'").trim_matches(['-', '\'']).to_owned())
        .filter(|word| !word.is_empty() && !matches!(word.as_str(), "the" | "and" | "our" | "a"))
        .collect();
    words.join(" ")
}
