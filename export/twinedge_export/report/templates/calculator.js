// The calculator: reads the sliders, counts, and shows the result at once.

(() => {
  const facts = JSON.parse(at("facts").textContent);
  const { summarise, curves } = Budget(facts);
  const { verdicts } = facts;
  const NUMBERS = [
    ...["features", "members", "width1", "width2", "width3", "twins", "neighbors"],
    ...["map-bins", "map-extra"],
  ];
  const grouped = new Intl.NumberFormat("en");
  const counted = (value) => (value === null ? "-" : grouped.format(value));
  const plural = (count, noun) => `${counted(count)} ${noun}${count === 1 ? "" : "s"}`;
  const range = (ends) => (ends ? ends.map((ms) => `${Number(ms.toPrecision(3))}`).join("-") : "-");
  const heading = (words) => element("th", { scope: "row" }, words);
  const quantity = (words) => element("td", { class: "quantity" }, words);

  function row(...cells) {
    const line = element("tr");
    line.append(...cells);
    return line;
  }

  // -- settings ---------------------------------------------------------------------------------

  const slider = (name) => document.querySelector(`[data-for=${name}]`);

  function show(setting) {
    const [width1, width2 = 0, width3 = 0] = setting.hidden;
    const values = { ...setting, members: setting.anchors, width1, width2, width3 };
    values["map-bins"] = binsOf(setting);
    values["map-extra"] = setting.map_outputs ? setting.map_outputs - setting.features : facts.map_extra;
    for (const name of NUMBERS) {
      at(name).value = values[name];
      slider(name).max = Math.max(slider(name).max, values[name]);
      slider(name).value = values[name];
    }
    at("weights").value = setting.weights;
    at("activation").value = setting.activation;
    at("with-intervals").value = setting.intervals ? "with" : "without";
    at("with-target-curve").value = setting.target_bins ? "with" : "without";
  }

  // Straight pieces of a curve of the map, on average; 0 without a map.
  const binsOf = ({ map_outputs: outputs, map_rows: rows, map_curves: curves }) =>
    outputs ? Math.max(1, Math.round(rows / Math.max(1, curves)) - 1) : 0;

  // Curves as the fields have them, one for each feature; those of this model, unless changed.
  function readMap(features, bins, extra) {
    const { start } = facts;
    const mine = start.map_outputs - start.features;
    if (bins && bins === binsOf(start) && features === start.features && extra === mine)
      return { map_outputs: start.map_outputs, map_rows: start.map_rows, map_curves: start.map_curves };
    const curves = bins && features;
    return {
      map_outputs: bins && features + extra,
      map_rows: curves * (bins + 1),
      map_curves: curves,
    };
  }

  // The settings, or null if a field is not a whole number in its range.
  function read() {
    const numbers = NUMBERS.map((name) => at(name));
    if (!numbers.every((field) => field.checkValidity())) return null;
    const value = Object.fromEntries(numbers.map((field) => [field.id, Number(field.value)]));
    const widths = [value.width1, value.width2, value.width3];
    at("width3").disabled = slider("width3").disabled = !value.width2;
    at("map-extra").disabled = slider("map-extra").disabled = !value["map-bins"];
    return {
      features: value.features,
      hidden: widths.slice(0, [...widths, 0].indexOf(0)),
      anchors: value.members,
      twins: value.twins,
      neighbors: value.neighbors,
      activation: at("activation").value,
      weights: at("weights").value,
      intervals: at("with-intervals").value === "with",
      levels: facts.start.levels,
      identified: facts.start.identified,
      ...readMap(value.features, value["map-bins"], value["map-extra"]),
      target_bins:
        at("with-target-curve").value === "with" ? facts.start.target_bins || facts.target_bins : 0,
    };
  }

  // -- results ----------------------------------------------------------------------------------

  function refuse(words) {
    delete at("panel").dataset.result;
    at("result").textContent = words;
    at("result").classList.add("refused");
  }

  function light({ verdict, why, anchors, milliseconds_estimated: time }) {
    let words = verdict;
    if (verdict === verdicts.not) words += `: ${why}`;
    else if (verdict !== verdicts.unknown) {
      words = verdicts.fits;
      if (verdict === verdicts.fewer) words += ` with ${plural(anchors, "anchor")}`;
      if (time && Math.max(...time) > facts.slow_milliseconds)
        words += `, ${range(time.map((ms) => ms / 1000))} s a query`;
    }
    return element("span", { class: `light ${facts.lights[verdict]}` }, words);
  }

  function showSentence(found) {
    const twins = `${plural(found.twins, "twin")} with ${plural(found.anchors, "anchor")}`;
    const networks = plural(found.members, "ordinary network");
    const bytes = (size) => (size === null ? "" : ` in ${counted(size)} bytes`);
    const times = found.ratio === null ? "" : `, ${found.ratio.toFixed(1)} times as much`;
    at("result").textContent =
      `${twins}: ${counted(found.twin_params)} parameters${bytes(found.twin_bytes)}. ` +
      `${networks}: ${counted(found.ann_params)}${bytes(found.ann_bytes)}${times}.`;
    at("result").classList.remove("refused");
  }

  function showSizes(found) {
    const line = (name, params, side) => {
      const sizes = Object.values(found.bytes).map((one) => one[side]);
      return row(heading(name), ...[params, ...sizes].map((size) => quantity(counted(size))));
    };
    at("sizes").tBodies[0].replaceChildren(
      line(plural(found.members, "ordinary network"), found.ann_params, "ann"),
      line(plural(found.twins, "twin"), found.twin_params, "twin"),
    );
    const { params, bytes } = found.smaller_from;
    const fewer = [];
    if (params !== null) fewer.push(`has fewer parameters from ${plural(params, "member")} on`);
    if (bytes !== null) fewer.push(`takes fewer bytes from ${plural(bytes, "member")} on`);
    let words = fewer.length ? `The twin ${fewer.join(", ")}. ` : "The twin is never smaller. ";
    words += `A query takes ${plural(found.multiply_adds, "multiply-add")}.`;
    if (found.sections) {
      const parts = Object.entries(found.sections).map(
        ([name, size]) => `${name.replace("_", " ")} ${counted(size)}`,
      );
      words += ` The pack: ${parts.join(", ")}.`;
    }
    at("parts").textContent = words;
  }

  function showCharts(setting, found, board) {
    const points = curves(setting, facts.ensembles);
    [
      ["params", "parameters"],
      ["bytes", `bytes, ${setting.weights}`],
    ].forEach(([what, noun], which) => {
      const line = (name, label) => ({
        name,
        label,
        points: points.filter((one) => one[name][which]).map((one) => [one.members, one[name][which]]),
      });
      const lines = [line("ann", "ordinary networks"), line("twin", plural(setting.twins, "twin"))];
      const drawn = lines.filter((one) => one.points.length > 1);
      const marks = [];
      const last = Math.max(...drawn.flatMap((one) => one.points.map(([x]) => x)));
      if (found.members >= setting.twins && found.members <= last)
        marks.push({ name: "here", label: plural(found.members, "member"), x: found.members });
      const free = board.free_flash_bytes;
      if (which && free !== null) marks.push({ name: "board", label: `flash of ${board.title}`, y: free });
      const chart = at(`chart-${what}`);
      if (!drawn.length) {
        chart.replaceChildren();
        return;
      }
      const ends = drawn.map((one) => {
        const [first, end] = [one.points[0], one.points.at(-1)];
        return `${one.label} from ${counted(first[1])} to ${counted(end[1])}`;
      });
      Chart.draw(chart, {
        lines: drawn,
        marks,
        xLabel: "ensemble size",
        yLabel: `${noun} stored`,
        words: `${noun} against ensemble size: ${ends.join("; ")}.`,
      });
    });
  }

  function showBoards(found, board) {
    at("board-title").textContent = board.title;
    const of = (used, free) => `${counted(used)} of ${counted(free)} bytes`;
    let words = board.verdict === verdicts.unknown ? ` (${board.why}).` : ".";
    if (board.flash_bytes !== null) {
      const flash =
        board.free_flash_bytes === null
          ? `program and pack ${counted(board.flash_bytes)} bytes`
          : `flash ${of(board.flash_bytes, board.free_flash_bytes)}`;
      const time = board.milliseconds_estimated
        ? `, an estimated ${range(board.milliseconds_estimated)} ms for a query`
        : "";
      words = ` (${flash}, RAM ${of(board.ram_bytes, board.free_ram_bytes)}${time}).`;
    }
    if (board.ann_members !== null)
      words += ` Its flash would hold ${plural(board.ann_members, "ordinary network")}.`;
    at("board-verdict").replaceChildren(light(board), element("span", {}, words));
    const rows = found.boards.map((one) => {
      const cell = element("td", { class: "words" });
      cell.append(light(one));
      const numbers = [counted(one.flash_bytes), counted(one.ram_bytes)];
      const cells = [...numbers, range(one.milliseconds_estimated)].map(quantity);
      return row(heading(one.title), cell, ...cells);
    });
    at("all-boards").tBodies[0].replaceChildren(...rows);
  }

  function update() {
    const setting = read();
    if (!setting) {
      refuse("Every field takes a whole number within its range.");
      return;
    }
    let found;
    try {
      found = summarise(setting);
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      refuse(error.message);
      return;
    }
    const board = found.boards.find((one) => one.board === at("board").value);
    at("panel").dataset.result = JSON.stringify(found);
    showSentence(found);
    showSizes(found);
    showCharts(setting, found, board);
    showBoards(found, board);
  }

  // -- wiring -----------------------------------------------------------------------------------

  for (const board of facts.boards) at("board").append(new Option(board.title, board.name));
  for (const name of NUMBERS)
    for (const [from, to] of [[slider(name), at(name)], [at(name), slider(name)]])
      from.addEventListener("input", () => {
        to.value = from.value;
        update();
      });
  for (const id of ["weights", "activation", "with-intervals", "with-target-curve", "board"])
    at(id).addEventListener("input", update);
  at("reset").addEventListener("click", () => {
    show(facts.start);
    update();
  });
  at("settings").addEventListener("submit", (event) => event.preventDefault());
  at("panel").hidden = false;
  show(facts.start);
  update();
})();
