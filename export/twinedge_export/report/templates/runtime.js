// The C runtime in the page: opens the pack, and predicts with the bits of a device.

const Twin = (() => {
  // A twin_prediction of firmware_ref/include/twin.h, in bytes; ports/wasm/page.c asserts it.
  const FLOATS = ["mean", "spread", "scale", "low", "high"];
  const [OUTSIDE, MISSING, INTERVALS, SIZE] = [20, 24, 30, 32];
  const PAGE = 65536;

  const bytesOf = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const align = (address) => Math.ceil(address / 16) * 16;

  async function open(facts) {
    const pack = bytesOf(facts.pack);
    const { instance } = await WebAssembly.instantiate(bytesOf(facts.wasm), {});
    const {
      memory, twin_page_place, twin_page_open, twin_page_features, twin_page_scratch,
      twin_page_coverage, twin_page_predict,
    } = instance.exports;

    // Pages of memory up to an address.
    function reach(address) {
      const more = Math.ceil((address - memory.buffer.byteLength) / PAGE);
      if (more > 0) memory.grow(more);
    }

    const place = twin_page_place();
    reach(place + pack.length);
    new Uint8Array(memory.buffer).set(pack, place);
    const status = twin_page_open(pack.length);
    if (status) throw new Error(`the runtime refuses the pack (status ${status})`);
    const [features, size] = [twin_page_features(), twin_page_scratch()];
    const query = align(place + pack.length);
    const answer = align(query + 4 * features);
    const scratch = align(answer + SIZE);
    reach(scratch + size);
    const numbers = new Float32Array(memory.buffer, query, features);
    const view = new DataView(memory.buffer, answer, SIZE);

    // Numbers in the user's units, NaN for missing ones; null if the runtime refuses them.
    function predict(values) {
      numbers.set(values);
      if (twin_page_predict(query, answer, scratch, size)) return null;
      const found = Object.fromEntries(
        FLOATS.map((name, number) => [name, view.getFloat32(4 * number, true)]),
      );
      const bits = view.getUint32(OUTSIDE, true);
      const calibrated = view.getUint8(INTERVALS) === 1;
      return { ...found, bits, missing: view.getUint32(MISSING, true), calibrated };
    }

    // Which values are outside their training range, as in `twinedge predict`.
    function outside(values, bits) {
      const { domain, ranges } = facts;
      if (domain === "bits") return values.map((_, k) => ((bits >>> k) & 1) === 1);
      if (!domain) return values.map((x, k) => x < ranges[0][k] || x > ranges[1][k]);
      return values.map((x, k) => {
        const units = Math.fround(Math.fround(Math.fround(x) - domain.offset[k]) * domain.gain[k]);
        const t = Math.min(Math.max(units, -32767), 32767);
        const q = Math.sign(t) * Math.floor(Math.abs(t) + 0.5);
        return q < domain.least[k] || q > domain.most[k];
      });
    }

    const cover = (thousandths) => twin_page_coverage(thousandths) === 0;
    return { features, predict, outside, cover };
  }

  return { open };
})();
