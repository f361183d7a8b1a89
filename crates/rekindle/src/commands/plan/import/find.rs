//! Finds the files of a plan in another format: the named one, or the only one in this project. If there are several, it
//! reports them instead of guessing.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use rekindle_core::import::{Format, Source, SourceFile, recognise};
use rekindle_core::plan::PLAN_MAX_BYTES;

use crate::commands::Context;
use crate::error::{CliError, Result};

/// Most files of a folder that are read: a list of tasks has fewer.
const FILES_MAX: usize = 10_000;

/// Files beside a checklist that explain the work.
const BESIDE: [&str; 5] = ["spec.md", "plan.md", "proposal.md", "design.md", "requirements.md"];

/// Where each format lies in a project; `*` is any one folder.
const PLACES: [(&str, Format); 6] = [
    (".taskmaster/tasks/tasks.json", Format::TaskMaster),
    ("tasks/tasks.json", Format::TaskMaster),
    (".beads/issues.jsonl", Format::Beads),
    ("specs/*/tasks.md", Format::SpecKit),
    ("openspec/changes/*/tasks.md", Format::OpenSpec),
    (".kiro/specs/*/tasks.md", Format::Kiro),
];

/// Where lists of task files lie in the home directory.
const TASK_LISTS: &str = ".claude/tasks";

/// Finds and reads a source. Returns its format, its contents, and where it was found.
pub(super) fn find(named: Option<&str>, format: Option<Format>, context: &Context) -> Result<(Format, Source, String)> {
    let root = &context.project.root;
    let path = match named {
        Some(named) => existing(named)?,
        None => the_only_one(root, format)?,
    };
    if path.is_dir() {
        return folder(&path, format, root);
    }
    file(&path, format, root)
}

fn existing(named: &str) -> Result<PathBuf> {
    let path = PathBuf::from(named);
    if path.exists() {
        return Ok(path);
    }
    let missing = CliError::usage(format!("there is no {named}"));
    match super::gh::is_repository(named) {
        true => Err(missing.hint(format!("import its issues: rekindle plan import {named} --from github"))),
        false => Err(missing),
    }
}

/// The only source below a directory.
fn the_only_one(root: &Path, format: Option<Format>) -> Result<PathBuf> {
    let mut found: Vec<PathBuf> = PLACES
        .iter()
        .filter(|(_, of)| format.is_none_or(|format| format == *of))
        .flat_map(|(place, _)| matching(root, place))
        .collect();
    if format == Some(Format::TaskFiles) {
        found.extend(std::env::home_dir().map(|home| folders(&home.join(TASK_LISTS))).unwrap_or_default());
    }
    match found.as_slice() {
        [only] => Ok(only.clone()),
        [] => Err(CliError::usage("nothing to import was found here")
            .hint("name a file or folder: rekindle plan import FILE")
            .hint("or take this repository's issues: rekindle plan import --from github")),
        several => {
            let error = CliError::usage(format!("{} things could be imported", several.len()));
            let shown = several.iter().take(10).map(|path| relative(path, root));
            Err(shown.fold(error, |error, path| error.hint(format!("rekindle plan import {path}"))))
        }
    }
}

/// The files of a place with at most one `*`.
fn matching(root: &Path, place: &str) -> Vec<PathBuf> {
    let Some((before, after)) = place.split_once("/*/") else {
        let path = root.join(place);
        return if path.is_file() { vec![path] } else { Vec::new() };
    };
    let inner =
        folders(&root.join(before)).into_iter().filter(|dir| dir.file_name().is_none_or(|name| name != "archive"));
    inner.map(|dir| dir.join(after)).filter(|path| path.is_file()).collect()
}

fn folders(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let mut folders: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
    folders.sort();
    folders
}

/// The source in a named folder: a file with a known name, a list of task files, or a project with one source.
fn folder(dir: &Path, format: Option<Format>, root: &Path) -> Result<(Format, Source, String)> {
    for name in ["tasks.md", "tasks.json", "issues.jsonl", "tasks/tasks.json"] {
        if format != Some(Format::TaskFiles) && dir.join(name).is_file() {
            return file(&dir.join(name), format, root);
        }
    }
    let lists = format.is_none_or(|format| format == Format::TaskFiles);
    let files = if lists { task_files(dir, root)? } else { Vec::new() };
    if files.is_empty() {
        return file(&the_only_one(dir, format.filter(|format| *format != Format::TaskFiles))?, format, root);
    }
    let title = dir.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Ok((Format::TaskFiles, Source { title, files, ..Source::default() }, relative(dir, root)))
}

