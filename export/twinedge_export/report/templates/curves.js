// One-feature curves: the prediction and its interval as one column runs through its range.

const Curves = (() => {
  const [WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM] = [280, 150, 40, 272, 8, 128];

  // A short decimal: four digits, without trailing noise.
  function short(value) {
    if (!Number.isFinite(value)) return `${value}`;
    const size = Math.abs(value);
    if (size >= 1e6 || (size && size < 1e-3)) return value.toExponential(2);
    return `${Number(value.toPrecision(4))}`;
  }

  // Two to five round numbers from low to high.
  function ticks(low, high, most) {
    const raw = (high - low) / most || 1;
    const power = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 5, 10].map((one) => one * power).find((one) => one >= raw * 0.999);
    const first = Math.ceil(low / step - 1e-9);
    const count = Math.floor(high / step + 1e-9) - first + 1;
    return Array.from({ length: count }, (_, k) => Number(((first + k) * step).toPrecision(12)));
  }

  const scaled = (value, low, high, start, end) =>
    start + ((end - start) * (value - low)) / (high - low || 1);
  const inside = (value, low, high) => Math.min(Math.max(value, low), high);
  const line = (points) =>
    points.map(([x, y], k) => `${k ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join("");

  function frame(svg, [low, high], words) {
    svg.replaceChildren();
    svg.setAttribute("aria-label", words);
    const y = (value) => scaled(inside(value, low, high), low, high, BOTTOM, TOP);
    for (const tick of ticks(low, high, 5)) {
      put(svg, "path", { class: "axis", d: `M${LEFT} ${y(tick)}H${RIGHT}` });
      put(svg, "text", { x: LEFT - 5, y: y(tick) + 3.5, "text-anchor": "end" }, short(tick));
    }
    return y;
  }

  // points: [{x, mean, low, high}]; here: {x, mean} or null where the value is missing.
  function numbers(svg, { points, span, range, here, words, ends }) {
    const y = frame(svg, range, words);
    const [least, most] = span;
    const [first, last] = ends ?? span.map(short);
    const x = (value) => scaled(inside(value, least, most), least, most, LEFT + 4, RIGHT - 4);
    for (const [value, anchor, text] of [[least, "start", first], [most, "end", last]])
      put(svg, "text", { x: x(value), y: BOTTOM + 15, "text-anchor": anchor }, text);
    if (points[0].low === points[0].low) {
      const upper = points.map((one) => [x(one.x), y(one.high)]);
      const lower = points.map((one) => [x(one.x), y(one.low)]).reverse();
      put(svg, "path", { class: "band", d: `${line([...upper, ...lower])}Z` });
    }
    put(svg, "path", { class: "line twin", d: line(points.map((one) => [x(one.x), y(one.mean)])) });
    if (!here) return;
    put(svg, "path", { class: "mark", d: `M${x(here.x)} ${TOP}V${BOTTOM}` });
    put(svg, "circle", { class: "here", cx: x(here.x), cy: y(here.mean), r: 4.5 });
  }

  // points: [{label, mean, low, high}]; here: which of them, or -1.
  function levels(svg, { points, range, here, words }) {
    const y = frame(svg, range, words);
    points.forEach((one, k) => {
      const x = scaled(k + 0.5, 0, points.length, LEFT, RIGHT);
      if (one.low === one.low)
        put(svg, "path", { class: "reach", d: `M${x} ${y(one.low)}V${y(one.high)}` });
      const [kind, r] = k === here ? ["here", 4.5] : ["level", 3];
      put(svg, "circle", { class: kind, cx: x, cy: y(one.mean), r });
      const room = Math.floor((RIGHT - LEFT) / points.length / 5.6); // letters
      const cut = `${one.label.slice(0, Math.max(1, room - 1))}…`;
      const name = one.label.length > room ? cut : one.label;
      if (room > 1) put(svg, "text", { x, y: BOTTOM + 15, "text-anchor": "middle" }, name);
    });
  }

  // The prediction among the training targets: a band and a mark.
  function scale(svg, { low, high, mean, range, words }) {
    svg.replaceChildren();
    svg.setAttribute("aria-label", words);
    const wide = Math.max(svg.clientWidth, 240);
    svg.setAttribute("viewBox", `0 0 ${wide} 40`);
    const x = (value) => scaled(inside(value, ...range), ...range, 12, wide - 12);
    put(svg, "path", { class: "axis", d: `M12 14H${wide - 12}` });
    for (const tick of ticks(...range, 6)) {
      put(svg, "path", { class: "axis", d: `M${x(tick)} 10V18` });
      put(svg, "text", { x: x(tick), y: 34, "text-anchor": "middle" }, short(tick));
    }
    if (low === low) put(svg, "path", { class: "reach", d: `M${x(low)} 14H${x(high)}` });
    put(svg, "circle", { class: "here", cx: x(mean), cy: 14, r: 6 });
  }

  return { numbers, levels, scale, short, view: `0 0 ${WIDTH} ${HEIGHT}` };
})();
