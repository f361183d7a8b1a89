// The body of a function: what a screen reader or a keyboard would miss on this page.
const wrong = [];
const all = (selector) => [...document.querySelectorAll(selector)];
if (all("h1").length !== 1) wrong.push("not one h1");
let level = 0;
for (const heading of all("main h1, main h2, main h3, main h4")) {
    const now = Number(heading.localName[1]);
    if (now > level + 1) wrong.push(`heading skips a level: ${heading.textContent}`);
    level = now;
}
for (const selector of ["header", "nav", "main#main", "#said[aria-live=polite]", "a.skip"]) {
    if (!document.querySelector(selector)) wrong.push(`no ${selector}`);
}
for (const table of all("table")) if (!table.caption) wrong.push("a table without a caption");
for (const head of all("th")) if (!head.scope) wrong.push(`a th without a scope: ${head.textContent}`);
for (const dialog of all("dialog")) {
    if (!dialog.getAttribute("aria-label") && !dialog.getAttribute("aria-labelledby")) wrong.push("a dialog without a name");
}
for (const field of all("input:not([type=hidden]), select, textarea")) {
    if (!field.labels?.length && !field.getAttribute("aria-label")) wrong.push(`a field without a name: ${field.outerHTML}`);
}
for (const button of all("button")) {
    const name = button.textContent.trim() || button.getAttribute("aria-label");
    if (!name && !button.hidden && !button.closest("dialog")) wrong.push(`a button without a name: ${button.outerHTML}`);
}
const ids = all("[id]").map((element) => element.id);
for (const id of ids) if (ids.indexOf(id) !== ids.lastIndexOf(id)) wrong.push(`two of #${id}`);
if (all("[style]").some((element) => !element.closest(".log .view"))) wrong.push("an inline style");
return wrong;
