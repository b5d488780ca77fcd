// The arithmetic of `twinedge budget`, with the layout, boards, measurements and words that Python
// put into the page. A test compares all numbers with twinedge/budget, for random models.

const Budget = (facts) => {
  const { layout, boards, verdicts } = facts;
  const named = (reference) =>
    Object.fromEntries(facts.reference.map((name, k) => [name, reference[k]]));
  const firmware = Object.fromEntries(
    Object.entries(facts.firmware).map(([core, { builds, parts }]) => [
      core,
      { parts, builds: builds.map((one) => ({ ...one, references: one.references.map(named) })) },
    ]),
  );
  const WEIGHTS = [...Object.keys(layout.kernels), ...Object.keys(layout.floats)];
  const sum = (numbers) => numbers.reduce((total, one) => total + one, 0);
  const align = (size, to = layout.alignment) => Math.ceil(size / to) * to;
  const isPacked = (model) => model.weights in layout.kernels;

  // -- model ------------------------------------------------------------------------------------

  function anchorCounts(anchors, twins) {
    if (twins < 1 || twins > layout.max_twins)
      throw new RangeError(`${twins} twins: a pack has 1 to ${layout.max_twins}`);
    if (anchors < twins)
      throw new RangeError(`${anchors} anchors for ${twins} twins: each needs at least one`);
    const share = Math.floor(anchors / twins);
    return Array.from({ length: twins }, (_, twin) => share + (twin < anchors % twins ? 1 : 0));
  }

  function mapFault({ features, map_outputs: outputs, map_rows: rows, map_curves: curves }) {
    if (!outputs)
      return rows || curves ? `${rows} rows and ${curves} curves of a map without outputs` : null;
    if (outputs < features)
      return `${outputs} outputs of a map of ${features} features: it has at least as many`;
    if (curves < 0 || curves > features)
      return `${curves} curves of a map of ${features} features: a feature has one at most`;
    if (rows < 2 * curves || rows > layout.max_knots * curves)
      return `${rows} rows of a map of ${curves} curves: each has 2 to ${layout.max_knots}`;
    return null;
  }

  function modelOf({ anchors, twins, ...setting }) {
    const model = { ...setting, counts: anchorCounts(anchors, twins) };
    const [fault, bins, most] = [mapFault(model), model.target_bins, layout.max_curve_bins];
    if (fault) throw new RangeError(fault);
    if (bins < 0 || bins > most)
      throw new RangeError(`${bins} bins of a target curve: a pack has 1 to ${most}, or none`);
    return model;
  }

  const withAnchors = (model, anchors) =>
    ({ ...model, counts: anchorCounts(anchors, model.counts.length) });
  const anchorsOf = (model) => sum(model.counts);
  const membersOf = (model) =>
    sum(model.counts.map((count) => Math.min(count, model.neighbors || count)));
  const isScaled = (model) => model.intervals && model.levels > 0;
  // How many numbers a twin takes of each point.
  const inputsOf = (model) => model.map_outputs || model.features;

  // -- counts -----------------------------------------------------------------------------------

  function networkParams(inputs, hidden) {
    const widths = [inputs, ...hidden, 1];
    return sum(hidden.concat(1).map((width, depth) => widths[depth] * width + width));
  }

  const annParams = (model, members = membersOf(model)) =>
    members * networkParams(model.features, model.hidden);
  const networksOf = (model) =>
    model.counts.length * networkParams(2 * inputsOf(model), model.hidden) +
    model.map_rows * (model.map_outputs + 1);
  const twinParams = (model) => networksOf(model) + anchorsOf(model) * (inputsOf(model) + 1);

  function multiplyAdds(model) {
    const half = inputsOf(model) * model.hidden[0];
    const widths = [...model.hidden, 1];
    const behind = sum(model.hidden.map((width, depth) => width * widths[depth + 1]));
    const distances = model.neighbors ? inputsOf(model) * anchorsOf(model) : 0;
    const second = isScaled(model) ? membersOf(model) * model.hidden.at(-1) : 0;
    const pairs = model.counts.length * half + membersOf(model) * (half + behind);
    return 2 * pairs + second + distances + 2 * model.map_curves * model.map_outputs;
  }

  // -- storage ----------------------------------------------------------------------------------

  function shapeFault(model, twins, anchors) {
    const limits = [
      ["features", model.features, 1, layout.max_width],
      ["hidden layers", model.hidden.length, 1, layout.max_layers],
      ...model.hidden.map((width) => ["neurons in a layer", width, 1, layout.max_width]),
      ["twins", twins, 1, layout.max_twins],
      ["anchors", anchors, twins, layout.max_anchors],
    ];
    for (const [what, number, least, most] of limits)
      if (number < least || number > most)
        return `${number} ${what}: a pack of ${twins} twins has ${least} to ${most}`;
    return null;
  }

  function packFault(model) {
    const { map_outputs: outputs, map_rows: rows } = model;
    if (!isPacked(model)) return `a pack has no ${model.weights} weights`;
    if (outputs > layout.max_width)
      return `${outputs} outputs of a map: a pack has at most ${layout.max_width}`;
    if (rows > layout.max_map_rows)
      return `${rows} rows of a map: a pack has at most ${layout.max_map_rows}`;
    return shapeFault(model, model.counts.length, anchorsOf(model));
  }

  // Bytes of the record of one network with this many kernels in its first layer.
  function recordBytes(model, firstKernels) {
    const item = layout.kernels[model.weights];
    let [size, inputs] = [layout.twin_head, inputsOf(model)];
    model.hidden.forEach((width, depth) => {
      const kernel = align(width * align(inputs, 4) * item, 4);
      size += (depth ? 1 : firstKernels) * kernel;
      size += layout.bias * width + align(layout.multiplier * width, 4);
      inputs = width;
    });
    const output = layout.output * align(inputs, 4);
    return align(size + (isScaled(model) ? layout.difficulty_bias + 2 * output : output));
  }

  function mapBytes({ features, map_outputs: outputs, map_rows: rows }) {
    const bytes = align(features + outputs, 4) + align(layout.knot * rows, 4);
    return layout.map_head + bytes + layout.map_entry * rows * outputs;
  }

  // Queries with their answers: as many as fit into a few bytes, but one at least.
  function selfTestBytes({ features }) {
    const each = layout.query * align(features, 2) + layout.answer;
    const fitting = Math.floor(layout.usual_bytes / each);
    return layout.self_test + Math.max(1, Math.min(layout.usual_queries, fitting)) * each;
  }

  function sectionsOf(model) {
    const [twins, anchors] = [model.counts.length, anchorsOf(model)];
    const byFeature = ([fixed, each]) => fixed + each * model.features;
    const points = align(layout.anchor * anchors * align(inputsOf(model), 4), 4);
    const lengths = { scaling: byFeature(layout.scaling) };
    if (model.map_outputs) lengths.map = mapBytes(model);
    if (model.target_bins)
      lengths.target_curve = layout.target_curve + layout.curve_value * (model.target_bins + 1);
    lengths.twins = twins * recordBytes(model, 2);
    if (model.activation === "silu") lengths.curve = layout.curve;
    lengths.anchors = align(layout.count * twins, 4) + points + layout.target * anchors;
    if (isScaled(model)) lengths.intervals = layout.intervals + layout.level * model.levels;
    if (model.intervals) lengths.domain = byFeature(layout.domain);
    if (isScaled(model)) lengths.schema = layout.schema;
    if (model.identified) {
      lengths.self_test = selfTestBytes(model);
      lengths.identity = layout.identity;
    }
    return lengths;
  }

  function fileSize(lengths) {
    const sizes = Object.values(lengths);
    const table = align(layout.header + layout.entry * sizes.length);
    return table + sum(sizes.map((length) => align(length)));
  }

  // Sizes are null if no pack can hold the model.
  function twinBytes(model) {
    if (!isPacked(model)) return layout.floats[model.weights] * twinParams(model);
    return packFault(model) ? null : fileSize(sectionsOf(model));
  }

  function annBytes(model, members = membersOf(model)) {
    if (!isPacked(model)) return layout.floats[model.weights] * annParams(model, members);
    if (shapeFault(model, 1, 1)) return null;
    const plain = { ...model, intervals: false, identified: false, map_outputs: 0, target_bins: 0 };
    const { anchors, ...lengths } = sectionsOf(plain);
    return fileSize({ ...lengths, twins: members * recordBytes(plain, 1) });
  }

  function packSections(model) {
    if (packFault(model)) return null;
    const lengths = sectionsOf(model);
    const header = align(layout.header + layout.entry * Object.keys(lengths).length);
    const padding = fileSize(lengths) - header - sum(Object.values(lengths));
    return { header, ...lengths, padding };
  }

  // -- limits -----------------------------------------------------------------------------------

  function largest(fits, most) {
    let [low, high] = [0, most];
    while (low < high) {
      const middle = Math.floor((low + high + 1) / 2);
      if (fits(middle)) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  function smallerInParams(model) {
    const saved = annParams(model, 1) - (inputsOf(model) + 1);
    if (saved <= 0) return null;
    return Math.max(model.counts.length, Math.floor(networksOf(model) / saved) + 1);
  }

  function smallerInBytes(model) {
    if (!isPacked(model)) return smallerInParams(model);
    const saved = (members) => annBytes(model, members) - twinBytes(withAnchors(model, members));
    const [least, most] = [model.counts.length, layout.max_anchors];
    const growth = (saved(most) - saved(least)) / (most - least);
    if (growth <= 0 || saved(most) <= 0) return null;
    const near = Math.trunc((2 * layout.alignment - saved(least)) / growth) + least + 1;
    let members = Math.min(most, Math.max(least, near));
    while (members > least && saved(members - 1) > 0) members -= 1;
    return members;
  }

  // -- boards -----------------------------------------------------------------------------------

  // Scratch.bytes of twinedge/budget/measurements.py.
  function scratchBytes(kernel, model) {
    const { align: to } = kernel;
    const { feature, nearest, lines, fours } = facts.scratch;
    const inputs = align(inputsOf(model), fours);
    const total = (parts) => sum(parts.map((part) => align(part, to)));
    const blocks = model.hidden.slice(0, -1).map((width) => align(width, kernel.unit));
    const layers = [kernel.partial_bytes * model.hidden[0]];
    for (const width of blocks) layers.push(kernel.block_bytes * width);
    let room = total(layers) + kernel.work_bytes;
    if (model.map_outputs) room = Math.max(room, align(kernel.place_bytes * model.features, to));
    const parts = [kernel.room_bytes * inputs];
    if (model.neighbors > 0 && model.neighbors < Math.max(...model.counts))
      parts.push(nearest * model.neighbors);
    if (kernel.lines && model.activation === "silu") parts.push(lines);
    return room + total(parts) + feature * inputs + to - 1;
  }

  const ramBytes = (build, model) =>
    build.fixed_ram_bytes + scratchBytes(build.scratch, model) + facts.scratch.query * model.features;

  const shapeKey = (model) => JSON.stringify(facts.compared.map((name) => model[name]));

  function milliseconds(model, board, build) {
    const known = build.references.find((one) => shapeKey(one) === shapeKey(model));
    let range = known && [known.instructions, known.instructions];
    if (!known) {
      const adds = multiplyAdds(model);
      const counted = build.references
        .map((one) => [multiplyAdds(one), one.instructions])
        .sort(([adds1, count1], [adds2, count2]) => adds1 - adds2 || count1 - count2);
      const below = counted.filter((one) => one[0] <= adds).slice(-1);
      const above = counted.filter((one) => one[0] >= adds).slice(0, 1);
      const ratios = [...below, ...above].map(([work, count]) => count / work);
      if (!ratios.length) return null;
      range = [Math.min(...ratios), Math.max(...ratios)].map((one) => one * adds);
    }
    return range.map((count, end) => (1000 * count * board.cycles[end]) / board.clock);
  }

  const partsOf = (model) =>
    Object.keys(facts.parts).filter((name) => model[facts.parts[name].counted_by]);

  // The build for a model, with the parts that it needs; undefined if one was not measured.
  function buildFor(model, core) {
    const builds = (core ? core.builds : []).filter(
      (one) =>
        one.activation === model.activation &&
        one.weights === model.weights &&
        one.neighbors === model.neighbors > 0,
    );
    const build =
      builds.find((one) => one.intervals === model.intervals) || builds.find((one) => one.intervals);
    const parts = partsOf(model).map((name) => core && core.parts[name]);
    if (!build || !parts.every((one) => one)) return undefined;
    const total = (name) => build[name] + sum(parts.map((one) => one[name]));
    const sizes = ["flash_bytes", "fixed_ram_bytes"].map((name) => [name, total(name)]);
    const place_bytes = Math.max(build.scratch.place_bytes, ...parts.map((one) => one.place_bytes));
    return { ...build, ...Object.fromEntries(sizes), scratch: { ...build.scratch, place_bytes } };
  }

  function notMeasured(model, board) {
    const core = firmware[board.same_as];
    const missing = core ? partsOf(model).filter((name) => !core.parts[name]) : [];
    const words = missing.map((name) => facts.parts[name].words).join(" and ");
    return `the runtime was not run${words && ` with ${words}`} on ${board.same_as}`;
  }

  function boardVerdict(model, board) {
    const answer = (verdict, more) => ({
      board: board.name,
      title: board.title,
      core: board.core,
      measured_on: board.same_as in firmware ? board.same_as : null,
      free_flash_bytes: board.free_flash,
      free_ram_bytes: board.free_ram,
      verdict,
      why: "",
      anchors: null,
      flash_bytes: null,
      ram_bytes: null,
      milliseconds_estimated: null,
      ann_members: null,
      ...more,
    });
    const twins = model.counts.length;
    const least = withAnchors(model, twins);
    const fault = packFault(least);
    if (fault) return answer(verdicts.not, { why: fault });
    const build = buildFor(model, firmware[board.same_as]);
    if (!build) {
      const [size, flash] = [twinBytes(least), board.free_flash];
      if (flash !== null && size > flash)
        return answer(verdicts.not, {
          why: `the pack alone takes ${size} of ${flash} bytes of flash`,
        });
      return answer(verdicts.unknown, { why: notMeasured(model, board) });
    }

    const flashBytes = (one) => build.flash_bytes + twinBytes(one);
    const allRam = (one) => ramBytes(build, one) + (board.pack_in_ram ? twinBytes(one) : 0);
    function excess(one) {
      const wrong = packFault(one);
      if (wrong) return wrong;
      const flash = flashBytes(one);
      let ram = allRam(one);
      if (board.free_flash === null) ram += flash;
      else if (flash > board.free_flash) return `flash ${flash} of ${board.free_flash} bytes`;
      return ram > board.free_ram ? `RAM ${ram} of ${board.free_ram} bytes` : null;
    }
    function networks(one) {
      if (board.free_flash === null) return null;
      const ram = board.pack_in_ram ? board.free_ram - ramBytes(build, one) : Infinity;
      const room = Math.max(0, Math.min(board.free_flash - build.flash_bytes, ram));
      return largest((members) => annBytes(one, members) <= room, room);
    }
    function fitting(verdict, one) {
      const time = milliseconds(one, board, build);
      const slow = verdict === verdicts.fits && time && Math.max(...time) > facts.slow_milliseconds;
      return answer(slow ? verdicts.slow : verdict, {
        anchors: anchorsOf(one),
        flash_bytes: flashBytes(one),
        ram_bytes: allRam(one),
        milliseconds_estimated: time,
        ann_members: networks(one),
      });
    }

    if (excess(model) === null) return fitting(verdicts.fits, model);
    const share = largest(
      (each) => excess(withAnchors(model, each * twins)) === null,
      Math.floor((anchorsOf(model) - 1) / twins),
    );
    if (share) return fitting(verdicts.fewer, withAnchors(model, share * twins));
    let why = excess(least);
    if (anchorsOf(least) < anchorsOf(model))
      why += " even with one anchor" + (twins > 1 ? " for each twin" : "");
    return answer(verdicts.not, { why, ann_members: networks(model) });
  }

  // -- summary ----------------------------------------------------------------------------------

  // What `twinedge budget --json` prints; throws where that would refuse.
  function summarise(setting) {
    const model = modelOf(setting);
    const [twin, ann] = [twinBytes(model), annBytes(model)];
    const possible = twinBytes(withAnchors(model, model.counts.length)) !== null;
    const stored = WEIGHTS.map((weights) => {
      const one = { ...model, weights };
      return [weights, { twin: twinBytes(one), ann: annBytes(one) }];
    });
    const { levels, identified, ...shown } = setting;
    return {
      ...shown,
      members: membersOf(model),
      ann_params: annParams(model),
      twin_params: twinParams(model),
      ann_bytes: ann,
      twin_bytes: twin,
      file_bytes: null,
      ratio: twin === null || ann === null ? null : ann / twin,
      bytes: Object.fromEntries(stored),
      sections: packSections(model),
      multiply_adds: multiplyAdds(model),
      smaller_from: {
        params: smallerInParams(model),
        bytes: possible ? smallerInBytes(model) : null,
      },
      cores_measured: Object.keys(firmware).sort(),
      boards: boards.map((board) => boardVerdict(model, board)),
    };
  }

  // Parameters and bytes of both sides by ensemble size; null where no such model exists.
  function curves(setting, sizes) {
    return sizes.map((members) => {
      if (members < setting.twins) return { members, ann: [null, null], twin: [null, null] };
      const model = modelOf({ ...setting, anchors: members, neighbors: 0 });
      return {
        members,
        ann: [annParams(model), annBytes(model)],
        twin: [twinParams(model), twinBytes(model)],
      };
    });
  }

  return { summarise, curves };
};
