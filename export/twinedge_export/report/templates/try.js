// Try it: one control for each column; prediction, interval, flags and curves follow at once.

(async () => {
  const place = at("predictor");
  if (!place) return;
  const facts = JSON.parse(place.textContent);
  const { short } = Curves;
  const POINTS = 33; // of a curve
  const CURVES = 12; // columns with a card of their own; others are folded away
  const FRAME = 10; // milliseconds of work at a time
  const UNKNOWN = "unknown"; // a level that no training row had
  const MISSING = "missing";
  const HOURS = 7 * 24;
  const WEEK = ["Monday", "Sunday"];
  const KEYS = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1, PageUp: 20, PageDown: -20 };
  const { columns } = facts;
  const percent = (thousandths) => `${thousandths / 10} %`;

  let twin;
  try {
    twin = await Twin.open(facts);
  } catch (error) {
    at("try-refused").textContent = `This browser cannot run the model: ${error.message}.`;
    at("try-refused").hidden = false;
    return;
  }

  // -- controls ---------------------------------------------------------------------------------

  // Each control reads and shows the text of its cell, as a table would have it.
  function numberControl(column, id) {
    const { least, most, step, name } = column;
    const field = element("input", { id, type: "number", step: "any", inputmode: "decimal" });
    const reach = { type: "range", min: least, max: most, step: "any" };
    const slider = element("input", { ...reach, "aria-label": `${name}, slider` });
    const show = (text) => {
      field.value = text;
      if (text !== "") slider.value = text;
    };
    slider.addEventListener("input", () => {
      // Whole steps, except at the ends.
      const value = Number(slider.value);
      const whole = Number((Math.round(value / step) * step).toPrecision(12));
      const end = value <= least ? least : most;
      field.value = value <= least || value >= most ? end : Math.min(Math.max(whole, least), most);
    });
    slider.addEventListener("keydown", (event) => {
      const by = KEYS[event.key];
      if (!by) return;
      event.preventDefault();
      const now = field.value === "" ? column.usual : Number(field.value);
      const next = Number((Math.round(now / step + by) * step).toPrecision(12));
      show(`${Math.min(Math.max(next, least), most)}`);
      field.dispatchEvent(new Event("input", { bubbles: true }));
    });
    field.addEventListener("input", () => {
      if (field.value !== "") slider.value = field.value;
    });
    const values = () => {
      if (field.validity.badInput) return null;
      if (field.value === "") return column.fillable ? [NaN] : null;
      return [Number(field.value)];
    };
    return { parts: [slider, field], field, show, values, cell: () => field.value };
  }

  function levelControl(column, id) {
    const { labels, cells } = column;
    const field = element("select", { id });
    labels.forEach((label, k) => field.append(new Option(label, k)));
    field.append(new Option("a level never seen in training", UNKNOWN));
    if (column.fillable) field.append(new Option("missing", MISSING));
    const values = () =>
      labels.map((_, k) => (field.value === MISSING ? NaN : Number(field.value === `${k}`)));
    // A text that is not among the levels.
    const unknown = () => {
      let text = UNKNOWN;
      while (labels.includes(text) || cells.includes(text)) text += "?";
      return text;
    };
    const cell = () =>
      field.value === MISSING ? "" : field.value === UNKNOWN ? unknown() : cells[Number(field.value)];
    return { parts: [field], field, show: (value) => { field.value = value; }, values, cell };
  }

  function timeControl(column, id) {
    const field = element("input", { id, type: "datetime-local", step: 1 });
    const seconds = () => Math.floor(Calendar.read(field.value));
    const values = () =>
      Number.isFinite(seconds()) ? Calendar.waves(seconds(), column.calendar) : null;
    const show = (text) => { field.value = Calendar.text(Number(text)); };
    return { parts: [field], field, show, values, seconds, cell: () => `${field.value}Z` };
  }

  const isTime = (column) => column.calendar !== undefined;
  const isNumber = (column) => column.labels === undefined && !isTime(column);
  const widthOf = ({ labels, calendar }) =>
    labels ? labels.length : calendar ? 2 * calendar.cycles.length : 1;
  const controlOf = (column) =>
    isTime(column) ? timeControl : isNumber(column) ? numberControl : levelControl;
  const controls = columns.map((column, k) => controlOf(column)(column, `try-${k}`));
  const curves = [];

  function card(k) {
    const box = element("div", { class: isNumber(columns[k]) ? "card number" : "card" });
    const label = element("label", { for: `try-${k}` }, columns[k].name);
    box.append(label, ...controls[k].parts);
    controls[k].field.setAttribute("aria-describedby", "try-flags");
    return box;
  }

  facts.order.forEach((k, position) => {
    const box = card(k);
    if (position < CURVES) {
      const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
      svg.setAttribute("viewBox", Curves.view);
      svg.setAttribute("role", "img");
      svg.classList.add("chart");
      box.append(svg);
      curves.push({ k, svg, points: null });
      at("try-controls").append(box);
    } else at("try-more-controls").append(box);
  });
  at("try-more").hidden = facts.order.length <= CURVES;
  at("try-more-title").textContent = `${facts.order.length - CURVES} more columns`;

  // -- predictions ------------------------------------------------------------------------------

  // All inputs of the networks, or null if a field holds no number.
  function read() {
    const parts = controls.map((one) => one.values());
    return parts.includes(null) ? null : parts.flat();
  }

  function flagged(values, flags) {
    const parts = columns.map((one) => [one.first, one.first + widthOf(one)]);
    const none = (part) => part.every((x) => x === 0);
    return columns.map((column, k) => {
      const [from, to] = parts[k];
      const unknown = column.labels !== undefined && none(values.slice(from, to));
      return unknown || flags.slice(from, to).includes(true);
    });
  }

  const named = (flags) => columns.filter((_, k) => flags[k]).map((one) => one.name);
  const list = (names) =>
    [names.slice(0, -1).join(", "), ...names.slice(-1)].filter((part) => part).join(" and ");

  function answer(values) {
    const found = twin.predict(values);
    if (!found) return null;
    const gone = values.map((x) => x !== x);
    const outside = twin.outside(values, found.bits).map((one, k) => one && !gone[k]);
    return {
      prediction: found.mean,
      spread: found.spread,
      ...(found.calibrated ? { scale: found.scale, low: found.low, high: found.high } : {}),
      outside: named(flagged(values, outside)),
      missing: named(columns.map(({ first }) => gone[first])),
    };
  }

  // Spans training targets and predictions; intervals that reach further are clipped.
  function rangeOf() {
    const means = curves.flatMap((one) => (one.points || []).map(({ mean }) => mean));
    const all = [...facts.targets, ...means].filter(Number.isFinite);
    const [low, high] = [Math.min(...all), Math.max(...all)];
    return [low - 0.05 * (high - low), high + 0.05 * (high - low)];
  }

  function showAnswer(found) {
    const calibrated = found.low !== undefined;
    at("try-value").textContent = short(found.prediction);
    const claimed = percent(Number(at("try-coverage").value));
    const between = `${claimed} interval: ${short(found.low)} to ${short(found.high)}`;
    at("try-between").textContent = calibrated ? between : `spread of the estimates: ${short(found.spread)}`;
    const lines = [];
    if (found.outside.length)
      lines.push(`Outside the training range: ${list(found.outside)}. The prediction means little there.`);
    if (found.missing.length) lines.push(`Filled in: ${list(found.missing)}.`);
    if (truth !== null) {
      const error = short(Math.abs(found.prediction - truth));
      const inside = found.low <= truth && truth <= found.high ? "inside" : "outside";
      const held = calibrated ? `, ${inside} the interval` : "";
      lines.push(`Measured: ${short(truth)}; off by ${error}${held}.`);
    }
    at("try-flags").textContent = lines.join(" ") || "All values are within the training range.";
    at("try-flags").classList.toggle("warned", found.outside.length > 0);
    const [low, high] = calibrated ? [found.low, found.high] : [NaN, NaN];
    const words = `${facts.target}: ${at("try-value").textContent}, ${at("try-between").textContent}`;
    Curves.scale(at("try-scale"), { low, high, mean: found.prediction, range: scaleRange(found), words });
  }

  function scaleRange(found) {
    const ends = [found.prediction, found.low ?? found.prediction, found.high ?? found.prediction];
    const all = [...facts.targets, ...ends].filter(Number.isFinite);
    return [Math.min(...all), Math.max(...all)];
  }

  const quoted = (text) => (/[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);

  function showCommand() {
    const head = columns.map((one) => quoted(one.name)).join(",");
    at("try-csv").textContent = `${head}\n${controls.map((one) => quoted(`${one.cell()}`)).join(",")}`;
    const usual = Number(at("try-coverage").value) === facts.coverage;
    const more = facts.coverage && !usual ? ` --coverage ${Number(at("try-coverage").value) / 1000}` : "";
    at("try-command").textContent = `twinedge predict model.twin query.csv${more}`;
  }

  // -- curves -----------------------------------------------------------------------------------

  const curvePoint = (values) => {
    const found = twin.predict(values);
    const { mean, low, high } = found;
    return found.calibrated ? { mean, low, high } : { mean, low: NaN, high: NaN };
  };

  // A time runs through its week, every three hours.
  function weekOf(k, changed) {
    const { first, calendar } = columns[k];
    const now = controls[k].seconds();
    const monday = now - Calendar.ofWeek(now, calendar);
    return Array.from({ length: HOURS / 3 + 1 }, (_, step) => {
      const waves = Calendar.waves(monday + 3 * 3600 * step, calendar);
      waves.forEach((value, j) => { changed[first + j] = value; });
      return { x: 3 * step, ...curvePoint(changed) };
    });
  }

  function pointsOf(k, values) {
    const { first, least, most, labels } = columns[k];
    const changed = [...values];
    if (isTime(columns[k])) return weekOf(k, changed);
    if (labels)
      return labels.map((label, level) => {
        labels.forEach((_, other) => { changed[first + other] = Number(other === level); });
        return { label, ...curvePoint(changed) };
      });
    return Array.from({ length: POINTS }, (_, step) => {
      const x = least + ((most - least) * step) / (POINTS - 1);
      changed[first] = x;
      return { x, ...curvePoint(changed) };
    });
  }

  function draw(one, range, found) {
    const { first, least, most, name, calendar } = columns[one.k];
    const ends = [one.points[0], one.points.at(-1)];
    const place = (x) => (calendar ? WEEK[x / HOURS] : short(x));
    const values = ends.map(({ mean, label, x }) => `${short(mean)} at ${label ?? place(x)}`);
    const words = `${facts.target} by ${name}: ${values.join(", ")}.`;
    const options = { points: one.points, range, words };
    if (one.points[0].label !== undefined) {
      const chosen = Number(controls[one.k].field.value);
      Curves.levels(one.svg, { ...options, here: Number.isInteger(chosen) ? chosen : -1 });
    } else if (calendar) {
      const x = Calendar.ofWeek(controls[one.k].seconds(), calendar) / 3600;
      const here = { x, mean: found.prediction };
      Curves.numbers(one.svg, { ...options, span: [0, HOURS], ends: WEEK, here });
    } else {
      const x = query[first];
      const here = x === x ? { x, mean: found.prediction } : null;
      Curves.numbers(one.svg, { ...options, span: [least, most], here });
    }
  }

  let [query, drawing, truth] = [null, 0, null];

  // Recomputes curves whose other columns changed, a few milliseconds at a time.
  function redraw(found, stale) {
    const round = ++drawing;
    const waiting = [...stale];
    const work = () => {
      if (round !== drawing) return;
      const start = performance.now();
      while (waiting.length && performance.now() - start < FRAME) {
        const one = waiting.shift();
        one.points = pointsOf(one.k, query);
      }
      const range = rangeOf();
      for (const one of curves) if (one.points) draw(one, range, found);
      if (waiting.length) requestAnimationFrame(work);
      else place.dataset.drawn = `${round}`;
    };
    work();
  }

  function update(changed = null) {
    delete place.dataset.drawn;
    const values = read();
    const found = values && answer(values);
    at("try-panel").classList.toggle("stale", !found);
    showCommand();
    if (!found) {
      delete place.dataset.answer;
      at("try-flags").textContent =
        "Every field takes a number; this model cannot fill in missing values.";
      at("try-flags").classList.add("warned");
      place.dataset.drawn = `${++drawing}`;
      return;
    }
    query = values;
    place.dataset.answer = JSON.stringify(found);
    showAnswer(found);
    redraw(found, curves.filter((one) => one.k !== changed || !one.points));
  }

  // -- wiring -----------------------------------------------------------------------------------

  function show(cells) {
    controls.forEach((one, k) => one.show(cells[k]));
    update();
  }

  const usual = () => columns.map((one) => `${one.usual ?? one.start}`);

  function cellsOf({ query: values, times }) {
    return columns.map(({ first, labels }, k) => {
      if (times[k] !== undefined) return `${times[k]}`;
      if (!labels) return values[first] === null ? "" : `${values[first]}`;
      if (values[first] === null) return MISSING;
      const level = labels.findIndex((_, k) => values[first + k] === 1);
      return level < 0 ? UNKNOWN : `${level}`;
    });
  }

  function random() {
    return columns.map(({ least, most, step = 3600, labels }) => {
      if (labels) return `${Math.floor(Math.random() * labels.length)}`;
      const value = Math.round((least + Math.random() * (most - least)) / step) * step;
      return `${Number(Math.min(Math.max(value, least), most).toPrecision(12))}`;
    });
  }

  at("try-start").append(new Option("usual values", "usual"));
  facts.examples.forEach(({ target }, k) =>
    at("try-start").append(new Option(`a measured row: ${facts.target} ${short(target)}`, k)));
  at("try-start").addEventListener("input", () => {
    const example = facts.examples[Number(at("try-start").value)];
    truth = example ? example.target : null;
    show(example ? cellsOf(example) : usual());
  });
  at("try-random").addEventListener("click", () => {
    truth = null;
    at("try-start").value = "usual";
    show(random());
  });
  for (const level of facts.coverages) at("try-coverage").append(new Option(percent(level), level));
  if (facts.coverage) at("try-coverage").value = facts.coverage;
  at("try-coverage-setting").hidden = facts.coverages.length < 2;
  at("try-coverage").addEventListener("input", () => {
    twin.cover(Number(at("try-coverage").value));
    update();
  });
  controls.forEach((one, k) => {
    const moved = () => {
      truth = null;
      update(k);
    };
    for (const part of one.parts) part.addEventListener("input", moved);
  });
  at("try-form").addEventListener("submit", (event) => event.preventDefault());
  at("try-save").href = `data:application/octet-stream;base64,${facts.pack}`;
  at("try-panel").hidden = false;
  show(usual());
})();
