// Draws the memory figures of the calculator: two logarithmic axes, two lines, some marks.

const Chart = (() => {
  const [LEFT, RIGHT, TOP, BOTTOM] = [46, 338, 10, 210];

  function amount(value) {
    for (const [unit, name] of [[1e9, "G"], [1e6, "M"], [1e3, "k"]])
      if (value >= unit) return `${value / unit}${name}`;
    return `${value}`;
  }

  // lines: [{name, label, points: [[x, y], ...]}]; marks: [{name, label, x or y}].
  function draw(svg, { lines, marks, xLabel, yLabel, words }) {
    const all = lines.flatMap((line) => line.points);
    const xs = all.map(([x]) => x);
    const ys = all.map(([, y]) => y).concat(marks.filter((one) => one.y).map((one) => one.y));
    const [x0, x1] = [Math.min(...xs), Math.max(...xs)];
    const y0 = 10 ** Math.floor(Math.log10(Math.min(...ys)));
    const y1 = 2 * Math.max(...ys);
    const place = (value, from, to, start, end) =>
      start + ((end - start) * Math.log(value / from)) / Math.log(to / from || 2);
    const px = (x) => place(x, x0, x1, LEFT + 8, RIGHT - 8);
    const py = (y) => place(y, y0, y1, BOTTOM, TOP);

    svg.replaceChildren();
    svg.setAttribute("aria-label", words);
    for (let y = y0; y <= y1; y *= 10) {
      put(svg, "path", { class: "axis", d: `M${LEFT} ${py(y)}H${RIGHT}` });
      put(svg, "text", { x: LEFT - 5, y: py(y) + 3, "text-anchor": "end" }, amount(y));
    }
    for (let x = x0; x <= x1; x *= 4) {
      put(svg, "path", { class: "axis", d: `M${px(x)} ${TOP}V${BOTTOM}` });
      put(svg, "text", { x: px(x), y: BOTTOM + 14, "text-anchor": "middle" }, `${x}`);
    }
    put(svg, "text", { x: (LEFT + RIGHT) / 2, y: BOTTOM + 30, "text-anchor": "middle" }, xLabel);
    const middle = (TOP + BOTTOM) / 2;
    put(
      svg,
      "text",
      { x: 10, y: middle, "text-anchor": "middle", transform: `rotate(-90 10 ${middle})` },
      yLabel,
    );
    for (const { name, points } of lines) {
      const d = points.map(([x, y], i) => `${i ? "L" : "M"}${px(x)} ${py(y)}`).join("");
      put(svg, "path", { class: `line ${name}`, d });
    }
    // Halfway between the lines at x, or above both if there is no room.
    function between(x) {
      const distance = (point) => Math.abs(Math.log(point[0] / x));
      const near = lines.map(({ points }) =>
        py(points.reduce((one, other) => (distance(other) < distance(one) ? other : one))[1]));
      const [upper, lower] = [Math.min(...near), Math.max(...near)];
      return (lower - upper > 30 ? upper + lower : TOP + upper) / 2 + 4;
    }
    for (const { name, label, x, y } of marks) {
      const d = x ? `M${px(x)} ${TOP}V${BOTTOM}` : `M${LEFT} ${py(y)}H${RIGHT}`;
      put(svg, "path", { class: `mark ${name}`, d });
      if (x) {
        const end = px(x) > (LEFT + RIGHT) / 2;
        const at = { x: px(x) + (end ? -4 : 4), y: between(x), "text-anchor": end ? "end" : "start" };
        put(svg, "text", at, label);
      } else put(svg, "text", { class: name, x: RIGHT, y: py(y) - 4, "text-anchor": "end" }, label);
    }
    lines.forEach(({ name, label }, number) => {
      put(svg, "text", { class: name, x: LEFT + 8, y: TOP + 10 + 13 * number }, `— ${label}`);
    });
  }

  return { draw };
})();
