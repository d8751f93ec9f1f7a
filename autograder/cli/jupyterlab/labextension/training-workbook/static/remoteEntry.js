/* Marks the cells where the learner writes, for the style sheet beside this file.
 *
 * JupyterLab shows neither a cell's metadata nor its tags to a style sheet (jupyterlab/jupyterlab#8298), so a
 * stylesheet alone cannot tell a solution cell from another. This is an extension in the form in which JupyterLab
 * loads each: a module-federation container. It shares no module with JupyterLab and so is not built.
 */
(() => {
  "use strict";
  const TELLS = {
    solution: "Your code goes into this cell.",
    check: "This cell checks your work and cannot be changed.",
  };

  const sheet = document.createElement("link");
  sheet.rel = "stylesheet";
  sheet.href = new URL("cells.css", document.currentScript.src).href;
  document.head.append(sheet);

  function kindOf(cell) {
    const { solution, grade } = cell.model.getMetadata("nbgrader") ?? {};
    return solution ? "solution" : grade ? "check" : undefined;
  }

  function mark(notebook) {
    for (const cell of notebook.widgets) {
      const kind = kindOf(cell);
      if (kind === undefined) {
        delete cell.node.dataset.workbook;
      } else {
        cell.node.dataset.workbook = kind;
        cell.node.setAttribute("aria-description", TELLS[kind]);
      }
    }
  }

  const watched = new WeakSet();

  function watch(notebook) {
    const cells = notebook?.model?.cells;
    if (notebook?.widgets === undefined || cells === undefined) {
      return; // not a notebook, or not loaded yet
    }
    if (!watched.has(cells)) {
      watched.add(cells);
      cells.changed.connect(() => mark(notebook));
    }
    mark(notebook);
  }

  const plugin = {
    id: "training-workbook:cells",
    description: "Marks the cells where the learner writes.",
    autoStart: true,
    activate: (app) => {
      app.shell.layoutModified.connect(() => {
        for (const widget of app.shell.widgets("main")) {
          widget.context?.ready?.then(() => watch(widget.content));
        }
      });
    },
  };

  window._JUPYTERLAB = window._JUPYTERLAB ?? {};
  window._JUPYTERLAB["training-workbook"] = {
    init: () => {},
    get: async () => () => ({ __esModule: true, default: plugin }),
  };
})();
