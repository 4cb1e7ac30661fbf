/**
 * Malformed inputs: texts composed from a target's own seeds and tokens, cut, doubled, spliced and corrupted. The same random
 * numbers give the same input.
 */

export interface Material {
  /** Whole valid documents. */
  readonly seeds: readonly string[];
  /** What the format gives a meaning to. */
  readonly tokens: readonly string[];
}

const mostCharacters = 64 * 1024;
const mostSteps = 12;
const dirt = [
  ..."é İ ß 😀 % %%3 %C0%AF 𐀀".split(" "),
  "\0",
  "\ufeff",
  "\u2028",
  "\ud800",
  "\udfff",
  "\u202e",
  "\r",
  "\t",
  "\x1b",
  "\xff",
];

export function hostileText(random: () => number, { seeds, tokens }: Material): string {
  let text = pick(random, seeds);
  const steps = 1 + Math.floor(random() * mostSteps);
  for (let step = 0; step < steps; step++) text = mutated(text, random, { seeds, tokens });
  return text.slice(0, mostCharacters);
}

/** The text's bytes, some of them changed. */
export function hostileBytes(random: () => number, text: string): Buffer {
  const bytes = Buffer.from(text, random() < 0.2 ? "utf16le" : "utf8");
  const flips = random() < 0.5 ? 0 : Math.floor(random() * 20);
  for (let flip = 0; flip < flips && bytes.length > 0; flip++) {
    bytes[Math.floor(random() * bytes.length)] = Math.floor(random() * 256);
  }
  return bytes;
}

export function pick<T>(random: () => number, values: readonly T[]): T {
  return values[Math.floor(random() * values.length)]!;
}

function mutated(text: string, random: () => number, material: Material): string {
  const from = Math.floor(random() * (text.length + 1));
  const to = Math.min(text.length, from + Math.floor(random() ** 3 * text.length));
  const [head, middle, tail] = [text.slice(0, from), text.slice(from, to), text.slice(to)];
  switch (Math.floor(random() * 8)) {
    case 0:
      return head + tail;
    case 1:
      return head + middle + middle + tail;
    case 2:
      return head + pick(random, material.tokens) + middle + tail;
    case 3:
      return (
        head + pick(random, material.tokens).repeat(1 + Math.floor(random() ** 4 * 4000)) + middle + tail
      );
    case 4:
      return head + pick(random, material.seeds) + tail;
    case 5:
      return head + pick(random, dirt) + middle + tail;
    case 6:
      return head + pick(random, dirt).repeat(1 + Math.floor(random() ** 4 * 4000)) + tail;
    default:
      return head + middle.split("").reverse().join("") + tail;
  }
}
