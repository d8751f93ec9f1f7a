// What ipywidgets leaves out of its markup and a screen reader needs. Without it, buttons and boxes still work.
if (!window.workbookMarks) {
  window.workbookMarks = true;
  let count = 0, turned = null, waiting = false;

  const mark = () => {
    waiting = false;
    for (const group of document.querySelectorAll(".workbook-question > .widget-radio:not([role])")) nameGroup(group);
    // The place where words change must be there before they do: only then are they spoken.
    for (const place of document.querySelectorAll(".workbook-says > .widget-html-content:not([role])"))
      place.setAttribute("role", "status");
  };

  const nameGroup = (group) => {
    const name = `workbook-question-${++count}`;
    const about = [...group.parentElement.querySelectorAll(":scope > .workbook-asked :is(h4, p, pre)")];
    about.forEach((element, i) => { element.id = `${name}-${i}`; });
    const ids = (isCode) => about.filter((element) => (element.tagName === "PRE") === isCode).map((element) => element.id);
    group.setAttribute("role", "radiogroup");
    group.setAttribute("aria-labelledby", ids(false).join(" "));
    if (ids(true).length) group.setAttribute("aria-describedby", ids(true).join(" "));
    for (const input of group.querySelectorAll("input")) input.name = name;
    group.addEventListener("keydown", type);
    const view = turned && group.closest(".workbook-turns");
    if (view && view === turned) {
      turned = null;
      view.scrollIntoView();
      view.querySelector("h3").focus({ preventScroll: true });
    }
  };

  // Arrows and letters only move: choosing on the way, as a browser does, would answer what was merely passed.
  // What is plainly typed ends here: to JupyterLab a letter is a command, "b" for instance a new cell.
  const type = (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey || event.shiftKey) return;
    const inputs = [...event.currentTarget.querySelectorAll("input")];
    const at = inputs.indexOf(event.target);
    const by = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1 }[event.key];
    if (by) inputs.at((at + by) % inputs.length).focus();
    else if (event.key === "Enter") event.target.click();
    else if (event.key.length === 1) inputs["abcdef".indexOf(event.key)]?.focus();
    else return;
    if (event.key !== " ") event.preventDefault();
    event.stopPropagation();
  };

  // A button that brings other questions leads to their beginning.
  document.addEventListener("click", (event) => {
    const button = event.target.closest(".workbook-turns button");
    turned = button && button.closest(".workbook-turns");
  }, true);

  new MutationObserver(() => {
    if (!waiting) requestAnimationFrame(mark);
    waiting = true;
  }).observe(document.body, { childList: true, subtree: true });
  mark();
}
