// Charts and live pages. Everything that is drawn is also a table on the page, and every form works without this file.
"use strict";

(() => {
  const data = (id) => {
    const block = document.getElementById(id);
    return block ? JSON.parse(block.textContent) : null;
  };
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const short = (value) => (value == null ? "–" : Number(value.toPrecision(4)).toLocaleString("en"));
  const whole = (value) => (value == null ? "–" : value.toLocaleString("en"));
  const rows = (value) =>
    value >= 1e6 ? `${+(value / 1e6).toPrecision(3)}M` : value >= 1e4 ? `${+(value / 1e3).toPrecision(3)}k` : whole(value);
  const charts = []; // { place, make, plot }

  function axes(theme, ySize) {
    const common = { stroke: theme.soft, grid: { stroke: theme.line, width: 1 }, ticks: { show: false }, font: "12px system-ui, sans-serif" };
    return [
      { ...common, grid: { show: false }, size: 24, gap: 2, space: 64, values: (_, ticks) => ticks.map(rows) },
      { ...common, size: ySize, gap: 4, space: 32, values: (_, ticks) => ticks.map(short) },
    ];
  }

  function level(at, theme, dash) {
    return (plot) => {
      const y = plot.valToPos(at, "y", true);
      const { left, top, width, height } = plot.bbox;
      if (y < top || y > top + height) return;
      const ink = plot.ctx;
      ink.save();
      ink.strokeStyle = theme.soft;
      ink.lineWidth = devicePixelRatio;
      ink.setLineDash(dash ? [5 * devicePixelRatio, 4 * devicePixelRatio] : []);
      ink.beginPath();
      ink.moveTo(left, y);
      ink.lineTo(left + width, y);
      ink.stroke();
      ink.restore();
    };
  }

  function options(place, theme, series, extra) {
    return {
      width: Math.max(place.clientWidth, 120),
      height: place.clientHeight,
      padding: [8, 18, 0, 0],
      legend: { show: false },
      scales: { x: { time: false }, y: { range: extra.range } },
      cursor: { y: false, points: { size: 7 }, drag: { x: true, y: false }, sync: { key: "releases" } },
      axes: axes(theme, 52),
      series,
      bands: extra.bands,
      hooks: { drawAxes: extra.under || [], setCursor: [(plot) => extra.read(plot.cursor.idx)] },
    };
  }

  // A coefficient over time, between two standard deviations of its noise on either side.
  function panel(place, x, series) {
    const output = () => place.parentElement.querySelector("output");
    const columns = () => {
      const low = series.value.map((v, i) => (v == null || series.sd[i] == null ? null : v - 2 * series.sd[i]));
      const high = series.value.map((v, i) => (v == null || series.sd[i] == null ? null : v + 2 * series.sd[i]));
      return [x.t, low, high, series.value];
    };
    const read = (i) => {
      const sd = series.sd[i];
      const noise = sd == null ? "" : ` ± ${short(2 * sd)}`;
      output().textContent = i == null ? output().dataset.rest : `row ${whole(x.t[i])}: ${short(series.value[i])}${noise}`;
    };
    const around = (_, low, high) => {
      const [a, b] = [Math.min(low ?? 0, 0), Math.max(high ?? 0, 0)];
      const pad = (b - a || 1) * 0.06;
      return [a - pad, b + pad];
    };
    const make = (theme) => {
      const hidden = { stroke: "transparent", width: 0, points: { show: false } };
      const line = { stroke: theme.main, width: 1.75, points: { show: x.t.length < 60, size: 4, fill: theme.main } };
      const extra = { range: around, bands: [{ series: [2, 1], fill: theme.band }], under: [level(0, theme, false)], read };
      return new uPlot(options(place, theme, [{}, hidden, hidden, line], extra), columns(), place);
    };
    charts.push({ place, make, columns });
  }

  function single(place, x, values, reference, name) {
    const output = () => place.parentElement.querySelector("output");
    const columns = () => [x.t, values()];
    const read = (i) => {
      output().textContent = i == null ? output().dataset.rest : `row ${whole(x.t[i])}: ${short(values()[i])}${name}`;
    };
    const range = (_, low, high) => {
      const [a, b] = reference == null ? [low ?? 0, high ?? 1] : [0, Math.max(high ?? 1, 1.5 * reference)];
      const pad = (b - a || 1) * 0.08;
      return [reference == null ? a - pad : 0, b + pad];
    };
    const make = (theme) => {
      const line = { stroke: theme.main, width: 1.75, points: { show: x.t.length < 60, size: 4, fill: theme.main } };
      const extra = { range, under: reference == null ? [] : [level(reference, theme, true)], read };
      return new uPlot(options(place, theme, [{}, line], extra), columns(), place);
    };
    charts.push({ place, make, columns });
  }

  const theme = () => ({
    main: colour("--main"), band: colour("--band"), line: colour("--line"), soft: colour("--soft"),
  });

  function draw(began) {
    const colours = theme();
    for (const chart of charts) {
      if (chart.plot) chart.plot.destroy();
      chart.place.textContent = "";
      chart.plot = chart.make(colours);
    }
    // uPlot paints in a microtask after its constructor, so this one comes after all of them.
    queueMicrotask(() => {
      document.documentElement.dataset.drawn = (performance.now() - began).toFixed(1);
    });
  }

  function begin() {
    const began = performance.now();
    const x = data("chart-data");
    if (x && typeof uPlot !== "undefined") {
      for (const place of document.querySelectorAll(".plot[data-series]")) {
        const series = x.series.find((each) => String(each.index) === place.dataset.series);
        if (series) panel(place, x, series);
      }
      for (const place of document.querySelectorAll(".plot[data-moves]")) {
        if (x.moves) single(place, x, () => x.moves, 1, " × its noise");
      }
      for (const place of document.querySelectorAll(".plot[data-value]")) single(place, x, () => x.value, null, "");
    }
    draw(began);
    const sizes = new ResizeObserver(() => {
      for (const { place, plot } of charts) {
        if (plot && place.clientWidth && place.clientWidth !== plot.width) {
          plot.setSize({ width: place.clientWidth, height: place.clientHeight });
        }
      }
    });
    for (const { place } of charts) sizes.observe(place);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => draw(performance.now()));
    live(x);
    copies();
  }

  // New releases: the server renders what has changed; charts get the numbers of the new releases only.
  function live(x) {
    const root = document.querySelector("[data-live]");
    if (!root || typeof EventSource === "undefined") return;
    const state = document.getElementById("connection");
    let pending = false, again = false, last = 0;
    async function refresh() {
      if (pending) {
        again = true;
        return;
      }
      pending = true;
      const wait = 1000 - (Date.now() - last); // at most once a second, however fast models are released
      if (wait > 0) await new Promise((go) => setTimeout(go, wait));
      last = Date.now();
      try {
        const after = x && x.k.length ? x.k[x.k.length - 1] : 0;
        const indices = x ? x.series.map((each) => each.index).join(",") : "";
        const answer = await fetch(`${root.dataset.refresh}?after=${after}&series=${indices}`, { credentials: "same-origin" });
        if (answer.redirected || !answer.ok) {
          location.reload(); // the session has ended: log in again
          return;
        }
        merge(new DOMParser().parseFromString(await answer.text(), "text/html"), x);
      } catch {
        state.textContent = "Not connected. Reconnecting…";
      } finally {
        pending = false;
        if (again) {
          again = false;
          refresh();
        }
      }
    }
    const source = new EventSource(root.dataset.live);
    source.addEventListener("open", () => { state.textContent = "Live: this page follows new releases."; });
    source.addEventListener("error", () => { state.textContent = "Not connected. Reconnecting…"; });
    source.addEventListener("release", (event) => {
      const known = x && x.k.length ? x.k[x.k.length - 1] : 0;
      if (Number(event.lastEventId) > known) refresh();
    });
    source.addEventListener("closed", () => {
      source.close();
      location.reload();
    });
    addEventListener("pagehide", () => source.close());
  }

  function merge(part, x) {
    const added = JSON.parse(part.getElementById("chart-data").textContent);
    const first = !x || !x.k.length;
    for (const fresh of part.querySelectorAll("[data-part]")) {
      const old = document.querySelector(`[data-part="${fresh.dataset.part}"]`);
      if (!old) continue;
      const open = new Set([...old.querySelectorAll("details")].flatMap((each, i) => (each.open ? [i] : [])));
      old.replaceWith(document.importNode(fresh, true));
      document.querySelector(`[data-part="${fresh.dataset.part}"]`).querySelectorAll("details").forEach((each, i) => { each.open = open.has(i); });
    }
    if (first && added.k.length) {
      location.reload(); // the first release: charts and forms appear
      return;
    }
    x.k.push(...added.k);
    x.t.push(...added.t);
    if (x.moves) x.moves.push(...(added.moves || added.k.map(() => null))); // thinned out: no moves any more
    x.series.forEach((series, i) => {
      series.value.push(...added.series[i].value);
      series.sd.push(...added.series[i].sd);
    });
    for (const { plot, columns } of charts) plot.setData(columns());
  }

  function copies() {
    for (const button of document.querySelectorAll("button[data-copy]")) {
      button.hidden = !navigator.clipboard;
      button.addEventListener("click", async () => {
        await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent.trim());
        button.textContent = "Copied";
      });
    }
  }

  begin();
})();
