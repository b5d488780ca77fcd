// Times as the model takes them: where they lie in the day, the week and the year, in integers.

const Calendar = (() => {
  const QUARTER = 1 << 24;

  // Sine of t / 2^24 right angles, as model_sine of an exported C project has it.
  function sine(t, terms) {
    const [one, half] = [30n, 1n << 29n];
    const square = (BigInt(t) * BigInt(t) + (1n << 17n)) >> 18n;
    const sum = terms.map(BigInt).reduceRight((rest, term) => term - ((rest * square) >> one));
    return Number((BigInt(t) * sum + half) >> one) / QUARTER;
  }

  // Sine and cosine for each cycle; seconds since 1970, UTC.
  function waves(seconds, { cycles, sine: terms }) {
    return cycles.flatMap(([length, start]) => {
      const since = (((seconds - start) % length) + length) % length;
      const steps = Math.floor((since * 4 * QUARTER + length / 2) / length);
      const t = steps % QUARTER;
      return [0, 1].map((wave) => {
        const quarter = Math.floor(steps / QUARTER) + wave;
        const size = sine(quarter % 2 ? QUARTER - t : t, terms);
        return quarter & 2 ? -size : size;
      });
    });
  }

  // The text of a field, in UTC, and back; NaN if it is no time.
  const text = (seconds) => new Date(1000 * seconds).toISOString().slice(0, 19);
  const read = (words) => Date.parse(`${words}Z`) / 1000;

  // Seconds since the week began.
  const ofWeek = (seconds, { cycles: [, [length, start]] }) =>
    (((seconds - start) % length) + length) % length;

  return { waves, text, read, ofWeek };
})();
