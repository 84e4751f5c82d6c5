"use strict";
(() => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];

  // The theme: as the system is, until the reader chooses.
  const themes = ["system", "light", "dark"];
  const remember = (value) => {
    try {
      if (value === undefined) return localStorage.getItem("trialwise-theme");
      localStorage.setItem("trialwise-theme", value);
    } catch {
      /* a page may not be allowed to remember */
    }
    return null;
  };
  const show = (theme) => {
    if (theme === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    for (const button of all("[data-theme-toggle]")) button.textContent = `Theme: ${theme}`;
  };
  let theme = remember();
  if (!themes.includes(theme)) theme = "system";
  show(theme);
  for (const button of all("[data-theme-toggle]")) {
    button.hidden = false;
    button.addEventListener("click", () => {
      theme = themes[(themes.indexOf(theme) + 1) % themes.length];
      remember(theme);
      show(theme);
    });
  }

  // Values of a chart: where it is pointed at, or with the arrow keys.
  for (const figure of all("figure")) {
    const plot = figure.querySelector("[data-chart]");
    const readout = figure.querySelector(".readout");
    if (!plot || !readout) continue;
    const hits = all("rect.hit", plot);
    if (!hits.length) continue;
    const texts = hits.map((hit) => {
      const title = hit.querySelector("title");
      const text = title.textContent;
      title.remove(); // or the browser would say it a second time
      return text;
    });
    let at = -1;
    const put = (index) => {
      if (at >= 0) hits[at].classList.remove("on");
      at = index;
      if (at >= 0) hits[at].classList.add("on");
      readout.textContent = at >= 0 ? texts[at] : "";
    };
    plot.addEventListener("pointermove", (event) => {
      const index = hits.indexOf(event.target);
      if (index >= 0 && index !== at) put(index);
    });
    plot.addEventListener("pointerleave", () => put(-1));
    plot.addEventListener("focus", () => {
      if (at < 0) readout.textContent = "Use the arrow keys for values.";
    });
    plot.addEventListener("blur", () => put(-1));
    plot.addEventListener("keydown", (event) => {
      const steps = { ArrowLeft: -1, ArrowRight: 1, Home: -hits.length, End: hits.length };
      const step = steps[event.key];
      if (step === undefined) return;
      event.preventDefault();
      const from = at < 0 ? (step > 0 ? -1 : hits.length) : at;
      put(Math.max(0, Math.min(hits.length - 1, from + step)));
    });
  }

  // Cards by what the reader asks for.
  for (const form of all("[data-filter]")) {
    const trials = all(".trial", form.parentElement.querySelector("[data-trials]"));
    const count = form.querySelector("output");
    form.hidden = false;
    form.addEventListener("submit", (event) => event.preventDefault());
    const texts = trials.map((trial) => trial.textContent.toLowerCase());
    const narrow = () => {
      const given = new FormData(form);
      const words = (given.get("words") || "").toLowerCase().split(/\s+/).filter(Boolean);
      const asked = [...given].filter(([name, value]) => name !== "words" && value);
      let shown = 0;
      for (const [place, trial] of trials.entries()) {
        const fits =
          asked.every(([name, value]) => trial.dataset[name].split(" ").includes(value)) &&
          words.every((word) => texts[place].includes(word));
        trial.hidden = !fits;
        shown += fits;
      }
      const noun = form.dataset.filter;
      count.textContent = `${shown} ${shown === 1 ? noun : `${noun}s`} shown`;
    };
    form.addEventListener("change", narrow);
    form.addEventListener("input", narrow);
  }

  // Only what scrolls needs to be reached by the keyboard.
  const reachable = () => {
    for (const region of all(".scroll")) {
      region.tabIndex = region.scrollWidth > region.clientWidth ? 0 : -1;
    }
  };
  reachable();
  addEventListener("resize", reachable);
  document.addEventListener("toggle", reachable, true);

  // Paper has no clicks: the analysis and the first failures are printed whole, the rest as lines.
  addEventListener("beforeprint", () => {
    const parts = [...all(".whole"), ...all("[data-trials] .trial").slice(0, 20)];
    for (const part of parts) part.open = true;
  });
})();