/// The task files of a folder; none if there is no file that looks like one.
fn task_files(dir: &Path, root: &Path) -> Result<Vec<SourceFile>> {
    let entries = fs::read_dir(dir).map_err(|error| unread(dir, &error))?.flatten();
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "json") && path.is_file())
        .take(FILES_MAX)
        .collect();
    paths.sort();
    let mut files = Vec::new();
    for path in paths {
        let text = read(&path)?;
        if recognise("", &text) == Some(Format::TaskFiles) {
            files.push(SourceFile { path: relative(&path, root), text });
        }
    }
    Ok(files)
}

fn file(path: &Path, format: Option<Format>, root: &Path) -> Result<(Format, Source, String)> {
    let text = read(path)?;
    let place = relative(path, root);
    let absolute = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let document =
        || path.extension().is_some_and(|ending| ending == "md" || ending == "markdown").then_some(Format::Markdown);
    let format =
        format.or_else(|| recognise(&absolute.to_string_lossy(), &text)).or_else(document).ok_or_else(|| {
            CliError::usage(format!("cannot tell what {place} is")).hint("name its format: --from FORMAT")
        })?;
    let source = Source {
        title: title(&absolute, format),
        reading: beside(&absolute, format, root),
        tag: (format == Format::TaskMaster).then(|| current_tag(&absolute)).flatten(),
        files: vec![SourceFile { path: place.clone(), text }],
    };
    Ok((format, source, place))
}

/// The title of a plan: the name of the folder that says what it is about.
fn title(path: &Path, format: Format) -> String {
    if format == Format::Markdown {
        return path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    }
    let up = match format {
        Format::TaskMaster if path.components().any(|part| part.as_os_str() == ".taskmaster") => 3,
        Format::TaskMaster | Format::Beads => 2,
        _ => 1,
    };
    let named = path.ancestors().nth(up).and_then(Path::file_name);
    named.map_or_else(|| format.name().to_owned(), |name| name.to_string_lossy().into_owned())
}

/// The explaining files beside a checklist, as the plan would name them.
fn beside(path: &Path, format: Format, root: &Path) -> Vec<String> {
    if !matches!(format, Format::SpecKit | Format::OpenSpec | Format::Kiro) {
        return Vec::new();
    }
    let dir = path.parent().unwrap_or(Path::new(""));
    let root = root.canonicalize().unwrap_or_else(|_| root.to_owned());
    let there = BESIDE.iter().map(|name| dir.join(name)).filter(|path| path.is_file());
    there.filter_map(|path| path.strip_prefix(&root).ok().map(|path| path.to_string_lossy().into_owned())).collect()
}

/// The tag that Task Master is working on, according to its own state file.
fn current_tag(path: &Path) -> Option<String> {
    let note = path.parent()?.parent()?.join("state.json");
    let value: serde_json::Value = serde_json::from_str(&read(&note).ok()?).ok()?;
    value.get("currentTag")?.as_str().map(str::to_owned)
}

fn read(path: &Path) -> Result<String> {
    let file = fs::File::open(path).map_err(|error| unread(path, &error))?;
    let mut bytes = Vec::new();
    file.take(PLAN_MAX_BYTES as u64 + 1).read_to_end(&mut bytes).map_err(|error| unread(path, &error))?;
    if bytes.len() > PLAN_MAX_BYTES {
        return Err(CliError::usage(format!("{} has more than {PLAN_MAX_BYTES} bytes", path.display())));
    }
    String::from_utf8(bytes).map_err(|_| CliError::usage(format!("{} is not text", path.display())))
}

fn unread(path: &Path, error: &std::io::Error) -> CliError {
    CliError::usage(format!("cannot read {}", path.display())).because(error)
}

fn relative(path: &Path, root: &Path) -> String {
    path.strip_prefix(root).unwrap_or(path).to_string_lossy().into_owned()
}
